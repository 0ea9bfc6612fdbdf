"""How `local` divides one machine among several agents."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Final, NamedTuple

from mesos_py import ranges as rng
from mesos_py.errors import InvalidResources, InvalidValue
from mesos_py.ranges import Ranges
from mesos_py.reserved import plain_name
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

# Greedy: the role may hold parentheses.
_ZERO: Final = re.compile(
    r"(?P<name>[A-Za-z][A-Za-z0-9_.-]*)\s*(\(.*\))?\s*:\s*(0+(\.0*)?|\[\s*\]|\{\s*\})"
)


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
    "cpus(web):1" is reserved for the role web on each agent, and as for agents there are no
    other cpus then than `text` says.
    Raises InvalidValue, also if there are fewer ports than agents.
    """
    if text.lstrip().startswith("["):
        reason = "in JSON resources are those of one agent; here they are text: cpus:4;cpus(ads):2"
        raise InvalidResources("resources", text, reason)
    items = [item.strip() for item in text.split(";")]
    zeros = [item for item in items if _ZERO.fullmatch(item)]
    given = ";".join(item for item in items if item not in zeros)
    named = Resources.parse_reserved(given) if given.strip(" ;") else EMPTY
    said = {plain_name(key) for key in named.names()}
    said.update(match["name"] for match in map(_ZERO.fullmatch, zeros) if match is not None)
    found = _part(machine, agents)
    scalars = {name: amount for name, amount in found.scalars.items() if name not in said}
    if "ports" not in said:
        ranges = {**named.ranges, "ports": _default_ports(agents)}
    else:
        ranges = dict(named.ranges)
    each = Resources({**scalars, **named.scalars}, ranges, dict(named.sets))
    return [";".join([str(part), *zeros]) for part in with_own_ports(each, agents)]


def _part(machine: Machine, agents: int) -> Resources:
    count = max(agents, 1)
    return Resources.of(
        cpus=max(MIN_CPUS, machine.cpus // count),
        mem=max(MIN_MEM_MB, machine.mem_mb // count),
        disk=max(MIN_DISK_MB, machine.disk_mb // count),
    )


def _default_ports(agents: int) -> Ranges:
    return ((FIRST_PORT, min(LAST_PORT, FIRST_PORT + MAX_PORTS_EACH * max(agents, 1) - 1)),)


def with_own_ports(each: Resources, agents: int) -> list[Resources]:
    """`each` for every agent, but its ports divided, those of each reservation by themselves:
    they are those of one machine.  Raises InvalidValue if there are fewer than agents."""
    ports = {key: spans for key, spans in each.ranges.items() if plain_name(key) == "ports"}
    divided = {key: _divided(key, spans, agents) for key, spans in ports.items()}
    return [
        Resources(
            dict(each.scalars),
            {**each.ranges, **{key: parts[number] for key, parts in divided.items()}},
            dict(each.sets),
        )
        for number in range(agents)
    ]


def _divided(key: str, spans: Ranges, agents: int) -> list[Ranges]:
    count = rng.count(spans) // max(agents, 1)
    if agents and not count:
        raise InvalidValue("agents", agents, f"there are {rng.count(spans)} {key} for them")
    numbers = rng.numbers(spans)
    return [
        rng.normalised([(n, n) for n in (next(numbers) for _ in range(count))])
        for _ in range(agents)
    ]
