"""Agents and workers that are gone, and what is gone with them."""

from __future__ import annotations

from frameworks.common.attempts import How
from frameworks.mapreduce.core import ending, fetching, results
from frameworks.mapreduce.core.cluster import Worker
from frameworks.mapreduce.core.journal import AttemptEnded, WorkerGone
from frameworks.mapreduce.core.state import State
from frameworks.mapreduce.core.tasks import Attempt
from frameworks.mapreduce.work import Failure


def agent_lost(state: State, agent_id: str) -> None:
    """With its outputs: exactly those are made again, if any reduce needs them."""
    why = f"agent {state.cluster.hostname(agent_id)} is gone"
    for job in list(state.jobs.values()):
        mine = [attempt for attempt in job.live() if attempt.agent_id == agent_id]
        for attempt in mine:
            how: How = "killed" if attempt.kill_why else "lost"
            state.write(AttemptEnded(attempt.name, how, why, None, state.now_s))
            state.revive = True
        gone = [output.attempt for output in job.outputs.on_agent(agent_id)] if job.active else []
        if gone:
            fetching.lose(state, job, gone, why, fetch=False)
        if mine or gone:
            ending.advance(state, job)
    worker = state.cluster.worker_of(agent_id)
    if worker is not None:
        state.write(WorkerGone(agent_id, worker.worker_id, state.now_s))
    state.cluster.drop(agent_id)


def worker_lost(state: State, agent_id: str, worker_id: str, why: str) -> None:
    """What ran in it has failed there: one that kills its worker, wherever it runs, must come
    to an end."""
    worker = state.cluster.worker_of(agent_id)
    if worker is None or worker.worker_id != worker_id:
        return
    mine = attempts_of(state, worker)
    state.write(WorkerGone(agent_id, worker_id, state.now_s))
    for attempt in mine:
        job = state.jobs[attempt.job_id]
        if state.attempt(attempt.name) is not attempt:
            continue
        if attempt.kill_why:
            ended = AttemptEnded(attempt.name, "killed", attempt.kill_why, None, state.now_s)
            state.write(ended)
        else:
            failure = Failure(blame="place", message=f"its worker has ended: {why}")
            results.failed(state, attempt, failure)
        ending.advance(state, job)


def attempts_of(state: State, worker: Worker) -> list[Attempt]:
    found = [state.attempt(name) for name in sorted(worker.running)]
    return [attempt for attempt in found if attempt is not None]
