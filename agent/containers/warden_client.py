"""The agent's end of its warden: starts it, sends requests in batches, notices its end.

A warden may be one that an earlier run of the agent has started (`Attached`).
"""

from __future__ import annotations

import asyncio
import os
import select
import signal
import socket
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from agent.containers import sandbox, wire
from agent.containers.warden import OnAgentLoss
from mesos_py import logs

log = logs.get("agent.warden")

# So many containers may be forgotten before the warden is told for that alone.
_FORGET_AT_ONCE: Final = 100
# A warden that is alive answers at once.
_ANSWER_S: Final = 10.0


class Listener(Protocol):
    """Who hears what a warden says.  Called on the event loop."""

    def warden_said(self, messages: list[list[Any]]) -> None: ...

    def warden_lost(self) -> None:
        """It has ended without being asked to.  All that it had said was heard before."""
        ...


@dataclass
class Attached:
    """A warden of an earlier run of this agent, and what it had to tell."""

    link: socket.socket
    pid: int
    messages: list[list[Any]]
    unpacker: wire.Unpacker

    @property
    def version(self) -> int:
        """Of the protocol that it speaks."""
        return next(int(said[1]) for said in self.messages if said[0] == "ready")


def attach(work_dir: str) -> Attached | None:
    """Find the warden that an earlier run of this agent has left; None: there is none.

    One that does not answer is ended: its tasks go on without it.  May block.
    """
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    link.settimeout(_ANSWER_S)
    try:
        with sandbox.opened(work_dir) as root:
            link.connect(f"/proc/self/fd/{root}/{wire.SOCKET_NAME}")
    except OSError:
        link.close()
        return None
    credentials = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _ = struct.unpack("3i", credentials)
    if uid != os.getuid():
        log.error("warden of another user", uid=uid)
        link.close()
        return None
    attached = Attached(link, pid, [], wire.Unpacker())
    try:
        pidfd = os.pidfd_open(pid)  # while it holds its end: so it is no other's number
    except ProcessLookupError:
        link.close()
        return None
    try:
        while not any(message[0] == "ready" for message in attached.messages):
            data = link.recv(1 << 20)
            if not data:
                raise ConnectionResetError
            attached.messages.extend(attached.unpacker.feed(data))
    except ConnectionError:
        # It was about to end: what it had to tell is in the file.
        link.close()
        os.close(pidfd)
        return None
    except (OSError, ValueError) as error:
        log.error("warden does not answer", pid=pid, error=error)
        link.close()
        _end(pidfd)
        return None
    os.close(pidfd)
    link.setblocking(False)
    log.info("warden found", pid=pid)
    return attached


def left_word(work_dir: str) -> list[list[Any]]:
    """What a warden that has ended since has left to tell.  Raises OSError, ValueError."""
    with sandbox.opened(work_dir) as root:
        try:
            flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
            fd = os.open(wire.ENDS_NAME, flags, dir_fd=root)
        except FileNotFoundError:
            return []
        with os.fdopen(fd, "rb") as file:
            return wire.Unpacker().feed(file.read())


def forget_word(work_dir: str) -> None:
    with sandbox.opened(work_dir) as root:
        try:
            os.unlink(wire.ENDS_NAME, dir_fd=root)
        except FileNotFoundError:
            pass


def _end(pidfd: int) -> None:
    """Kill a process and wait until it is gone: a moment."""
    try:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        select.select([pidfd], [], [], _ANSWER_S)
    except ProcessLookupError:
        pass
    finally:
        os.close(pidfd)


class WardenClient(asyncio.Protocol):
    """One warden.  `send` queues, `flush` writes what is queued as one frame."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._unpacker = wire.Unpacker()
        self._queue: list[list[Any]] = []
        self._forgotten: list[list[Any]] = []
        self._transport: asyncio.Transport | None = None
        self._process: subprocess.Popen[bytes] | None = None
        # Of one that is no child of ours.
        self._pidfd = -1
        self.pid = 0
        # Whether we have let go of it; what it does then is no loss.
        self._closing = False
        self._leaving = False
        self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def start(
        self, work_dir: str, on_agent_loss: OnAgentLoss, recovery_timeout_s: float
    ) -> None:
        """Start the process.  Requests may be sent at once; it works them off when it is up."""
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = _started(theirs, work_dir, on_agent_loss, recovery_timeout_s)
        self.pid = self._process.pid
        await asyncio.get_running_loop().create_connection(lambda: self, sock=ours)
        log.info("warden started", pid=self.pid)

    async def take_over(self, attached: Attached) -> None:
        """Go on with one that was found."""
        self._pidfd = os.pidfd_open(attached.pid)
        self.pid, self._unpacker = attached.pid, attached.unpacker
        await asyncio.get_running_loop().create_connection(lambda: self, sock=attached.link)

    def send(self, message: list[Any]) -> None:
        self._queue.append(message)

    def forget(self, container_id: str) -> None:
        """As `send`, but it is no reason to wake the warden: what is not said before the
        agent ends is found out by the next one."""
        self._forgotten.append(["forget", container_id])

    def flush(self) -> None:
        if self._transport is None:
            return
        if self._queue or len(self._forgotten) >= _FORGET_AT_ONCE:
            self._transport.write(wire.pack([*self._queue, *self._forgotten]))
            self._queue.clear()
            self._forgotten.clear()

    async def close(self) -> None:
        """Let it end everything that it still has, and itself; wait for that."""
        self._closing = True
        if self._transport is None:
            return
        self.send(["end"])
        self.flush()
        if self._transport.can_write_eof():
            self._transport.write_eof()
        await self._gone

    async def leave(self) -> None:
        """Let it go on by itself: it waits for the next run of this agent."""
        self._closing = self._leaving = True
        if self._transport is None:
            return
        self._queue.extend(self._forgotten)
        self._forgotten.clear()
        self.flush()
        self._transport.close()
        await self._gone
        if self._process is not None:
            self._process.returncode = 0  # it is not to be waited for

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
        self._transport = None
        if not self._leaving:
            status = self._ended()
        if not self._gone.done():
            self._gone.set_result(None)
        if not self._closing:
            log.error("warden ended", pid=self.pid, status=status)
            self._listener.warden_lost()

    def _ended(self) -> int | None:
        """Its wait status.  It has ended or is about to: a moment, not a wait."""
        if self._process is None:
            _end(self._pidfd)
            return None
        if not self._closing:
            # Whatever happened to its socket, it must not go on beside its successor.
            self._process.kill()
        return self._process.wait()


def _started(
    theirs: socket.socket, work_dir: str, on_agent_loss: OnAgentLoss, recovery_timeout_s: float
) -> subprocess.Popen[bytes]:
    root = str(Path(__file__).parents[2])
    arguments = [str(theirs.fileno()), work_dir, on_agent_loss.value, str(recovery_timeout_s)]
    return subprocess.Popen(
        # -S and -E: none of the packages of this environment, so it starts fast.
        [sys.executable, "-S", "-X", "utf8", "-m", "agent.containers.warden", *arguments],
        env={"PATH": os.environ.get("PATH", ""), "PYTHONPATH": root},
        cwd="/",
        stdin=subprocess.DEVNULL,
        pass_fds=[theirs.fileno()],
        start_new_session=True,
    )
