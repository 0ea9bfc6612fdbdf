"""Single amounts: what is one, and how it is written.

Scalars are whole thousandths, see `mesos_py.resources`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import ROUND_HALF_UP, Decimal
from typing import Final

from mesos_py import ranges as rng
from mesos_py.errors import InvalidResources
from mesos_py.ranges import Ranges

MILLI: Final = 1000
# Far above any machine and any cluster, far below where doubles on the wire
# lose thousandths (2**53 / 1000).
MAX_SCALAR: Final = 10**12
MAX_RANGE_VALUE: Final = 2**63 - 1
MAX_RANGES: Final = 10_000
MAX_TEXT: Final = 100_000
WHOLE_ONLY: Final = frozenset({"gpus"})
NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,62}")


def to_milli(field: str, value: float | int | Decimal) -> int:
    """Thousandths of `value`, rounded half away from zero; refuses what is no amount.

    Raises InvalidResources for NaN, infinities, amounts that are not above zero,
    below 0.001 after rounding, or over MAX_SCALAR.
    """
    if type(value) is float and 0 < value <= MAX_SCALAR:
        # Nearly all amounts: far enough from a half that rounding is no question.
        milli = int(value * MILLI + 0.5)
        if milli and abs(value * MILLI - milli) < 0.25 and field not in WHOLE_ONLY:
            return milli
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise InvalidResources(field, value, "must be a number")
    # Numbers of other packages (numpy) are floats too, with a text of their own.
    exact = Decimal(repr(float(value))) if isinstance(value, float) else Decimal(value)
    if not exact.is_finite():
        raise InvalidResources(field, value, "must be a finite number")
    if exact <= 0:
        raise InvalidResources(field, value, "must be above zero")
    if exact > MAX_SCALAR:
        raise InvalidResources(field, value, f"must be at most {MAX_SCALAR}")
    milli = int((exact * MILLI).to_integral_value(rounding=ROUND_HALF_UP))
    if milli == 0:
        raise InvalidResources(field, value, "is below 0.001, the smallest amount")
    if field in WHOLE_ONLY and milli % MILLI:
        raise InvalidResources(field, value, "must be a whole number")
    return milli


def milli_text(milli: int) -> str:
    """`milli` thousandths as people write them: 1500 -> "1.5", 2000 -> "2"."""
    sign = "-" if milli < 0 else ""
    whole, rest = divmod(abs(milli), MILLI)
    return f"{sign}{whole}" if not rest else f"{sign}{whole}.{rest:03d}".rstrip("0")


def checked_ranges(field: str, pairs: Iterable[tuple[int, int]]) -> Ranges:
    """Canonical ranges from pairs.

    Raises InvalidResources for none, a reversed pair, numbers out of bounds, an
    overlap, or more than MAX_RANGES pairs.
    """
    items = list(pairs)
    if not items:
        raise InvalidResources(field, "[]", "must have at least one range")
    if len(items) > MAX_RANGES:
        raise InvalidResources(field, len(items), f"must have at most {MAX_RANGES} ranges")
    for begin, end in items:
        if not 0 <= begin <= MAX_RANGE_VALUE or not 0 <= end <= MAX_RANGE_VALUE:
            raise InvalidResources(field, f"{begin}-{end}", "is out of bounds")
        if end < begin:
            raise InvalidResources(field, f"{begin}-{end}", "ends before it begins")
        if field.rpartition(".")[2] == "ports" and end > 65535:
            raise InvalidResources(field, f"{begin}-{end}", "a port is at most 65535")
    clash = rng.overlap(items)
    if clash is not None:
        raise InvalidResources(field, f"{clash[0]}-{clash[1]}", "overlaps another range")
    return rng.normalised(items)


def checked_set(field: str, items: Iterable[str]) -> frozenset[str]:
    seen: set[str] = set()
    for item in items:
        if not item:
            raise InvalidResources(field, item, "an item must not be empty")
        if item in seen:
            raise InvalidResources(field, item, "is there twice")
        seen.add(item)
    if not seen:
        raise InvalidResources(field, "{}", "must have at least one item")
    return frozenset(seen)


def set_text(items: Iterable[str]) -> str:
    return "{" + ",".join(sorted(items)) + "}"
