"""The one account of what every agent has free, offered and allocated.

Every amount that changes hands goes through this class, and for each agent

    free + offered + allocated == total

holds after every method (`check` proves it).  An agent's row has a version that
each claim raises, so that whoever decided on an older view can be told so.

Taking resources has one way in: `claim`.  Accepting offers claims what the
offers hold; a claim of free resources names the version it was decided on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, TypeVar

from mesos_py.conversions import Conversion
from mesos_py.errors import Conflict, InternalError, NotFound
from mesos_py.policy import ancestors
from mesos_py.resources import EMPTY, Resources, total

_NOTHING: Mapping[str, int] = {}
K = TypeVar("K")
# Asked for each amount that changes hands; there are as many as there are roles.
_ancestors = lru_cache(maxsize=10_000)(ancestors)


class Holder(NamedTuple):
    """Who has something allocated: a task or an executor of a framework.

    `kind` is "task" or "executor"; the role is the one it is charged to.  `short`: it
    is on what is kept for short tasks.
    """

    framework_id: str
    role: str
    kind: str
    name: str
    short: bool = False


class Offered(NamedTuple):
    """`short`: it is kept for short tasks.  `since_s`: on the monotonic clock."""

    framework_id: str
    role: str
    resources: Resources
    short: bool = False
    since_s: float = -math.inf


@dataclass(slots=True)
class Row:
    total: Resources
    free: Resources
    version: int = 0
    offered: dict[str, Offered] = field(default_factory=dict)
    allocated: dict[Holder, Resources] = field(default_factory=dict)
    # Scalars that are offered or allocated, but for short tasks.
    long: dict[str, int] = field(default_factory=dict)


class Ledger:
    """See the module's docstring.  Most of the allocator's ClusterView."""

    def __init__(self) -> None:
        self._rows: dict[str, Row] = {}
        self._held: dict[tuple[str, str], dict[str, int]] = {}
        self._held_by_role: dict[str, dict[str, int]] = {}
        # By role: what it and the roles below it hold.
        self._held_under: dict[str, dict[str, int]] = {}
        self._cluster: dict[str, int] = {}
        # Of rows that are opened from now on: an agent that was away and is back must
        # not be at a version that somebody decided on before.
        self._first_version = 0

    # ---- Reading (ClusterView) -------------------------------------------

    def free(self, agent_id: str) -> Resources:
        row = self._rows.get(agent_id)
        return row.free if row is not None else EMPTY

    def held(self, framework_id: str, role: str) -> Mapping[str, int]:
        return self._held.get((framework_id, role), _NOTHING)

    def held_by_role(self, role: str) -> Mapping[str, int]:
        return self._held_by_role.get(role, _NOTHING)

    def held_under(self, role: str) -> Mapping[str, int]:
        return self._held_under.get(role, _NOTHING)

    def held_for_long(self, agent_id: str) -> Mapping[str, int]:
        row = self._rows.get(agent_id)
        return row.long if row is not None else _NOTHING

    def cluster_total(self) -> Mapping[str, int]:
        return self._cluster

    def has(self, agent_id: str) -> bool:
        return agent_id in self._rows

    def version(self, agent_id: str) -> int:
        return self._row(agent_id).version

    def total(self, agent_id: str) -> Resources:
        row = self._rows.get(agent_id)
        return row.total if row is not None else EMPTY

    def offered(self, agent_id: str) -> Resources:
        row = self._rows.get(agent_id)
        return total(o.resources for o in row.offered.values()) if row is not None else EMPTY

    def offers(self, agent_id: str) -> list[Offered]:
        """What is on offer there."""
        row = self._rows.get(agent_id)
        return list(row.offered.values()) if row is not None else []

    def allocated(self, agent_id: str) -> Resources:
        row = self._rows.get(agent_id)
        return total(row.allocated.values()) if row is not None else EMPTY

    def allocation(self, agent_id: str, holder: Holder) -> Resources | None:
        """What the holder has there, None if it holds nothing."""
        row = self._rows.get(agent_id)
        return row.allocated.get(holder) if row is not None else None

    def allocations(self, agent_id: str) -> dict[Holder, Resources]:
        """What everybody has there (a copy)."""
        row = self._rows.get(agent_id)
        return dict(row.allocated) if row is not None else {}

    def held_on(self, agent_id: str, framework_id: str, role: str) -> dict[str, int]:
        """Scalars that the framework holds there under the role, offered and allocated.
        As long as there are holders on the agent."""
        row = self._rows.get(agent_id)
        found: dict[str, int] = {}
        if row is not None:
            who = (framework_id, role)
            for offered in row.offered.values():
                if offered[:2] == who:
                    _add(found, offered.resources)
            for holder, resources in row.allocated.items():
                if holder[:2] == who:
                    _add(found, resources)
        return found

    # ---- Agents ----------------------------------------------------------

    def put_agent(
        self, agent_id: str, amount: Resources, allocated: Mapping[Holder, Resources]
    ) -> None:
        """Open the agent's row, or open it anew, with what runs on it.

        Raises Conflict if offers are out there or more is allocated than there is
        (require_fit); nothing is changed then.
        """
        used = require_fit(agent_id, amount, allocated)
        old = self._rows.get(agent_id)
        if old is not None:
            if old.offered:
                raise Conflict("the agent has offers out", agent=agent_id)
            self.remove_agent(agent_id)
        row = self._rows[agent_id] = Row(
            amount, amount - used, self._first_version, allocated=dict(allocated)
        )
        _add(self._cluster, amount.plain)
        for holder, resources in allocated.items():
            self._hold(row, holder, resources)

    def remove_agent(self, agent_id: str) -> None:
        """Forget the agent with all that was offered and allocated there."""
        row = self._row(agent_id)
        for offered in row.offered.values():
            self._unhold(row, offered, offered.resources)
        for holder, resources in row.allocated.items():
            self._unhold(row, holder, resources)
        _take(self._cluster, row.total.plain)
        del self._rows[agent_id]
        self._first_version = max(self._first_version, row.version + 1)

    # ---- Offers ----------------------------------------------------------

    def offer(
        self,
        agent_id: str,
        offer_id: str,
        framework_id: str,
        role: str,
        resources: Resources,
        short: bool = False,
        since_s: float = -math.inf,
    ) -> None:
        """Move free resources into an offer.

        Raises InsufficientResources if they are not free (nothing is changed).
        """
        row = self._row(agent_id)
        if offer_id in row.offered:
            raise InternalError("an offer id was used twice", offer=offer_id)
        row.free = row.free - resources
        offered = row.offered[offer_id] = Offered(framework_id, role, resources, short, since_s)
        self._hold(row, offered, resources)

    def withdraw(self, agent_id: str, offer_id: str) -> Resources:
        """End an offer; what it held is free again and returned."""
        row = self._row(agent_id)
        offered = row.offered.pop(offer_id, None)
        if offered is None:
            raise NotFound("offer", offer_id)
        row.free = row.free + offered.resources
        self._unhold(row, offered, offered.resources)
        return offered.resources

    # ---- Claims ----------------------------------------------------------

    def claim(
        self,
        agent_id: str,
        claims: Sequence[tuple[Holder, Resources]],
        offer_ids: Iterable[str] = (),
        expected_version: int | None = None,
        conversions: Sequence[Conversion] = (),
    ) -> Resources:
        """Give `claims` to their holders out of the offers (consumed) and what is free,
        after `conversions`, in their order, have changed how that is reserved.

        Returns what the offers held and nobody claimed, which is free again.
        With offers, only what they hold may be claimed; without, only what is
        free.  Raises Conflict on another version than expected or a holder that
        holds already, NotFound for an offer that is not there, and
        InsufficientResources; nothing is changed then.
        """
        row = self._row(agent_id)
        if expected_version is not None and row.version != expected_version:
            raise Conflict(
                f"the agent is at version {row.version}, the claim expects {expected_version}",
                agent=agent_id,
            )
        offers: list[tuple[str, Offered]] = []
        for offer_id in offer_ids:
            offered = row.offered.get(offer_id)
            if offered is None:
                raise NotFound("offer", offer_id)
            offers.append((offer_id, offered))
        seen: set[Holder] = set()
        for holder, _ in claims:
            if holder in row.allocated or holder in seen:
                raise Conflict(f"{holder.kind} {holder.name!r} holds resources already")
            seen.add(holder)
        source = total(offered.resources for _, offered in offers) if offers else row.free
        amount = row.total
        for conversion in conversions:
            source = conversion.apply(source)
            amount = conversion.apply(amount)
        rest = source - total(resources for _, resources in claims)
        # All checks are done: from here on nothing may fail.
        row.total = amount
        for offer_id, offered in offers:
            del row.offered[offer_id]
            self._unhold(row, offered, offered.resources)
        for holder, resources in claims:
            row.allocated[holder] = resources
            self._hold(row, holder, resources)
        row.free = row.free + rest if offers else rest
        row.version += 1
        return rest

    def release(self, agent_id: str, holder: Holder) -> Resources:
        """What the holder had is free again.  EMPTY if it had nothing (twice is once)."""
        row = self._rows.get(agent_id)
        resources = row.allocated.pop(holder, None) if row is not None else None
        if row is None or resources is None:
            return EMPTY
        row.free = row.free + resources
        self._unhold(row, holder, resources)
        return resources

    # ---- Proof -----------------------------------------------------------

    def check(self) -> None:
        """Raise InternalError unless every account adds up.  For tests; slow."""
        held: dict[tuple[str, str], dict[str, int]] = {}
        cluster: dict[str, int] = {}
        for agent_id, row in self._rows.items():
            _add(cluster, row.total.plain)
            long: dict[str, int] = {}
            parts = [row.free, *(o.resources for o in row.offered.values())]
            parts.extend(row.allocated.values())
            if total(parts) != row.total:
                raise InternalError("free + offered + allocated differs from total", agent=agent_id)
            for offered in row.offered.values():
                _add(held.setdefault(offered[:2], {}), offered.resources.plain)
                _add({} if offered.short else long, offered.resources)
            for holder, resources in row.allocated.items():
                _add(held.setdefault(holder[:2], {}), resources.plain)
                _add({} if holder.short else long, resources)
            if long != row.long:
                raise InternalError("what long tasks hold is off", kept=row.long, true=long)
        by_role: dict[str, dict[str, int]] = {}
        under: dict[str, dict[str, int]] = {}
        for (_, role), amounts in held.items():
            _add(by_role.setdefault(role, {}), Resources(amounts))
            for above in ancestors(role):
                _add(under.setdefault(above, {}), Resources(amounts))
        if cluster != self._cluster:
            raise InternalError("the cluster's total is off", kept=self._cluster, true=cluster)
        if {k: v for k, v in held.items() if v} != self._held:
            raise InternalError("what frameworks hold is off", kept=self._held, true=held)
        if {k: v for k, v in by_role.items() if v} != self._held_by_role:
            raise InternalError("what roles hold is off", kept=self._held_by_role, true=by_role)
        if {k: v for k, v in under.items() if v} != self._held_under:
            raise InternalError("what roles hold below is off", kept=self._held_under, true=under)

    # ---- Inside ----------------------------------------------------------

    def _row(self, agent_id: str) -> Row:
        row = self._rows.get(agent_id)
        if row is None:
            raise NotFound("agent", agent_id)
        return row

    def _hold(self, row: Row, who: Holder | Offered, resources: Resources) -> None:
        if not resources.scalars:
            return
        role, plain = who.role, resources.plain
        _add(self._held.setdefault((who.framework_id, role), {}), plain)
        _add(self._held_by_role.setdefault(role, {}), plain)
        for above in _ancestors(role):
            _add(self._held_under.setdefault(above, {}), plain)
        if not who.short:
            _add(row.long, resources)

    def _unhold(self, row: Row, who: Holder | Offered, resources: Resources) -> None:
        if not resources.scalars:
            return
        role, plain = who.role, resources.plain
        _give(self._held, (who.framework_id, role), plain)
        _give(self._held_by_role, role, plain)
        for above in _ancestors(role):
            _give(self._held_under, above, plain)
        if not who.short:
            _take(row.long, resources)


def require_fit(
    agent_id: str, amount: Resources, allocated: Mapping[Holder, Resources]
) -> Resources:
    """The sum of what is allocated.  Raises Conflict if it is more than `amount`."""
    used = total(allocated.values())
    if not amount.contains(used):
        name, wanted, there = amount.shortfalls(used)[0]
        raise Conflict(
            f"tasks on the agent use {wanted} {name}, it has {there}",
            agent=agent_id,
            field=f"agent_info.resources.{name}",
            value=there,
        )
    return used


def _add(amounts: dict[str, int], resources: Resources) -> None:
    for name, milli in resources.scalars.items():
        amounts[name] = amounts.get(name, 0) + milli


def _take(amounts: dict[str, int], resources: Resources) -> None:
    for name, milli in resources.scalars.items():
        left = amounts[name] - milli
        if left:
            amounts[name] = left
        else:
            del amounts[name]


def _give(accounts: dict[K, dict[str, int]], key: K, resources: Resources) -> None:
    """Take the resources off an account, which goes when it is empty."""
    amounts = accounts[key]
    _take(amounts, resources)
    if not amounts:
        del accounts[key]
