"""Whether at any moment two masters led.  Pure.

A writer asks all masters all the time to store a number, and to decide something that
is stored nowhere (`writer.py`).  Which leadership did so is known from the master's log.
Leaderships are numbered (epochs): an earlier one may take nothing after a later one has.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_RECORD: Final = re.compile(r" (leading|not leading any more) .*\bepoch=(\d+) monotonic_s=([\d.]+)")
_REGISTERED: Final = re.compile(r" registered .*\bepoch=(\d+)")


@dataclass(frozen=True)
class Term:
    """One leadership, on the monotonic clock.  Its end is infinite if nobody told it."""

    master: str
    epoch: int
    begun_s: float
    ended_s: float = math.inf


@dataclass(frozen=True)
class Write:
    """A number that a master was asked to store, or (None) something to be decided only.

    `accepted` is None where it did not say: then it may have done it, also later.
    """

    number: int | None
    master: str
    sent_s: float
    received_s: float
    accepted: bool | None


def terms(master: str, log: str) -> list[Term]:
    """The leaderships that a master's log tells of, in order."""
    found: list[Term] = []
    for what, epoch, moment in _RECORD.findall(log):
        if what == "leading":
            if found and found[-1].ended_s == math.inf:
                # It was killed in that one, and has been started again since.
                found[-1] = Term(master, found[-1].epoch, found[-1].begun_s, float(moment))
            found.append(Term(master, int(epoch), float(moment)))
        else:
            found[-1] = Term(master, int(epoch), found[-1].begun_s, float(moment))
    return found


def findings(
    led: Sequence[Term],
    writes: Iterable[Write],
    stored: int | None,
    obeyed: Mapping[str, Sequence[int]],
) -> list[str]:
    """What is wrong with the leaderships.

    `stored`: the number that is read in the end.  `obeyed`: of each agent, the epochs of
    the leaderships that it registered with, in order.
    """
    asked = list(writes)
    found = _of_epochs(led)
    by_epoch: dict[int, list[Write]] = defaultdict(list)
    for write in asked:
        if not write.accepted:
            continue
        possible = _epochs_of(write, led)
        if not possible:
            found.append(f"{write.master} did not lead, and took a write: {write}")
        elif len(possible) == 1:
            by_epoch[possible[0]].append(write)
    found += _of_order(by_epoch)
    found += _of_stored(by_epoch, asked, stored)
    for agent, epochs in obeyed.items():
        if list(epochs) != sorted(epochs):
            found.append(f"{agent} obeyed an earlier leadership after a later one: {epochs}")
    return found


def epochs_obeyed(agent_log: str) -> list[int]:
    return [int(epoch) for epoch in _REGISTERED.findall(agent_log)]


def _of_epochs(led: Sequence[Term]) -> list[str]:
    found = []
    ordered = sorted(led, key=lambda term: term.epoch)
    for earlier, later in itertools.pairwise(ordered):
        if earlier.epoch == later.epoch:
            found.append(f"two leaderships with one number: {earlier} and {later}")
        elif earlier.begun_s > later.begun_s:
            found.append(f"a leadership began after a later one: {earlier} and {later}")
    return found


def _epochs_of(write: Write, led: Iterable[Term]) -> list[int]:
    """The leaderships that may have taken it."""
    return [
        term.epoch
        for term in led
        if term.master == write.master
        and term.begun_s <= write.received_s
        and term.ended_s >= write.sent_s
    ]


def _of_order(by_epoch: Mapping[int, Sequence[Write]]) -> list[str]:
    found = []
    # The first answer of the leaderships above, from the newest one down.
    first: Write | None = None
    for epoch in sorted(by_epoch, reverse=True):
        last = max(by_epoch[epoch], key=lambda write: write.sent_s)
        if first is not None and last.sent_s > first.received_s:
            found.append(f"two masters led: epoch {epoch} took {last} after a later one {first}")
        earliest = min(by_epoch[epoch], key=lambda write: write.received_s)
        if first is None or earliest.received_s < first.received_s:
            first = earliest
    return found


def _of_stored(
    by_epoch: Mapping[int, Sequence[Write]], asked: Iterable[Write], stored: int | None
) -> list[str]:
    stores = {
        epoch: max(each.number for each in writes if each.number is not None)
        for epoch, writes in by_epoch.items()
        if any(each.number is not None for each in writes)
    }
    if not stores:
        return []
    last = stores[max(stores)]
    possible = {last} | {write.number for write in asked if write.accepted is None}
    if stored in possible:
        return []
    return [f"{stored} is stored, and {last} was taken last, in epoch {max(stores)}"]
