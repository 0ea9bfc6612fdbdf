"""An agent that is kept for a job whose tasks are too large for what becomes free at a time.

Beside many small tasks a large one may wait for ever: whatever one of them frees is taken by the
next.  So for the job whose turn it is, and of which nothing runs, nothing else is started on one
agent, on which there is room for it once ours have ended.  One agent at a time, and not for long:
what ends there may take too long, or be given to another framework.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from frameworks.mapreduce.core.jobs import Job, Phase
from frameworks.mapreduce.core.places import Place, may_have_worker
from frameworks.mapreduce.core.state import Hold, State
from mesos_py.resources import Resources

# How often what is free on the agent is to be offered.
OFFERED_S: Final = 1.0
# So many jobs are looked at in each round, the first by their turn.
_LOOK: Final = 8


def choose(state: State, places: Sequence[Place], ready: Iterable[int]) -> None:
    """Before anything is started in a round.  ready: jobs with something to start, by turn.

    Who has something that runs does not starve; nor does who comes after it, by whose turn it
    is.  Unless turns are shared fairly, that goes for who can start something here, too: of
    those that have nothing, each is as good as the other, and the older one always comes first.
    """
    _let_go(state)
    fair = state.options.order == "fair"
    for number in islice(ready, _LOOK):
        job = state.current[number]
        phase = _waiting(job)
        if phase.live:
            phase.cramped_s = None
            break
        if any(place.fits(phase) for place in places):
            if not fair:
                break
            if phase.waiting.only_near and job.delay.allowed(state.now_s) == "host":
                # It waits by its own choice.
                phase.cramped_s = None
                continue
        if phase.cramped_s is None:
            phase.cramped_s = state.now_s
        elif state.hold is None and state.now_s - phase.cramped_s >= state.options.hold_after_s:
            _hold(state, job, phase, places)
    if state.hold is not None:
        held = state.hold.agent_id
        for place in places:
            if place.agent.agent_id == held:
                place.later(OFFERED_S)


def is_kept(state: State, place: Place, job: Job) -> bool:
    """Whether the place is kept for another job."""
    hold = state.hold
    return hold is not None and place.agent.agent_id == hold.agent_id and job.number != hold.job


def started(state: State, job: Job, phase: Phase) -> None:
    """An attempt of it was: it had room."""
    phase.cramped_s = None
    if state.hold is not None and state.hold.job == job.number:
        state.hold = None


def _waiting(job: Job) -> Phase:
    return job.maps if job.maps.waiting.count else job.reduces


def _let_go(state: State) -> None:
    """Of an agent that is gone, for a job that has nothing to start, or for too long."""
    hold = state.hold
    if hold is None:
        return
    job = state.current.get(hold.job)
    phase = None if job is None or not job.active else _waiting(job)
    if phase is None or not phase.waiting.count or hold.agent_id not in state.cluster.agents:
        state.hold = None
    elif state.now_s - hold.since_s >= state.options.hold_s:
        state.hold = None
        # It waits as long as at first before another try.
        phase.cramped_s = state.now_s


def _hold(state: State, job: Job, phase: Phase, places: Sequence[Place]) -> None:
    """Where least of ours has to end first, of agents where that is enough."""
    found: list[tuple[int, str]] = []
    for place in places:
        agent_id = place.agent.agent_id
        excluded = any(one.excluded(agent_id, state.now_s) for one in (job.blame, state.blame))
        if excluded or place.max_task_s is not None or not may_have_worker(state, place):
            continue
        running = _needs_there(state, place)
        if sum(running, place.room).contains(phase.rules.needs):
            found.append((len(running), agent_id))
    if found:
        state.hold = Hold(job.number, min(found)[1], state.now_s)


def _needs_there(state: State, place: Place) -> list[Resources]:
    """Of attempts of ours on the agent."""
    worker = place.agent.worker
    names = sorted(worker.running) if worker is not None else []
    attempts = [attempt for name in names if (attempt := state.attempt(name)) is not None]
    return [state.jobs[one.job_id].phase(one.kind).rules.needs for one in attempts]
