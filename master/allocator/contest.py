"""One cycle over some agents: who can use what is free there, and who gets it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from master.allocator.filters import blocked_until
from master.allocator.ranking import OnFailure, Ranking
from master.allocator.roles import Contender
from mesos_py.allocation import AgentRow, ClusterView
from mesos_py.resources import EMPTY, Resources


class Outcome(NamedTuple):
    """`winner` is to be granted all of `free`; None: nobody can use it, or there is
    none.  `failed`: the ledger could not be asked."""

    agent: AgentRow
    free: Resources
    winner: Contender | None = None
    failed: Exception | None = None


def obstacle(contender: Contender, agent: AgentRow, free: Resources, now_s: float) -> str:
    """What keeps an active agent from being offered: a code of SKIP_CODES, or ""."""
    if not contender.gpu_capable and "gpus" in agent.total.scalars:
        return "gpu-only"
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
    ranking: Ranking,
    now_s: float,
    on_failure: OnFailure,
) -> Iterator[Outcome]:
    """Go through the agents, each with those who may use it (None: everybody).

    The first in order who can use an agent gets all that is free there, and the
    order is made anew before the next agent.  Somebody whose record raises is
    passed over for the rest of the cycle.
    """
    broken: set[Contender] = set()
    for agent, who in agents:
        try:
            free = view.free(agent.agent_id) if agent.active else EMPTY
        except Exception as error:
            yield Outcome(agent, EMPTY, failed=error)
            continue
        winner = None
        for contender in ranking.walk(who) if free else ():
            if contender in broken:
                continue
            try:
                if not obstacle(contender, agent, free, now_s):
                    winner = contender
                    break
            except Exception as error:
                broken.add(contender)
                on_failure(contender.framework_id, error)
        yield Outcome(agent, free, winner)
        if winner is not None:
            ranking.charge(winner, free)
