"""One cycle over some agents: who can use what is free there, and who gets it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from master.allocator.filters import blocked_until
from master.allocator.ranking import OnFailure, Order
from master.allocator.roles import Contender
from master.allocator.room import NOTHING, Part, Room
from mesos_py.allocation import AgentRow, ClusterView
from mesos_py.resources import EMPTY, Resources


class Outcome(NamedTuple):
    """`winner` is to be granted `part` of what is `free`; None: nobody can use what is
    left, or there is none.  `failed`: the ledger could not be asked."""

    agent: AgentRow
    free: Resources
    winner: Contender | None = None
    part: Part = NOTHING
    failed: Exception | None = None


def obstacle(contender: Contender, agent: AgentRow, part: Part, now_s: float) -> str:
    """What keeps that part of an active agent from being offered: a code of SKIP_CODES,
    or ""."""
    if not contender.gpu_capable and "gpus" in agent.total.scalars:
        return "gpu-only"
    free = part.resources
    if not free:
        return part.code
    refusals = contender.refusals.get(agent.agent_id)
    if refusals and blocked_until(refusals, free, now_s) is not None:
        return "filtered"
    if contender.min_free and not any(map(free.contains, contender.min_free)):
        return "too-small"
    if not contender.allows(agent.agent_id, agent.host):
        return "constraint"
    return ""


def contest(
    agents: Iterable[tuple[AgentRow, Collection[Contender] | None]],
    view: ClusterView,
    ranking: Order,
    room: Room,
    now_s: float,
    on_failure: OnFailure,
) -> Iterator[Outcome]:
    """Go through the agents, each with those who may use it (None: everybody).

    The first in order who can use something on an agent gets the part of it that
    `room` lets him have, then the order is made anew for what is left: one outcome
    for each grant, and at the end of each agent one without a winner.  Nobody gets
    two grants of one agent.  Somebody whose record raises is passed over for the rest
    of the cycle.
    """
    broken: set[Contender] = set()
    room.begin(view, now_s)
    for agent, who in agents:
        try:
            free = view.free(agent.agent_id) if agent.active else EMPTY
        except Exception as error:
            yield Outcome(agent, EMPTY, failed=error)
            continue
        served: set[Contender] = set()
        while free:
            found = None
            for contender in ranking.walk(who, agent.agent_id):
                if contender in broken or contender in served:
                    continue
                try:
                    part = room.part(contender, agent, free)
                    if not obstacle(contender, agent, part, now_s):
                        found = contender, part
                        break
                except Exception as error:
                    broken.add(contender)
                    on_failure(contender.framework_id, error)
            if found is None:
                break
            winner, part = found
            yield Outcome(agent, free, winner, part)
            served.add(winner)
            ranking.charge(winner, part.resources)
            room.charge(winner, agent, part)
            free = free - part.resources
        yield Outcome(agent, free)
