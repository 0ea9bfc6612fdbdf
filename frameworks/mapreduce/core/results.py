"""Attempts that start and end, and their results that become output."""

from __future__ import annotations

import msgspec

from frameworks.common.attempts import How
from frameworks.mapreduce.core import ending, fetching
from frameworks.mapreduce.core.jobs import Job, Phase
from frameworks.mapreduce.core.journal import (
    AttemptEnded,
    CommitChosen,
    CommitFailed,
    Committed,
    MapOutputKept,
)
from frameworks.mapreduce.core.orders import (
    Commit,
    End,
    Failed,
    Finished,
    KillAttempt,
    Lost,
    Preempted,
)
from frameworks.mapreduce.core.placing import part_url
from frameworks.mapreduce.core.state import State
from frameworks.mapreduce.core.tasks import Attempt
from frameworks.mapreduce.names import AttemptName, Kind, parse_attempt
from frameworks.mapreduce.work import Failure, MapDone, ReduceDone

# For so long after its end an attempt may still be heard of: messages that crossed.
_CROSSED_S = 10.0
# A program that so many agents lack, and none has, is looked for no longer.
MISSING_ON = 3
_NAMED = 10


def started(state: State, name: str) -> None:
    attempt = state.attempt(name)
    if attempt is None:
        refuse(state, name)
        return
    if not attempt.started_s:
        attempt.started_s = state.now_s
        attempt.state = "running"
    heard(state, attempt)


def heard(state: State, attempt: Attempt) -> None:
    worker = state.cluster.worker_of(attempt.agent_id)
    if worker is not None and worker.worker_id == attempt.worker_id:
        worker.heard_s = state.now_s
        worker.sure = True


def _doubt(state: State, attempt: Attempt) -> None:
    """It never started: the worker may be gone, which we have not heard yet, or never will."""
    worker = state.cluster.worker_of(attempt.agent_id)
    if worker is not None and worker.worker_id == attempt.worker_id:
        worker.sure = False


def refuse(state: State, name: str) -> None:
    """Something runs that should not: it is not ours any more."""
    parsed = parse_attempt(name)
    if parsed is None:
        return
    job = state.jobs.get(parsed.job_id)
    task = None if job is None else job.phase(parsed.kind).tasks.get(parsed.task)
    attempt = None if task is None else task.attempt(parsed.attempt)
    if attempt is None or state.now_s - attempt.ended_s > _CROSSED_S or attempt.state == "lost":
        state.order(KillAttempt(name))


# ---- Ends ----------------------------------------------------------------------------------


def ended(state: State, name: str, end: End) -> None:
    attempt = state.attempt(name)
    if attempt is None:
        for worker in state.cluster.workers():
            worker.running.discard(name)
        return
    place = isinstance(end, Failed) and end.failure.blame == "place"
    if place and not attempt.started_s:
        _doubt(state, attempt)
    else:
        heard(state, attempt)
    job = state.jobs[attempt.job_id]
    phase = job.phase(attempt.kind)
    if isinstance(end, Finished):
        _finished(state, job, phase, attempt, end.done)
    elif attempt.kill_why:
        _without_result(state, attempt, "killed", attempt.kill_why, None)
    elif isinstance(end, Failed):
        failed(state, attempt, end.failure)
    else:
        how: How = (
            "lost"
            if isinstance(end, Lost)
            else "preempted"
            if isinstance(end, Preempted)
            else "killed"
        )
        _without_result(state, attempt, how, end.why, None)
    ending.advance(state, job)


def _finished(
    state: State, job: Job, phase: Phase, attempt: Attempt, done: MapDone | ReduceDone
) -> None:
    first = phase.commits.chosen(attempt.task)
    if not job.active:
        _without_result(state, attempt, "killed", attempt.kill_why or "the job has ended", None)
    elif first is not None or phase.tasks[attempt.task].state == "failed":
        why = "another attempt was first" if first is not None else "the task has failed"
        _without_result(state, attempt, "killed", attempt.kill_why or why, None)
    elif (wrong := _contradiction(job, attempt, done)) is not None:
        failed(state, attempt, Failure(blame="place", message=wrong))
    elif isinstance(done, MapDone) and job.spec.reduces:
        could = job.reduces_may_start()
        state.write(MapOutputKept(attempt.name, done, state.now_s))
        state.revive = state.revive or job.reduces_may_start() != could
        _kill_twins(state, phase, attempt)
        fetching.answer_waiting(state, job)
    else:
        state.write(CommitChosen(attempt.name, done.part, done.counters, state.now_s))
        _kill_twins(state, phase, attempt)
        if attempt.kind == "reduce" and not job.outputs_needed:
            for other in job.maps.live.values():
                state.kill(other, "not needed: all reduces are done")
        if done.part < 0:
            state.write(Committed(attempt.name, state.now_s))
        else:
            order_commit(state, job, attempt.kind, attempt.task, attempt.name)


def _contradiction(job: Job, attempt: Attempt, done: MapDone | ReduceDone) -> str | None:
    """What a worker that works cannot have said."""
    expected = MapDone if attempt.kind == "map" else ReduceDone
    if not isinstance(done, expected):
        return f"the worker answered a {attempt.kind} with {type(done).__name__}"
    if isinstance(done, MapDone) and len(done.segments) != job.spec.reduces:
        return f"the worker's output has {len(done.segments)} partitions, not {job.spec.reduces}"
    if attempt.kind == job.last.kind and done.part < 0 and not job.spec.lazy_output:
        return "the worker has left no part"
    return None


def _kill_twins(state: State, phase: Phase, attempt: Attempt) -> None:
    for other in phase.tasks[attempt.task].running():
        state.kill(other, f"{attempt.name} was first")


def failed(state: State, attempt: Attempt, failure: Failure) -> None:
    """By its own fault, or its agent's: decide what that means for the job."""
    job = state.jobs[attempt.job_id]
    phase = job.phase(attempt.kind)
    if not job.active:
        _without_result(state, attempt, "killed", ending.because(job), None)
        return
    _without_result(state, attempt, "failed", failure.message, failure)
    _judge(state, job, phase, attempt, failure)
    if failure.blame == "fetch":
        fetching.lost(state, job, attempt, failure.lost, failure.message)


def _judge(state: State, job: Job, phase: Phase, attempt: Attempt, failure: Failure) -> None:
    task = phase.tasks[attempt.task]
    if failure.blame == "job":
        ending.fail_for(state, job, attempt, failure)
    elif failure.missing and _is_nowhere(state, job, phase, attempt, failure.missing):
        hosts = sorted(job.lacking[failure.missing].values())
        more = f" and {len(hosts) - _NAMED} more" if len(hosts) > _NAMED else ""
        where = f" (so on {', '.join(hosts[:_NAMED])}{more})"
        wrong = msgspec.structs.replace(failure, blame="job", message=failure.message + where)
        ending.fail_for(state, job, attempt, wrong)
    elif task.state == "failed":
        if phase.failed > phase.rules.tolerated:
            ending.fail_for(state, job, attempt, failure)
            return
        for other in task.running():
            state.kill(other, "the task has failed too often")
        fetching.answer_waiting(state, job)


def _is_nowhere(state: State, job: Job, phase: Phase, attempt: Attempt, program: str) -> bool:
    """Whether to give up looking for an agent that has the program: none is known on which it was
    not looked for, or some lack it and none has been found that has it, or still may."""
    lacking = job.lacking.get(program, {})
    if phase.commits.chosen_count or any(
        other.agent_id not in lacking for other in phase.live.values()
    ):
        return False
    if len(lacking) >= MISSING_ON:
        return True
    # Before offers have come again after a restart nothing is known of others.
    knows = attempt.launched_s > state.restored_s
    return knows and lacking.keys() >= set(state.cluster.usable(state.now_s))


def _without_result(
    state: State, attempt: Attempt, how: How, why: str, failure: Failure | None
) -> None:
    state.write(AttemptEnded(attempt.name, how, why, failure, state.now_s))
    state.revive = True


# ---- Output --------------------------------------------------------------------------------


def order_commit(state: State, job: Job, kind: Kind, task: int, attempt: str) -> None:
    url = part_url(state, job.spec, kind, attempt, task)
    state.order(Commit(job.job_id, kind, task, attempt, url))


def _committing(state: State, job_id: str, kind: Kind, task: int) -> tuple[Job, Attempt] | None:
    job = state.jobs.get(job_id)
    if job is None:
        return None
    phase = job.phase(kind)
    number = phase.commits.chosen(task)
    if number is None or phase.commits.confirmed(task):
        return None
    attempt = phase.tasks[task].attempt(number)
    return None if attempt is None else (job, attempt)


def committed(state: State, job_id: str, kind: Kind, task: int) -> None:
    found = _committing(state, job_id, kind, task)
    if found is not None:
        job, attempt = found
        state.write(Committed(attempt.name, state.now_s))
        ending.advance(state, job)


def commit_failed(state: State, job_id: str, kind: Kind, task: int, why: str) -> None:
    found = _committing(state, job_id, kind, task)
    if found is None:
        return
    job, attempt = found
    failure = Failure(blame="place", message=f"its output could not be committed: {why}")
    state.write(CommitFailed(attempt.name, failure, state.now_s))
    state.revive = True
    _judge(state, job, job.phase(kind), attempt, failure)
    ending.advance(state, job)


# ---- After a restart -----------------------------------------------------------------------


def resume(state: State, job: Job) -> None:
    """Order once more what a predecessor may have ordered in vain, and decide what it may not
    have come to."""
    if job.active:
        for phase in job.phases():
            _resume(state, job, phase)
    else:
        ending.kill_rest(state, job)
    ending.advance(state, job)


def _resume(state: State, job: Job, phase: Phase) -> None:
    for task, number in phase.commits.unconfirmed():
        name = AttemptName(job.job_id, phase.kind, task, number)
        order_commit(state, job, phase.kind, task, str(name))
    for attempt in list(phase.live.values()):
        if phase.tasks[attempt.task].state != "running":
            state.kill(attempt, "another attempt was first")
    for found in phase.tasks.values():
        for attempt in found.history:
            if attempt.failure is not None and job.active:
                _judge(state, job, phase, attempt, attempt.failure)
