"""What workers say while attempts run."""

from __future__ import annotations

from frameworks.mapreduce.core import fetching, results
from frameworks.mapreduce.core.orders import KillAttempt
from frameworks.mapreduce.core.state import State
from frameworks.mapreduce.messages import (
    FetchFailed,
    Forgotten,
    FromWorker,
    Progress,
    Running,
    WantMaps,
)
from frameworks.mapreduce.work import Failure


def said(state: State, agent_id: str, message: FromWorker) -> None:
    worker = state.cluster.worker_of(agent_id)
    if worker is not None:
        worker.heard_s = state.now_s
        worker.sure = True
    if isinstance(message, Progress):
        for name, running in message.attempts.items():
            _progress(state, name, running)
    elif isinstance(message, Forgotten):
        if worker is not None:
            worker.forgetting.pop(message.job_id, None)
    elif isinstance(message, (WantMaps, FetchFailed)):
        _asks(state, message)


def _progress(state: State, name: str, running: Running) -> None:
    attempt = state.attempt(name)
    if attempt is None:
        results.refuse(state, name)
        return
    if not attempt.started_s:
        attempt.started_s = state.now_s
        attempt.state = "running"
    progress = min(1.0, max(0.0, running.progress))
    if progress > attempt.progress or running.counters != attempt.counters:
        attempt.moved_s = state.now_s
    attempt.progress = progress
    attempt.phase = running.phase
    attempt.status = running.status
    attempt.counters = running.counters


def _asks(state: State, message: WantMaps | FetchFailed) -> None:
    attempt = state.attempt(message.attempt)
    if attempt is None:
        results.refuse(state, message.attempt)
        return
    if attempt.kind != "reduce":
        return
    if isinstance(message, WantMaps):
        fetching.wanted(state, attempt, message)
        return
    job = state.jobs[attempt.job_id]
    at_fault = fetching.lost(state, job, attempt, message.lost, message.why)
    if at_fault and state.attempt(attempt.name) is attempt and job.active:
        why = f"it alone cannot fetch outputs of maps: {message.why}"
        results.failed(state, attempt, Failure(blame="fetch", message=why, lost=()))
        state.order(KillAttempt(attempt.name))
