"""What becomes of attempts: results, failures, lost inputs."""

from __future__ import annotations

from collections.abc import Iterable

from frameworks.rdd.core.effects import Added, Deliver, Failure, Fetch
from frameworks.rdd.core.jobs import Jobs
from frameworks.rdd.core.state import Attempt, Coming, Executor, JobState, Part, Stage, State
from frameworks.rdd.messages import (
    PAYLOAD,
    BlockId,
    Died,
    FetchLost,
    Forget,
    Killed,
    Outcome,
    Raised,
    Succeeded,
)
from mesos_py.errors import shortened

# More lines about how later failures differed help nobody.
MOST_OTHERS = 8
# A task that has failed waits so long for another executor than those where it did.
AVOID_S = 3.0
# More results at once do not come sooner, and each needs its room in the driver's memory.
MOST_FETCHES = 8


class Hearing:
    """Acts on the state, and has `Jobs` act."""

    def __init__(self, state: State, jobs: Jobs) -> None:
        self._state = state
        self._jobs = jobs

    def ended(self, executor_id: str, task_id: int, outcome: Outcome, now_s: float) -> None:
        """A task has.  Nothing if it is not known, or not that executor's."""
        state = self._state
        known = state.tasks.get(task_id)
        if known is None or known.executor.id != executor_id:
            return
        attempt = state.end(task_id, now_s)
        assert attempt is not None
        stage, index = attempt.stage, attempt.index
        if not stage.jobs or index not in stage.undone or index in stage.fetching:
            self._unwanted(attempt, outcome)
        elif isinstance(outcome, Succeeded):
            self._succeeded(attempt, outcome, now_s)
        elif isinstance(outcome, FetchLost):
            self._fetch_lost(attempt, outcome, now_s)
        elif isinstance(outcome, Raised):
            self._failed(attempt, outcome, now_s)
        elif isinstance(outcome, Died):
            self._failed(attempt, Raised("WorkerDied", outcome.message, ""), now_s)
        elif attempt.cancelled:
            self._jobs.requeue(stage, index, now_s)
        else:
            self._failed(attempt, _killed(outcome), now_s)

    def fetched(self, task_id: int, result: bytes | None, now_s: float) -> None:
        """A big result is here, or cannot be had (None): it is made again."""
        state = self._state
        state.under_way.discard(task_id)
        found = state.fetching.pop(task_id, None)
        if found is None:
            return
        stage, index = found.stage, found.index
        stage.fetching.discard(index)
        state.jobs[stage.jobs[0]].result_bytes -= found.size_bytes
        state.send(found.executor_id, Forget(results=(task_id,)))
        if index not in stage.undone:
            return
        if result is None:
            self._not_fetched(stage, index, found.executor_id, now_s)
        else:
            self._result(stage, index, result, now_s)

    def fetch(self) -> None:
        """Begin with the results that have waited longest, as many as may come at once."""
        state = self._state
        while state.unfetched and len(state.under_way) < MOST_FETCHES:
            task_id = state.unfetched.popleft()
            if (coming := state.fetching.get(task_id)) is not None:
                state.under_way.add(task_id)
                state.effects.append(Fetch(task_id, coming.address, coming.block))

    def results_lost(self, executor_id: str, now_s: float) -> None:
        """Those that it still has: nobody need try to fetch them."""
        state = self._state
        for task_id, coming in list(state.fetching.items()):
            if coming.executor_id == executor_id and task_id not in state.under_way:
                self.fetched(task_id, None, now_s)

    def executor_lost(self, attempts: Iterable[Attempt], reason: str, now_s: float) -> None:
        """What ran there, when it may have been the reason."""
        for attempt in attempts:
            stage = attempt.stage
            if stage.jobs and attempt.index in stage.undone and not attempt.cancelled:
                self._failed(attempt, Raised("ExecutorLost", reason, ""), now_s)

    def outputs_lost(self, shuffles: Iterable[int], now_s: float) -> None:
        """Of these some are gone: they are made again as far as somebody is to read them."""
        state = self._state
        changed = set(shuffles)
        for shuffle_id in changed:
            stage = state.by_shuffle.get(shuffle_id)
            # One that has been done is opened again by who needs it.
            if stage is not None and stage.undone:
                for index in state.outputs.missing(shuffle_id):
                    if index not in stage.undone:
                        stage.undone.add(index)
                        self._jobs.requeue(stage, index, now_s)
        for stage in list(state.stages.values()):
            if stage.active and stage.pending and not changed.isdisjoint(stage.plan.shuffles):
                self._jobs.look(stage, now_s)

    # ---- Outcomes ----------------------------------------------------------------------------

    def _unwanted(self, attempt: Attempt, outcome: Outcome) -> None:
        if isinstance(outcome, Succeeded) and outcome.result_block is not None:
            self._state.send(attempt.executor.id, Forget(results=(attempt.task_id,)))

    def _succeeded(self, attempt: Attempt, outcome: Succeeded, now_s: float) -> None:
        state = self._state
        stage, index = attempt.stage, attempt.index
        self._blame(stage.parts[index], attempt.executor.id, now_s)
        stage.took.append((attempt.executor.id, now_s - attempt.began_s))
        stage.records.append(outcome.metrics.records)
        stage.read_bytes += outcome.metrics.read_bytes
        stage.written_bytes += outcome.metrics.written_bytes
        stage.spilled_bytes += outcome.metrics.spilled_bytes
        if stage.shuffle is not None:
            output = outcome.output
            if output is None or output.shuffle_id != stage.shuffle.shuffle_id:
                said = Raised("InternalError", "the task has left no output of its shuffle", "")
                self._failed(attempt, said, now_s)
                return
            self._count(stage, index, outcome)
            state.outputs.put(output, attempt.executor.agent_id)
            self._jobs.part_done(stage, index, now_s)
        elif outcome.result_block is not None:
            self._count(stage, index, outcome)
            self._big_result(attempt, outcome.result_block, outcome.result_bytes, now_s)
        else:
            self._count(stage, index, outcome)
            self._result(stage, index, outcome.result or b"", now_s)

    def _blame(self, part: Part, here: str, now_s: float) -> None:
        """What has come to an end here may have failed elsewhere by that executor's fault; one
        that fails everywhere is its own."""
        state = self._state
        for executor_id in part.failed_on - {here}:
            if state.rules.exclude_failures and executor_id in state.executors:
                state.blame.failed(executor_id, now_s)
        part.failed_on.clear()

    def _count(self, stage: Stage, index: int, outcome: Succeeded) -> None:
        """What was added to accumulators counts once for each partition."""
        part = stage.part(index)
        if outcome.accumulators and not part.counted:
            part.counted = True
            self._state.effects.append(Added(stage.jobs[0], outcome.accumulators))

    def _big_result(self, attempt: Attempt, block: BlockId, size_bytes: int, now_s: float) -> None:
        """It stays where it is until it is its turn; for good if there is no room for it."""
        state = self._state
        stage, executor = attempt.stage, attempt.executor
        if not self._has_room(stage, size_bytes, now_s):
            state.send(executor.id, Forget(results=(attempt.task_id,)))
            return
        stage.fetching.add(attempt.index)
        state.fetching[attempt.task_id] = Coming(
            stage, attempt.index, executor.id, executor.address, block, size_bytes
        )
        state.unfetched.append(attempt.task_id)

    def _result(self, stage: Stage, index: int, result: bytes, now_s: float) -> None:
        if self._has_room(stage, len(result), now_s):
            self._state.effects.append(Deliver(stage.jobs[0], index, result))
            self._jobs.part_done(stage, index, now_s)

    def _has_room(self, stage: Stage, size_bytes: int, now_s: float) -> bool:
        """For one more result of the stage's job, which ends if there is none."""
        job = self._state.jobs[stage.jobs[0]]
        job.result_bytes += size_bytes
        most = self._state.rules.max_result_bytes
        if not most or job.result_bytes <= most:
            return True
        # With this one.
        ended = len(stage.splits) - len(stage.undone) + len(stage.fetching) + 1
        text = (
            f"{title(job)} failed: the results of {ended} of its {len(stage.splits)} partitions "
            f"have {job.result_bytes} bytes, more than spark.driver.maxResultSize ({most} bytes)"
        )
        self._jobs.end(job, Failure(text), now_s)
        return False

    def _not_fetched(self, stage: Stage, index: int, executor_id: str, now_s: float) -> None:
        """Made again, elsewhere if that can be.  From an executor that is there it is no
        accident: if the driver cannot reach them it would be made for ever."""
        state = self._state
        part = stage.part(index)
        executor = state.executors.get(executor_id)
        if executor is not None:
            part.unfetched += 1
            part.failed_on.add(executor_id)
            stage.avoids[index] = now_s + AVOID_S
            if part.unfetched >= state.rules.stage_attempts:
                failure = _unfetched_failure(state, stage, index, executor)
                self._jobs.fail_stage(stage, failure, now_s)
                return
        self._jobs.requeue(stage, index, now_s)

    def _failed(self, attempt: Attempt, raised: Raised, now_s: float) -> None:
        state = self._state
        stage, index = attempt.stage, attempt.index
        if attempt.cancelled:
            self._jobs.requeue(stage, index, now_s)
            return
        executor = attempt.executor
        stage.failed_tasks += 1
        part = stage.part(index)
        part.failures += 1
        part.failed_on.add(executor.id)
        if part.raised is None:
            part.raised = raised
            part.where = f"executor {executor.id} on {executor.host}"
        elif len(part.others) < MOST_OTHERS and not _alike(raised, part.raised):
            said = shortened(" ".join(f"{raised.kind}: {raised.message}".split()), 200)
            part.others.append(f"attempt {attempt.number} on {executor.host}: {said}")
        if raised.fatal or part.failures >= state.rules.max_failures:
            failure = task_failure(state, stage, index, part)
            self._jobs.fail_stage(stage, failure, now_s)
        else:
            stage.avoids[index] = now_s + AVOID_S
            self._jobs.requeue(stage, index, now_s)

    def _fetch_lost(self, attempt: Attempt, lost: FetchLost, now_s: float) -> None:
        """Outputs are made again; how many depends on how often their executor was at fault
        in this stage: one map, all of the executor, all of its host."""
        state = self._state
        stage, index = attempt.stage, attempt.index
        if lost.shuffle_id == PAYLOAD:
            stage.whole = True
            self._jobs.requeue(stage, index, now_s)
            return
        outputs = state.outputs
        current = stage.active and attempt.try_ == stage.tries
        if not lost.executor_id or not outputs.known(lost.shuffle_id):
            # It was to be hidden behind what is kept, and that was gone.
            stage.distrust = True
            changed = {lost.shuffle_id}
        else:
            changed = self._lose(attempt, lost)
        if current:
            stage.fetch_failures += 1
            if stage.fetch_failures >= state.rules.stage_attempts:
                self._jobs.fail_stage(stage, _fetch_failure(state, stage, lost), now_s)
                return
            # Even if nothing new is lost, what the executors were told is no good.
            stage.active = False
            state.unqueue(stage)
        self.outputs_lost(changed, now_s)
        if stage.active:
            self._jobs.requeue(stage, index, now_s)
        else:
            self._jobs.look(stage, now_s)

    def _lose(self, attempt: Attempt, lost: FetchLost) -> set[int]:
        outputs = self._state.outputs
        stage = attempt.stage
        guilty = lost.executor_id
        tries = stage.blamed.setdefault(guilty, set())
        times = len(tries - {attempt.try_})
        tries.add(attempt.try_)
        host = outputs.host(guilty)
        if times >= 2 and host:
            return outputs.lost_of_host(host, attempt.at)
        if times == 1 or lost.map_index < 0:
            return outputs.lost_of_executor(guilty, attempt.at)
        if outputs.lost(lost.shuffle_id, lost.map_index, guilty, attempt.at):
            return {lost.shuffle_id}
        return set()


# ---- Words -----------------------------------------------------------------------------------


def _alike(one: Raised, other: Raised) -> bool:
    return (one.kind, one.message) == (other.kind, other.message)


def title(job: JobState) -> str:
    what = f" ({job.action}{f' at {job.place}' if job.place else ''})" if job.action else ""
    return f"job {job.number}{what}"


def task_failure(state: State, stage: Stage, index: int, part: Part) -> Failure:
    """The first failure's traceback, then where it was and what the others were."""
    raised = part.raised
    assert raised is not None
    said = raised.traceback.rstrip() or f"{raised.kind}: {raised.message}"
    times = "once" if part.failures == 1 else f"{part.failures} times"
    fatal = ", and it is of no use to try again" if raised.fatal else ""
    jobs = [state.jobs[number] for number in stage.jobs if number in state.jobs]
    name = title(jobs[0]) if jobs else "job"
    lines = [
        said,
        "",
        f"{name} failed: partition {stage.splits[index]} of stage {stage.id}"
        f"{f' ({stage.name})' if stage.name else ''} failed {times}{fatal}; "
        f"the first time in {part.where}",
        *part.others,
    ]
    return Failure("\n".join(lines), raised.exception)


def _fetch_failure(state: State, stage: Stage, lost: FetchLost) -> Failure:
    name = title(state.jobs[stage.jobs[0]])
    return Failure(
        f"{name} failed: {stage.fetch_failures} times stage {stage.id} found that what maps "
        f"have left was gone; the last: map {lost.map_index} of shuffle {lost.shuffle_id}, on "
        f"{lost.executor_id or 'no executor'}: {lost.message}"
    )


def _unfetched_failure(state: State, stage: Stage, index: int, executor: Executor) -> Failure:
    return Failure(
        f"{title(state.jobs[stage.jobs[0]])} failed: {stage.parts[index].unfetched} times the "
        f"result of partition {stage.splits[index]} of stage {stage.id} could not be fetched; the "
        f"last time from {executor.id} at {executor.address} (the driver's log says why)"
    )


def _killed(killed: Killed) -> Raised:
    return Raised("TaskKilled", f"its executor ended it: {killed.reason}", "")


__all__ = ["Hearing", "task_failure", "title"]
