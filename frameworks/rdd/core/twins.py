"""Which tasks are run a second time beside the first (speculation)."""

from __future__ import annotations

from frameworks.common.speculation import Pace, most_twins, quantile, stragglers
from frameworks.rdd.core.state import Attempt, Stage, State


class Twins:
    """Looks from time to time; the placing finds them in `Stage.twins`."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._next_s = 0.0

    def look(self, now_s: float) -> float | None:
        """When to look again; None while nothing runs, or twins are not wanted."""
        state = self._state
        rules = state.rules
        if not rules.twins or not state.tasks:
            return None
        if now_s < self._next_s:
            return self._next_s
        self._next_s = now_s + rules.twin_interval_s
        for stage in state.stages.values():
            if stage.active and not stage.pending and stage.running:
                self._choose(stage, now_s)
        return self._next_s

    def _choose(self, stage: Stage, now_s: float) -> None:
        rules = self._state.rules
        done = len(stage.splits) - len(stage.undone)
        if done < rules.twin_quantile * len(stage.splits) or not stage.took:
            return
        running = sum(map(len, stage.running.values()))
        twins = running - len(stage.running) + len(stage.twins)
        room = most_twins(running, rules.twin_share) - twins
        alone = [each[0] for each in stage.running.values() if len(each) == 1]
        paces = [
            _pace(each, stage, now_s)
            for each in alone
            if not each.cancelled and each.index not in stage.twins
        ]
        finished_s = [took_s for _, took_s in stage.took]
        least_s = max(rules.twin_after_s, rules.twin_multiplier * quantile(finished_s, 0.5))
        for index in stragglers(paces, finished_s, least_s)[: max(0, room)]:
            stage.twins[index] = None
            self._state.queue(stage)


def _pace(attempt: Attempt, stage: Stage, now_s: float) -> Pace:
    """A task is taken to have as many elements as its siblings had."""
    usual = quantile(stage.records, 0.5) if stage.records else 0
    progress = min(1.0, attempt.elements / usual) if usual else 0.0
    return Pace(attempt.index, progress, now_s - attempt.began_s, now_s - max(attempt.moved_s, 0.0))


__all__ = ["Twins"]
