"""Which tasks of one agent have to end so that a bundle fits there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from master.allocator.revocation.amounts import dominant
from master.allocator.revocation.spare import Spare
from mesos_py.allocation import ClusterView, Tenant
from mesos_py.resources import Resources
from mesos_py.victims import Victim, VictimPolicy

OnFailure: TypeAlias = Callable[[str, Exception], None]


@dataclass(frozen=True, slots=True)
class Choice:
    """`cost`: the sum of what the policy says of the victims, none of which could stay."""

    cost: float
    victims: tuple[Tenant, ...]


class Chooser:
    """Picks victims of one agent, for one framework.

    `strict_for` says of a tenant's framework and role which floor holds (Spare).
    """

    def __init__(
        self,
        view: ClusterView,
        spare: Spare,
        policy: VictimPolicy,
        now_s: float,
        on_failure: OnFailure,
    ) -> None:
        self._total = view.cluster_total()
        self._spare = spare
        self._policy = policy
        self.now_s = now_s
        self._on_failure = on_failure

    def choose(
        self,
        bundle: Resources,
        room: Resources,
        tenants: Iterable[Tenant],
        strict_for: Callable[[Tenant], bool],
    ) -> Choice | None:
        """The cheapest set that was found and is minimal; None if there is none."""
        short = [
            name for name, milli in bundle.scalars.items() if room.scalars.get(name, 0) < milli
        ]
        useful = [
            (tenant, strict)
            for tenant in tenants
            if _helps(tenant, bundle, short)
            and self._spare.allows(tenant, short, strict := strict_for(tenant))
        ]
        cheap = self._picked(bundle, room, useful, short)
        if cheap is None or len(cheap.victims) == 1:
            return cheap
        # The cheapest first may take many small ones where one large one is enough.
        large = sorted(useful, key=lambda item: -_part(item[0], bundle, short))
        few = self._picked(bundle, room, large, short, in_order=True)
        if few is None:
            return cheap
        return min(cheap, few, key=lambda choice: (choice.cost, len(choice.victims)))

    def cost(self, tenant: Tenant) -> float | None:
        """What its end costs now; None: the policy cannot say.  An offer costs nobody
        anything."""
        if not tenant.task_id:
            return 0.0
        victim = Victim(
            tenant,
            max(0.0, self.now_s - tenant.since_s),
            self.share(tenant),
            self._spare.over(tenant.framework_id),
        )
        try:
            return self._policy(victim)
        except Exception as error:
            self._on_failure(tenant.framework_id, error)
            return None

    def share(self, tenant: Tenant) -> float:
        return dominant(tenant.resources.scalars, self._total)

    def _picked(
        self,
        bundle: Resources,
        room: Resources,
        useful: Sequence[tuple[Tenant, bool]],
        short: Sequence[str],
        in_order: bool = False,
    ) -> Choice | None:
        picked: list[tuple[float, Tenant]] = []
        left = {tenant.task_id or id(tenant): (tenant, strict) for tenant, strict in useful}
        costs = {key: self.cost(tenant) for key, (tenant, _) in left.items()}
        while left and not room.contains(bundle):
            key = (
                next(iter(left))
                if in_order
                else min(left, key=lambda one: _first(costs, left, one))
            )
            tenant, strict = left.pop(key)
            cost = costs[key]
            if cost is None or not self._spare.allows(tenant, short, strict):
                continue
            self._spare.take(tenant)
            picked.append((cost, tenant))
            room = room + tenant.resources
            # How far its framework is above its guarantee may count for the others.
            for other, (mate, _) in left.items():
                if mate.framework_id == tenant.framework_id:
                    costs[other] = self.cost(mate)
        for _, tenant in picked:
            self._spare.take(tenant, -1)
        if not room.contains(bundle):
            return None
        return _pruned(bundle, room, picked)


def _pruned(bundle: Resources, room: Resources, picked: list[tuple[float, Tenant]]) -> Choice:
    """Without those that are not needed, the dearest of them first."""
    kept = sorted(picked, key=lambda item: (-item[0], item[1].since_s, item[1].task_id))
    for item in list(kept):
        less = room - item[1].resources
        if less.contains(bundle):
            room = less
            kept.remove(item)
    return Choice(sum(cost for cost, _ in kept), tuple(tenant for _, tenant in reversed(kept)))


def _helps(tenant: Tenant, bundle: Resources, short: Sequence[str]) -> bool:
    resources = tenant.resources
    return (
        any(name in resources.scalars for name in short)
        or any(name in bundle.ranges for name in resources.ranges)
        or any(name in bundle.sets for name in resources.sets)
    )


def _part(tenant: Tenant, bundle: Resources, short: Sequence[str]) -> float:
    """How much of what is short it would give, of each resource at most all."""
    scalars = tenant.resources.scalars
    return sum(min(1.0, scalars.get(name, 0) / bundle.scalars[name]) for name in short)


def _first(
    costs: dict[str | int, float | None],
    left: dict[str | int, tuple[Tenant, bool]],
    key: str | int,
) -> tuple[bool, float, float, str]:
    """Offers first; then the cheapest, of them the one that was launched last."""
    cost, tenant = costs[key], left[key][0]
    return (
        bool(tenant.task_id),
        float("inf") if cost is None else cost,
        -tenant.since_s,
        tenant.task_id,
    )
