"""What records mean: each changes the state in one way, now and when it is read again.

Nothing is decided here, and nothing ordered: whoever writes a record does that afterwards.
"""

from __future__ import annotations

from functools import singledispatch

from frameworks.common.blame import Blame
from frameworks.mapreduce.core.cluster import Cluster
from frameworks.mapreduce.core.jobs import Job, Phase
from frameworks.mapreduce.core.journal import (
    AttemptEnded,
    CommitChosen,
    CommitFailed,
    Committed,
    JobEnded,
    Launched,
    MapOutputKept,
    OutputFailed,
    OutputsLost,
    Record,
    Stopping,
    Submitted,
    WorkerGone,
)
from frameworks.mapreduce.core.options import Options
from frameworks.mapreduce.core.rules import rules_of
from frameworks.mapreduce.core.tasks import Attempt, Task
from frameworks.mapreduce.names import AttemptName, parse_attempt
from frameworks.mapreduce.work import Counters, Failure
from mesos_py.errors import InvalidValue

# So many times its limit may a reduce fail to fetch before that counts.
FETCH_PATIENCE = 3


class Facts:
    """What records make.  jobs: by id, in the order of submission.  current: those that
    have not ended, by number."""

    def __init__(self, cluster: Cluster, blame: Blame, options: Options) -> None:
        self.cluster = cluster
        self.blame = blame
        self.options = options
        self.jobs: dict[str, Job] = {}
        self.current: dict[int, Job] = {}
        self.submitted = 0


def apply(facts: Facts, record: Record) -> None:
    """Raises InvalidValue for one that contradicts those before it."""
    _apply(record, facts)


@singledispatch
def _apply(record: Record, facts: Facts) -> None:
    raise InvalidValue("journal", type(record).__name__, "is no record of a tracker")


@_apply.register
def _(record: Submitted, facts: Facts) -> None:
    spec = record.spec
    if spec.job_id in facts.jobs:
        raise InvalidValue("journal.submitted", spec.job_id, "is there twice")
    rules = rules_of(spec.conf, len(record.splits))
    facts.submitted += 1
    job = Job(facts.submitted, spec, record.splits, rules, facts.options.exclude_s)
    job.submitted_s = record.at_s
    facts.jobs[spec.job_id] = facts.current[job.number] = job


@_apply.register
def _(record: Launched, facts: Facts) -> None:
    job, phase, task, name = _named(facts, record.attempt)
    attempt = Attempt(record.attempt, job.job_id, name.kind, name.task, name.attempt, record.at_s)
    attempt.agent_id = record.agent_id
    attempt.hostname = record.hostname
    attempt.worker_id = record.worker_id
    attempt.level = record.level
    attempt.twin = record.twin
    task.attempts.seen(name.attempt, record.agent_id)
    task.history.append(attempt)
    task.state = "running"
    phase.waiting.take(name.task)
    phase.live[attempt.name] = attempt
    phase.launched += 1
    phase.twin_count += record.twin
    if phase.hosts(name.task):
        phase.levels[record.level] += 1
    job.held_milli += phase.rules.needs.scalars["cpus"]
    job.agents.add(record.agent_id)
    if job.state == "waiting":
        job.state, job.started_s = "running", record.at_s
    worker = facts.cluster.has_worker(
        record.agent_id, record.hostname, record.worker_id, record.at_s
    )
    if not worker.running:
        # Who idles has nothing to say: its silence begins now.
        worker.heard_s = record.at_s
    worker.running.add(attempt.name)
    worker.jobs.add(job.job_id)


@_apply.register
def _(record: AttemptEnded, facts: Facts) -> None:
    job, phase, task, name = _named(facts, record.attempt)
    attempt = _end(facts, job, phase, task, name, record.at_s)
    attempt.state = record.how
    attempt.why = record.why
    attempt.failure = record.failure
    phase.ended[record.how] += 1
    if record.how == "failed" and record.failure is not None:
        _failed(facts, job, phase, task, attempt, record.failure)
    else:
        task.attempts.ended(name.attempt, record.how)
    _settle_task(job, phase, task)


@_apply.register
def _(record: MapOutputKept, facts: Facts) -> None:
    job, phase, task, name = _named(facts, record.attempt)
    attempt = _end(facts, job, phase, task, name, record.at_s)
    attempt.state = "done"
    attempt.progress = 1.0
    task.attempts.ended(name.attempt, None)
    if not phase.commits.choose(name.task, name.attempt):
        raise InvalidValue("journal.output", record.attempt, "another attempt was first")
    phase.commits.confirm(name.task, name.attempt)
    phase.durations.append((attempt.agent_id, attempt.ended_s - attempt.launched_s))
    task.state = "done"
    phase.waiting.take(name.task)
    job.missing.discard(name.task)
    job.outputs.add(name.task, attempt.name, attempt.agent_id, record.done)
    _count(job, task, record.done.counters)


@_apply.register
def _(record: OutputsLost, facts: Facts) -> None:
    for lost in record.attempts:
        job, phase, task, name = _named(facts, lost)
        if not phase.commits.void(name.task, name.attempt):
            continue
        phase.lost_outputs += 1
        task.fetch_failures += record.fetch
        attempt = task.attempt(name.attempt)
        if attempt is not None:
            attempt.why = record.why
        job.outputs.lose(name.task)
        if task.attempts.running:
            task.state = "running"
        elif job.outputs_needed:
            task.state = "waiting"
            phase.waiting.add(name.task, first=True)
        else:
            task.state = "waiting"
            job.missing.add(name.task)


@_apply.register
def _(record: CommitChosen, facts: Facts) -> None:
    job, phase, task, name = _named(facts, record.attempt)
    attempt = _end(facts, job, phase, task, name, record.at_s)
    attempt.state = "committing"
    attempt.progress = 1.0
    task.attempts.ended(name.attempt, None)
    if not phase.commits.choose(name.task, name.attempt):
        raise InvalidValue("journal.commit", record.attempt, "another attempt was first")
    phase.durations.append((attempt.agent_id, attempt.ended_s - attempt.launched_s))
    task.state = "committing"
    phase.waiting.take(name.task)
    _count(job, task, record.counters)
    if phase is job.reduces and not job.outputs_needed:
        job.missing.update(job.maps.waiting.drain())


@_apply.register
def _(record: Committed, facts: Facts) -> None:
    _job, phase, task, name = _named(facts, record.attempt)
    phase.commits.confirm(name.task, name.attempt)
    task.state = "done"
    attempt = task.attempt(name.attempt)
    if attempt is not None:
        attempt.state = "done"


@_apply.register
def _(record: CommitFailed, facts: Facts) -> None:
    job, phase, task, name = _named(facts, record.attempt)
    attempt = task.attempt(name.attempt)
    if attempt is None or not phase.commits.void(name.task, name.attempt):
        raise InvalidValue("journal.commit_failed", record.attempt, "was not to be committed")
    attempt.state = "failed"
    attempt.why, attempt.failure = record.failure.message, record.failure
    phase.ended["failed"] += 1
    task.attempts.seen(name.attempt, attempt.agent_id)
    task.failed_s = record.at_s
    _failed(facts, job, phase, task, attempt, record.failure)
    _settle_task(job, phase, task)


@_apply.register
def _(record: Stopping, facts: Facts) -> None:
    job = _job(facts, record.job_id)
    if not job.active:
        raise InvalidValue("journal.stopping", record.job_id, "was stopped before")
    job.state = "stopping"
    job.outcome = record.outcome
    job.why, job.failure, job.failed_attempt = record.why, record.failure, record.attempt
    job.stopping_s = record.at_s
    job.missing.clear()
    for phase in job.phases():
        phase.waiting.clear()
        phase.twins.clear()


@_apply.register
def _(record: OutputFailed, facts: Facts) -> None:
    job = _job(facts, record.job_id)
    job.outcome = "failed"
    job.why, job.failure = record.failure.message, record.failure


@_apply.register
def _(record: JobEnded, facts: Facts) -> None:
    job = _job(facts, record.job_id)
    job.state = job.outcome
    job.ended_s = record.at_s
    job.outputs.clear()
    job.troubles.clear()
    facts.current.pop(job.number, None)
    for worker in facts.cluster.workers():
        if job.job_id in worker.jobs:
            worker.jobs.discard(job.job_id)
            worker.forget(job.job_id, record.at_s)


@_apply.register
def _(record: WorkerGone, facts: Facts) -> None:
    facts.cluster.worker_gone(record.agent_id, record.worker_id)


# ---- Parts ---------------------------------------------------------------------------------


def _job(facts: Facts, job_id: str) -> Job:
    job = facts.jobs.get(job_id)
    if job is None:
        raise InvalidValue("journal.job", job_id, "was not submitted")
    return job


def _named(facts: Facts, attempt: str) -> tuple[Job, Phase, Task, AttemptName]:
    name = parse_attempt(attempt)
    if name is None:
        raise InvalidValue("journal.attempt", attempt, "is not the name of an attempt")
    job = _job(facts, name.job_id)
    phase = job.phase(name.kind)
    if name.task >= phase.total:
        raise InvalidValue("journal.attempt", attempt, f"the job has {phase.total} of these")
    return job, phase, phase.task(name.task), name


def _end(
    facts: Facts, job: Job, phase: Phase, task: Task, name: AttemptName, at_s: float
) -> Attempt:
    attempt = phase.live.pop(str(name), None)
    if attempt is None:
        raise InvalidValue("journal.attempt", str(name), "does not run")
    attempt.ended_s = at_s
    attempt.counters = {}
    if name.task in phase.twins:
        phase.twins.remove(name.task)
    job.held_milli -= phase.rules.needs.scalars["cpus"]
    worker = facts.cluster.worker_of(attempt.agent_id)
    if worker is not None and attempt.name in worker.running:
        worker.running.discard(attempt.name)
        if not worker.running:
            worker.idle_since_s = at_s
    return attempt


def _failed(
    facts: Facts, job: Job, phase: Phase, task: Task, attempt: Attempt, failure: Failure
) -> None:
    """Whose fault it was: the task's, the job's on that agent, the agent's."""
    fetch = failure.blame == "fetch"
    task.fetch_failures += fetch
    patient = fetch and task.fetch_failures < FETCH_PATIENCE * phase.rules.limit
    task.attempts.ended(attempt.number, "failed", counts=not patient)
    task.failed_s = attempt.ended_s
    if failure.missing:
        job.lacking.setdefault(failure.missing, {})[attempt.agent_id] = attempt.hostname
    if failure.blame in ("place", "program", "fetch"):
        job.blame.failed(attempt.agent_id, attempt.ended_s)
    if failure.blame == "place":
        facts.blame.failed(attempt.agent_id, attempt.ended_s)


def _settle_task(job: Job, phase: Phase, task: Task) -> None:
    """After an attempt has ended without a result: what the task is now."""
    number = task.number
    if phase.commits.chosen(number) is not None:
        return
    if task.attempts.failures >= phase.rules.limit:
        if task.state != "failed":
            task.state = "failed"
            phase.failed += 1
            phase.waiting.take(number)
            if phase.kind == "map" and job.spec.reduces:
                job.outputs.add_nothing(number)
        return
    if task.attempts.running:
        task.state = "running"
        return
    task.state = "waiting"
    if not job.active:
        return
    if phase.kind == "map" and job.spec.reduces and not job.outputs_needed:
        job.missing.add(number)
    elif task.attempts.failed_on:
        phase.waiting.add_again(number)
    else:
        phase.waiting.add(number, first=True)
    if phase.kind == "reduce":
        _needed_again(job)


def _needed_again(job: Job) -> None:
    for number in sorted(job.missing):
        job.maps.waiting.add(number, first=True)
    job.missing.clear()


def _count(job: Job, task: Task, counters: Counters) -> None:
    """Once per task, however often its output has to be made."""
    if not task.counted:
        task.counted = True
        job.count(counters)
