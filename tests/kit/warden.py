"""A warden process of its own, spoken to as its agent does."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from agent.containers import wire
from agent.containers.spawn import StartRequest

ROOT = Path(__file__).parents[2]
LIMIT_S = 90.0


class Warden:
    """One warden process, and the agent's end of its socket."""

    def __init__(
        self, work_dir: Path, on_agent_loss: str = "kill", recovery_timeout_s: float = 60
    ) -> None:
        self.work_dir = work_dir
        self.link, theirs = socket.socketpair()
        self.link.settimeout(LIMIT_S)
        with theirs:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-S", "-X", "utf8", "-m", "agent.containers.warden"),
                    *(str(theirs.fileno()), str(work_dir)),
                    *(on_agent_loss, str(recovery_timeout_s)),
                ],
                env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"], "AGENTS_OWN": "x"},
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._unpacker = wire.Unpacker()
        self._heard: list[list[Any]] = []

    def start(self, name: str, *argv: str, **request: Any) -> None:
        self.send(["start", make(name, *argv, **request)])

    def signal(self, name: str, number: int) -> None:
        self.send(["signal", name, number])

    def send(self, *messages: list[Any]) -> None:
        self.link.sendall(wire.pack(messages))

    def hear(self, what: str, name: str) -> Any:
        """Wait for a message about a container; its detail."""
        while True:
            for message in self._heard:
                if message[:2] == [what, name]:
                    self._heard.remove(message)
                    return message[2]
            data = self.link.recv(65536)
            assert data, "the warden has gone"
            self._heard += self._unpacker.feed(data)

    def heard(self, what: str, name: str) -> bool:
        """Whether it was said already, without waiting."""
        self.link.setblocking(False)
        try:
            self._heard += self._unpacker.feed(self.link.recv(65536))
        except BlockingIOError:
            pass
        finally:
            self.link.settimeout(LIMIT_S)
        return any(message[:2] == [what, name] for message in self._heard)

    def run(self, name: str, *argv: str, **request: Any) -> tuple[int, int]:
        """Start and wait for the end: pid and wait status."""
        self.start(name, *argv, **request)
        return self.hear("started", name), self.hear("ended", name)

    def sandbox(self, name: str) -> Path:
        return self.work_dir / "agents/A/runs" / name

    def output(self, name: str) -> str:
        return (self.sandbox(name) / "stdout").read_text()

    def close(self) -> None:
        self.link.close()
        assert self.process.wait(LIMIT_S) == 0


def make(name: str, *argv: str, **request: Any) -> StartRequest:
    made = StartRequest(
        id=name,
        exe=argv[0] if argv else "/bin/true",
        argv=list(argv) or ["/bin/true"],
        env={"PATH": "/usr/bin:/bin", "MESOS_CONTAINER_ID": name},
        sandbox=["agents", "A", "runs", name],
        owner=(os.getuid(), os.getgid()),
        user=None,
        enter=[],
        namespaces=[],
        rlimits=[],
    )
    made.update(request)  # type: ignore[typeddict-item]
    return made


def sh(script: str) -> tuple[str, str, str]:
    return ("/bin/sh", "-c", script)
