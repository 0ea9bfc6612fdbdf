"""Which running attempts deserve a twin: those that will end last, if a new one is likely to
be sooner (LATE: Zaharia et al., OSDI 2008).

LATE takes an attempt's rate for constant, and has nothing to say of one that has stopped: near
its end it seems about to end for ever.  So one that shows no progress for as long as its siblings
take in all, and has run for twice as long as they do, counts as stuck.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

# An attempt is slow if its rate is below that of so many of its siblings.
SLOW_QUANTILE: Final = 0.25
# An agent is slow if what finished there took so many times as long as elsewhere.
SLOW_AGENT: Final = 2.0
# What an attempt says of itself is mostly what it has read: one that has read all, and runs
# on, is not done.
MOST_PROGRESS: Final = 0.9
# Stuck is what has run so many times as long as usual, and shown nothing for as long as usual.
STUCK: Final = 2.0


@dataclass(frozen=True, slots=True)
class Pace:
    """How an attempt gets on: `progress` (0 to 1) after `ran_s` seconds, of which it has shown
    nothing new in the last `still_s`."""

    task: int
    progress: float
    ran_s: float
    still_s: float = 0.0

    @property
    def rate(self) -> float:
        return self.progress / self.ran_s if self.ran_s > 0 else math.inf

    @property
    def left_s(self) -> float:
        """Estimated seconds to its end.  One that shows nothing may take for ever."""
        progress = min(self.progress, MOST_PROGRESS)
        return (1 - progress) / progress * self.ran_s if progress > 0 else math.inf


def stragglers(paces: Sequence[Pace], finished_s: Sequence[float], after_s: float) -> list[int]:
    """Tasks whose attempt deserves a twin, the most urgent first: those that are stuck.

    paces: of tasks with one attempt that runs.  finished_s: how long siblings took that are
    done; without any there is nothing to compare with, and the answer is empty.  after_s: an
    attempt is left alone for so long.
    """
    if not finished_s:
        return []
    typical_s = quantile(finished_s, 0.5)
    rates = [pace.rate for pace in paces] + [1 / max(took_s, 1e-3) for took_s in finished_s]
    slow = quantile(rates, SLOW_QUANTILE)
    # Too early a rate says little.
    early_s = max(after_s, typical_s / 2)
    stuck_s = max(after_s, typical_s)
    found: list[tuple[float, float, int]] = []
    for pace in paces:
        if pace.still_s >= stuck_s and pace.ran_s >= STUCK * typical_s:
            found.append((-math.inf, -pace.still_s, pace.task))
        elif pace.progress == 0 or pace.ran_s < early_s:
            continue
        elif pace.rate <= slow and pace.left_s > typical_s:
            found.append((-pace.left_s, -pace.ran_s, pace.task))
    return [task for _left_s, _time_s, task in sorted(found)]


def most_twins(running: int, share: float) -> int:
    """How many twins there may be beside `running` attempts: one is always allowed."""
    return max(1, math.floor(running * share))


def slow_agents(finished: Iterable[tuple[str, float]]) -> set[str]:
    """Agents that are no good place for a twin, by (agent, seconds) of what has finished."""
    by_agent: dict[str, list[float]] = {}
    for agent_id, took_s in finished:
        by_agent.setdefault(agent_id, []).append(took_s)
    if len(by_agent) < 2:
        return set()
    typical = {agent_id: quantile(times, 0.5) for agent_id, times in by_agent.items()}
    middle = quantile(list(typical.values()), 0.5)
    return {agent_id for agent_id, took_s in typical.items() if took_s > SLOW_AGENT * middle}


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of them lie (the lower of two); `values` is not empty."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.floor(share * len(ordered)))]
