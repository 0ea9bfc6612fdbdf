"""The kernel's figures, taken apart.  Text in, values out; what is odd is left out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

MIB: Final = 1024 * 1024
# What v1 says for "no limit": the largest multiple of a page in 63 bits, or all 64.
_NO_LIMIT: Final = 2**60
_MAX_CPUS: Final = 65536


def number(text: str | None) -> int | None:
    """One whole number; None for "max", what v1 means by that, and what is none."""
    found = _whole(text.strip()) if text is not None else None
    return found if found is not None and found < _NO_LIMIT else None


def keyed(text: str | None) -> dict[str, int]:
    """Lines of a name and a number, as memory.stat has them."""
    found = {}
    for line in (text or "").splitlines():
        name, _, value = line.strip().partition(" ")
        amount = _whole(value.strip())
        if name and amount is not None:
            found[name] = amount
    return found


def io_stat(text: str | None) -> dict[str, int]:
    """v2's io.stat ("8:0 rbytes=1 wbytes=2 ..."), summed over devices."""
    found: dict[str, int] = {}
    for line in (text or "").splitlines():
        for item in line.split()[1:]:
            name, _, value = item.partition("=")
            amount = _whole(value)
            if amount is not None:
                found[name] = found.get(name, 0) + amount
    return found


def blkio(text: str | None) -> dict[str, int]:
    """v1's "8:0 Read 1" lines, summed over devices: by the operation, as "Read"."""
    found: dict[str, int] = {}
    for line in (text or "").splitlines():
        parts = line.split()
        if len(parts) == 3 and (amount := _whole(parts[2])) is not None:
            found[parts[1]] = found.get(parts[1], 0) + amount
    return found


def cpu_list(text: str | None) -> frozenset[int]:
    """The processors of a list such as "0-3,7"."""
    found: set[int] = set()
    for part in (text or "").strip().split(","):
        first, dash, last = part.strip().partition("-")
        low, high = _whole(first), _whole(last if dash else first)
        if low is not None and high is not None and low <= high < _MAX_CPUS:
            found.update(range(low, high + 1))
    return frozenset(found)


def cpu_text(cpus: Iterable[int]) -> str:
    """The list that `cpu_list` reads: "0-3,7"."""
    spans: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if spans and spans[-1][1] == cpu - 1:
            spans[-1][1] = cpu
        else:
            spans.append([cpu, cpu])
    return ",".join(f"{low}-{high}" if high > low else str(low) for low, high in spans)


def _whole(text: str) -> int | None:
    # Not int(): it takes "1_000", "+1" and the digits of other scripts.
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 20 else None
