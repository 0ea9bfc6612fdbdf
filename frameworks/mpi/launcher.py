"""The launcher as a child process: what it wants to be run, and what ranks have written."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from frameworks.mpi.backends.base import Backend, Launch
from frameworks.mpi.core.streams import Text
from frameworks.mpi.requests import Requests
from mesos_py import MesosPyError

TETHER: Final = Path(__file__).with_name("tether.py")
_CHUNK: Final = 256 * 1024
# Whoever still holds its pipes when it has ended.
_DRAIN_S: Final = 2.0

OnText = Callable[[str, Text], Awaitable[None]]


class Launcher:
    """One launcher; it cannot outlive this process.

    on_text: gets what is written to "stdout" and "stderr", in order, and holds it back while it
    is not done.
    """

    def __init__(self, backend: Backend, launch: Launch, requests: Requests, on_text: OnText):
        self._backend = backend
        self._launch = launch
        self._requests = requests
        self._on_text = on_text
        self._process: asyncio.subprocess.Process | None = None
        self._pumps: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Raises MesosPyError if its program is not here."""
        argv = self._backend.argv(self._launch)
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", str(TETHER), str(os.getpid()), *argv),
            stdin=_stdin(),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            # Its own files go with us, however it ends.
            env={**os.environ, **self._backend.environment(), "TMPDIR": self._requests.directory},
            # Ctrl-C is for us: we end it, and say so.
            start_new_session=True,
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._pumps = [
            asyncio.create_task(self._stdout(self._process.stdout)),
            asyncio.create_task(self._pump("stderr", self._process.stderr)),
        ]

    async def wait(self) -> int:
        """Its exit code, as subprocess has it, once all that it wrote was taken in."""
        assert self._process is not None
        code = await self._process.wait()
        done, late = await asyncio.wait(self._pumps, timeout=_DRAIN_S)
        for pump in late:
            pump.cancel()
        await asyncio.gather(*late, return_exceptions=True)
        for pump in done:
            pump.result()
        return code

    async def kill(self) -> None:
        """End it and its children at once, and drop what has not been read.  Idempotent."""
        if self._process is None:
            return
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        for pump in self._pumps:
            pump.cancel()
        # Helpers of the launcher's may still hold its pipes; that is not waited for.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_S):
                await self._process.wait()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    async def _stdout(self, stream: asyncio.StreamReader) -> None:
        last = self._backend.last_printed
        while last is not None:
            line = await stream.readline()
            if not line:
                raise MesosPyError("the launcher has ended before it said what is to be run")
            proxy = self._backend.printed(line)
            if proxy is not None:
                self._requests.put(proxy)
            elif line.strip() == last:
                break
            else:
                await self._on_text("stdout", Text(None, line))
        await self._pump("stdout", stream)

    async def _pump(self, name: str, stream: asyncio.StreamReader) -> None:
        marks = self._backend.marks(self._launch, name)
        while data := await stream.read(_CHUNK):
            for text in marks.feed(data):
                await self._on_text(name, text)
        for text in marks.feed(b"", last=True):
            await self._on_text(name, text)


def _stdin() -> int | None:
    """Ours; nothing, if that is a terminal at which we are in the background."""
    try:
        if sys.stdin is None or sys.stdin.closed:
            return asyncio.subprocess.DEVNULL
        if os.isatty(0) and os.tcgetpgrp(0) != os.getpgrp():
            return asyncio.subprocess.DEVNULL
    except OSError:
        return asyncio.subprocess.DEVNULL
    return None
