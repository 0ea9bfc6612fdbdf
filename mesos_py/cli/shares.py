"""How `local` divides one machine among several agents."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Final, NamedTuple

from mesos_py import ranges as rng
from mesos_py.errors import InvalidValue
from mesos_py.resources import EMPTY, Resources

# Fewer cores than this make toy clusters that run nothing side by side; cores are
# shared by the kernel anyway, so promising more than there are does no harm here.
MIN_CPUS: Final = 2
# Clear of 32768-60999, from which the kernel picks ports for outgoing connections.
FIRST_PORT: Final = 20_000
LAST_PORT: Final = 31_999
MAX_PORTS_EACH: Final = 1_000
MIN_MEM_MB: Final = 64
MIN_DISK_MB: Final = 64

_ZERO: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*\s*:\s*(0+(\.0*)?|\[\s*\])")


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


def shares(machine: Machine, agents: int, text: str = "") -> list[str]:
    """What each agent has, as resources texts: what `text` says, else a part of `machine`.

    Equal parts of memory and disk, at least MIN_CPUS cpus each.  Ports are divided in
    any case: they are those of one machine.  An amount of 0 stays: it means none.
    Raises InvalidValue, also if there are fewer ports than agents.
    """
    zeros = [item for item in text.split(";") if _ZERO.fullmatch(item.strip())]
    given = ";".join(item for item in text.split(";") if item not in zeros)
    named = Resources.parse(given) if given.strip(" ;") else EMPTY
    absent = {item.partition(":")[0].strip() for item in zeros}
    found = _part(machine, agents)
    scalars = {
        name: amount
        for name, amount in found.scalars.items()
        if name not in absent and name not in named.names()
    }
    each = Resources({**scalars, **named.scalars}, dict(named.ranges), dict(named.sets))
    if "ports" in absent:
        parts = [each] * agents
    else:
        parts = with_own_ports(each, agents)
    return [";".join([str(part), *(item.strip() for item in zeros)]) for part in parts]


def _part(machine: Machine, agents: int) -> Resources:
    count = max(agents, 1)
    return Resources.of(
        cpus=max(MIN_CPUS, machine.cpus // count),
        mem=max(MIN_MEM_MB, machine.mem_mb // count),
        disk=max(MIN_DISK_MB, machine.disk_mb // count),
    )


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
