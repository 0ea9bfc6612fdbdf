"""The agent's end of its warden: starts it, sends requests in batches, notices its end."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Protocol

from agent.containers import wire
from agent.containers.warden import OnAgentLoss
from mesos_py import logs

log = logs.get("agent.warden")


class Listener(Protocol):
    """Who hears what a warden says.  Called on the event loop."""

    def warden_said(self, messages: list[list[Any]]) -> None: ...

    def warden_lost(self) -> None:
        """It has ended without being asked to.  All that it had said was heard before."""
        ...


class WardenClient(asyncio.Protocol):
    """One warden.  `send` queues, `flush` writes what is queued as one frame."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._unpacker = wire.Unpacker()
        self._queue: list[list[Any]] = []
        self._transport: asyncio.Transport | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._closing = False
        self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def pid(self) -> int:
        return self._process.pid if self._process is not None else 0

    async def start(self, work_dir: str, on_agent_loss: OnAgentLoss) -> None:
        """Start the process.  Requests may be sent at once; it works them off when it is up."""
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = _started(theirs, work_dir, on_agent_loss)
        await asyncio.get_running_loop().create_connection(lambda: self, sock=ours)
        log.info("warden started", pid=self._process.pid)

    def send(self, message: list[Any]) -> None:
        self._queue.append(message)

    def flush(self) -> None:
        if self._queue and self._transport is not None:
            self._transport.write(wire.pack(self._queue))
            self._queue.clear()

    async def close(self) -> None:
        """Let it end everything that it still has, and itself; wait for that."""
        self._closing = True
        if self._transport is None:
            return
        self.flush()
        if self._transport.can_write_eof():
            self._transport.write_eof()
        await self._gone

    # ---- asyncio.Protocol ---------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            messages = self._unpacker.feed(data)
        except ValueError as error:
            # Not our warden's words: better none than one that says nonsense.
            log.error("warden talks nonsense", pid=self.pid, error=error)
            if self._transport is not None:
                self._transport.abort()
            return
        self._listener.warden_said(messages)

    def connection_lost(self, exc: Exception | None) -> None:
        process = self._process
        assert process is not None
        self._transport = None
        if not self._closing:
            # Whatever happened to its socket, it must not go on beside its successor.
            process.kill()
        # It has ended or is about to: a moment, not a wait.
        status = process.wait()
        if not self._gone.done():
            self._gone.set_result(None)
        if not self._closing:
            log.error("warden ended", pid=process.pid, status=status)
            self._listener.warden_lost()


def _started(
    theirs: socket.socket, work_dir: str, on_agent_loss: OnAgentLoss
) -> subprocess.Popen[bytes]:
    root = str(Path(__file__).parents[2])
    arguments = [str(theirs.fileno()), work_dir, on_agent_loss.value]
    return subprocess.Popen(
        # -S and -E: none of the packages of this environment, so it starts fast.
        [sys.executable, "-S", "-X", "utf8", "-m", "agent.containers.warden", *arguments],
        env={"PATH": os.environ.get("PATH", ""), "PYTHONPATH": root},
        cwd="/",
        stdin=subprocess.DEVNULL,
        pass_fds=[theirs.fileno()],
        start_new_session=True,
    )
