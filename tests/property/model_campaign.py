"""Many histories of one kind: played, counted, and told as short as they can be if one fails."""

from __future__ import annotations

import os
import random
from collections import Counter
from typing import Final

from hypothesis import settings

from tests.property import model_history as histories
from tests.property.model_leaders import LeaderRun

STEPS: Final = 500
PARTS: Final = 5
# In so many everything is met that histories are meant to meet; in the 20 of the fast profile it
# is a matter of luck.
ENOUGH: Final = 100


class Campaign:
    """`variable` names the environment variable that has one history played again."""

    def __init__(self, kind: type[LeaderRun], variable: str) -> None:
        profile = settings()
        self.histories = profile.max_examples
        # What the histories met; "histories" counts them.
        self.met: Counter[str] = Counter()
        self._kind = kind
        self._variable = variable
        self._first = 0 if profile.derandomize else random.SystemRandom().randrange(10**9)
        self._one = os.environ.get(variable, "")

    def play_part(self, part: int) -> None:
        """Every PARTS-th history, from the `part`-th on; or the one that is asked for."""
        if self._one:
            seed, _, steps = self._one.partition(":")
            self._play(int(seed), int(steps or STEPS))
            return
        for number in range(part, self.histories, PARTS):
            self._play(self._first + number, STEPS)

    def _play(self, seed: int, steps: int) -> None:
        numbers = histories.history(seed, steps)
        run = self._kind(seed)
        try:
            histories.play(seed, numbers, run)
        except Exception as error:
            fewer = histories.shortened(seed, numbers, tries=200, kind=self._kind)
            story = histories.told(seed, fewer, self._kind)[-15_000:]
            again = f"{self._variable}={seed}:{steps} repeats it; in {len(fewer)} steps:"
            raise AssertionError(f"{error}\n{again}\n{story}") from error
        self.met.update(run.counters)
        self.met.update(run.cluster.counters)
        self.met["histories"] += 1
