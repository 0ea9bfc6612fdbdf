"""A master in small, to try an allocator on: an exact ledger and the rules for grants.

`AllocatorHarness` tells the allocator what happens, runs its cycles, checks every
grant against the rules of `mesos_py.allocation` and books it as an offer.  It keeps
its own simple models (refusals; rules: `allocator_rules`) to say who could use what.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mesos_py.allocation import (
    AgentChanged,
    AgentRemoved,
    AgentRow,
    Allocator,
    AllocatorOptions,
    FrameworkChanged,
    FrameworkRemoved,
    FrameworkRow,
    Freed,
    Grant,
    PolicyChanged,
    Refusal,
    Revived,
    Tenant,
    fits_any,
)
from mesos_py.constraints import Constraint, Host, Term
from mesos_py.policy import RolePolicy, ancestors
from mesos_py.resources import EMPTY, Resources
from mesos_py.testing.allocator_rules import Rules

# With more refusals in force for one framework, role and agent, an allocator may
# have forgotten some.
REFUSALS_KEPT = 8


class BookedCluster:
    """A `ClusterView` that can be changed: totals, and who holds what."""

    def __init__(self) -> None:
        self._total: dict[str, Resources] = {}
        self._free: dict[str, Resources] = {}
        self._cluster: dict[str, int] = {}
        self._by_pair: dict[tuple[str, str], dict[str, int]] = {}
        self._by_role: dict[str, dict[str, int]] = {}
        self._under: dict[str, dict[str, int]] = {}
        self._long: dict[str, dict[str, int]] = {}
        # Tasks that may be revoked, and offers, by agent: whoever plays with them keeps them.
        self.tasks: dict[str, list[Tenant]] = {}
        self.offers: dict[str, list[Tenant]] = {}

    def free(self, agent_id: str) -> Resources:
        return self._free.get(agent_id, EMPTY)

    def held(self, framework_id: str, role: str) -> Mapping[str, int]:
        return self._by_pair.get((framework_id, role), {})

    def held_by_role(self, role: str) -> Mapping[str, int]:
        return self._by_role.get(role, {})

    def held_under(self, role: str) -> Mapping[str, int]:
        return self._under.get(role, {})

    def held_for_long(self, agent_id: str) -> Mapping[str, int]:
        return self._long.get(agent_id, {})

    def tenants(self, agent_id: str) -> Sequence[Tenant]:
        return self.tasks.get(agent_id, ())

    def on_offer(self, agent_id: str) -> Sequence[Tenant]:
        return self.offers.get(agent_id, ())

    def cluster_total(self) -> Mapping[str, int]:
        return self._cluster

    def add_agent(self, agent_id: str, total: Resources) -> None:
        self._total[agent_id] = self._free[agent_id] = total
        _add(self._cluster, total.plain, 1)

    def remove_agent(self, agent_id: str) -> None:
        """What is held there must have been released before."""
        total = self._total.pop(agent_id)
        assert self._free.pop(agent_id) == total, f"something is still held on {agent_id}"
        _add(self._cluster, total.plain, -1)

    def convert(self, agent_id: str, consumed: Resources, converted: Resources) -> Resources:
        """What is free there is reserved in another way; the agent's new total."""
        self._free[agent_id] = self._free[agent_id] - consumed + converted
        self._total[agent_id] = self._total[agent_id] - consumed + converted
        return self._total[agent_id]

    def hold(self, grant: Grant) -> None:
        self._free[grant.agent_id] = self.free(grant.agent_id) - grant.resources
        self._count(grant, 1)

    def release(self, grant: Grant) -> None:
        self._free[grant.agent_id] = self.free(grant.agent_id) + grant.resources
        self._count(grant, -1)

    def _count(self, grant: Grant, sign: int) -> None:
        pair = (grant.framework_id, grant.role)
        plain = grant.resources.plain
        _add(self._by_pair.setdefault(pair, {}), plain, sign)
        _add(self._by_role.setdefault(grant.role, {}), plain, sign)
        for above in ancestors(grant.role):
            _add(self._under.setdefault(above, {}), plain, sign)
        if grant.max_task_s is None:
            _add(self._long.setdefault(grant.agent_id, {}), grant.resources, sign)


def _add(amounts: dict[str, int], resources: Resources, sign: int) -> None:
    for name, milli in resources.scalars.items():
        amounts[name] = amounts.get(name, 0) + sign * milli


class AllocatorHarness:
    """See the module's docstring.  Time stands still but for `advance`."""

    def __init__(self, allocator: Allocator, options: AllocatorOptions | None = None) -> None:
        self.allocator = allocator
        self.options = options if options is not None else AllocatorOptions()
        self.cluster = BookedCluster()
        self.now_s = 1000.0
        self.agents: dict[str, AgentRow] = {}
        self.frameworks: dict[str, FrameworkRow] = {}
        # What is out: grants that were neither declined nor finished, oldest first.
        self.held: list[Grant] = []
        self._refusals: dict[tuple[str, str, str], list[Refusal]] = {}
        self.policies: dict[str, RolePolicy] = dict(self.options.policies)
        # At the beginning of the last cycle, and who was granted something in it: by
        # framework, agent and how long tasks may run there.
        self._free_before: dict[str, Resources] = {}
        self._just_granted: set[tuple[str, str, float | None]] = set()

    @property
    def rules(self) -> Rules:
        """What operators allow, as things stand now."""
        ruled = {
            role: one
            for role, one in self.policies.items()
            if one.guarantee or one.limit or one.agents
        }
        return Rules(self.options, ruled, self.cluster, self.agents)

    # ---- What happens ---------------------------------------------------

    def agent(
        self,
        agent_id: str,
        resources: str | Resources = "cpus:4;mem:4096",
        active: bool = True,
        **attributes: str,
    ) -> AgentRow:
        """A new agent whose host name is its id."""
        total = resources
        if isinstance(total, str):
            total = Resources.parse_reserved(total)
        row = AgentRow(agent_id, Host(agent_id, attributes), total, active)
        self.agents[agent_id] = row
        self.cluster.add_agent(agent_id, total)
        self.allocator.tell(AgentChanged(row))
        return row

    def change_agent(self, agent_id: str, **changes: Any) -> None:
        """`host=` counts as changed attributes, which end refusals there."""
        self.agents[agent_id] = replace(self.agents[agent_id], **changes)
        if "host" in changes:
            self._forget_refusals(agent_id=agent_id)
        self.allocator.tell(AgentChanged(self.agents[agent_id], "host" in changes))

    def convert(self, agent_id: str, consumed: Resources, converted: Resources) -> None:
        """What is free there is reserved in another way from now on."""
        self.change_agent(agent_id, total=self.cluster.convert(agent_id, consumed, converted))

    def remove_agent(self, agent_id: str) -> None:
        """The agent and everything on it is gone."""
        for grant in [grant for grant in self.held if grant.agent_id == agent_id]:
            self.held.remove(grant)
            self.cluster.release(grant)
        del self.agents[agent_id]
        self.cluster.remove_agent(agent_id)
        self._forget_refusals(agent_id=agent_id)
        self.allocator.tell(AgentRemoved(agent_id))

    def framework(self, framework_id: str, *roles: str, **fields: Any) -> FrameworkRow:
        """A new framework; without roles its role is "*"."""
        row = FrameworkRow(framework_id, framework_id.upper(), roles or ("*",), **fields)
        self.frameworks[framework_id] = row
        self.allocator.tell(FrameworkChanged(row))
        return row

    def change_framework(self, framework_id: str, **changes: Any) -> None:
        before = self.frameworks[framework_id]
        row = self.frameworks[framework_id] = replace(before, **changes)
        for role in {*before.roles, *row.roles}:
            restated = before.needs != row.needs and role in {one.role for one in row.needs}
            if restated or not (_competes(before, role) and _competes(row, role)):
                self._forget_refusals(framework_id=framework_id, role=role)
        self.allocator.tell(FrameworkChanged(row))

    def remove_framework(self, framework_id: str) -> None:
        """Its offers come back; so do its tasks' resources."""
        del self.frameworks[framework_id]
        self._forget_refusals(framework_id=framework_id)
        self.allocator.tell(FrameworkRemoved(framework_id))
        for grant in [grant for grant in self.held if grant.framework_id == framework_id]:
            self.give_back(grant)

    def suppress(self, framework_id: str, *roles: str) -> None:
        row = self.frameworks[framework_id]
        self.change_framework(framework_id, suppressed=row.suppressed | set(roles or row.roles))

    def revive(self, framework_id: str, *roles: str) -> None:
        row = self.frameworks[framework_id]
        meant = roles or row.roles
        if row.suppressed & set(meant):
            self.change_framework(framework_id, suppressed=row.suppressed - set(meant))
        for role in meant:
            self._forget_refusals(framework_id=framework_id, role=role)
        self.allocator.tell(Revived(framework_id, tuple(meant)))

    def rule(self, role: str, **fields: Any) -> RolePolicy:
        """Operators say this of the role, and nothing else: fields of RolePolicy."""
        policy = self.policies[role] = RolePolicy(**fields)
        self.allocator.tell(PolicyChanged(role, policy))
        return policy

    def give_back(self, grant: Grant) -> None:
        """An offer was rescinded, or a task that used all of it ended."""
        self.held.remove(grant)
        self.cluster.release(grant)
        self.allocator.tell(Freed(grant.agent_id))

    def decline(self, grant: Grant, seconds: float = 5.0) -> None:
        self.held.remove(grant)
        self.cluster.release(grant)
        self._refuse(grant, grant.resources, seconds)
        self.allocator.tell(Freed(grant.agent_id))

    def use(self, grant: Grant, amount: str | Resources, seconds: float = 5.0) -> Grant:
        """Use this much of an offer and decline the rest; `give_back` ends the use."""
        taken = Resources.parse(amount) if isinstance(amount, str) else amount
        used = replace(grant, resources=taken)
        rest = replace(grant, resources=grant.resources - used.resources)
        self.held[self.held.index(grant)] = used
        if rest.resources:
            self.cluster.release(rest)
            self._refuse(grant, rest.resources, seconds)
            self.allocator.tell(Freed(grant.agent_id))
        return used

    def advance(self, seconds: float) -> None:
        self.now_s += seconds

    def advance_to_wake(self) -> None:
        """To the moment for which the allocator asked."""
        wake_s = self.allocator.next_wake_s()
        assert wake_s is not None, "the allocator waits for nothing"
        self.now_s = max(self.now_s, wake_s)

    # ---- Cycles ---------------------------------------------------------

    def cycle(self) -> list[Grant]:
        """One cycle, its grants checked one by one and booked as offers."""
        self._free_before = {one: self.cluster.free(one) for one in self.agents}
        self._just_granted.clear()
        grants = self.allocator.allocate(self.cluster, self.now_s)
        seen: set[tuple[str, str, str, float | None]] = set()
        for grant in grants:
            key = (grant.framework_id, grant.role, grant.agent_id, grant.max_task_s)
            assert key not in seen, f"two grants in one cycle for {key}"
            seen.add(key)
            self.check(grant)
            self.cluster.hold(grant)
            self.held.append(grant)
            self._just_granted.add((grant.framework_id, grant.agent_id, grant.max_task_s))
        return grants

    def cycles(self, most: int = 100) -> list[Grant]:
        """Cycles until one grants nothing; all their grants."""
        found: list[Grant] = []
        for _ in range(most):
            grants = self.cycle()
            if not grants:
                return found
            found.extend(grants)
        raise AssertionError(f"still grants after {most} cycles without an event")

    def check(self, grant: Grant) -> None:
        """Raise AssertionError unless the grant may be made now."""
        free = self.cluster.free(grant.agent_id)
        assert grant.resources, f"an empty grant: {grant}"
        assert free.contains(grant.resources), f"only {free} is free: {grant}"
        before = self._free_before.get(grant.agent_id, EMPTY)
        why_not = self.hindrance(
            grant.framework_id,
            grant.role,
            grant.agent_id,
            grant.resources,
            grant.max_task_s,
            before,
            lacking=self._lacks(grant.framework_id, grant.role),
        )
        assert not why_not, f"{why_not}: {grant}"

    def hindrance(
        self,
        framework_id: str,
        role: str,
        agent_id: str,
        offered: Resources,
        max_task_s: float | None = None,
        before: Resources | None = None,
        rules: Rules | None = None,
        *,
        lacking: bool = False,
    ) -> str:
        """Why `offered` of the agent may not be granted; "" if it may.

        `before`: what was free there when the cycle began (None: as much as now).
        `lacking`: it holds less than it has stated to need, so that it may get several
        parts, and what it refused when it lacked less."""
        row = self.frameworks.get(framework_id)
        agent = self.agents.get(agent_id)
        if row is None or not row.active:
            return "the framework is unknown or inactive"
        if not _competes(row, role):
            return "the framework does not want offers in this role"
        if agent is None or not agent.active:
            return "the agent is unknown or inactive"
        if "gpus" in agent.total.plain.scalars and not row.gpu_capable:
            return "the agent has gpus and the framework is not capable"
        if role in row.constraints and not row.constraints[role].allows(agent.host):
            return "the constraint excludes the agent"
        if not fits_any(offered.plain, row.min_free.get(role, self.options.min_offer)):
            return "that is less than is wanted"
        if not lacking and self._is_refused((framework_id, role, agent_id), offered, max_task_s):
            return "refused by the framework"
        if row.framework_id in self.allocator.waiting():
            return "the framework is not admitted"
        if before is None:
            before = self.cluster.free(agent_id)
        if lacking:
            rules = replace(self.rules, options=replace(self.options, max_offer=EMPTY))
        may_have = (rules or self.rules).bundles(role, agent, row.refines)
        lengths = {length_s: bundle for bundle, length_s in may_have}
        return _against_rules(
            rules or self.rules, role, agent, offered, max_task_s, before, lengths
        )

    def _lacks(self, framework_id: str, role: str) -> bool:
        row = self.frameworks.get(framework_id)
        held = self.cluster.held(framework_id, role)
        total: dict[str, int] = {}
        for need in row.needs if row is not None else ():
            for name, milli in need.resources.scalars.items() if need.role == role else ():
                total[name] = total.get(name, 0) + need.count * milli
        return any(milli > held.get(name, 0) for name, milli in total.items())

    def left_out(self) -> list[tuple[str, str, str]]:
        """(framework, role, agent) that could be granted all that it may have of what is
        free there; to be asked right after a cycle."""
        found = []
        rules, pairs = self.rules, list(self.competing())
        for agent_id, agent in self.agents.items():
            if not self.cluster.free(agent_id):
                continue
            for framework_id, role in pairs:
                if len(self._in_force((framework_id, role, agent_id))) > REFUSALS_KEPT:
                    continue
                for bundle, length_s in rules.bundles(
                    role, agent, self.frameworks[framework_id].refines
                ):
                    if (
                        bundle
                        and not self._had_its_part(framework_id, agent_id, length_s)
                        and not self.hindrance(
                            framework_id, role, agent_id, bundle, length_s, rules=rules
                        )
                    ):
                        found.append((framework_id, role, agent_id))
        return found

    def must_wake(self) -> bool:
        """Whether somebody got a part of an agent and may get another in the next cycle."""
        if not self.options.max_offer:
            return False
        just_granted, self._just_granted = self._just_granted, set()
        try:
            return bool(self.left_out())
        finally:
            self._just_granted = just_granted

    def _had_its_part(self, framework_id: str, agent_id: str, length_s: float | None) -> bool:
        """Whether it has to wait for the next cycle (`max_offer`)."""
        granted = (framework_id, agent_id, length_s) in self._just_granted
        return bool(self.options.max_offer) and granted

    # ---- The model of refusals --------------------------------------------

    def refusal_ends(self) -> list[float]:
        """The moments to come at which a refusal ends, in order."""
        ends = {one.until_s for refusals in self._refusals.values() for one in refusals}
        return sorted(end_s for end_s in ends if end_s > self.now_s)

    def _refuse(self, grant: Grant, resources: Resources, seconds: float) -> None:
        """As the master does it: told before the agent is told as freed."""
        until_s = self.now_s + seconds
        refusal = Refusal(
            grant.framework_id,
            grant.role,
            grant.agent_id,
            resources,
            until_s,
            grant.max_task_s,
        )
        key = (grant.framework_id, grant.role, grant.agent_id)
        row = self.frameworks.get(grant.framework_id)
        if row is not None and _competes(row, grant.role) and grant.agent_id in self.agents:
            kept = [one for one in self._refusals.get(key, []) if one.until_s > self.now_s]
            self._refusals[key] = [*kept, refusal]
        self.allocator.tell(refusal)

    def _in_force(self, key: tuple[str, str, str]) -> list[Refusal]:
        return [one for one in self._refusals.get(key, []) if one.until_s > self.now_s]

    def _is_refused(
        self, key: tuple[str, str, str], offered: Resources, max_task_s: float | None
    ) -> bool:
        in_force = self._in_force(key)
        if len(in_force) > REFUSALS_KEPT:
            return False
        return any(
            one.resources.contains(offered)
            for one in in_force
            if one.max_task_s is None or max_task_s is not None
        )

    def _forget_refusals(
        self,
        framework_id: str | None = None,
        role: str | None = None,
        agent_id: str | None = None,
    ) -> None:
        wanted = (framework_id, role, agent_id)
        for key in list(self._refusals):
            if all(part is None or part == own for part, own in zip(wanted, key, strict=True)):
                del self._refusals[key]

    def competing(self) -> Iterator[tuple[str, str]]:
        """(framework, role) to which offers may go."""
        for row in self.frameworks.values():
            for role in row.roles:
                if _competes(row, role):
                    yield row.framework_id, role


def _competes(row: FrameworkRow, role: str) -> bool:
    return row.active and role in row.roles and role not in row.suppressed


def _against_rules(
    rules: Rules,
    role: str,
    agent: AgentRow,
    offered: Resources,
    max_task_s: float | None,
    before: Resources,
    lengths: Mapping[float | None, Resources],
) -> str:
    if not rules.may_use(role, agent):
        return "the agent is reserved"
    if offered.unreserved and not rules.is_enough(agent, before):
        return "too little of the agent is free"
    if max_task_s not in lengths:
        return f"nothing is kept for tasks of {max_task_s} s"
    if not lengths[max_task_s].contains(offered):
        return f"more than {lengths[max_task_s]}, which the role may have"
    return ""


def winners(grants: Iterable[Grant]) -> list[tuple[str, str]]:
    """(framework, agent) of each grant, in order."""
    return [(grant.framework_id, grant.agent_id) for grant in grants]


def only_hosts(*hostnames: str) -> Constraint:
    """A constraint that lets agents with these host names pass."""
    return Constraint(tuple((Term("hostname", None, "text_equals", name),) for name in hostnames))


class RaisingConstraint(Constraint):
    """What a broken record does: it raises wherever it is looked at."""

    def allows(self, host: Host) -> bool:
        raise RuntimeError("it burst")
