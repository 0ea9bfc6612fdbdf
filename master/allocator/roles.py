"""Who competes for offers: frameworks in their roles, roles in their tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from master.allocator.filters import Book
from mesos_py.allocation import AllocatorOptions, FrameworkRow
from mesos_py.constraints import Constraint, Host
from mesos_py.policy import DEFAULT_POLICY, RolePolicy, ancestors
from mesos_py.resources import Resources

# Of so many grants, the latest, a contender's are remembered.
GRANTS_KEPT: Final = 1000


@dataclass(slots=True)
class Passed:
    """How often somebody was passed over for one reason, and when and where last."""

    count: int
    last_s: float
    agent_id: str


class Contender:
    """One framework in one of its roles.

    It outlives suppression and disconnection, so that coming back does not put it
    before those who stayed; `contending` says whether it may be offered anything.
    """

    __slots__ = (
        "_allowed",
        "constraint",
        "contending",
        "declined",
        "framework_id",
        "gpu_capable",
        "granted",
        "granted_at",
        "granted_short",
        "min_free",
        "name",
        "passed",
        "priority",
        "refines",
        "refusals",
        "role",
    )

    def __init__(self, framework_id: str, role: str) -> None:
        self.framework_id = framework_id
        self.role = role
        self.name = ""
        self.priority = 0
        self.contending = False
        self.gpu_capable = False
        self.refines = False
        self.constraint: Constraint | None = None
        self.min_free: tuple[Resources, ...] = ()
        # Whether it handed back, untouched, the last thing it was granted.
        self.declined = False
        # The number of its last grant among all grants; 0: never.
        self.granted_at = 0
        # What it was granted last, by agent: for any tasks, and for short ones.
        self.granted: dict[str, Resources] = {}
        self.granted_short: dict[str, Resources] = {}
        self.refusals: Book = {}
        # By the code of the reason: it was asked about, and could not be granted anything.
        self.passed: dict[str, Passed] = {}
        self._allowed: dict[str, tuple[Host, bool]] = {}

    def follow(self, row: FrameworkRow, default_min: tuple[Resources, ...]) -> bool:
        """Take over the row; true if agents that were no use to it may be now."""
        constraint = row.constraints.get(self.role)
        min_free = tuple(row.min_free.get(self.role, default_min))
        contending = row.active and self.role not in row.suppressed
        changed = contending and (
            not self.contending
            or constraint != self.constraint
            or min_free != self.min_free
            or row.gpu_capable != self.gpu_capable
            or row.refines != self.refines
        )
        if constraint != self.constraint:
            self._allowed.clear()
        self.name = row.name
        self.priority = row.priority
        self.contending = contending
        self.gpu_capable = row.gpu_capable
        self.refines = row.refines
        self.constraint = constraint
        self.min_free = min_free
        return changed

    def granted_for(self, max_task_s: float | None) -> dict[str, Resources]:
        """What it was granted last, by agent, for tasks of any length (None) or short
        ones."""
        return self.granted if max_task_s is None else self.granted_short

    def was_granted(
        self, agent_id: str, resources: Resources, max_task_s: float | None = None
    ) -> None:
        """Remembered for the latest grants only: most are never refused, and together all
        frameworks come to have been granted something on all agents."""
        known = self.granted_for(max_task_s)
        known.pop(agent_id, None)
        known[agent_id] = resources
        if len(known) > GRANTS_KEPT:
            del known[next(iter(known))]

    def allows(self, agent_id: str, host: Host) -> bool:
        """Whether its constraint holds there; patterns over many hosts are slow."""
        if self.constraint is None:
            return True
        known = self._allowed.get(agent_id)
        if known is None or known[0] is not host:
            known = self._allowed[agent_id] = (host, self.constraint.allows(host))
        return known[1]

    def pass_over(self, code: str, agent_id: str, now_s: float) -> None:
        """It was its turn on that agent, and something kept it from it."""
        told = self.passed.get(code)
        if told is None:
            self.passed[code] = Passed(1, now_s, agent_id)
            return
        told.count += 1
        told.last_s = now_s
        told.agent_id = agent_id

    def forget_agent(self, agent_id: str) -> None:
        self.granted.pop(agent_id, None)
        self.granted_short.pop(agent_id, None)
        self._allowed.pop(agent_id, None)


class Role:
    """A name under which frameworks share: a node in the tree of roles, in which a
    slash leads one level down.  A node that nobody named, and that has neither
    frameworks nor a policy, is there while something is below it.
    """

    __slots__ = (
        "children",
        "competing",
        "contending",
        "granted_at",
        "members",
        "name",
        "own_granted_at",
        "parent",
        "policy",
    )

    def __init__(self, name: str, parent: Role | None = None) -> None:
        self.name = name
        self.parent = parent
        self.children: dict[str, Role] = {}
        self.policy = DEFAULT_POLICY
        # By framework id: all who have the role, and those to whom offers may go.
        self.members: dict[str, Contender] = {}
        self.contending: dict[str, Contender] = {}
        # How many contend in the role and below it.
        self.competing = 0
        # Number of the last grant to anybody here or below; to the role's own frameworks.
        self.granted_at = 0
        self.own_granted_at = 0

    @property
    def weight(self) -> float:
        return self.policy.weight

    @property
    def branches(self) -> bool:
        """Whether roles below it compete (with its own frameworks, if there are any)."""
        return self.competing > len(self.contending)

    def declined(self) -> bool:
        """Whether all who contend here or below it handed back their last grant."""
        if not self.branches:
            return self.own_declined()
        return all(node.own_declined() for node in self.subtree())

    def own_declined(self) -> bool:
        for contender in self.contending.values():
            if not contender.declined:
                return False
        return True

    def subtree(self) -> Iterator[Role]:
        """The role itself and those below it among which somebody contends."""
        waiting = [self]
        while waiting:
            node = waiting.pop()
            yield node
            if node.branches:
                waiting += [child for child in node.children.values() if child.competing]


@dataclass(slots=True)
class Shift:
    """What a changed row did: who has to be looked at anew, and who is out."""

    woken: list[Contender] = field(default_factory=list)
    silenced: list[Contender] = field(default_factory=list)


class Roster:
    """All frameworks and roles.

    `root` has no name: its children are the roles at the top.
    """

    def __init__(self, options: AllocatorOptions) -> None:
        self._default_min = tuple(options.min_offer)
        self._rows: dict[str, FrameworkRow] = {}
        # Those that have a framework or a policy; all nodes of the tree.
        self.roles: dict[str, Role] = {}
        self.tree: dict[str, Role] = {}
        self.root = Role("")
        # Another one whenever others contend, or weights or priorities are others.
        self.version = 0
        for role, policy in options.policies.items():
            self.rule(role, policy)

    def row(self, framework_id: str) -> FrameworkRow | None:
        return self._rows.get(framework_id)

    def rows(self) -> list[FrameworkRow]:
        """All frameworks, in the order in which they came."""
        return list(self._rows.values())

    def contender(self, framework_id: str, role: str) -> Contender | None:
        known = self.roles.get(role)
        return known.members.get(framework_id) if known is not None else None

    def contenders_of(self, framework_id: str) -> list[Contender]:
        row = self._rows.get(framework_id)
        found = []
        for name in dict.fromkeys(row.roles) if row is not None else ():
            contender = self.contender(framework_id, name)
            if contender is not None:
                found.append(contender)
        return found

    def everybody(self) -> Iterator[Contender]:
        for role in self.roles.values():
            yield from role.members.values()

    def change(self, row: FrameworkRow) -> Shift:
        shift = Shift()
        for member in self.contenders_of(row.framework_id):
            if member.role not in row.roles:
                self._drop(member, shift)
        self._rows[row.framework_id] = row
        for name in row.roles:
            role = self._named(name)
            known = role.members.get(row.framework_id)
            contender = known if known is not None else Contender(row.framework_id, name)
            role.members[row.framework_id] = contender
            was = contender.contending
            if contender.follow(row, self._default_min):
                shift.woken.append(contender)
            if contender.contending and not was:
                # It says that it wants something: what it did before counts no more.
                contender.declined = False
                role.contending[row.framework_id] = contender
                self._count(role, 1)
            elif was and not contender.contending:
                del role.contending[row.framework_id]
                self._count(role, -1)
            if (was or contender.refusals) and not contender.contending and not row.silent:
                # What a silent one has refused stays refused, should it stay.
                shift.silenced.append(contender)
        return shift

    def remove(self, framework_id: str) -> Shift:
        shift = Shift()
        for contender in self.contenders_of(framework_id):
            self._drop(contender, shift)
        self._rows.pop(framework_id, None)
        return shift

    def rule(self, role: str, policy: RolePolicy) -> None:
        """Take over what operators say of the role.  Raises as RolePolicy.check does."""
        policy.check(role)
        known = self._named(role)
        known.policy = policy
        self.version += 1
        self._tidy(known)

    def granted(self, winner: Contender, number: int) -> None:
        """It won the grant of that number, and with it all roles above."""
        winner.granted_at = number
        winner.declined = False
        role = self.roles[winner.role]
        role.own_granted_at = number
        node: Role | None = role
        while node is not None:
            node.granted_at = number
            node = node.parent

    def _named(self, name: str) -> Role:
        role = self.roles.get(name)
        if role is not None:
            return role
        parent = self.root
        for above in reversed(ancestors(name)):
            node = self.tree.get(above)
            if node is None:
                node = self.tree[above] = parent.children[above] = Role(above, parent)
            parent = node
        self.roles[name] = parent
        return parent

    def _drop(self, contender: Contender, shift: Shift) -> None:
        role = self.roles[contender.role]
        del role.members[contender.framework_id]
        if role.contending.pop(contender.framework_id, None) is not None:
            self._count(role, -1)
        contender.contending = False
        shift.silenced.append(contender)
        self._tidy(role)

    def _tidy(self, role: Role) -> None:
        if not role.members and role.policy.is_default:
            del self.roles[role.name]
        node = role
        while node.parent is not None and not node.children and node.name not in self.roles:
            del self.tree[node.name]
            del node.parent.children[node.name]
            node = node.parent

    def _count(self, role: Role, change: int) -> None:
        self.version += 1
        node: Role | None = role
        while node is not None:
            node.competing += change
            node = node.parent
