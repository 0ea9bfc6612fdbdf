"""Rounds of random faults against a cluster at work."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.kit.chaos.cluster import ChaosCluster
from tests.kit.chaos.faults import FAULTS, LEADER, Names, Roster, Step, schedule
from tests.kit.chaos.workload import Plan

# More work than can be done: the round ends it.
PLENTY: Final = 100_000
_TICK_S: Final = 0.05


@dataclass(frozen=True)
class Size:
    """How large a round is."""

    length_s: float = 60.0
    masters: int = 1
    zookeepers: int = 0
    agents: int = 2
    long: int = 4
    seconds: float = 1.0
    cpus: float = 1.0


def round_of_faults(
    directory: Path, seed: int, size: Size, say: Callable[[str], None]
) -> list[str]:
    """Start a cluster, do to it what the seed says, heal it; what was wrong afterwards."""
    plan = Plan("", "", PLENTY, size.long, size.seconds, size.cpus)
    disks = ("agent0",)
    with ChaosCluster(
        directory,
        plan,
        masters=size.masters,
        zookeepers=size.zookeepers,
        agents=size.agents,
        disks=disks,
    ) as cluster:
        steps = schedule(seed, roster_of(cluster), size.length_s)
        for step in steps:
            say(str(step))
        cluster.wait_for("update", 1, state="FINISHED")
        perform(cluster, steps)
        found = cluster.findings()
        say(f"told: {cluster.summary()}")
        return found


def roster_of(cluster: ChaosCluster) -> Roster:
    agents = tuple(agent.name for agent in cluster.agents)
    masters = tuple(master.name for master in cluster.masters)
    return Roster(
        masters=(*masters, LEADER) if len(masters) > 1 else masters,
        agents=agents,
        schedulers=(cluster.scheduler.name,),
        disks=tuple(agent.name for agent in cluster.agents if agent.disk is not None),
        zookeepers=tuple(each.name for each in cluster.zookeepers),
    )


def perform(cluster: ChaosCluster, steps: Iterable[Step]) -> None:
    """Begin and end each fault at its time."""
    moments = [(step.at_s, True, step) for step in steps]
    moments += [(step.until_s, False, step) for step in steps]
    acting: dict[Step, Names] = {}
    begun = time.monotonic()
    for at_s, begins, step in sorted(moments, key=lambda moment: moment[:2]):
        while (left_s := begun + at_s - time.monotonic()) > 0:
            cluster.supervise()
            time.sleep(min(left_s, _TICK_S))
        fault = FAULTS[step.fault]
        if begins:
            hosts = tuple(cluster.leader().name if h == LEADER else h for h in step.hosts)
            if not (fault.occupies and hosts in _occupied(acting)):
                acting[step] = hosts
                fault.begin(cluster, hosts)
        elif step in acting:
            fault.end(cluster, acting.pop(step))


def _occupied(acting: Mapping[Step, Names]) -> list[Names]:
    """Those that are down, stand still or are slow already."""
    return [hosts for step, hosts in acting.items() if FAULTS[step.fault].occupies]
