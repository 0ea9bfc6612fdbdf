"""Fetching a part of a file from an agent's file server: what a map has left for others.

The standard library's client is used, not the project's aiohttp: who fetches are plain processes
with a few threads, each of which asks for one part after the other, and an event loop would
have to hand each block over to such a thread anyway.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
from collections.abc import Generator, Iterator
from enum import Enum, auto
from typing import Final
from urllib.parse import urlsplit

from mesos_py.errors import MesosPyError

_READ: Final = 1 << 18
_OK: Final = 200
_PART: Final = 206
# Answers that say that it is not there; a range beyond the end is one of a file cut off.
_GONE: Final = (400, 403, 404, 410, 416)


class Blame(Enum):
    """Why an output could not be had."""

    HOST = auto()  # no connection, or it broke
    OUTPUT = auto()  # other bytes came than were written
    GONE = auto()  # the host does not have it


class FetchError(MesosPyError):
    """A part of a file could not be had; `blame` says whose fault it is."""

    code = "fetch-failed"

    def __init__(self, url: str, reason: str, blame: Blame) -> None:
        super().__init__(f"{url}: {reason}", url=url, reason=reason)
        self.blame = blame


class Fetcher:
    """Keeps a connection to each server.  For one thread, which calls `end` at last; `close`
    may be called by another, and breaks off what is under way."""

    def __init__(self, timeout_s: float) -> None:
        """timeout_s: for connecting, and for each wait for more bytes."""
        self._timeout_s = timeout_s
        self._connections: dict[str, http.client.HTTPConnection] = {}
        self._sockets: dict[str, socket.socket] = {}
        self._closed = False

    def fetch(self, file: str, first: int, left: int) -> Generator[bytes, None, None]:
        """`left` bytes, one or more, of the file with this URL, from `first` on.

        Raises FetchError, also in the midst of it; it is for the caller to check that they are
        the right ones.
        """
        url = urlsplit(file)
        if url.scheme != "http" or not url.netloc:
            raise FetchError(file, "is no http URL", Blame.GONE)
        whole = False
        try:
            answer = self._ask(url.netloc, url.path, first, first + left - 1)
            if answer.status not in (_OK, _PART):
                blame = Blame.GONE if answer.status in _GONE else Blame.HOST
                said = answer.read(200).decode("utf-8", "replace").strip()
                raise FetchError(file, f"{answer.status} {answer.reason} {said}", blame)
            if answer.status == _OK:
                for _ in _read(answer, first):
                    pass
            elif not answer.getheader("Content-Range", "").startswith(f"bytes {first}-"):
                raise FetchError(file, "another range came", Blame.OUTPUT)
            for block in _read(answer, left):
                left -= len(block)
                yield block
            whole = not left and answer.isclosed()
            if left:
                raise FetchError(file, f"broke off {left} bytes before its end", Blame.HOST)
        except (OSError, http.client.HTTPException) as error:
            reason = str(error) or type(error).__name__
            raise FetchError(file, reason, Blame.HOST) from None
        finally:
            if not whole:
                self._drop(url.netloc)

    def _ask(self, host: str, path: str, first: int, last: int) -> http.client.HTTPResponse:
        kept = host in self._connections
        connection = self._connections.get(host)
        if self._closed:
            raise ConnectionAbortedError("closed")
        if connection is None:
            connection = http.client.HTTPConnection(host, timeout=self._timeout_s)
            connection.connect()
            self._connections[host] = connection
            self._sockets[host] = connection.sock
        try:
            connection.request("GET", path, headers={"Range": f"bytes={first}-{last}"})
            return connection.getresponse()
        except (ConnectionError, http.client.HTTPException):
            self._drop(host)
            if not kept:
                raise
            # The server has closed it after the last answer, as it may.
            return self._ask(host, path, first, last)

    def _drop(self, host: str) -> None:
        if connection := self._connections.pop(host, None):
            connection.close()
        self._sockets.pop(host, None)

    def end(self) -> None:
        for host in list(self._connections):
            self._drop(host)

    def close(self) -> None:
        self._closed = True
        for each in list(self._sockets.values()):
            # Closing alone would not wake who waits for it.
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


def _read(answer: http.client.HTTPResponse, size: int) -> Iterator[bytes]:
    while size and (block := answer.read(min(size, _READ))):
        size -= len(block)
        yield block
