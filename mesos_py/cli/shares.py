"""How `local` divides one machine among several agents."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Final, NamedTuple

from mesos_py import ranges as rng
from mesos_py.errors import InvalidValue
from mesos_py.resources import Resources

# Fewer cores than this make toy clusters that run nothing side by side; cores are
# shared by the kernel anyway, so promising more than there are does no harm here.
MIN_CPUS: Final = 2
# Clear of 32768-60999, from which the kernel picks ports for outgoing connections.
FIRST_PORT: Final = 20_000
LAST_PORT: Final = 31_999
MAX_PORTS_EACH: Final = 1_000
MIN_MEM_MB: Final = 64
MIN_DISK_MB: Final = 64


class Machine(NamedTuple):
    """What there is to divide."""

    cpus: int
    mem_mb: int
    disk_mb: int


def this_machine(work_dir: Path) -> Machine:
    """What of this machine tasks may have: not all of its memory and disk."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return Machine(
        cpus=len(os.sched_getaffinity(0)),
        mem_mb=_usable(pages >> 20),
        disk_mb=shutil.disk_usage(work_dir).free >> 21,
    )


def _usable(mem_mb: int) -> int:
    # As Mesos does it: a GB for the system, or half of a small machine.
    return mem_mb - 1024 if mem_mb > 2048 else mem_mb // 2


def divided(machine: Machine, agents: int) -> list[Resources]:
    """Equal parts: at least MIN_CPUS cpus each, shares of memory and disk, own ports."""
    each = Resources.of(
        cpus=max(MIN_CPUS, machine.cpus // max(agents, 1)),
        mem=max(MIN_MEM_MB, machine.mem_mb // max(agents, 1)),
        disk=max(MIN_DISK_MB, machine.disk_mb // max(agents, 1)),
    )
    return with_own_ports(each, agents)


def with_own_ports(each: Resources, agents: int) -> list[Resources]:
    """`each` for every agent, but its ports (or the default ones) divided: they are
    those of one machine.  Raises InvalidValue if there are fewer than agents."""
    spans = each.ranges.get("ports")
    others = {name: ranges for name, ranges in each.ranges.items() if name != "ports"}
    if spans is None:
        limit = MAX_PORTS_EACH * agents
        spans = ((FIRST_PORT, min(LAST_PORT, FIRST_PORT + limit - 1)),)
    count = rng.count(spans) // max(agents, 1)
    if agents and not count:
        raise InvalidValue("agents", agents, f"there are {rng.count(spans)} ports for them")
    numbers = rng.numbers(spans)
    parts = []
    for _ in range(agents):
        own = rng.normalised([(n, n) for n in (next(numbers) for _ in range(count))])
        parts.append(Resources(dict(each.scalars), {**others, "ports": own}, dict(each.sets)))
    return parts
