"""How jobs come to their ends."""

from __future__ import annotations

from frameworks.mapreduce.core.jobs import Job
from frameworks.mapreduce.core.journal import JobEnded, OutputFailed, Stopping
from frameworks.mapreduce.core.orders import FinishJob, Outcome
from frameworks.mapreduce.core.state import State
from frameworks.mapreduce.core.tasks import Attempt
from frameworks.mapreduce.core.views import Trouble
from frameworks.mapreduce.work import Failure


def stop(
    state: State,
    job: Job,
    outcome: Outcome,
    why: str,
    failure: Failure | None = None,
    attempt: str = "",
) -> None:
    """Decide the outcome, once: what comes later is no cause."""
    if not job.active:
        return
    state.write(Stopping(job.job_id, outcome, why, failure, attempt, state.now_s))
    kill_rest(state, job)
    finish(state, job)


def because(job: Job) -> str:
    """Why its attempts are stopped."""
    if job.outcome == "succeeded":
        return "not needed: the job is done"
    if job.outcome == "killed":
        return f"the job was killed: {job.why}"
    return f"stopped because {job.failed_attempt or 'the job'} has failed"


def kill_rest(state: State, job: Job) -> None:
    for attempt in list(job.live()):
        state.kill(attempt, because(job))


def fail_for(state: State, job: Job, attempt: Attempt, failure: Failure) -> None:
    stop(state, job, "failed", failure.message, failure, attempt.name)


def advance(state: State, job: Job) -> None:
    """See whether something is decided now, after anything of the job has changed."""
    if job.active and job.last.settled:
        stop(state, job, "succeeded", "")
    finish(state, job)


def finish(state: State, job: Job) -> None:
    """Have the output completed, once nothing of the job runs, or that takes too long."""
    if job.state != "stopping":
        return
    late = state.now_s - job.stopping_s >= state.options.stop_s
    committing = any(phase.commits.unconfirmed() for phase in job.phases())
    if (job.running() or committing) and not late:
        return
    job.state = "finishing"
    assert job.outcome in ("succeeded", "failed", "killed")
    state.order(FinishJob(job.job_id, job.outcome, job.failure))


def output_failed(state: State, job_id: str, trouble: Trouble) -> None:
    job = state.jobs.get(job_id)
    if job is None:
        return
    job.troubles.pop(trouble.what, None)
    lasted = f"{trouble.tries} tries in {max(0.0, state.now_s - trouble.since_s):.0f} s"
    often = f" ({lasted}; mesos.output.patience)" if trouble.since_s else ""
    message = f"output {job.spec.output}: {trouble.what} has failed: {trouble.why}{often}"
    failure = Failure(blame="job", message=message)
    if job.active:
        stop(state, job, "failed", message, failure)
    elif job.state == "finishing":
        if job.outcome == "succeeded":
            state.write(OutputFailed(job_id, failure, state.now_s))
        state.write(JobEnded(job_id, state.now_s))


def finished(state: State, job_id: str) -> None:
    job = state.jobs.get(job_id)
    if job is not None and job.state == "finishing":
        state.write(JobEnded(job_id, state.now_s))
