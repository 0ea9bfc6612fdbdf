"""Three masters that elect their leader through a ZooKeeper server of the bench's own."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import time
from pathlib import Path
from typing import Final

from bench.failover.rounds import Servers
from bench.processes import LOOPBACK, BenchFailed, Processes, cpu_seconds
from mesos_py.address import parse_address
from tests.kit.zookeeper import NEEDS, Ensemble

SESSION_S: Final = 2.0
_MASTERS: Final = 3


def available() -> bool:
    """Whether there is a ZooKeeper to be started here."""
    return all(shutil.which(name) or Path(name).exists() for name in NEEDS)


class Elected(Servers):
    """Whoever leads is killed; ZooKeeper takes note when its session is over."""

    def __init__(self, session_s: float = SESSION_S) -> None:
        self._session_s = session_s
        self._numbers = itertools.count(1)
        self._masters: dict[int, subprocess.Popen[bytes]] = {}
        self._used_s: dict[int, float] = {}
        self._leader = 0

    def start(self, running: Processes) -> str:
        self._running = running
        self._zookeeper = running.enter(Ensemble(running.directory / "zookeeper"))
        for _ in range(_MASTERS):
            self.restore()
        return self._zookeeper.url("/mesos")

    def kill(self, leader: str) -> float:
        port = parse_address(leader, "leader").port
        killed = self._masters.pop(port)
        self._used_s = {port: cpu_seconds([process.pid]) for port, process in self._masters.items()}
        killed_s = time.monotonic()
        self._running.kill(killed)
        return killed_s

    def leader_cpu_s(self, leader: str) -> float:
        port = parse_address(leader, "leader").port
        if port not in self._used_s:
            raise BenchFailed(f"{leader} leads, but was no master when the last one was killed")
        return cpu_seconds([self._masters[port].pid]) - self._used_s[port]

    def restore(self) -> None:
        name = f"master-{next(self._numbers)}"
        flags = ("--zk", self._zookeeper.url("/mesos"))
        session = ("--zk-session-timeout", f"{self._session_s:g}s")
        process, address = self._running.daemon(name, *flags, *session)
        assert address.startswith(LOOPBACK)
        self._masters[parse_address(address, "master").port] = process
