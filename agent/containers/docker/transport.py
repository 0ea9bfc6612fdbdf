"""One connection to dockerd for the SDK, kept as long as it is good.

The SDK's own transport keeps connections by the whole URL, so that none is used twice,
and leaves the socket of one that fails to the garbage collector.
"""

from __future__ import annotations

import contextlib
import socket
from typing import Any
from weakref import WeakSet

import docker
from docker.transport import unixconn

_BASE = "http+docker://localhost"


class _Connection(unixconn.UnixHTTPConnection):
    def connect(self) -> None:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            made.settimeout(self.timeout)
            made.connect(self.unix_socket)
        except BaseException:
            made.close()
            raise
        self.sock = made


class _Pool(unixconn.UnixHTTPConnectionPool):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.made: WeakSet[_Connection] = WeakSet()

    def _new_conn(self) -> Any:
        timeout: Any = self.timeout
        connection = _Connection(self.base_url, self.socket_path, timeout)
        self.made.add(connection)
        return connection


class _Adapter(unixconn.UnixHTTPAdapter):
    @property
    def connections(self) -> WeakSet[_Connection]:
        pool: _Pool | None = self.pools.get(_BASE)
        return pool.made if pool is not None else WeakSet()

    def get_connection(self, url: Any, proxies: Any = None) -> Any:
        with self.pools.lock:
            pool = self.pools.get(_BASE)
            if pool is None:
                pool = _Pool(_BASE, self.socket_path, self.timeout, maxsize=1)
                self.pools[_BASE] = pool
            return pool


def new_client(path: str, version: str, timeout_s: float) -> docker.APIClient:
    """Of the SDK, over the Unix socket `path`; for one thread."""
    # Typed as whole seconds, and taken in parts of them too.
    timeout: Any = timeout_s
    client = docker.APIClient(f"unix://{path}", version=version, timeout=timeout)
    client.mount("http+docker://", _Adapter(f"http+unix://{path}", timeout=timeout))
    return client


def cut_off(client: docker.APIClient) -> None:
    """End what it waits for, from another thread; no thread hangs on a dockerd that does."""
    adapter = client.get_adapter(_BASE)
    assert isinstance(adapter, _Adapter)
    for connection in list(adapter.connections):
        made = connection.sock
        if made is not None:
            with contextlib.suppress(OSError):
                made.shutdown(socket.SHUT_RDWR)
