"""What may be taken from whom: the amounts that frameworks hold above their floor."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Protocol

from master.allocator.revocation.amounts import Amounts, add, dominant
from master.allocator.revocation.guarantees import Guarantees
from mesos_py.allocation import ClusterView, Tenant


class Stated(Protocol):
    """What frameworks have said of themselves."""

    def roles(self, framework_id: str) -> Iterable[str]:
        """In which it may hold something, also those that it has left; none of one that
        is not known."""
        ...

    def total(self, framework_id: str, role: str) -> Amounts:
        """All that the framework needs in the role."""
        ...


class Spare:
    """Counts down while a plan is made; what is being taken back already is gone.

    The floor is the guarantee or, `strict`, the larger of guarantee and needs; of the
    role and of the framework in all its roles, so that nobody who is below one of them
    is taken from.  A resource of which nothing is short does not matter as long as what is
    missing to the floor is free: it can be had at any time.  Else all who hold many cpus and
    little memory could not be taken from, since they are below their share of memory.
    """

    def __init__(
        self, frameworks: Iterable[str], view: ClusterView, guarantees: Guarantees, stated: Stated
    ) -> None:
        self._frameworks = frameworks
        self._view = view
        self._guarantees = guarantees
        self._stated = stated
        # What each framework holds still, by role and in all.
        self._held: dict[str, dict[str, dict[str, int]]] = {}
        self._in_all: dict[str, dict[str, int]] = {}
        self._floors: dict[tuple[str, str, str, bool], tuple[int, int]] = {}
        # How many tenants of each role of a framework go, by resource.
        self._going: dict[tuple[str, str, str], int] = {}
        self._total = view.cluster_total()
        # In the cluster, when all that is planned is done.
        self._free = dict(self._total)
        for framework_id in frameworks:
            for amounts in self._of(framework_id).values():
                self.use(amounts)

    def take(self, tenant: Tenant, sign: int = 1) -> None:
        held = self._of(tenant.framework_id)
        add(held.setdefault(tenant.role, {}), tenant.resources.scalars, -sign)
        add(self._in_all[tenant.framework_id], tenant.resources.scalars, -sign)
        self.use(tenant.resources.scalars, -sign)
        for name in tenant.resources.scalars:
            key = tenant.framework_id, tenant.role, name
            self._going[key] = self._going.get(key, 0) + sign

    def keeps_promises(self, victims: Collection[Tenant] = ()) -> bool:
        """Whether, were these taken too, as much is free as those lack of their guarantees
        from whom something is taken that was not short: it is theirs."""
        for tenant in victims:
            self.take(tenant)
        lacking: dict[str, int] = {}
        for (framework_id, role, name), count in self._going.items():
            if count > 0:
                below = -self.of(framework_id, role, name, strict=False)
                lacking[name] = lacking.get(name, 0) + max(0, below)
        kept = all(milli <= self._free.get(name, 0) for name, milli in lacking.items() if milli)
        for tenant in victims:
            self.take(tenant, -1)
        return kept

    def use(self, amounts: Amounts, sign: int = 1) -> None:
        """So much of what is free has found somebody."""
        add(self._free, amounts, -sign)

    def allows(self, tenant: Tenant, short: Collection[str], strict: bool) -> bool:
        """Whether the tenant may go, for one who is short of these resources there."""
        for name, milli in tenant.resources.scalars.items():
            left = self.of(tenant.framework_id, tenant.role, name, strict) - milli
            if left < 0 and (name in short or self._free.get(name, 0) + milli < -left):
                return False
        return True

    def of(self, framework_id: str, role: str, name: str, strict: bool) -> int:
        held = self._of(framework_id)
        own = held[role].get(name, 0) if role in held else 0
        key = framework_id, role, name, strict
        floors = self._floors.get(key)
        if floors is None:
            floors = self._floors[key] = self._find_floors(framework_id, role, name, strict)
        return min(own - floors[0], self._in_all[framework_id].get(name, 0) - floors[1])

    def _find_floors(
        self, framework_id: str, role: str, name: str, strict: bool
    ) -> tuple[int, int]:
        """Of the role, and of all roles of the framework."""
        own = self._guarantees.of(framework_id, role).get(name, 0)
        in_all = self._guarantees.of_framework(framework_id).get(name, 0)
        if strict:
            own = max(own, self._stated.total(framework_id, role).get(name, 0))
            roles = self._of(framework_id)
            needed = sum(self._stated.total(framework_id, one).get(name, 0) for one in roles)
            in_all = max(in_all, needed)
        return own, in_all

    def is_any_above(self, but: str, names: Iterable[str]) -> bool:
        """Whether anybody else holds more than his guarantee of one of the resources."""
        wanted = list(names)
        return any(
            self.of(framework_id, role, name, strict=False) > 0
            for framework_id in self._frameworks
            if framework_id != but
            for role in self._of(framework_id)
            for name in wanted
        )

    def over(self, framework_id: str) -> float:
        """How far the framework is above its guarantee, as a part of the cluster."""
        self._of(framework_id)
        floor = self._guarantees.of_framework(framework_id)
        above = {
            name: milli - floor.get(name, 0)
            for name, milli in self._in_all[framework_id].items()
            if name in floor
        }
        return max(0.0, dominant(above, self._total))

    def _of(self, framework_id: str) -> dict[str, dict[str, int]]:
        """By role.  One that is not known, or cannot be told of, is left alone."""
        held = self._held.get(framework_id)
        if held is None:
            try:
                held = {
                    role: dict(self._view.held(framework_id, role))
                    for role in self._stated.roles(framework_id)
                }
            except Exception:  # it is told of where its guarantee is reckoned
                held = {}
            in_all: dict[str, int] = {}
            for amounts in held.values():
                add(in_all, amounts)
            self._held[framework_id] = held
            self._in_all[framework_id] = in_all
        return held
