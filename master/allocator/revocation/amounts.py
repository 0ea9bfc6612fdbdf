"""Arithmetic on scalars by name, in thousandths, and on bundles of which many are needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from mesos_py.resources import Resources

Amounts: TypeAlias = Mapping[str, int]


def add(amounts: dict[str, int], more: Amounts, times: int = 1) -> None:
    for name, milli in more.items():
        amounts[name] = amounts.get(name, 0) + times * milli


def less(one: Amounts, other: Amounts) -> dict[str, int]:
    """What is left above zero."""
    left = {name: milli - other.get(name, 0) for name, milli in one.items()}
    return {name: milli for name, milli in left.items() if milli > 0}


def covers(amounts: Amounts, wanted: Amounts) -> bool:
    return all(amounts.get(name, 0) >= milli for name, milli in wanted.items())


def keep_back(free: Resources, kept: Amounts) -> Resources:
    """What is left of `free` where so much of it is kept, as far as it is there."""
    if not any(name in free.scalars for name in kept):
        return free
    return Resources(less(free.scalars, kept), free.ranges, free.sets)


def common(one: Resources, other: Resources) -> Resources:
    """What both have; of ports and items of sets only what is all of one of them."""
    if other.contains(one):
        return one
    scalars = {name: min(m, other.scalars.get(name, 0)) for name, m in one.scalars.items()}
    return Resources({name: milli for name, milli in scalars.items() if milli})


def times(room: Resources, bundle: Resources) -> int:
    """How many of the bundle fit.  One at most where it names ports or items of a set,
    which are there once."""
    if not room.contains(bundle):
        return 0
    if bundle.ranges or bundle.sets:
        return 1
    return min(room.scalars[name] // milli for name, milli in bundle.scalars.items())


def repeated(bundle: Resources, count: int) -> Resources:
    if count == 1:
        return bundle
    return Resources({name: count * milli for name, milli in bundle.scalars.items()})


def dominant(amounts: Amounts, total: Amounts) -> float:
    """The largest part of any one resource of the total."""
    return max((m / total[name] for name, m in amounts.items() if total.get(name)), default=0.0)
