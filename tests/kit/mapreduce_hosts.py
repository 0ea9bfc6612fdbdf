"""MapReduce where the master, the tracker and each agent are hosts of their own.

::

    with on_hosts(tmp_path, "a", "b") as cluster:
        cluster.on_tracker(lambda: ...)       # as if at the tracker's host
        cluster.wires.add(cluster.cut("a"))

Agents do not see each other's files: what a reduce has of a map it has fetched.  What is no
agent's own (input, output, the tracker's state) all of them have, as on a shared file system.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, Self, TypeVar

from tests.kit.chaos.daemons import Disk, HostDaemon
from tests.kit.chaos.hosts import Host, Network
from tests.kit.chaos.wires import Drop, Wires, both_ways
from tests.kit.mapreduce_cluster import JOB, MapReduce, Tracker

T = TypeVar("T")

# A cut of seconds is noticed, and an agent that a busy machine lets wait is not taken for one.
_MASTER: Final = {
    "agent_ping_interval": "1s",
    "max_agent_ping_timeouts": "4",
    "agent_reregister_timeout": "1s",
}
_DISK: Final = "64m"


class HostTracker(Tracker):
    """A tracker on a host; it is asked from there."""

    host: Host

    def launch(self) -> Self:
        self.host.inside(super().launch)
        return self


class HostMapReduce(MapReduce):
    """A network, a master and no agents yet; made by `on_hosts`."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        super().__init__(directory)
        self._stack = stack
        self.network = stack.enter_context(Network())
        self.wires = Wires(self.network)
        self.master = HostDaemon(
            "master", self.network.host("master"), directory, {**_MASTER, "port": "5050"}
        )
        self.masters = [self.master]
        self.disks: dict[str, Disk] = {}
        self._tracker_host = self.network.host("tracker")

    @property
    def address(self) -> str:
        return f"{self.network.hosts['master'].address}:5050"

    def agent(self, name: str, resources: str = "", **flags: str) -> HostDaemon:
        own = {"master": self.address, "hostname": name, "resources": resources}
        own |= {"tasks_on_exit": "end", **flags}
        made = HostDaemon("agent", self.network.host(name), self.directory, own)
        made.disk = self.disks[name] = Disk(made.work_dir, _DISK)
        self._stack.callback(made.disk.close)
        self.agents.append(made)
        return made

    def tracker(self, name: str = "tracker", **flags: str) -> HostTracker:
        own = {"master": self.address, "state": str(self.directory / "state")}
        made = HostTracker("tracker", name, self.directory, own | flags)
        made.host = self._tracker_host
        self.trackers.append(made)
        made.start()
        return made

    def on_tracker(self, work: Callable[[], T]) -> T:
        """Do it there: a tracker is asked on its host's own loopback."""
        return self._tracker_host.inside(work)

    def cut(self, name: str, *others: str) -> list[Drop]:
        """All that goes between this host and the others, or everybody."""
        hosts = self.network.hosts
        return [
            drop
            for other in others or hosts.keys() - {name}
            for drop in both_ways(hosts[name], hosts[other])
        ]

    def published(self, job: str = JOB) -> list[Path]:
        """What agents have of the job, each on its own disk."""
        runs = "frameworks/*/executors/*/runs/*/published"
        disks = [disk.path for disk in self.disks.values()]
        found = [path for each in disks for path in each.glob(f"agents/*/{runs}/{job}")]
        return [path for path in found if path.parts[-3] != "latest"]

    def outputs_on(self, name: str, job: str = JOB) -> list[str]:
        """Attempts of maps whose output that agent has, as files' names."""
        runs = "frameworks/*/executors/*/runs/*/published"
        found = self.disks[name].path.glob(f"agents/*/{runs}/{job}/*_m_*.out")
        return sorted({path.name for path in found})


@contextmanager
def on_hosts(directory: Path, **agents: str) -> Iterator[HostMapReduce]:
    """agents: name -> resources.  Raises PermissionError without the rights to make hosts."""
    with ExitStack() as stack:
        cluster = HostMapReduce(directory, stack)
        with cluster:
            for name, resources in agents.items():
                cluster.agent(name, resources).launch()
            for agent in cluster.agents:
                agent.ready()
            yield cluster


__all__ = ["HostMapReduce", "on_hosts"]
