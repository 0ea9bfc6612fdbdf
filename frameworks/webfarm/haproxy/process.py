"""Has haproxy run: starts it or takes over one that runs, and speaks to its socket."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Final

from frameworks.webfarm.core import haproxy as text
from frameworks.webfarm.core.balancer import Reading
from frameworks.webfarm.core.haproxy import Front
from mesos_py import logs
from mesos_py.errors import Conflict, InternalError, MesosPyError, PortInUse, Unavailable
from mesos_py.files import write_atomically

log = logs.get("webfarm.haproxy")

CONFIG_FILE: Final = "haproxy.cfg"
LOG_FILE: Final = "haproxy.log"
PROGRAM: Final = "haproxy"
ANSWER_S: Final = 5.0
START_S: Final = 15.0
LOOK_EVERY_S: Final = 0.02


class Haproxy:
    """The Balancer (balancer.py) of one directory, which holds its files and its socket.

    haproxy is in a session of its own and outlives whoever started it; the next one with the
    directory takes it over.  It ends only by `close`.
    """

    def __init__(self, directory: Path, front: Front) -> None:
        """Starts nothing yet."""
        self._directory = directory
        self._front = front
        self._process: subprocess.Popen[bytes] | None = None
        # Of the haproxy that answers at the socket; closed when it has ended.
        self._pidfd: int | None = None

    # ---- Life ------------------------------------------------------------------

    async def start(self) -> bool:
        """See Balancer.  Raises PortInUse, Conflict if the
        one that runs has other slots or another port than are asked for now, and Unavailable
        with its words if it ends at once."""
        wanted = text.configuration(self._front)
        config = self._directory / CONFIG_FILE
        if (pid := await self._pid()) is not None:
            if config.read_text() != wanted:
                raise Conflict(
                    f"haproxy runs (pid {pid}) with another configuration than is asked for now:"
                    f" end it first (webfarm down), or ask for what {config} has"
                )
            self._watch(pid)
            return True
        write_atomically(config, wanted)
        (self._directory / text.STATE_FILE).touch()
        self._launch()
        await self._until_ready()
        return False

    async def died(self) -> None:
        if self._pidfd is None:
            return
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(self._pidfd, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(self._pidfd)
        self._reap()

    async def close(self) -> None:
        """SIGUSR1: it takes nothing new, and ends with what is open, or after `close_s`."""
        # The next one is of another farm.
        (self._directory / text.STATE_FILE).unlink(missing_ok=True)
        if (pid := await self._pid()) is None:
            return
        self._watch(pid)
        assert self._pidfd is not None
        signal.pidfd_send_signal(self._pidfd, signal.SIGUSR1)
        try:
            async with asyncio.timeout(self._front.close_s + ANSWER_S):
                await self.died()
        except TimeoutError:
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
            await self.died()

    def leave(self) -> None:
        """Let it run on without us."""
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None
        if self._process is not None:
            # It is not ours to wait for any more.
            self._process.returncode = 0
            self._process = None

    def _launch(self) -> None:
        program = shutil.which(PROGRAM, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
        if program is None:
            raise Unavailable(f"{PROGRAM} is not installed here (Debian: apt install haproxy)")
        with (self._directory / LOG_FILE).open("wb") as log_file:
            self._process = subprocess.Popen(
                [program, "-db", "-f", CONFIG_FILE],
                cwd=self._directory,
                stdin=subprocess.DEVNULL,
                stdout=log_file,
                stderr=log_file,
                start_new_session=True,
            )
        log.info("haproxy started", pid=self._process.pid, port=self._front.port)

    async def _until_ready(self) -> None:
        assert self._process is not None
        pid = self._process.pid
        try:
            async with asyncio.timeout(START_S):
                while await self._pid() != pid:
                    if self._process.poll() is not None:
                        raise self._why_ended()
                    await asyncio.sleep(LOOK_EVERY_S)
        except TimeoutError:
            self._process.kill()
            self._process.wait()
            raise Unavailable(f"haproxy does not answer within {START_S:g} s") from None
        self._watch(pid)

    def _why_ended(self) -> MesosPyError:
        said = (self._directory / LOG_FILE).read_text(errors="replace")
        # The reasons are alerts; the rest tells of versions and paths.
        alerts = [line.split(" : ", 1)[-1] for line in said.splitlines() if "[ALERT]" in line]
        if any("cannot bind" in alert for alert in alerts):
            return PortInUse(f"haproxy cannot have port {self._front.port}: {alerts[0]}")
        return Unavailable(f"haproxy ends at once: {'; '.join(alerts) or said[-500:]}")

    def _watch(self, pid: int) -> None:
        if self._pidfd is not None:
            return
        try:
            self._pidfd = os.pidfd_open(pid)
        except ProcessLookupError as error:
            raise Unavailable(f"haproxy (pid {pid}) has just ended") from error

    def _reap(self) -> None:
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None
        if self._process is not None:
            self._process.wait()
            self._process = None

    async def _pid(self) -> int | None:
        """Of the one that answers at the socket; None: nobody does."""
        try:
            info = await self._ask("show info")
        except Unavailable:
            return None
        for line in info.splitlines():
            if line.startswith("Pid: "):
                return int(line.removeprefix("Pid: "))
        raise InternalError(f"haproxy tells no pid: {info[:80]!r}")

    # ---- Servers -----------------------------------------------------------------

    async def read(self) -> Reading:
        stat = await self._ask("show stat")
        servers = await self._ask(f"show servers state {text.BACKEND}")
        info = await self._ask("show info")
        return text.reading(stat, servers, info)

    async def put(self, slot: str, address: str, port: int) -> None:
        await self._do(text.put(slot, address, port))

    async def open(self, slot: str) -> None:
        await self._do(text.state(slot, "ready"))

    async def hold(self, slot: str) -> None:
        await self._do(text.state(slot, "drain"))

    async def free(self, slot: str) -> None:
        await self._do(text.state(slot, "maint"))

    async def _do(self, commands: list[str]) -> None:
        if trouble := text.complaint(await self._ask("; ".join(commands))):
            raise InternalError(f"haproxy refuses {commands[0]!r}: {trouble}")
        # A new haproxy begins with what this one has.
        servers = await self._ask("show servers state")
        if text.slots(servers):
            write_atomically(self._directory / text.STATE_FILE, servers)

    async def _ask(self, command: str) -> str:
        """Raises Unavailable."""
        try:
            async with asyncio.timeout(ANSWER_S):
                reader, writer = await self._connect()
                try:
                    writer.write(f"{command}\n".encode())
                    return (await reader.read(-1)).decode(errors="replace")
                finally:
                    writer.close()
                    with contextlib.suppress(OSError):
                        await writer.wait_closed()
        except (OSError, TimeoutError) as error:
            raise Unavailable(f"haproxy does not answer: {str(error) or 'not in time'}") from error

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        # A path of any length: a socket's may have a hundred characters only.
        directory = os.open(self._directory, os.O_PATH | os.O_DIRECTORY)
        try:
            return await asyncio.open_unix_connection(
                f"/proc/self/fd/{directory}/{text.SOCKET_FILE}", limit=2**22
            )
        finally:
            os.close(directory)


__all__ = ["Haproxy"]
