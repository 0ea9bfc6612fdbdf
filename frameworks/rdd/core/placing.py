"""Which task runs next, and where."""

from __future__ import annotations

import functools
from typing import Final

from frameworks.common.delay import Level
from frameworks.rdd.core.effects import Failure
from frameworks.rdd.core.jobs import Jobs
from frameworks.rdd.core.pending import Near
from frameworks.rdd.core.stages import Inputs
from frameworks.rdd.core.state import Attempt, Executor, Stage, State
from frameworks.rdd.messages import DefineStage, RunTask

# Delay knows three levels by the names of its first user.
_WITHIN: Final[dict[Level, Near]] = {"host": "executor", "rack": "host", "any": "any"}
_LEVEL: Final = {near: level for level, near in _WITHIN.items()}
_STEPS: Final[tuple[Near, ...]] = ("executor", "host", "any")


class Placing:
    """Gives tasks of stages that are queued to free slots."""

    def __init__(self, state: State, jobs: Jobs) -> None:
        self._state = state
        self._jobs = jobs

    def place(self, now_s: float) -> float | None:
        """As many as can be.  Returns when waiting for a better place ends, if some wait."""
        state = self._state
        self._pardon(now_s)
        wake_s = self._exclusion_ends_s() if state.by_turn else None
        passed: set[int] = set()
        while state.free:
            turn = next((each for each in state.turns if each not in passed), None)
            if turn is None:
                break
            stage = state.by_turn[turn]
            if not stage.pending and not stage.twins:
                state.unqueue(stage)
            elif not self._next(stage, now_s):
                passed.add(turn)
                for until_s in (self._patience(stage, now_s), *stage.avoids.values()):
                    if until_s is not None and until_s > now_s:
                        wake_s = until_s if wake_s is None else min(wake_s, until_s)
        return wake_s

    # ---- Its own -------------------------------------------------------------------------

    def _next(self, stage: Stage, now_s: float) -> bool:
        """Begin one task of it.  Whether there was one that fits somewhere."""
        state = self._state
        assert stage.delay is not None
        executors = [each for each in state.free.values() if self._usable(each, now_s)]
        within = self._within(stage, now_s)
        for step in _STEPS:
            for executor in executors:
                found = stage.pending.take(
                    executor.id,
                    executor.host,
                    step,
                    functools.partial(self._avoids, stage, executor, now_s),
                )
                if found is not None:
                    index, near = found
                    stage.delay.launched(_LEVEL[near])
                    self._begin(stage, index, executor, now_s)
                    return True
            if step == within:
                break
        return self._twin(stage, executors, now_s)

    def _within(self, stage: Stage, now_s: float) -> Near:
        assert stage.delay is not None
        within = _WITHIN[stage.delay.allowed(now_s)]
        if within == "any":
            return within
        # Nobody waits for who is not there.
        able = {
            each.id: each.host
            for each in self._state.executors.values()
            if not each.leaving and not each.dropped and self._usable(each, now_s)
        }
        on_executors, on_hosts = stage.pending.wishes(able, set(able.values()))
        if on_executors:
            return within
        return "host" if on_hosts else "any"

    def _patience(self, stage: Stage, now_s: float) -> float | None:
        assert stage.delay is not None
        if not stage.pending or self._within(stage, now_s) == "any":
            return None
        wait_s = stage.delay.skipped(now_s)
        return now_s + wait_s if wait_s > 0 else None

    def _twin(self, stage: Stage, executors: list[Executor], now_s: float) -> bool:
        for index in list(stage.twins):
            running = stage.running.get(index)
            if index not in stage.undone or not running or len(running) > 1:
                del stage.twins[index]
                continue
            elsewhere = [each for each in executors if each.host != running[0].executor.host] or [
                each for each in executors if each is not running[0].executor
            ]
            if elsewhere:
                del stage.twins[index]
                self._begin(stage, index, elsewhere[0], now_s)
                return True
        return False

    def _begin(self, stage: Stage, index: int, executor: Executor, now_s: float) -> None:
        state = self._state
        part = stage.part(index)
        number = part.attempts
        part.attempts += 1
        split = stage.splits[index]
        try:
            inputs = stage.plan.inputs(split)
            payloads = inputs.packed(whole=stage.whole or not self._keeps(executor, inputs))
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            text = f"stage {stage.id}: what partition {split} is made of cannot be sent: {said}"
            self._jobs.fail_stage(stage, Failure(text), now_s)
            return
        stage.avoids.pop(index, None)
        key = stage.key
        if key not in executor.told:
            executor.told[key] = state.outputs.at
            outputs = {each: state.outputs.there(each) for each in stage.plan.shuffles}
            state.send(executor.id, DefineStage(key, stage.blob or b"", outputs))
        state.last_task += 1
        task_id = state.last_task
        at = executor.told[key]
        state.begin(Attempt(task_id, stage, index, number, executor, stage.tries, at, now_s, now_s))
        state.send(
            executor.id,
            RunTask(task_id, key, stage.id, split, number, payloads, stage.properties),
        )

    def _keeps(self, executor: Executor, inputs: Inputs) -> bool:
        """Whether all that the task can take from the store is there."""
        kept = self._state.kept
        return all(executor.id in kept.places(rdd_id, split) for rdd_id, split in inputs.kept)

    def _usable(self, executor: Executor, now_s: float) -> bool:
        return not self._state.blame or not self._state.blame.excluded(executor.id, now_s)

    def _pardon(self, now_s: float) -> None:
        """An exclusion that would leave nobody is none."""
        blame = self._state.blame
        if not blame:
            return
        blame.expire(now_s)
        able = [
            each.id
            for each in self._state.executors.values()
            if not each.leaving and not each.dropped
        ]
        if able and all(blame.excluded(each, now_s) for each in able):
            blame.lift(able)

    def _exclusion_ends_s(self) -> float | None:
        blame = self._state.blame
        if not blame:
            return None
        ends = (blame.until_s(each) for each in self._state.executors)
        return min((until_s for until_s in ends if until_s > 0), default=None)

    def _avoids(self, stage: Stage, executor: Executor, now_s: float, index: int) -> bool:
        """Whether it has failed there a moment ago, and there are others to try."""
        if stage.avoids.get(index, now_s) <= now_s:
            return False
        part = stage.parts[index]
        if executor.id not in part.failed_on:
            return False
        state = self._state
        return any(
            each.id not in part.failed_on
            and not each.leaving
            and not each.dropped
            and self._usable(each, now_s)
            for each in state.executors.values()
        )


__all__ = ["Placing"]
