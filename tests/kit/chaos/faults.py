"""What can be done to a cluster: each fault begins, lasts a while, and is over.

After its end the cluster is as it was before, but for what it makes of it.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from tests.kit.chaos.cluster import ChaosCluster
from tests.kit.chaos.wires import Drop, both_ways, lossy, one_way

Names: TypeAlias = tuple[str, ...]


# The master that leads when the fault begins, whichever that is.
LEADER: Final = "leader"


@dataclass(frozen=True)
class Roster:
    """The hosts of a cluster by what they do."""

    # LEADER may be among them.
    masters: Names
    agents: Names
    schedulers: Names
    # Agents with a small disk of their own.
    disks: Names = ()
    zookeepers: Names = ()

    @property
    def daemons(self) -> Names:
        return self.masters + self.agents + self.schedulers + self.zookeepers

    @property
    def hosts(self) -> Names:
        return self.daemons

    @property
    def pairs(self) -> list[Names]:
        """Hosts that talk to each other, in both orders."""
        met = [(one, other) for one in self.masters for other in (*self.agents, *self.schedulers)]
        return [*met, *((other, one) for one, other in met)]


class Fault(ABC):
    """One kind of fault; `hosts` are those that `targets` chose."""

    # From and to how many seconds it lasts.
    lasts_s: tuple[float, float] = (0.5, 10.0)
    # The hosts' processes are not there meanwhile, or stand still: nothing else of this
    # kind happens to them.
    occupies: bool = False

    @abstractmethod
    def targets(self, roster: Roster) -> Sequence[Names]:
        """What it can be done to; nothing if this cluster cannot have it."""

    @abstractmethod
    def begin(self, cluster: ChaosCluster, hosts: Names) -> None: ...

    @abstractmethod
    def end(self, cluster: ChaosCluster, hosts: Names) -> None: ...


def _each(names: Names) -> list[Names]:
    return [(name,) for name in names]


class Kill(Fault):
    """kill -9, and a new start."""

    occupies = True

    def targets(self, roster: Roster) -> Sequence[Names]:
        return _each(roster.daemons)

    def begin(self, cluster: ChaosCluster, hosts: Names) -> None:
        cluster.take_down(hosts[0], "kill")

    def end(self, cluster: ChaosCluster, hosts: Names) -> None:
        cluster.bring_up(hosts[0])


class Restart(Kill):
    """SIGTERM, and a new start: what an upgrade does.  Not of the scheduler, for which it
    means that it is no longer wanted."""

    lasts_s = (0.0, 3.0)

    def targets(self, roster: Roster) -> Sequence[Names]:
        return _each(roster.masters + roster.agents + roster.zookeepers)

    def begin(self, cluster: ChaosCluster, hosts: Names) -> None:
        cluster.take_down(hosts[0], "stop")


class Stand(Fault):
    """SIGSTOP, and SIGCONT."""

    occupies = True
    lasts_s = (0.5, 15.0)

    def targets(self, roster: Roster) -> Sequence[Names]:
        return _each(roster.daemons)

    def begin(self, cluster: ChaosCluster, hosts: Names) -> None:
        cluster.daemon(hosts[0]).pause()

    def end(self, cluster: ChaosCluster, hosts: Names) -> None:
        cluster.daemon(hosts[0]).resume()


class Wire(Fault):
    """Packets vanish."""

    lasts_s = (0.5, 12.0)

    @abstractmethod
    def drops(self, cluster: ChaosCluster, hosts: Names) -> list[Drop]: ...

    def begin(self, cluster: ChaosCluster, hosts: Names) -> None:
        cluster.wires.add(self.drops(cluster, hosts))

    def end(self, cluster: ChaosCluster, hosts: Names) -> None:
        cluster.wires.remove(self.drops(cluster, hosts))


class Cut(Wire):
    """Two hosts do not reach each other."""

    def targets(self, roster: Roster) -> Sequence[Names]:
        return roster.pairs

    def drops(self, cluster: ChaosCluster, hosts: Names) -> list[Drop]:
        return both_ways(*(cluster.hosts[name] for name in hosts))


class Deaf(Cut):
    """The second host hears nothing of the first one, which hears it."""

    def drops(self, cluster: ChaosCluster, hosts: Names) -> list[Drop]:
        return one_way(*(cluster.hosts[name] for name in hosts))


class Alone(Wire):
    """A host reaches no other one, but the operator's."""

    def targets(self, roster: Roster) -> Sequence[Names]:
        return _each(roster.hosts)

    def drops(self, cluster: ChaosCluster, hosts: Names) -> list[Drop]:
        host = cluster.hosts[hosts[0]]
        others = [each.host for each in cluster.daemons if each.host != host]
        return [drop for other in others for drop in both_ways(host, other)]


class NoZooKeeper(Wire):
    """A host reaches none of the ZooKeeper servers, and everybody else."""

    lasts_s = (0.5, 15.0)

    def targets(self, roster: Roster) -> Sequence[Names]:
        return (
            _each(roster.masters + roster.agents + roster.schedulers) if roster.zookeepers else []
        )

    def drops(self, cluster: ChaosCluster, hosts: Names) -> list[Drop]:
        host = cluster.hosts[hosts[0]]
        return [drop for each in cluster.zookeepers for drop in both_ways(host, each.host)]


class Lossy(Wire):
    """One packet of twenty is lost, everywhere."""

    def targets(self, roster: Roster) -> Sequence[Names]:
        return [()]

    def drops(self, cluster: ChaosCluster, hosts: Names) -> list[Drop]:
        return lossy(50)


class Slow(Fault):
    """16 KB a second from and to a host."""

    occupies = True
    bytes_s: Final = 16_000

    def targets(self, roster: Roster) -> Sequence[Names]:
        return _each(roster.hosts)

    def begin(self, cluster: ChaosCluster, hosts: Names) -> None:
        cluster.wires.slow(cluster.hosts[hosts[0]], self.bytes_s)

    def end(self, cluster: ChaosCluster, hosts: Names) -> None:
        cluster.wires.fast(cluster.hosts[hosts[0]])


class FullDisk(Fault):
    """An agent cannot write another byte."""

    def targets(self, roster: Roster) -> Sequence[Names]:
        return _each(roster.disks)

    def begin(self, cluster: ChaosCluster, hosts: Names) -> None:
        cluster.disk(hosts[0]).fill()

    def end(self, cluster: ChaosCluster, hosts: Names) -> None:
        cluster.disk(hosts[0]).free()


FAULTS: Final[dict[str, Fault]] = {
    "kill": Kill(),
    "restart": Restart(),
    "stand still": Stand(),
    "cut": Cut(),
    "deaf": Deaf(),
    "alone": Alone(),
    "no zookeeper": NoZooKeeper(),
    "lossy": Lossy(),
    "slow": Slow(),
    "full disk": FullDisk(),
}
# A pause between the beginnings of two faults: some overlap, some do not.
_PAUSE_S: Final = (0.5, 6.0)


@dataclass(frozen=True)
class Step:
    """A fault at its time, in seconds from the beginning."""

    at_s: float
    until_s: float
    fault: str
    hosts: Names

    def __str__(self) -> str:
        return f"{self.at_s:6.1f} s to {self.until_s:6.1f} s  {self.fault} {' '.join(self.hosts)}"


def schedule(seed: int, roster: Roster, length_s: float) -> list[Step]:
    """What is done to a cluster, the same for the same seed and roster."""
    dice = random.Random(seed)
    kinds = {name: list(fault.targets(roster)) for name, fault in FAULTS.items()}
    possible = [name for name, targets in kinds.items() if targets]
    busy: dict[Names, float] = {}
    steps: list[Step] = []
    at_s = dice.uniform(1.0, 3.0)
    while at_s < length_s:
        name = dice.choice(possible)
        fault, hosts = FAULTS[name], dice.choice(kinds[name])
        step = Step(round(at_s, 1), round(at_s + dice.uniform(*fault.lasts_s), 1), name, hosts)
        if not fault.occupies or busy.get(hosts, 0.0) < step.at_s:
            steps.append(step)
            if fault.occupies:
                busy[hosts] = step.until_s
        at_s += dice.uniform(*_PAUSE_S)
    return steps
