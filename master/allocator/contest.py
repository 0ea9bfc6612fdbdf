"""One cycle over some agents: who can use what is free there, and who gets it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from master.allocator.filters import blocked_until
from master.allocator.ranking import OnFailure, Order
from master.allocator.roles import Contender
from master.allocator.room import NOTHING, Part, Room, Stage
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


def obstacle(
    contender: Contender,
    agent: AgentRow,
    free: Resources,
    part: Part,
    now_s: float,
    anew: bool = False,
) -> str:
    """What keeps that part of what is free on an active agent from being offered: a code
    of SKIP_CODES, or "".  `anew`: whatever was refused before."""
    if not contender.gpu_capable and "gpus" in agent.total.plain.scalars:
        return "gpu-only"
    if not part.resources:
        return part.code or "too-small"
    offered = part.whole
    refusals = contender.refusals.get(agent.agent_id) if not anew else None
    if refusals and blocked_until(refusals, offered, now_s, part.max_task_s) is not None:
        return "filtered"
    if contender.min_free and not any(map(offered.plain.contains, contender.min_free)):
        # Not the agent is too small then, but what may be had of it.
        enough = part.code and any(map(free.plain.contains, contender.min_free))
        return part.code if enough else "too-small"
    if not contender.allows(agent.agent_id, agent.host):
        return "constraint"
    return ""


class Contest:
    """One cycle: agents are dealt out one by one, in one order of frameworks.

    The first in order who can use something on an agent gets the part of it that
    `room` lets him have, then the order is made anew for what is left.  Somebody whose
    record raises is passed over for the rest of the cycle.
    """

    def __init__(
        self,
        view: ClusterView,
        ranking: Order,
        room: Room,
        now_s: float,
        on_failure: OnFailure,
        piecewise: bool = False,
        counted: bool = False,
    ) -> None:
        """The room's cycle has begun.  `piecewise`: a framework gets no second part of an
        agent in this cycle.  `counted`: whoever is passed over keeps count of it."""
        self._view = view
        self._ranking = ranking
        self._room = room
        self._now_s = now_s
        self._on_failure = on_failure
        self._piecewise = piecewise
        self._counted = counted
        self._broken: set[Contender] = set()
        # What was granted in this cycle: by agent, and by (framework, role, agent, how
        # long its tasks may run).
        self._granted: dict[str, Resources] = {}
        self._taken: dict[tuple[Contender, str, float | None], Resources] = {}
        # Who of a framework, which may have several roles, got the part of an agent.
        self._sated: dict[tuple[str, str, float | None], Contender] = {}
        # Who was asked last, how many roles were gone then, and whether all of theirs.
        self._asked: tuple[Collection[Contender], int, bool] = ((), 0, False)

    def over(
        self, agents: Iterable[tuple[AgentRow, Collection[Contender] | None]]
    ) -> Iterator[Outcome]:
        """Go through the agents, each with those who may use it (None: everybody): one
        outcome for each grant, and at the end of each agent one without a winner."""
        for agent, who in agents:
            if who is None:
                self._room.ask_all(agent.agent_id)
            elif self._all_gone(who, agent):
                continue
            try:
                free = self._free(agent)
            except Exception as error:
                yield Outcome(agent, EMPTY, failed=error)
                continue
            enough = self._room.is_enough(agent, free)
            for stage in self._room.stages(free, enough) if free else ():
                served: set[Contender] = set()
                while free and (found := self._first(agent, free, stage, who, served, enough)):
                    yield Outcome(agent, free, *found)
                    free = self._take(agent, free, *found)
                    served.add(found[0])
            yield Outcome(agent, free)

    def _free(self, agent: AgentRow) -> Resources:
        if not agent.active:
            return EMPTY
        free = self._view.free(agent.agent_id)
        granted = self._granted.get(agent.agent_id)
        return free if granted is None else free - granted

    def _all_gone(self, who: Collection[Contender], agent: AgentRow) -> bool:
        gone = self._room.gone(agent)
        if not gone:
            return False
        # The same people are asked on many agents, one after the other.
        if self._asked[0] is not who or self._asked[1] != len(gone):
            self._asked = who, len(gone), all(contender.role in gone for contender in who)
        return self._asked[2]

    def _first(
        self,
        agent: AgentRow,
        free: Resources,
        stage: Stage,
        who: Collection[Contender] | None,
        served: Collection[Contender],
        enough: bool,
    ) -> tuple[Contender, Part] | None:
        if not self._room.leaves_something(agent, free, stage):
            return None
        agent_id, length_s = agent.agent_id, self._room.length_s(stage)
        gone = self._room.gone(agent)
        if stage == "needed":
            who = self._room.wanting(agent, free, who)
        for contender in self._ranking.walk(who, agent_id):
            if contender.role in gone or contender in self._broken or contender in served:
                continue
            if self._sated and stage != "needed":
                key = contender.framework_id, agent_id, length_s
                if self._sated.get(key, contender) is not contender:
                    continue
            taken = self._taken.get((contender, agent_id, length_s), EMPTY)
            try:
                part = self._room.part(contender, agent, free, stage, taken, enough=enough)
                anew = stage == "needed" and self._room.wanted[contender].anew
                code = obstacle(contender, agent, free, part, self._now_s, anew)
                if not code:
                    return contender, part
                # Whoever is owed nothing is asked again, for what is there for all.
                if self._counted and stage not in ("owed", "needed"):
                    contender.pass_over(code, agent_id, self._now_s)
            except Exception as error:
                self._broken.add(contender)
                self._on_failure(contender.framework_id, error)
        return None

    def _take(self, agent: AgentRow, free: Resources, winner: Contender, part: Part) -> Resources:
        """Book the grant; what is left."""
        agent_id = agent.agent_id
        left = free - part.resources
        self._ranking.charge(winner, part.resources)
        self._room.charge(winner, agent, part, left)
        self._granted[agent_id] = self._granted.get(agent_id, EMPTY) + part.resources
        self._taken[winner, agent_id, part.max_task_s] = part.whole
        if self._piecewise:
            self._sated[winner.framework_id, agent_id, part.max_task_s] = winner
        return left


def hindrance(
    contender: Contender, agent: AgentRow, free: Resources, room: Room, now_s: float
) -> tuple[str, Part]:
    """What keeps the contender from being offered anything of what is free on an active
    agent, with the part that it is about: a code of SKIP_CODES, or ""."""
    enough = room.is_enough(agent, free)
    found = "", NOTHING
    for stage in room.lengths():
        part = room.part(contender, agent, free, stage, enough=enough)
        code = obstacle(contender, agent, free, part, now_s)
        if not code:
            return code, part
        if stage == "long" or part.resources:
            found = code, part
    return found
