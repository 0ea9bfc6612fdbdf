"""Frameworks that are of no use with less than they need wait until it fits.

A framework with mandatory needs is offered nothing until those, together with the
mandatory needs of all who were admitted before, fit the cluster: else each of two might
hold half of it and wait for the other half.

Whether they fit is tried by first-fit-decreasing bin packing on the totals of the
active agents: what is pinned to an agent first, then the largest bundles, each on the
first agent that its framework may use and that has room.  It is a heuristic: somebody
may have to wait though a cleverer packing would let him in; whoever is let in fits.
What others, who state no mandatory needs, hold at the moment does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from master.allocator.reservations import Reservations, may_use
from master.allocator.roles import Roster
from master.allocator.sums import reserved_scalars
from mesos_py.allocation import AgentRow, FrameworkRow, Need
from mesos_py.constraints import Constraint
from mesos_py.policy import RolePolicy, ancestors
from mesos_py.resources import Resources, milli_text


@dataclass(slots=True)
class Admission:
    """Who is admitted, in the order in which frameworks came.

    Judged anew at the next `refresh` after something changed that matters, and only
    those who wait or raised their needs: whoever is in stays in.  One who comes later
    and fits is let in before one who came earlier and does not.
    """

    roster: Roster
    agents: Mapping[str, AgentRow]
    # By framework id: why it waits.
    waiting: dict[str, str] = field(default_factory=dict)
    _admitted: dict[str, tuple[Need, ...]] = field(default_factory=dict)
    # To be judged, in no order.
    _pending: dict[str, None] = field(default_factory=dict)
    _policies: Mapping[str, RolePolicy] = field(default_factory=dict)
    _reservations: Reservations = field(default_factory=lambda: Reservations({}))
    _changed: bool = False
    # Those who wait no more, since they need nothing any more.
    _let_in: list[str] = field(default_factory=list)

    def copy(self) -> Admission:
        """The same, judged as of now, to be played with."""
        made = Admission(
            self.roster,
            self.agents,
            dict(self.waiting),
            dict(self._admitted),
            dict(self._pending),
            self._policies,
            self._reservations,
            self._changed,
        )
        made.refresh()
        return made

    # ---- What happens ---------------------------------------------------

    def rule(self, policies: Mapping[str, RolePolicy], reservations: Reservations) -> None:
        self._policies = policies
        self._reservations = reservations
        self._changed = True

    def touch(self) -> None:
        """Agents came, went or are others now."""
        self._changed = True

    def follow(self, row: FrameworkRow) -> None:
        """A framework is new, or its row differs."""
        needs = mandatory(row)
        before = self._admitted.get(row.framework_id)
        if not needs:
            waited = row.framework_id in self.waiting
            self.forget(row.framework_id)
            if waited:
                self._let_in.append(row.framework_id)
        elif before is not None and _covers(before, needs):
            self._changed = self._changed or needs != before
            self._admitted[row.framework_id] = needs
        else:
            self._pending[row.framework_id] = None
            self._changed = True

    def forget(self, framework_id: str) -> None:
        """It is gone, or needs nothing at all costs."""
        if self._admitted.pop(framework_id, None) is not None:
            self._changed = True
        self.waiting.pop(framework_id, None)
        self._pending.pop(framework_id, None)

    # ---- The judgement --------------------------------------------------

    def refresh(self) -> list[str]:
        """Judge anew if need be; whoever was let in just now."""
        changed, self._changed = self._changed, False
        admitted, self._let_in = self._let_in, []
        if not changed or not (self._pending or self.waiting):
            return admitted
        judged = {*self._pending, *self.waiting}
        self._pending.clear()
        stay = [one for one in self.roster.rows() if one.framework_id in self._admitted]
        packed = Packing(self.agents, self._policies, self._reservations)
        for row in stay:
            if row.framework_id not in judged:
                packed.admit(row)
        for row in self.roster.rows():
            if row.framework_id not in judged:
                continue
            why_not = packed.admit(row)
            if why_not:
                self.waiting[row.framework_id] = why_not
                self._admitted.pop(row.framework_id, None)
            else:
                self.waiting.pop(row.framework_id, None)
                self._admitted[row.framework_id] = mandatory(row)
                admitted.append(row.framework_id)
        return admitted


def mandatory(row: FrameworkRow) -> tuple[Need, ...]:
    return tuple(one for one in row.needs if one.mandatory and one.count > 0 and one.resources)


def _covers(before: Iterable[Need], now: Iterable[Need]) -> bool:
    """Whether nothing is needed now that was not needed before."""
    had: dict[tuple[str, Resources, str], int] = {}
    for need in before:
        key = need.role, need.resources, need.agent_id
        had[key] = had.get(key, 0) + need.count
    for need in now:
        key = need.role, need.resources, need.agent_id
        had[key] = had.get(key, 0) - need.count
        if had[key] < 0:
            return False
    return True


@dataclass(slots=True)
class _Item:
    """One need of one framework; `size` is its largest part of the cluster."""

    row: FrameworkRow
    need: Need
    size: float


class Packing:
    """Mandatory needs, on the agents' totals."""

    def __init__(
        self,
        agents: Mapping[str, AgentRow],
        policies: Mapping[str, RolePolicy],
        reservations: Reservations,
    ) -> None:
        self._agents = {one.agent_id: one for one in agents.values() if one.active}
        self._policies = policies
        self._reservations = reservations
        self._total: dict[str, int] = {}
        self._reserved_for: dict[str, dict[str, int]] = {}
        for agent in self._agents.values():
            _add(self._total, agent.total.scalars, 1)
            for role, amounts in reserved_scalars(agent.total).items():
                _add(self._reserved_for.setdefault(role, {}), amounts, 1)
        self._rows: list[FrameworkRow] = []
        self._room = {agent_id: agent.total for agent_id, agent in self._agents.items()}
        # By framework, role, and whether gpus are needed: agents that may be used.
        self._usable: dict[tuple[str, str, bool], list[AgentRow]] = {}
        # By role: what is needed at all costs in it and below it.
        self._needed: dict[str, dict[str, int]] = {}

    def admit(self, row: FrameworkRow) -> str:
        """Add its needs to the others; why that can't be, or "" if it is done."""
        why_not = self._over_sums(row)
        if why_not:
            return why_not
        items = self._items(row)
        room, why_not = self._pack(items, dict(self._room))
        if why_not and self._rows:
            # Everything anew, the largest first: maybe there is a place for all.
            everything = [item for one in self._rows for item in self._items(one)]
            room, still = self._pack([*everything, *items], self._empty())
            if still:
                others = len(self._rows)
                who = "1 framework" if others == 1 else f"{others} frameworks"
                return f"{why_not}, with what {who} admitted before need"
            why_not = ""
        if why_not:
            return why_not
        self._room = room
        self._rows.append(row)
        for need in mandatory(row):
            self._count(need)
        return ""

    def _empty(self) -> dict[str, Resources]:
        return {agent_id: agent.total for agent_id, agent in self._agents.items()}

    def _count(self, need: Need) -> None:
        for role in ancestors(need.role):
            amounts = self._needed.setdefault(role, {})
            _add(amounts, need.resources.scalars, need.count)

    # ---- Limits and guarantees ------------------------------------------

    def _over_sums(self, row: FrameworkRow) -> str:
        wanted: dict[str, dict[str, int]] = {}
        for need in mandatory(row):
            for role in ancestors(need.role):
                _add(wanted.setdefault(role, {}), need.resources.scalars, need.count)
        for role, amounts in wanted.items():
            policy = self._policies.get(role)
            for name, limit in policy.limit.items() if policy is not None else ():
                needed = self._needed.get(role, {}).get(name, 0) + amounts.get(name, 0)
                if amounts.get(name, 0) and needed > limit:
                    return (
                        f"{milli_text(needed)} {name} are mandatory in role {role!r}, "
                        f"which is limited to {milli_text(limit)}"
                    )
        mine: dict[str, int] = {}
        for need in mandatory(row):
            _add(mine, need.resources.scalars, need.count)
        for name, milli in mine.items():
            there = self._total.get(name, 0)
            needed = self._claimed(name, wanted)
            if needed > there:
                return (
                    f"it needs {milli_text(milli)} {name}: with what others need or are "
                    f"guaranteed that is {milli_text(needed)}, active agents have "
                    f"{milli_text(there)}"
                )
        return ""

    def _claimed(self, name: str, wanted: Mapping[str, Mapping[str, int]]) -> int:
        """What is needed or guaranteed in the whole cluster, with what is `wanted`."""
        roles = {*self._needed, *wanted}
        roles.update(role for role, one in self._policies.items() if name in one.guarantee)
        for role in list(roles):
            roles.update(ancestors(role))
        # From below: a role's claim is its guarantee, or what is needed in it and claimed
        # below it, whichever is more.
        claimed: dict[str, int] = {}
        below: dict[str, int] = {}
        for role in sorted(roles, key=lambda one: -one.count("/")):
            needed = self._needed.get(role, {}).get(name, 0) + wanted.get(role, {}).get(name, 0)
            policy = self._policies.get(role)
            least = policy.guarantee.get(name, 0) if policy is not None else 0
            # What is reserved for it counts as had.
            least = max(0, least - self._reserved(role, name))
            own = needed - below.get(role, 0)
            claim = max(least, own + claimed.get(role, 0))
            above = role.rpartition("/")[0]
            claimed[above] = claimed.get(above, 0) + claim
            below[above] = below.get(above, 0) + needed
        return claimed.get("", 0)

    def _reserved(self, role: str, name: str) -> int:
        """For it and those below it."""
        return sum(
            amounts.get(name, 0)
            for owner, amounts in self._reserved_for.items()
            if role in ancestors(owner)
        )

    # ---- Bins -----------------------------------------------------------

    def _items(self, row: FrameworkRow) -> list[_Item]:
        return [
            _Item(
                row,
                need,
                max(
                    (
                        milli / max(self._total.get(name, 0), 1)
                        for name, milli in need.resources.scalars.items()
                    ),
                    default=0.0,
                ),
            )
            for need in mandatory(row)
        ]

    def _pack(
        self, items: list[_Item], room: dict[str, Resources]
    ) -> tuple[dict[str, Resources], str]:
        order = sorted(items, key=lambda item: (not item.need.agent_id, -item.size))
        for item in order:
            left = item.need.count
            for agent in self._places(item):
                left -= _fill(room, agent.agent_id, item.need.resources, left)
                if not left:
                    break
            if left:
                return room, _no_place(item, left)
        return room, ""

    def _places(self, item: _Item) -> list[AgentRow]:
        """Agents that it may use, those first that fewer others may."""
        need, row = item.need, item.row
        if need.agent_id:
            pinned = self._agents.get(need.agent_id)
            return self._allowed(row, need, (pinned,)) if pinned is not None else []
        key = row.framework_id, need.role, "gpus" in need.resources.scalars
        known = self._usable.get(key)
        if known is None:
            known = self._usable[key] = self._allowed(row, need, self._agents.values())
        return known

    def _allowed(self, row: FrameworkRow, need: Need, agents: Iterable[AgentRow]) -> list[AgentRow]:
        wants_gpus = "gpus" in need.resources.scalars
        found: tuple[list[AgentRow], list[AgentRow], list[AgentRow]] = ([], [], [])
        rule = row.constraints.get(need.role)
        for agent in agents:
            owners = self._reservations.owners(agent)
            has_gpus = "gpus" in agent.total.plain.scalars
            if (
                (owners and not may_use(need.role, owners))
                or (has_gpus and not row.gpu_capable)
                or (rule is not None and not _allows(rule, agent))
            ):
                continue
            found[0 if owners else 2 if has_gpus and not wants_gpus else 1].append(agent)
        return [*found[0], *found[1], *found[2]]


def _allows(rule: Constraint, agent: AgentRow) -> bool:
    try:
        return rule.allows(agent.host)
    except Exception:  # a broken record finds no place, and stops nobody else
        return False


def _fill(room: dict[str, Resources], agent_id: str, bundle: Resources, count: int) -> int:
    """Put up to `count` such bundles there; how many found room."""
    free = room[agent_id]
    if not free.contains(bundle):
        return 0
    if bundle.ranges or bundle.sets:
        # There is but one of each.
        count = 1
    for name, milli in bundle.scalars.items():
        count = min(count, free.scalars.get(name, 0) // milli)
    used = {name: milli * count for name, milli in bundle.scalars.items()}
    room[agent_id] = free - Resources(used, bundle.ranges, bundle.sets)
    return count


def _no_place(item: _Item, left: int) -> str:
    need = item.need
    where = f"on agent {need.agent_id}" if need.agent_id else "on any agent that it may use"
    what = f"{need.name!r} ({need.resources})" if need.name else str(need.resources)
    return f"{left} of {need.count} x {what} find no room {where}"


def _add(amounts: dict[str, int], scalars: Mapping[str, int], times: int) -> None:
    for name, milli in scalars.items():
        amounts[name] = amounts.get(name, 0) + milli * times
