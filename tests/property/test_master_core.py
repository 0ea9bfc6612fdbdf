"""The master's core under all that agents, frameworks, operators and networks can do to it.

    MASTER_CORE_HISTORY=1234:1000 pytest tests/property/test_master_core.py

plays that one history (seed and number of steps) again; HYPOTHESIS_PROFILE=long plays
thousands.  What must hold is in model_truth.py, model_offers.py and model_scheduler.py.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

from tests.property import model_history as histories
from tests.property.model_run import Run

REPOSITORY = Path(__file__).parents[2]
_PROFILE = settings()
_HISTORIES = _PROFILE.max_examples
_STEPS = 1000 if _HISTORIES >= 100 else 500
_PARTS = 10
_FIRST = 0 if _PROFILE.derandomize else random.SystemRandom().randrange(10**9)
_ONE = os.environ.get("MASTER_CORE_HISTORY", "")


def _played(seed: int, steps: int) -> Run:
    """The run; on a failure, how to repeat it and the shortest story of it."""
    numbers = histories.history(seed, steps)
    try:
        return histories.play(seed, numbers)
    except Exception as error:
        fewer = histories.shortened(seed, numbers, tries=200)
        story = histories.told(seed, fewer)[-15_000:]
        again = f"MASTER_CORE_HISTORY={seed}:{steps} repeats it; shortened to {len(fewer)} steps:"
        raise AssertionError(f"{error}\n{again}\n{story}") from error


# What the histories of this run met; "histories" counts them.
_met: Counter[str] = Counter()


def _note(run: Run) -> None:
    _met.update(run.cluster.counters)
    _met.update(f"seen {state}" for each in run.all_schedulers for state in each.seen)
    _met["histories"] += 1


@pytest.mark.parametrize("part", range(_PARTS))
def test_whatever_happens_the_account_is_right_and_everything_finds_its_end(part):
    if _ONE:
        seed, _, steps = _ONE.partition(":")
        _played(int(seed), int(steps or _STEPS))
        return
    for number in range(part, _HISTORIES, _PARTS):
        _note(_played(_FIRST + number, _STEPS))


def test_the_histories_have_met_what_they_are_meant_to_meet(lacking):
    if _met["histories"] < _HISTORIES:
        lacking("all histories in one process")  # not so when workers share them
    meant = histories.MEANT + (histories.RARE if _HISTORIES >= 100 else ())
    assert [what for what in meant if not _met[what]] == []


def digest(seed: int, steps: int) -> str:
    run = Run(seed)
    run.record = True
    histories.play(seed, histories.history(seed, steps), run)
    return run.digest.hexdigest()


def test_the_same_history_gives_the_same_events():
    assert digest(1, _STEPS) == digest(1, _STEPS)


def test_the_same_history_gives_the_same_events_in_another_process():
    # There, sets of texts have another order.
    code = f"from {__name__} import digest; print(digest(2, {_STEPS}))"
    hash_seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    there = subprocess.run(
        [sys.executable, "-c", code],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert there.stdout.strip() == digest(2, _STEPS)
