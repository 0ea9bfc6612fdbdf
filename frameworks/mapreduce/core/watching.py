"""What time brings: twins for stragglers, room for maps, workers that idle or hang."""

from __future__ import annotations

from typing import Final

from frameworks.common import speculation
from frameworks.mapreduce.core import ending, losing
from frameworks.mapreduce.core.cluster import RECENT_S, Worker
from frameworks.mapreduce.core.jobs import Job, Phase
from frameworks.mapreduce.core.journal import WorkerGone
from frameworks.mapreduce.core.orders import ReleaseWorker, Send
from frameworks.mapreduce.core.placing import is_excluded
from frameworks.mapreduce.core.state import State
from frameworks.mapreduce.core.tasks import Attempt
from frameworks.mapreduce.messages import Forget

# How often to look, while there is anything to look at.
EVERY_S: Final = 1.0
# A worker is told so often, with so many seconds between, to forget a job.
_FORGET_TRIES: Final = 10
_FORGET_EVERY_S: Final = 2.0
# An agent that was not seen for so long, and has nothing of ours, is forgotten.
_FORGET_AGENT_S: Final = 60 * RECENT_S


def tick(state: State) -> float | None:
    for job in list(state.current.values()):
        ending.finish(state, job)
        if job.active:
            _make_room(state, job)
    if state.linked and state.now_s - state.speculated_s >= state.options.speculate_s:
        state.speculated_s = state.now_s
        for job in state.current.values():
            if job.active:
                _speculate(state, job)
    _expire(state)
    for worker in list(state.cluster.workers()):
        _watch_worker(state, worker)
    if state.current or state.cluster.worker_count():
        return state.now_s + EVERY_S
    return None


# ---- Twins ---------------------------------------------------------------------------------


def begin_anew(state: State) -> None:
    """What attempts have had to say could not be heard: the time of that is not held against
    them."""
    state.speculated_s = state.now_s
    for job in state.current.values():
        for attempt in job.live():
            attempt.moved_s = state.now_s


def _speculate(state: State, job: Job) -> None:
    for phase in job.phases():
        before = phase.twins
        if phase is job.reduces and not job.maps.settled:
            # Who waits for maps stands still for a reason, and so would a twin.
            for attempt in phase.live.values():
                attempt.moved_s = state.now_s
            phase.twins = []
        else:
            phase.twins = _stragglers(state, phase)
        if not set(phase.twins).issubset(before):
            state.revive = True


def _stragglers(state: State, phase: Phase) -> list[int]:
    if not phase.rules.speculative or phase.waiting.count or not phase.live:
        return []
    alone: list[speculation.Pace] = []
    twins = 0
    for attempt in phase.live.values():
        if len(phase.tasks[attempt.task].attempts.running) > 1:
            twins += attempt.twin
        elif not attempt.kill_why and attempt.started_s:
            now_s, progress = state.now_s, attempt.progress
            ran_s, still_s = attempt.ran_s(now_s), attempt.still_s(now_s)
            alone.append(speculation.Pace(attempt.task, progress, ran_s, still_s))
    most = speculation.most_twins(len(phase.live) - twins, state.options.twin_share) - twins
    if most <= 0:
        return []
    times = [took_s for _agent, took_s in phase.durations]
    phase.slow_agents = speculation.slow_agents(phase.durations)
    return speculation.stragglers(alone, times, state.options.twin_after_s)[:most]


# ---- Room for maps -------------------------------------------------------------------------


def _make_room(state: State, job: Job) -> None:
    """A reduce that waits for maps, which wait for its room, gives way: killed, not blamed."""
    reduces = [attempt for attempt in job.reduces.live.values() if not attempt.kill_why]
    if not job.maps.waiting.count or job.maps.live or not reduces:
        job.starved_since_s = None
        return
    if job.starved_since_s is None:
        job.starved_since_s = state.now_s
    rules = job.rules
    patience_s = state.options.preempt_s + rules.wait_host_s + rules.wait_rack_s
    if state.now_s - job.starved_since_s >= patience_s:
        job.starved_since_s = None
        for attempt in _who_gives_way(state, job, reduces):
            state.kill(attempt, "ended to make room for maps that it waits for")


def _who_gives_way(state: State, job: Job, reduces: list[Attempt]) -> list[Attempt]:
    """The youngest, and as many on its agent as make room for a map."""
    useful = [one for one in reduces if not is_excluded(state, job, one.agent_id)] or reduces
    needs, freed = job.rules.maps.needs.scalars, job.rules.reduces.needs.scalars
    count = max(-(-needs[name] // freed[name]) for name in needs)
    by_agent: dict[str, list[Attempt]] = {}
    for attempt in sorted(useful, key=lambda one: (-one.launched_s, one.name)):
        by_agent.setdefault(attempt.agent_id, []).append(attempt)
    enough = [mine for mine in by_agent.values() if len(mine) >= count]
    # Where no agent has enough of them, what is free there already may make up for it.
    chosen = enough[0] if enough else max(by_agent.values(), key=len)
    return chosen[:count]


# ---- Agents and workers --------------------------------------------------------------------


def _expire(state: State) -> None:
    over = state.blame.expire(state.now_s)
    for job in state.current.values():
        over = job.blame.expire(state.now_s) or over
    state.revive = state.revive or over
    for agent in list(state.cluster.agents.values()):
        if agent.worker is None and state.now_s - agent.seen_s > _FORGET_AGENT_S:
            state.cluster.drop(agent.agent_id)


def _watch_worker(state: State, worker: Worker) -> None:
    _remind(state, worker)
    now_s, options = state.now_s, state.options
    if worker.running:
        if state.linked and now_s - worker.heard_s > options.silence_s:
            why = f"nothing was heard of it for {options.silence_s:g} s"
            losing.worker_lost(state, worker.agent_id, worker.worker_id, why)
            state.order(ReleaseWorker(worker.agent_id, worker.worker_id))
        return
    idle = now_s - worker.idle_since_s >= options.idle_s
    if idle and not worker.forgetting and not _is_needed(state, worker):
        state.write(WorkerGone(worker.agent_id, worker.worker_id, now_s))
        state.order(ReleaseWorker(worker.agent_id, worker.worker_id))
        # There may be room for another one, elsewhere.
        state.revive = True


def _remind(state: State, worker: Worker) -> None:
    """Of jobs that it is to forget."""
    for job_id, forgetting in list(worker.forgetting.items()):
        if state.now_s < forgetting.next_s:
            continue
        if forgetting.tries == _FORGET_TRIES:
            del worker.forgetting[job_id]
            continue
        forgetting.tries += 1
        forgetting.next_s = state.now_s + _FORGET_EVERY_S
        state.order(Send(worker.agent_id, worker.worker_id, Forget(job_id)))


def _is_needed(state: State, worker: Worker) -> bool:
    """Whether it has outputs that it is to remove later.  The agent serves them without it, and
    can remove them, so it is not kept if it may be gone, or if others may not come for it."""
    most = state.options.max_workers
    if not worker.sure or (most is not None and state.cluster.worker_count() >= most):
        return False
    for job_id in worker.jobs:
        job = state.jobs.get(job_id)
        if job is not None and not job.ended and job.outputs.on_agent(worker.agent_id):
            return True
    return False
