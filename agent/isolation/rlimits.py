"""Resource limits of processes (setrlimit), as `ContainerInfo.rlimit_info` asks for them."""

from __future__ import annotations

import os
import resource
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agent.isolation.base import NOTHING, RLIMITS, Container, Isolator, Preparation
from mesos_py.enums import name_of
from mesos_py.errors import InvalidValue
from mesos_py.v1 import types_pb2 as pb

RLimit = pb.RLimitInfo.RLimit
FIELD: Final = "container.rlimit_info"
# What Python takes for "no limit", and the kernel's own number for it.
UNLIMITED: Final = resource.RLIM_INFINITY
_INFINITY: Final = 2**64 - 1
# setrlimit of Python takes signed numbers.
_MAX: Final = 2**63 - 1

# The kernel's numbers.  Python has none for LOCKS, which Linux ignores since 2.6.
NUMBERS: Final[Mapping[int, int]] = {
    RLimit.RLMT_AS: resource.RLIMIT_AS,
    RLimit.RLMT_CORE: resource.RLIMIT_CORE,
    RLimit.RLMT_CPU: resource.RLIMIT_CPU,
    RLimit.RLMT_DATA: resource.RLIMIT_DATA,
    RLimit.RLMT_FSIZE: resource.RLIMIT_FSIZE,
    RLimit.RLMT_LOCKS: 10,
    RLimit.RLMT_MEMLOCK: resource.RLIMIT_MEMLOCK,
    RLimit.RLMT_MSGQUEUE: resource.RLIMIT_MSGQUEUE,
    RLimit.RLMT_NICE: resource.RLIMIT_NICE,
    RLimit.RLMT_NOFILE: resource.RLIMIT_NOFILE,
    RLimit.RLMT_NPROC: resource.RLIMIT_NPROC,
    RLimit.RLMT_RSS: resource.RLIMIT_RSS,
    RLimit.RLMT_RTPRIO: resource.RLIMIT_RTPRIO,
    RLimit.RLMT_RTTIME: resource.RLIMIT_RTTIME,
    RLimit.RLMT_SIGPENDING: resource.RLIMIT_SIGPENDING,
    RLimit.RLMT_STACK: resource.RLIMIT_STACK,
}


class RlimitsIsolator(Isolator):
    """Has the limits set before a task's program runs; they hold for all that it starts."""

    provides = frozenset({RLIMITS})

    def prepare(self, container: Container) -> Preparation:
        if container.info is None or not container.info.rlimit_info.rlimits:
            return NOTHING
        may_raise = os.geteuid() == 0
        return Preparation(
            rlimits=parse(container.info.rlimit_info, most_files(), None if may_raise else own())
        )

    def join(self, container_id: str, pid: int) -> Preparation:
        limits = limits_of(Path(f"/proc/{pid}/limits").read_text())
        return Preparation(
            rlimits=tuple(each for each in limits if each[1:] != resource.getrlimit(each[0]))
        )


def limits_of(text: str) -> list[tuple[int, int, int]]:
    """What /proc/PID/limits says, in the kernel's order of its numbers.  (prlimit(2) wants a
    right for it that not even root has everywhere.)"""

    def value(column: str) -> int:
        return UNLIMITED if column.strip() == "unlimited" else int(column)

    rows = text.splitlines()[1:]
    return [(number, value(row[26:46]), value(row[47:67])) for number, row in enumerate(rows)]


def most_files() -> int:
    """What the kernel allows NOFILE to be, for anybody."""
    return int(Path("/proc/sys/fs/nr_open").read_text())


def own() -> dict[int, int]:
    """Our own hard limits, by the kernel's numbers: without root's rights, the most to give."""
    return {number: resource.getrlimit(number)[1] for number in NUMBERS.values()}


def parse(
    info: pb.RLimitInfo, most_files: int, own: Mapping[int, int] | None
) -> tuple[tuple[int, int, int], ...]:
    """The limits as setrlimit takes them.  Raises InvalidValue naming limit and value.

    own: hard limits that may not be exceeded; None where they may.
    """
    found: dict[int, tuple[int, int, int]] = {}
    for limit in info.rlimits:
        number = NUMBERS.get(limit.type)
        if number is None:
            shown = name_of(RLimit.Type, limit.type)
            raise InvalidValue(f"{FIELD}.type", shown, "is no limit that is known here")
        name = f"{FIELD}.{RLimit.Type.Name(limit.type)}"
        if number in found:
            raise InvalidValue(name, _text(limit), "is given twice")
        soft, hard = _pair(name, limit)
        _check(name, limit, number, hard, most_files, own)
        found[number] = (number, soft, hard)
    return tuple(found.values())


def _pair(name: str, limit: pb.RLimitInfo.RLimit) -> tuple[int, int]:
    if limit.HasField("soft") != limit.HasField("hard"):
        given = "soft" if limit.HasField("soft") else "hard"
        reason = f"has only a {given} limit: give both, or none of them for no limit"
        raise InvalidValue(name, _text(limit), reason)
    if not limit.HasField("soft"):
        return UNLIMITED, UNLIMITED
    if limit.soft > limit.hard:
        raise InvalidValue(name, _text(limit), "has a soft limit above the hard one")
    for value in (limit.soft, limit.hard):
        if _MAX < value < _INFINITY:
            raise InvalidValue(name, _text(limit), f"must be at most {_MAX}")
    return _signed(limit.soft), _signed(limit.hard)


def _check(
    name: str,
    limit: pb.RLimitInfo.RLimit,
    number: int,
    hard: int,
    most_files: int,
    own: Mapping[int, int] | None,
) -> None:
    if number == resource.RLIMIT_NOFILE and (hard == UNLIMITED or hard > most_files):
        reason = f"this machine allows at most {most_files} (fs.nr_open)"
        raise InvalidValue(name, _text(limit), reason)
    most = UNLIMITED if own is None else own.get(number, UNLIMITED)
    if most != UNLIMITED and (hard == UNLIMITED or hard > most):
        reason = f"this agent runs without root's rights, and may give at most {most}"
        raise InvalidValue(name, _text(limit), reason)


def _signed(value: int) -> int:
    return UNLIMITED if value == _INFINITY else value


def _text(limit: pb.RLimitInfo.RLimit) -> str:
    soft = str(limit.soft) if limit.HasField("soft") else "-"
    hard = str(limit.hard) if limit.HasField("hard") else "-"
    return f"{soft}:{hard}"
