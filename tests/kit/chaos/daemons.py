"""Daemons on hosts of their own: masters, agents, and the workload's scheduler."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final, Self, TypeAlias

from tests.kit.chaos.hosts import Host
from tests.kit.chaos.workload import ROOT, Plan
from tests.kit.cluster import Daemon
from tests.kit.zookeeper import Ensemble, Server

_MOUNT: Final = 'mount -t tmpfs -o "size=$2" tmpfs "$1" && echo mounted && exec sleep infinity'
_BLOCK: Final = b"\0" * 65_536


class HostDaemon(Daemon):
    """A daemon that runs on a host; it is named for it."""

    def __init__(self, kind: str, host: Host, directory: Path, flags: dict[str, str]) -> None:
        super().__init__(kind, host.name, directory, {"ip": host.address, **flags})
        self.host = host
        self.disk: Disk | None = None

    def launch(self) -> Self:
        self.host.inside(super().launch)
        return self

    def argv(self) -> list[str]:
        prefix = [] if self.disk is None else self.disk.prefix
        return [*prefix, *super().argv()]

    def end(self) -> int:
        """End it with all that it has started; its exit code."""
        self.resume()
        self.process.send_signal(signal.SIGINT)
        return self.wait()


class SchedulerDaemon(HostDaemon):
    """The scheduler of the workload."""

    def __init__(self, host: Host, directory: Path, plan: Plan) -> None:
        super().__init__("scheduler", host, directory, {})
        self.plan = replace(plan, port_file=str(self._port_file))

    def argv(self) -> list[str]:
        plan = self.plan.write()
        python = ["env", f"PYTHONPATH={ROOT}", sys.executable]
        return [*python, "-m", "tests.kit.chaos.workload", str(plan)]


class WriterDaemon(HostDaemon):
    """Asks all masters all the time to store something."""

    def __init__(self, host: Host, directory: Path, masters: str) -> None:
        super().__init__("writer", host, directory, {})
        self.file = directory / "writes"
        self._masters = masters

    def argv(self) -> list[str]:
        python = ["env", f"PYTHONPATH={ROOT}", sys.executable]
        return [*python, "-m", "tests.kit.chaos.writer", str(self.file), self._masters]


class ZooKeeperDaemon:
    """A ZooKeeper server on a host: what faults need of a `HostDaemon`."""

    disk = None

    def __init__(self, host: Host, ensemble: Ensemble, number: int) -> None:
        self.name = host.name
        self.host = host
        self._ensemble = ensemble
        self._number = number

    @property
    def server(self) -> Server:
        return self._ensemble.servers[self._number]

    @property
    def started(self) -> bool:
        return bool(self._ensemble.servers)

    @property
    def alive(self) -> bool:
        return self.server.alive

    @property
    def log(self) -> str:
        return self.server.log

    def launch(self) -> Self:
        self.server.launch()
        return self

    def kill(self) -> None:
        self.server.kill()

    def stop(self) -> int:
        self.server.stop()
        return 0

    def pause(self) -> None:
        self.server.pause()

    def resume(self) -> None:
        if self.alive:
            self.server.cont()


Anything: TypeAlias = HostDaemon | ZooKeeperDaemon


class Disk:
    """A small disk that only the processes of one host see.

    It is mounted at a directory in a mount namespace that a process of ours holds.
    """

    def __init__(self, directory: Path, size: str) -> None:
        directory.mkdir(exist_ok=True)
        script = ["sh", "-c", _MOUNT, "sh", str(directory), size]
        self._holder = subprocess.Popen(
            ["unshare", "--mount", "--propagation=private", *script], stdout=subprocess.PIPE
        )
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == b"mounted\n"
        self.prefix = ["nsenter", f"--mount=/proc/{self._holder.pid}/ns/mnt"]
        # What is there, as seen from here.
        self.path = Path(f"/proc/{self._holder.pid}/root{directory}")

    def fill(self) -> None:
        """Not a byte is left."""
        with self._filler.open("ab", buffering=0) as filler, contextlib.suppress(OSError):
            while True:
                filler.write(_BLOCK)
        with self._filler.open("ab", buffering=0) as filler, contextlib.suppress(OSError):
            while True:
                filler.write(b"\0")

    def free(self) -> None:
        self._filler.unlink(missing_ok=True)

    @property
    def _filler(self) -> Path:
        return self.path / "filler"

    def close(self) -> None:
        self._holder.kill()
        self._holder.wait()
        if self._holder.stdout is not None:
            self._holder.stdout.close()
