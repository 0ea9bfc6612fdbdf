"""`mesos-py torque up` where the master, the batch server and each agent are hosts of their own.

Each host has a name of its own, its own idea of what names mean, and a munged of its own, with the
key that all have.  What is no host's own (home directories) all of them have.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, Self

from tests.kit.chaos.daemons import Disk, HostDaemon
from tests.kit.chaos.hosts import Host, Network
from tests.kit.chaos.wires import Drop, Wires, both_ways
from tests.kit.cluster import Cluster
from tests.kit.local import LIMIT_S, MESOS_PY, Ended
from tests.kit.torque import QUICK, Batch
from tests.kit.waiting import until

NODE_PORT: Final = "31818"
# A cut of seconds is noticed, and an agent that a busy machine lets wait is not taken for one.
_MASTER: Final = {
    "agent_ping_interval": "1s",
    "max_agent_ping_timeouts": "4",
    "agent_reregister_timeout": "1s",
}
_NAMESPACE: Final = Path("/proc/thread-self/ns/net")
_HOST: Final = 'mount --bind "$1" /etc/hosts'
# The way into a mount namespace ends at its root.
_NAMED: Final = 'hostname "$1" && cd "$2" && shift 2 && exec "$@"'


class BatchHost:
    """A host as programs on it see it: its network, its names, its munged."""

    def __init__(self, host: Host, hostname: str, directory: Path, hosts: str) -> None:
        self.host = host
        own = Path(directory, f"hosts-{host.name}")
        own.write_text(f"127.0.0.1 localhost\n{hosts}")
        self._munge = directory / "munge"
        self._disk = Disk(self._munge, "1m")
        subprocess.run([*self._disk.prefix, "sh", "-c", _HOST, "sh", str(own)], check=True)
        self._named = [*self._disk.prefix, "unshare", "--uts", "sh", "-c", _NAMED, "sh", hostname]
        self._directory = directory
        self._munged = self._start_munged(directory / "munge.key")

    def _start_munged(self, key: Path) -> subprocess.Popen[bytes]:
        files = {"key-file": key}
        files |= {f"{each}-file": self._munge / each for each in ("pid", "log", "seed")}
        options = [f"--{name}={path}" for name, path in files.items()]
        argv = ["munged", "--foreground", "--force", f"--socket={self.socket}", *options]
        with (self._munge.parent / f"munged-{self.host.name}.log").open("wb") as log:
            return self.host.inside(
                lambda: subprocess.Popen([*self.prefix("/"), *argv], stdout=log, stderr=log)
            )

    def prefix(self, directory: Path | str = "") -> tuple[str, ...]:
        """Whatever is started with this before it is on that host, in that directory."""
        return (*self._named, str(directory or self._directory))

    @property
    def socket(self) -> Path:
        """The same on all of them."""
        return self._munge / "socket"

    def ready(self) -> None:
        there = Path(f"{self._disk.path}/socket")
        until(there.exists, LIMIT_S)

    def processes(self) -> list[int]:
        """All that run there."""
        there = self.host.inside(_NAMESPACE.readlink)
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if process.joinpath("ns/net").readlink() == there:
                    found.append(int(process.name))
        return found

    def close(self) -> None:
        self._munged.terminate()
        self._munged.wait(LIMIT_S)
        self._disk.close()


class HostAgent(HostDaemon):
    """An agent on such a host."""

    there: BatchHost

    def argv(self) -> list[str]:
        return [*self.there.prefix(), *super().argv()]


class HostCluster(Cluster):
    """A network, a master, and a host for the batch server; made by `on_hosts`."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        super().__init__(directory)
        self._stack = stack
        self.network = stack.enter_context(Network())
        self.wires = Wires(self.network)
        self.master = HostDaemon(
            "master", self.network.host("master"), directory, {**_MASTER, "port": "5050"}
        )
        self.masters = [self.master]
        (directory / "munge").mkdir()
        key = directory / "munge.key"
        key.touch(0o600)
        key.write_bytes(os.urandom(128))
        # A machine that takes its own name for its loopback address, as Debian sets it up.
        self.server = self._host("server", "pbs.example.org", "127.0.1.1 pbs.example.org pbs\n")
        self.server.ready()
        self.mesos_py = (*self.server.prefix(), *MESOS_PY)

    def _host(self, name: str, hostname: str, hosts: str) -> BatchHost:
        made = BatchHost(self.network.host(name), hostname, self.directory, hosts)
        self._stack.callback(made.close)
        return made

    @property
    def address(self) -> str:
        return f"{self.network.hosts['master'].address}:5050"

    def host_agent(self, hostname: str, resources: str, hosts: str = "") -> HostAgent:
        """hostname: of its host, as that and the agent have it.  hosts: lines of its /etc/hosts."""
        name = hostname.partition(".")[0]
        there = self._host(name, hostname, hosts)
        own = {"master": self.address, "hostname": hostname, "resources": resources}
        own |= {"tasks_on_exit": "end"}
        made = HostAgent("agent", there.host, self.directory, own)
        made.there = there
        self.agents.append(made)
        return made

    def cli(self, *args: str, **options: Any) -> Ended:
        run = super().cli
        return self.server.host.inside(lambda: run(*args, **options))

    def lose(self, hostname: str) -> None:
        """The power of a machine goes: nothing there has time to say so."""
        (agent,) = [agent for agent in self.agents if agent.flags["hostname"] == hostname]
        assert isinstance(agent, HostAgent)
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in agent.there.processes():
                # One ends with another.
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
        agent.wait()

    def cut(self, name: str) -> list[Drop]:
        """All that goes between this host and the others."""
        hosts = self.network.hosts
        return [d for o in hosts.keys() - {name} for d in both_ways(hosts[name], hosts[o])]


class HostBatch(Batch):
    """Its server and its users are on the host for that."""

    cluster: HostCluster

    def __init__(self, cluster: HostCluster, *options: str) -> None:
        there = cluster.server
        where = ("--ip", there.host.address, "--munge-socket", str(there.socket))
        super().__init__(cluster, *(options or QUICK), *where, "--node-port", NODE_PORT)
        # Not tied to the thread that starts it: that ends soon.
        self.prefix = there.prefix()

    def up(self) -> Self:
        return self.cluster.server.host.inside(super().up)

    def user(self, *argv: str) -> Ended:
        run, there = super().user, self.cluster.server
        return there.host.inside(lambda: run(*there.prefix(self.work), *argv))

    def tasks(self) -> list[str]:
        return [node["name"] for node in self.view()["nodes"]]


@contextlib.contextmanager
def on_hosts(directory: Path) -> Iterator[HostCluster]:
    """Raises PermissionError without the rights to make hosts."""
    with ExitStack() as stack:
        with HostCluster(directory, stack) as cluster:
            yield cluster


__all__ = ["HostAgent", "HostBatch", "HostCluster", "on_hosts"]
