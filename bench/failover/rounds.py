"""One cluster that loses its leader again and again: who is killed, and who comes instead."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from dataclasses import asdict
from typing import Any, Final

import psutil

from bench.failover.peers import Load
from bench.processes import LOOPBACK, Processes, cpu_seconds
from mesos_py.files import write_atomically

MODULES: Final = "bench.failover"


class Servers(ABC):
    """What the peers register with: one that leads, and others that wait."""

    # The server that decides nothing, which is the floor.
    bare = False

    @abstractmethod
    def start(self, running: Processes) -> str:
        """Start them; where the peers learn who leads."""

    @abstractmethod
    def kill(self, leader: str) -> float:
        """Kill who leads, at this address, without a warning; when that was."""

    @abstractmethod
    def leader_cpu_s(self, leader: str) -> float:
        """The CPU time that who leads now has used since the last one was killed."""

    @abstractmethod
    def restore(self) -> None:
        """Start again what was killed: it waits now."""


class Pair(Servers):
    """Two servers without an election: the peers are told at once where to go.

    So there is nothing to be detected, and what remains is how they come back.
    """

    def __init__(self, prefix: tuple[str, ...] = ()) -> None:
        self._prefix = prefix
        self._names = itertools.count(1)
        self._ports = ["0", "0"]
        self._processes: list[subprocess.Popen[bytes]] = []
        self._leading = 0
        self._began_with_s = 0.0

    def start(self, running: Processes) -> str:
        self._running = running
        self._told = running.directory / "leader"
        self._processes = [self._serve(place) for place in range(2)]
        self._tell()
        return str(self._told)

    def kill(self, leader: str) -> float:
        killed = self._processes[self._leading]
        self._leading = 1 - self._leading
        self._began_with_s = cpu_seconds([self._processes[self._leading].pid])
        killed_s = time.monotonic()
        self._running.kill(killed)
        self._tell()
        return killed_s

    def leader_cpu_s(self, leader: str) -> float:
        return cpu_seconds([self._processes[self._leading].pid]) - self._began_with_s

    def restore(self) -> None:
        place = 1 - self._leading
        self._processes[place] = self._serve(place)

    def _tell(self) -> None:
        write_atomically(self._told, f"{LOOPBACK}:{self._ports[self._leading]}")

    def _serve(self, place: int) -> subprocess.Popen[bytes]:
        process, port = self._started(next(self._names), self._ports[place])
        self._ports[place] = port
        return process

    def _started(self, number: int, port: str) -> tuple[subprocess.Popen[bytes], str]:
        name = f"master-{number}"
        process, address = self._running.daemon(name, "--port", port, prefix=self._prefix)
        return process, address.rpartition(":")[2]


class BarePair(Pair):
    bare = True

    def _started(self, number: int, port: str) -> tuple[subprocess.Popen[bytes], str]:
        name = f"bare-{number}"
        port_file = self._running.directory / f"{name}.port"
        argv = [sys.executable, "-m", f"{MODULES}.bare", "--port", port]
        process = self._running.start(name, [*argv, "--port-file", str(port_file)])
        return process, self._running.wait_for(port_file, process, name)


def measure(running: Processes, servers: Servers, load: Load) -> list[dict[str, Any]]:
    """What was seen in each round."""
    master = servers.start(running)
    argv = [sys.executable, "-m", f"{MODULES}.load", "--master", master]
    argv += ["--load", json.dumps(asdict(load)), "--directory", str(running.directory)]
    generator = running.start("load", [*argv, "--bare"] if servers.bare else argv)
    rounds = []
    for number in range(load.rounds):
        steady = running.directory / f"steady-{number}"
        within_s = load.steady_within_s + load.rest_s + 10
        before = json.loads(running.wait_for(steady, generator, "load", within_s))
        busy = psutil.getloadavg()[0]
        killed = {"killed_s": servers.kill(before["leader"])}
        write_atomically(running.directory / f"killed-{number}", json.dumps(killed))
        seen = running.directory / f"round-{number}"
        found = json.loads(running.wait_for(seen, generator, "load", load.back_within_s + 10))
        used_s = servers.leader_cpu_s(found["leader"])
        rounds.append({**found, "server_cpu_s": used_s, "load_average": busy})
        servers.restore()
    return rounds
