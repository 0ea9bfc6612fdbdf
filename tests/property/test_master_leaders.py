"""Masters that die, each followed by one that has the registry and nothing else.

    MASTER_LEADERS_HISTORY=1234:500 pytest tests/property/test_master_leaders.py

plays that one history again.  What must hold is in model_leaders.py, on top of what must
hold for one master alone.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from typing import Final

import pytest
from hypothesis import settings

from tests.property import model_history as histories
from tests.property.model_leaders import LeaderRun

_PROFILE = settings()
_HISTORIES = _PROFILE.max_examples
_STEPS: Final = 500
_PARTS: Final = 5
_FIRST = 0 if _PROFILE.derandomize else random.SystemRandom().randrange(10**9)
_ONE = os.environ.get("MASTER_LEADERS_HISTORY", "")

# What the histories of this run met.
_met: Counter[str] = Counter()
# What they must meet, lest they prove nothing.
_MEANT: Final = (
    *("leaders", "writes arrived unconfirmed", "writes lost"),
    *("agents_registered", "agents_reregistered", "agents_unreachable", "agents_removed"),
    *("dropped/reconcile-too-early", "dropped/admission-without-agent"),
)


def _play(seed: int, steps: int) -> None:
    numbers = histories.history(seed, steps)
    run = LeaderRun(seed)
    try:
        histories.play(seed, numbers, run)
    except Exception as error:
        fewer = histories.shortened(seed, numbers, tries=200, kind=LeaderRun)
        story = histories.told(seed, fewer, LeaderRun)[-15_000:]
        again = f"MASTER_LEADERS_HISTORY={seed}:{steps} repeats it; in {len(fewer)} steps:"
        raise AssertionError(f"{error}\n{again}\n{story}") from error
    _met.update(run.counters)
    _met.update(run.cluster.counters)
    _met["histories"] += 1


@pytest.mark.parametrize("part", range(_PARTS))
def test_whoever_leads_nothing_that_was_told_is_lost_and_everything_finds_its_end(part):
    if _ONE:
        seed, _, steps = _ONE.partition(":")
        _play(int(seed), int(steps or _STEPS))
        return
    for number in range(part, _HISTORIES, _PARTS):
        _play(_FIRST + number, _STEPS)


def test_the_histories_have_met_what_they_are_meant_to_meet(lacking):
    if _met["histories"] < _HISTORIES:
        lacking("all histories in one process")  # not so when workers share them
    assert [what for what in _MEANT if not _met[what]] == []
