"""Jobs and their stages: what must be made first, what can run now, and how they end."""

from __future__ import annotations

from collections.abc import Iterable

from frameworks.common.delay import Delay
from frameworks.rdd.core.effects import Ended, Failure
from frameworks.rdd.core.showing import job_view, stage_view
from frameworks.rdd.core.stages import Inputs, Plan
from frameworks.rdd.core.state import JobState, Stage, State, pool_key
from frameworks.rdd.core.views import JobStatus, StageStatus
from frameworks.rdd.messages import CancelTask, Forget
from frameworks.rdd.nodes import ShuffleDependency
from mesos_py.errors import MesosPyError, shortened

# Looking at every map for every partition that reads it is worth it only for so many pairs.
MOST_LOOKED_AT = 100_000
# A job's property, and the pool in which each has a share as others have together, unless the
# rules say what that pool is.
POOL = "spark.scheduler.pool"
DEFAULT_POOL = "default"
# A host that has so much of what a partition reads is a good place for it.
HOST_SHARE = 0.2


class Jobs:
    """Acts on the state; whoever places tasks looks there for stages with pending ones."""

    def __init__(self, state: State) -> None:
        self._state = state

    # ---- Jobs ------------------------------------------------------------------------------

    def submit(self, job: JobState, packed: dict[int, bytes], now_s: float) -> None:
        """job.final is new.  packed: by shuffle id, blobs of stages that it will need."""
        state = self._state
        final = job.final
        final.jobs = [job.number]
        final.undone = set(range(len(final.splits)))
        state.jobs[job.number] = job
        state.stages[final.id] = final
        job.stages[final.id] = final
        self._enter_pool(final, job)
        if state.refused is not None:
            self.end(job, state.refused, now_s)
        elif not final.undone:
            self._done(final, now_s)
        else:
            self.look(final, now_s, packed)

    def end(self, job: JobState, failure: Failure | None, now_s: float) -> None:
        """With all its stages that no other needs.  Nothing if it has ended."""
        state = self._state
        if state.jobs.pop(job.number, None) is None:
            return
        status: JobStatus = "SUCCEEDED" if failure is None else "FAILED"
        state.ended_jobs.append(job_view(job, status, now_s, failure.text if failure else ""))
        reason = "job has ended" if failure is None else shortened(failure.text, 200)
        for stage in list(job.stages.values()):
            if stage.jobs == [job.number]:
                self._leave(stage, reason, now_s)
            stage.jobs.remove(job.number)
            if stage.jobs:
                state.turn_again(stage)
        state.effects.append(Ended(job.number, failure))

    def fail_stage(self, stage: Stage, failure: Failure, now_s: float) -> None:
        """With all jobs that need it."""
        for number in list(stage.jobs):
            if (job := self._state.jobs.get(number)) is not None:
                self.end(job, failure, now_s)

    # ---- Stages ------------------------------------------------------------------------------

    def look(self, stage: Stage, now_s: float, packed: dict[int, bytes] | None = None) -> None:
        """Begin it, or what it waits for, or what that waits for: after a submission, and
        after what it reads has changed."""
        stack = [stage]
        while stack:
            stage = stack.pop()
            if not stage.undone or not stage.jobs:
                continue
            before = self._before(stage, packed or {})
            stage.waits = {each.shuffle.shuffle_id for each in before if each.shuffle}
            if stage.waits:
                stage.active = False
                self._state.unqueue(stage)
                stack.extend(each for each in before if self._join(each, stage, now_s))
            elif not stage.active:
                self._begin(stage, now_s)

    def _before(self, stage: Stage, packed: dict[int, bytes]) -> list[Stage]:
        """The stages that must end before this one can begin."""
        state = self._state
        found = []
        for shuffle in stage.plan.needed(None if stage.distrust else state.kept):
            assert shuffle.parent is not None
            state.outputs.open(shuffle.shuffle_id, shuffle.parent.partitions)
            if not state.outputs.complete(shuffle.shuffle_id):
                found.append(self._map_stage(shuffle, packed))
        return found

    def _map_stage(self, shuffle: ShuffleDependency, packed: dict[int, bytes]) -> Stage:
        state = self._state
        stage = state.by_shuffle.get(shuffle.shuffle_id)
        if stage is None:
            assert shuffle.parent is not None
            plan = Plan(shuffle.parent)
            state.last_stage += 1
            splits = range(shuffle.parent.partitions)
            stage = Stage(state.last_stage, plan, splits, shuffle=shuffle)
            stage.blob = packed.get(shuffle.shuffle_id)
            stage.name = plan.node.name or plan.node.place
            state.by_shuffle[shuffle.shuffle_id] = stage
            state.stages[stage.id] = stage
        return stage

    def _join(self, before: Stage, stage: Stage, now_s: float) -> bool:
        """The jobs of `stage` need `before` too.  Whether it must be looked at for that."""
        state = self._state
        news = [number for number in stage.jobs if number not in before.jobs]
        for number in news:
            job = state.jobs[number]
            job.stages[before.id] = before
            self._enter_pool(before, job)
        before.jobs = sorted([*before.jobs, *news])
        state.turn_again(before)
        assert before.shuffle is not None
        if not before.undone:
            before.undone = set(state.outputs.missing(before.shuffle.shuffle_id))
            before.ended_s = None
            before.active = False
            return True
        return bool(news)

    def _enter_pool(self, stage: Stage, job: JobState) -> None:
        if not stage.pool:
            stage.properties = job.properties
            name = job.properties.get(POOL) or DEFAULT_POOL
            alone = name == DEFAULT_POOL and name not in self._state.rules.pools
            stage.pool = f"job {job.number}" if alone else pool_key(name)

    def _begin(self, stage: Stage, now_s: float) -> None:
        """All that it reads is there."""
        state = self._state
        try:
            if stage.blob is None:
                stage.blob = state.pack(stage.plan, stage.shuffle, stage.function)
            stage.active = True
            stage.tries += 1
            stage.losses = state.outputs.losses
            stage.began_s = now_s if stage.began_s is None else stage.began_s
            state.kept.persist(stage.plan.persisted_now())
            stage.pending.clear()
            for index in sorted(stage.undone):
                if index not in stage.running and index not in stage.fetching:
                    self._wait(stage, index)
        except Exception as error:
            # Nodes are others' code too; one job's fault is not the others'.
            said = "" if isinstance(error, MesosPyError) else f"{type(error).__name__}: "
            self.fail_stage(stage, Failure(f"{said}{error}"), now_s)
            return
        rules = state.rules
        executors, hosts = stage.pending.wishes(state.executors, state.hosts)
        stage.delay = Delay(
            rules.wait_executor_s if executors else 0.0, rules.wait_host_s if hosts else 0.0
        )
        state.queue(stage)

    def requeue(self, stage: Stage, index: int, now_s: float) -> None:
        """Another attempt, unless it is done, or one still runs."""
        if index not in stage.undone or index in stage.running or index in stage.fetching:
            return
        if stage.active and stage.jobs:
            # What fails again is to be known early.
            self._wait(stage, index, first=True)
            self._state.queue(stage)
            if stage.losses != self._state.outputs.losses:
                stage.losses = self._state.outputs.losses
                self.look(stage, now_s)

    def _wait(self, stage: Stage, index: int, first: bool = False) -> None:
        executors: Iterable[str] = ()
        hosts: Iterable[str] = ()
        # Looking at each of a hundred thousand partitions takes its time.
        reads = self._looks_at_reads(stage)
        if reads or stage.plan.choosy:
            executors, hosts = self._wishes(stage.plan.inputs(stage.splits[index]), reads)
        stage.pending.add(index, executors, hosts, first=first)

    def _looks_at_reads(self, stage: Stage) -> bool:
        """Whether it matters, and can be seen soon, where most of a shuffle's partition is."""
        state = self._state
        if len(state.hosts) < 2:
            return False
        maps = sum(map(state.outputs.maps, stage.plan.shuffles))
        return 0 < maps * len(stage.splits) <= MOST_LOOKED_AT

    def _wishes(self, inputs: Inputs, reads: bool) -> tuple[Iterable[str], Iterable[str]]:
        """(executors, hosts): where most of what is kept is; files and shuffles are."""
        state = self._state
        by_executor: dict[str, int] = {}
        for rdd_id, split in inputs.kept:
            for executor_id, (size, _) in state.kept.places(rdd_id, split).items():
                if executor_id in state.executors:
                    by_executor[executor_id] = by_executor.get(executor_id, 0) + size + 1
        if by_executor:
            most = max(by_executor.values())
            executors = [each for each, size in by_executor.items() if size == most]
            return executors, {state.executors[each].host for each in executors}
        hosts = dict.fromkeys(inputs.hosts)
        if reads and not hosts:
            for shuffle_id, split in inputs.reads:
                hosts.update(dict.fromkeys(state.outputs.hosts(shuffle_id, split, HOST_SHARE)))
        return (), hosts

    # ---- Their ends --------------------------------------------------------------------------

    def part_done(self, stage: Stage, index: int, now_s: float) -> None:
        """There is a result of it, or an output."""
        stage.undone.discard(index)
        stage.pending.remove(index)
        stage.twins.pop(index, None)
        self._cancel(stage, "another attempt was first", index)
        if not stage.undone:
            self._done(stage, now_s)

    def _done(self, stage: Stage, now_s: float) -> None:
        state = self._state
        stage.ended_s = now_s
        stage.fetch_failures = 0
        stage.blamed.clear()
        stage.active = False
        self._clear(stage)
        if stage.shuffle is None:
            for number in list(stage.jobs):
                self.end(state.jobs[number], None, now_s)
            return
        shuffle_id = stage.shuffle.shuffle_id
        for other in list(state.stages.values()):
            if shuffle_id in other.waits:
                other.waits.discard(shuffle_id)
                if not other.waits:
                    self.look(other, now_s)

    def _leave(self, stage: Stage, reason: str, now_s: float) -> None:
        """Nobody needs it any more."""
        state = self._state
        del state.stages[stage.id]
        if stage.shuffle is not None:
            del state.by_shuffle[stage.shuffle.shuffle_id]
        for index in list(stage.running):
            self._cancel(stage, reason, index)
        for task_id in [each for each, of in state.fetching.items() if of.stage is stage]:
            coming = state.fetching.pop(task_id)
            state.send(coming.executor_id, Forget(results=(task_id,)))
        self._clear(stage)
        ended: StageStatus = "COMPLETE" if stage.ended_s is not None else "FAILED"
        if stage.tries:
            state.ended_stages.append(stage_view(stage, ended, now_s))
        stage.undone.clear()

    def _clear(self, stage: Stage) -> None:
        """Nothing of it is to be placed, and executors need not know it."""
        state = self._state
        state.unqueue(stage)
        stage.pending.clear()
        stage.twins.clear()
        stage.avoids.clear()
        prefix = f"{stage.id}."
        for executor in state.executors.values():
            keys = tuple(key for key in executor.told if key.startswith(prefix))
            if keys:
                for key in keys:
                    del executor.told[key]
                state.send(executor.id, Forget(stages=keys))

    def _cancel(self, stage: Stage, reason: str, index: int) -> None:
        for attempt in stage.running.get(index, ()):
            if not attempt.cancelled:
                attempt.cancelled = reason
                self._state.send(attempt.executor.id, CancelTask(attempt.task_id, reason))


__all__ = ["Jobs"]
