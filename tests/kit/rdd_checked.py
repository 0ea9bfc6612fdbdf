"""The model of executors, which compares what the RDD core believes and orders with what is so."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from frameworks.rdd.core.effects import Send
from frameworks.rdd.core.rules import Rules
from frameworks.rdd.core.state import Attempt, Stage
from frameworks.rdd.messages import (
    PAYLOAD,
    Died,
    FetchLost,
    Locations,
    MapOutput,
    Outcome,
    Raised,
    RunTask,
    Succeeded,
    TaskEnded,
)
from frameworks.rdd.nodes import Node
from tests.kit.rdd_world import World


@dataclass(frozen=True)
class _Before:
    """Of a task that ends.  newer: outputs that were made since it was told what it reads."""

    attempt: Attempt
    wanted: bool
    current: bool
    fetch_failures: int
    newer: frozenset[str]


class CheckedWorld(World):
    """As World; `compare` is to be called after each step."""

    def __init__(self, rules: Rules) -> None:
        super().__init__(rules, elastic=True)
        # What the core was not told of.
        self.secretly_deleted: set[str] = set()
        self.evicted: set[tuple[str, int, int]] = set()
        self.leaving: set[str] = set()
        # By stage and index.
        self.failures: Counter[tuple[int, int]] = Counter()
        self.unfetched: Counter[tuple[int, int]] = Counter()
        # The last stages of jobs.
        self.finals: dict[int, int] = {}

    # ---- Steps, and what must come of each --------------------------------------------------

    def submit(
        self,
        node: Node,
        splits: list[int] | None = None,
        group: str = "",
        properties: dict[str, str] | None = None,
    ) -> int:
        number = super().submit(node, splits, group, properties)
        if (job := self.core.state.jobs.get(number)) is not None:
            self.finals[number] = job.final.id
        return number

    def leave(self, name: str) -> None:
        self.leaving.add(name)
        self.core.executor_leaving(name)
        self.settle()

    def delete(self, prefix: str) -> None:
        before = set(self.files)
        super().delete(prefix)
        self.secretly_deleted |= before - set(self.files)

    def evict(self, name: str, block: tuple[int, int], *, told: bool = True) -> None:
        if not told:
            self.evicted.add((name, *block))
        super().evict(name, block, told=told)

    def lose(self, name: str, *, outputs_lost: bool = False, blame: bool = False) -> None:
        before = self._complete()
        super().lose(name, outputs_lost=outputs_lost, blame=blame)
        self.check_readers(before)

    def lose_agent(self, host: str) -> None:
        before = self._complete()
        super().lose_agent(host)
        self.check_readers(before)
        assert not [each for each in self.outputs() if each.host == host]

    def pretend(self, name: str, task_id: int) -> None:
        """Another than the one that runs it tells the end of a task."""
        self.core.heard(name, TaskEnded(task_id, Succeeded(b"666")), self.now_s)
        self.settle()
        assert task_id in self.core.state.tasks

    def finish(self, name: str, task_id: int, outcome: Outcome | None = None) -> Outcome:
        before = self._before(task_id)
        outcome = super().finish(name, task_id, outcome)
        if before.wanted:
            self._check_outcome(before, outcome)
        return outcome

    def fetched(self, task_id: int, *, ok: bool = True) -> None:
        coming = self.core.state.fetching.get(task_id)
        wanted = coming is not None and coming.index in coming.stage.undone
        super().fetched(task_id, ok=ok)
        if coming is None or ok or not wanted or coming.executor_id not in self.places:
            return
        key = (coming.stage.id, coming.index)
        self.unfetched[key] += 1
        if self.unfetched[key] >= self.core.state.rules.stage_attempts:
            assert self._is_gone(coming.stage)

    def _check_outcome(self, before: _Before, outcome: Outcome) -> None:
        stage = before.attempt.stage
        rules = self.core.state.rules
        if isinstance(outcome, Raised | Died) and not before.attempt.cancelled:
            key = (stage.id, before.attempt.index)
            self.failures[key] += 1
            fatal = isinstance(outcome, Raised) and outcome.fatal
            assert self._is_gone(stage) or not (
                fatal or self.failures[key] >= rules.max_failures
            ), "tried again in vain"
        elif isinstance(outcome, FetchLost) and outcome.shuffle_id != PAYLOAD:
            assert self._is_gone(stage) or outcome.executor_id or stage.distrust
            counted = before.fetch_failures + before.current
            assert self._is_gone(stage) or stage.fetch_failures == counted
            assert before.newer <= {each.path for each in self.outputs()}

    def _before(self, task_id: int) -> _Before:
        state = self.core.state
        attempt = state.tasks[task_id]
        stage = attempt.stage
        newer = {
            made.output.path
            for maps in state.outputs._shuffles.values()
            for made in maps
            if made is not None and made.at > attempt.at
        }
        return _Before(
            attempt,
            bool(stage.jobs) and attempt.index in stage.undone - stage.fetching,
            stage.active and attempt.try_ == stage.tries,
            stage.fetch_failures,
            frozenset(newer),
        )

    def _is_gone(self, stage: Stage) -> bool:
        return stage.id not in self.core.state.stages

    def _receive(self, send: Send) -> None:
        message, state = send.message, self.core.state
        if isinstance(message, RunTask):
            assert send.executor_id not in self.leaving, "it is to get no more tasks"
            assert send.executor_id not in self.drops, "it was dropped"
            assert not state.blame.excluded(send.executor_id, self.now_s), "it is excluded"
            beside = [
                place.name
                for place in self.places.values()
                for task_id, task in place.running.items()
                if (task.stage_id, task.split) == (message.stage_id, message.split)
                and task_id not in place.cancelled
            ]
            assert len(beside) <= state.rules.twins, "it runs already"
            assert send.executor_id not in beside, "a twin is beside the first"
        elif isinstance(message, Locations):
            live = {f"{name}:1" for name in self.places if name != send.executor_id}
            assert {each for found in message.addresses.values() for each in found} <= live
        super()._receive(send)

    # ---- What must hold after each step ------------------------------------------------------

    def compare(self) -> None:
        self._check_attempts()
        self._check_executors()
        self._check_kept()
        self._check_turns()
        self._check_pending()
        self._check_results()
        paths = {each.path for each in self.outputs()}
        assert paths <= self.files.keys() | self.secretly_deleted
        assert len(self.added) == len(set(self.added)), "a sum counts twice"

    def check_readers(self, before: set[int]) -> None:
        """Nothing begins whose input is lost.  before: the shuffles that were complete."""
        outputs, kept = self.core.state.outputs, self.core.state.kept
        lost = before - self._complete()
        for stage in self.core.state.stages.values():
            if stage.active and stage.pending and lost & set(stage.plan.shuffles):
                needed = stage.plan.needed(None if stage.distrust else kept)
                assert all(outputs.complete(each.shuffle_id) for each in needed)

    def check_sums(self, number: int) -> None:
        """What the tasks of a job's results have added has come."""
        if number in self.finals:
            final = self.finals[number]
            found = {each for each in self.added if each.startswith(b"%d/" % final)}
            assert found == {b"%d/%d" % (final, split) for split in self.jobs[number].splits}

    def _check_attempts(self) -> None:
        state = self.core.state
        for attempt in state.tasks.values():
            place = self.places[attempt.executor.id]
            assert bool(attempt.cancelled) == (attempt.task_id in place.cancelled)
            wanted = attempt.stage.jobs and attempt.index in attempt.stage.undone
            assert wanted or attempt.cancelled, "it runs for nobody"
            key = f"{attempt.stage.id}.{attempt.try_}"
            assert attempt.at == attempt.executor.told.get(key, attempt.at)

    def _check_executors(self) -> None:
        state = self.core.state
        for name, place in self.places.items():
            executor = state.executors[name]
            held = {task.stage_key for task in place.running.values()}
            assert set(place.stages) == set(executor.told) | held
            assert (executor.idle_since_s is None) == bool(place.running)
            assert not (name in self.drops and place.running), "it was dropped while it worked"
        running = sum(len(place.running) for place in self.places.values())
        waiting = sum(len(each.pending) for each in state.by_turn.values())
        assert (self.wants or [0])[-1] == running + waiting

    def _check_kept(self) -> None:
        kept = self.core.state.kept
        believed = {
            (name, rdd_id, split)
            for rdd_id, places in kept._places.items()
            for split, by_name in places.items()
            for name in by_name
        }
        there = {(place.name, *block) for place in self.places.values() for block in place.cache}
        self.evicted -= there
        assert there <= believed <= there | self.evicted

    def _check_turns(self) -> None:
        state = self.core.state
        held = Counter(each.stage.pool for each in state.tasks.values())
        if state.rules.fair:
            assert state.held == held
        shares = held if state.rules.fair else Counter()
        order = sorted(state.by_turn, key=lambda turn: (shares[state.by_turn[turn].pool], turn))
        assert list(state.turns) == order
        for turn, stage in state.by_turn.items():
            assert turn == stage.turn == stage.jobs[0] << 32 | stage.id

    def _check_pending(self) -> None:
        for stage in self.core.state.stages.values():
            waiting = {index for index in range(len(stage.splits)) if index in stage.pending}
            assert waiting <= stage.undone - set(stage.running) - stage.fetching

    def _check_results(self) -> None:
        for job in self.core.state.jobs.values():
            delivered = sum(len(str(each)) for each in self.delivered[job.number].values())
            coming = sum(
                each.size_bytes
                for each in self.core.state.fetching.values()
                if each.stage is job.final
            )
            assert job.result_bytes == delivered + coming

    def _complete(self) -> set[int]:
        outputs = self.core.state.outputs
        return {each for each in outputs._shuffles if outputs.complete(each)}

    def outputs(self) -> list[MapOutput]:
        """All that the core would have read."""
        found = self.core.state.outputs
        return [output for shuffle_id in found._shuffles for output in found.there(shuffle_id)]


__all__ = ["CheckedWorld"]
