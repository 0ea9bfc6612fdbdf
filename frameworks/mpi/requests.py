"""What is to be run on each host, as the launcher says it, collected."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Final

from frameworks.mpi.backends.base import Backend, Proxy

AGENT: Final = Path(__file__).with_name("agent.py")
_LONGEST: Final = 1024 * 1024


class Requests:
    """One command line for each of so many hosts."""

    def __init__(self, backend: Backend, hosts: int) -> None:
        self._backend = backend
        self._commands: list[str | None] = [None] * hosts
        self._complete = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._directory: tempfile.TemporaryDirectory[str] | None = None

    async def listen(self) -> list[str]:
        """The command by which a launcher can ask, HOST and COMMAND following."""
        self._directory = tempfile.TemporaryDirectory(prefix="mesos-py-mpi-")
        path = f"{self._directory.name}/ask"
        self._server = await asyncio.start_unix_server(self._asked, path, limit=_LONGEST)
        return [sys.executable, "-I", "-S", str(AGENT), path]

    @property
    def directory(self) -> str:
        """Nobody else's, and gone after `close`."""
        assert self._directory is not None
        return self._directory.name

    def put(self, proxy: Proxy) -> bool:
        """A launcher has said what to run on a host; the first word counts."""
        if not 0 <= proxy.host < len(self._commands):
            return False
        if self._commands[proxy.host] is None:
            self._commands[proxy.host] = proxy.command
        if None not in self._commands:
            self._complete.set()
        return True

    async def all(self) -> list[str]:
        """The command lines, in the order of the hosts, once all are there."""
        await self._complete.wait()
        return [command for command in self._commands if command is not None]

    def close(self) -> None:
        """Take no more.  Idempotent."""
        if self._server is not None:
            self._server.close()
        if self._directory is not None:
            self._directory.cleanup()
            self._directory = None

    async def _asked(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            order = json.loads(await reader.readline())
            proxy = self._backend.asked(order["host"], order["words"])
            known = proxy is not None and self.put(proxy)
            writer.write(b"ok\n" if known else b"no\n")
            await writer.drain()
        writer.close()
