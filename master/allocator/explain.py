"""Why a framework would get nothing now, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from master.allocator.contest import Contest, Outcome, hindrance
from master.allocator.failures import Failures
from master.allocator.filters import blocked_until
from master.allocator.ranking import OnFailure, Order, Shares
from master.allocator.roles import Contender, Roster
from master.allocator.room import Part, Room
from master.allocator.room_words import cap_words, short_words, size_words
from mesos_py.allocation import AgentRow, ClusterView, FrameworkRow, Skip
from mesos_py.reserved import role_of
from mesos_py.resources import Resources

# From how many agents on that share one reason they get one line together.
_TOGETHER: Final = 4
_HOSTS_NAMED: Final = 3
_HOLDERS_NAMED: Final = 3
# Lines per kind of reason; the rest is counted.
_LINES: Final = 20


@dataclass(slots=True)
class _Reasons:
    """What was found, each text with the agents for which it holds."""

    found: dict[tuple[str, str], list[AgentRow]] = field(default_factory=dict)

    def add(self, code: str, text: str, agent: AgentRow) -> None:
        agents = self.found.setdefault((code, text), [])
        if not agents or agents[-1] is not agent:
            agents.append(agent)

    def skips(self) -> list[Skip]:
        lines: dict[str, list[Skip]] = {}
        more: dict[str, int] = {}
        for (code, text), agents in self.found.items():
            for skip in _lines(code, text, agents):
                if len(lines.setdefault(code, [])) < _LINES:
                    lines[code].append(skip)
                else:
                    more[code] = more.get(code, 0) + (1 if skip.agent_id else len(agents))
        for code, number in more.items():
            lines[code].append(Skip(code, f"{number} more agents for reasons of this kind"))
        return [skip for skips in lines.values() for skip in skips]


def _lines(code: str, text: str, agents: list[AgentRow]) -> list[Skip]:
    if len(agents) < _TOGETHER:
        return [Skip(code, f"{agent.host.hostname}: {text}", agent.agent_id) for agent in agents]
    hosts = ", ".join(agent.host.hostname for agent in agents[:_HOSTS_NAMED])
    return [Skip(code, f"{len(agents)} agents ({hosts}, ...): {text}")]


@dataclass(frozen=True, slots=True)
class Explainer:
    """Plays a cycle over all agents without granting anything, and tells what it saw."""

    roster: Roster
    agents: Mapping[str, AgentRow]
    failures: Failures
    shares: Shares
    view: ClusterView
    ranking: Callable[[OnFailure], Order]
    room: Callable[[], Room]
    piecewise: bool
    now_s: float

    def skips(self, framework_id: str) -> list[Skip]:
        row = self.roster.row(framework_id)
        if row is None:
            failure = self.failures.of(framework_id)
            return (
                [Skip("error", f"its record was not usable: {failure.reason}")] if failure else []
            )
        if row.silent:
            text = "it left offers unanswered, and is offered nothing until it answers something"
            return [Skip("silent", f"{text} or some time has passed")]
        if not row.active:
            return [Skip("inactive", "the framework is not connected; offers wait until it is")]
        general = [
            Skip("suppressed", f"role {role!r}: the framework asked for no offers until it revives")
            for role in row.roles
            if role in row.suppressed
        ]
        competing = [one for one in self.roster.contenders_of(framework_id) if one.contending]
        if not competing:
            return general
        if not self.agents:
            return [*general, Skip("no-agents", "no agent is registered with the master")]
        return self._played(row, competing, general)

    def _played(
        self, row: FrameworkRow, competing: list[Contender], general: list[Skip]
    ) -> list[Skip]:
        errors: dict[str, Exception] = {}
        ranking = self.ranking(errors.__setitem__)
        reasons = _Reasons()
        holders: str | None = None
        everywhere = ((agent, None) for agent in self.agents.values())
        seen: AgentRow | None = None
        contest = Contest(
            self.view, ranking, self.room(), self.now_s, errors.__setitem__, self.piecewise
        )
        # What keeps it from anything is told as of now, not as it is when others, who
        # come first, have been served.
        room = self.room()
        for outcome in contest.over(everywhere):
            if outcome.winner in competing:
                return []
            if row.framework_id in errors:
                break
            if outcome.agent is seen:
                continue
            seen = outcome.agent
            if holders is None and outcome.agent.active and not outcome.free:
                holders = self._holders(row.framework_id)
            for contender in competing:
                code, text = self._reason(contender, outcome, ranking, room, holders or "")
                role = f"role {contender.role!r}: " if len(row.roles) > 1 else ""
                reasons.add(code, role + text if code in _OF_ROLE else text, outcome.agent)
        if row.framework_id in errors:
            error = errors[row.framework_id]
            general.append(Skip("error", f"its record cannot be used: {error!r}"))
        return [*general, *reasons.skips()]

    def _reason(
        self, contender: Contender, outcome: Outcome, ranking: Order, room: Room, holders: str
    ) -> tuple[str, str]:
        agent, free = outcome.agent, outcome.free
        if not agent.active:
            code = "inactive" if agent.reachable else "unreachable"
            return code, agent.why_inactive or "the agent is disconnected"
        if outcome.failed is not None:
            return "error", f"its free resources cannot be told: {outcome.failed!r}"
        if not free:
            return "nothing-free", f"all of it is offered or allocated{holders}"
        code, part = hindrance(contender, agent, free, room, self.now_s)
        if not code and outcome.winner is not None:
            return "outranked", _outranked(contender, outcome.winner, ranking)
        if not code:
            return "outranked", "others come first, and take up all that may be given away"
        return code, self._obstacle_text(code, contender, agent, free, part, room)

    def _obstacle_text(
        self,
        code: str,
        contender: Contender,
        agent: AgentRow,
        free: Resources,
        part: Part,
        room: Room,
    ) -> str:
        if code == "filtered":
            refusals = contender.refusals[agent.agent_id]
            until = blocked_until(refusals, part.whole, self.now_s, part.max_task_s)
            left = f"asked again in {(until or self.now_s) - self.now_s:.1f} s"
            return f"declined by the framework itself, {left} or when more is free"
        if code == "too-small":
            return size_words(room, contender, agent, free, part)
        if code == "constraint":
            return f"excluded by the framework's constraint: {contender.constraint}"
        if code == "not-admitted":
            return room.admission.waiting[contender.framework_id]
        if code == "reserved":
            roles = room.reservations.owners(agent) or set(map(role_of, free.names()))
            owners = " and ".join(map(repr, sorted(roles)))
            return f"kept for role {owners} and those below it"
        if code in ("limit", "quota"):
            return cap_words(room, contender, agent, free)
        if code == "held":
            names = {row.framework_id: row.name for row in self.roster.rows()}
            return f"what is free there is kept for {room.held.names(agent, contender, names)}"
        if code == "short-only":
            return short_words(room, agent, free)
        return "has gpus, which are kept for frameworks that can use them"

    def _holders(self, framework_id: str) -> str:
        """Who holds most, over the whole cluster: the view knows no more."""
        held: dict[str, Resources] = {}
        names = {}
        for contender in self.roster.everybody():
            try:
                amounts = dict(self.view.held(contender.framework_id, contender.role))
            except Exception:  # somebody else's broken record is not the question here
                continue
            own = Resources({name: milli for name, milli in amounts.items() if milli})
            held[contender.framework_id] = held.get(contender.framework_id, Resources()) + own
            names[contender.framework_id] = f"{contender.name!r} ({contender.framework_id})"
        order = sorted(held, key=lambda one: (-self.shares.of(held[one].scalars), one))
        texts = [
            f"{'the framework itself' if one == framework_id else names[one]} {held[one]}"
            for one in order[:_HOLDERS_NAMED]
            if held[one]
        ]
        return f"; in the cluster most is held by {', '.join(texts)}" if texts else ""


# Reasons that may differ between the roles of one framework.
_OF_ROLE: Final = frozenset(
    {"filtered", "too-small", "constraint", "outranked", "reserved", "limit", "quota", "short-only"}
)


def _outranked(contender: Contender, winner: Contender, ranking: Order) -> str:
    who = f"framework {winner.name!r} ({winner.framework_id})"
    if winner.role != contender.role:
        who += f" in role {winner.role!r}"
    return f"{who} comes first: {ranking.why_behind(contender, winner)}"
