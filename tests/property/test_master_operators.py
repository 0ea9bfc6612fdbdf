"""Operators who take machines out of service, while masters die under them.

    MASTER_OPERATORS_HISTORY=1234:500 pytest tests/property/test_master_operators.py

plays that one history again.  What must hold is in model_operators.py, on top of what must
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
from tests.property.model_operators import OperatorRun

_PROFILE = settings()
_HISTORIES = _PROFILE.max_examples
_STEPS: Final = 500
_PARTS: Final = 5
_FIRST = 0 if _PROFILE.derandomize else random.SystemRandom().randrange(10**9)
_ONE = os.environ.get("MASTER_OPERATORS_HISTORY", "")

# What the histories of this run met.
_met: Counter[str] = Counter()
# What they must meet, lest they prove nothing.
_MEANT: Final = (
    *("leaders", "words that counted", "tasks_launched", "agents_drained", "agents_marked_gone"),
    *("deactivate", "reactivate", "schedule", "start", "stop", "inverse_offers_sent"),
    *("refused: drain", "refused: reactivate", "dropped/inverse-offer-unknown"),
)


def _play(seed: int, steps: int) -> None:
    numbers = histories.history(seed, steps)
    run = OperatorRun(seed)
    try:
        histories.play(seed, numbers, run)
    except Exception as error:
        fewer = histories.shortened(seed, numbers, tries=200, kind=OperatorRun)
        story = histories.told(seed, fewer, OperatorRun)[-15_000:]
        again = f"MASTER_OPERATORS_HISTORY={seed}:{steps} repeats it; in {len(fewer)} steps:"
        raise AssertionError(f"{error}\n{again}\n{story}") from error
    _met.update(run.counters)
    _met.update(run.cluster.counters)
    _met["histories"] += 1


@pytest.mark.parametrize("part", range(_PARTS))
def test_whatever_operators_say_nothing_is_lost_and_everything_finds_its_end(part):
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
