"""What agents offer in one round, and what is taken of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from frameworks.mapreduce.core.cluster import Agent
from frameworks.mapreduce.core.jobs import Phase
from frameworks.mapreduce.core.orders import Decline, Launch, Room, Start
from frameworks.mapreduce.core.state import State
from mesos_py.resources import EMPTY, Resources

_LEAST_REFUSAL_S: Final = 0.05
# With so many known times, of which the longest counts, an offer for short tasks is used.
_KNOWN_TIMES: Final = 3
_SAFE: Final = 1.5


@dataclass(slots=True)
class Place:
    """Offers of one agent.

    room: what is left for tasks, a worker's own needs taken off if there is none yet.
    refuse_s: for how long what is left is of no use.
    """

    agent: Agent
    offer_ids: tuple[str, ...]
    room: Resources
    max_task_s: float | None
    refuse_s: float
    starts: list[Start] = field(default_factory=list)

    def later(self, seconds: float) -> None:
        """What is left may be of use so soon."""
        self.refuse_s = max(_LEAST_REFUSAL_S, min(self.refuse_s, seconds))

    def fits(self, phase: Phase) -> bool:
        if not self.room.contains(phase.rules.needs):
            return False
        if self.max_task_s is None:
            return True
        times = [took_s for _agent, took_s in phase.durations]
        return len(times) >= _KNOWN_TIMES and _SAFE * max(times) <= self.max_task_s


def places_of(state: State, rooms: Sequence[Room]) -> list[Place]:
    """Offers of one agent are used together, but for those that are for short tasks only."""
    usual: dict[str, list[Room]] = {}
    short: list[Room] = []
    seen: set[str] = set()
    for room in rooms:
        if room.offer_id not in seen:
            seen.add(room.offer_id)
            if room.max_task_s is None:
                usual.setdefault(room.agent_id, []).append(room)
            else:
                short.append(room)
    return [_place(state, mine) for mine in [*usual.values(), *([room] for room in short)]]


def _place(state: State, rooms: Sequence[Room]) -> Place:
    first = rooms[0]
    offered = first.resources
    for room in rooms[1:]:
        offered += room.resources
    agent = state.cluster.seen(first.agent_id, first.hostname, first.rack, offered, state.now_s)
    ids = tuple(room.offer_id for room in rooms)
    made = Place(agent, ids, offered, first.max_task_s, state.options.refuse_s)
    if agent.worker is None or not agent.worker.sure:
        needs = state.options.worker_needs
        made.room = offered - needs if offered.contains(needs) else EMPTY
    return made


def may_have_worker(state: State, place: Place) -> bool:
    """Whether there is a worker, or may be one more."""
    if place.agent.worker is not None:
        return True
    most = state.options.max_workers
    # An offer for short tasks is none for a worker, which stays.
    return place.max_task_s is None and (most is None or state.cluster.worker_count() < most)


def most_left(places: Iterable[Place]) -> Resources:
    """Of each resource, the most that any of them has left."""
    most: dict[str, int] = {}
    for place in places:
        for name, milli in place.room.scalars.items():
            most[name] = max(milli, most.get(name, 0))
    return Resources(most)


def answer(state: State, place: Place) -> None:
    state.declined = True
    if not place.starts:
        for offer_id in place.offer_ids:
            state.order(Decline(offer_id, place.refuse_s))
        return
    assert place.agent.worker is not None
    worker_id = place.agent.worker.worker_id
    starts = tuple(place.starts)
    state.order(Launch(place.offer_ids, place.agent.agent_id, worker_id, starts, place.refuse_s))
