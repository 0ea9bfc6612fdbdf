"""Where one agent runs, again and again: killed, left, started anew."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

from mesos_py.states import short_name
from tests.kit.agent_master import AgentProcess, FakeMaster

KEEP: Final = ("--tasks-on-exit", "keep")


class Host:
    """Where one agent runs, again and again."""

    def __init__(self, master: FakeMaster, work_dir: Path) -> None:
        self.master = master
        self.work_dir = work_dir
        self.agent: AgentProcess | None = None

    async def start(self, *flags: str) -> AgentProcess:
        times = len(self.master.registrations)
        self.agent = AgentProcess(self.master.address, self.work_dir, *KEEP, *flags)
        await self.master.registered(times + 1)
        return self.agent

    def launch(self, *flags: str) -> AgentProcess:
        """Start it, and expect nothing."""
        return AgentProcess(self.master.address, self.work_dir, *KEEP, *flags)

    async def kill(self) -> None:
        assert self.agent is not None
        self.agent.process.kill()
        await self.agent.ended()

    async def leave(self) -> None:
        """As a service manager does."""
        assert self.agent is not None
        self.agent.process.terminate()
        assert await self.agent.ended() == 0

    async def close(self) -> None:
        """Nothing may be left, whatever the test has done."""
        if self.agent is not None and self.agent.process.poll() is None:
            self.agent.process.send_signal(signal.SIGINT)
            await self.agent.ended()
        cleaned = clean_up(self.work_dir)
        assert cleaned.returncode == 0, cleaned.stderr


def clean_up(work_dir: Path, how: str = "cleanup") -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "mesos_py.cli", "agent", "--master", "127.0.0.1:1"]
    argv += ["--work-dir", str(work_dir), "--recover", how]
    return subprocess.run(argv, capture_output=True, text=True)


def warden_of(agent: AgentProcess) -> int:
    """Its pid; of a warden that was found, the parent of nothing of ours."""
    for line in agent.log.read_text().splitlines():
        if "warden started" in line or "warden found" in line:
            return int(line.rpartition("pid=")[2].split()[0])
    raise AssertionError(agent.log.read_text())


def told(master: FakeMaster, task_id: str) -> list[str]:
    """The states of its updates, each once: the last one before a kill may come again."""
    different = {status.uuid: status for status in master.updates(task_id)}
    return [short_name(status.state) for status in different.values()]
