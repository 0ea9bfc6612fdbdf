"""A cluster with tasks that can be taken back, for an allocator on its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, TypeAlias

from master.allocator.drf import DrfAllocator
from mesos_py.allocation import (
    Allocator,
    AllocatorOptions,
    Freed,
    Grant,
    Need,
    Revocation,
    RevocationEnded,
    Tenant,
)
from mesos_py.resources import Resources
from mesos_py.testing.allocator_harness import AllocatorHarness

MakesAllocator: TypeAlias = Callable[[AllocatorOptions], Allocator]


def need(text: str, times: int = 1, role: str = "*", agent: str = "", **more: Any) -> Need:
    return Need(role, Resources.parse(text), times, agent, **more)


class RevocableHarness(AllocatorHarness):
    """Books tasks beside offers, and plays the master's part of a revocation.

    Without patience and pauses, unless options say otherwise.
    """

    def __init__(
        self, make: Callable[[AllocatorOptions], Allocator] = DrfAllocator, **options: Any
    ) -> None:
        chosen = AllocatorOptions(
            **{"revocation_patience_s": 0.0, "revocation_interval_s": 0.0, **options}
        )
        super().__init__(make(chosen), chosen)
        self.tasks: dict[str, Grant] = {}
        # Revocations that the master has not answered, and those that it is to stop.
        self.open: list[Revocation] = []
        self.stopped: list[Revocation] = []
        self._numbers = count(1)

    # ---- Tasks ------------------------------------------------------------------

    def task(
        self,
        framework_id: str,
        agent_id: str,
        text: str,
        ran_s: float = 0.0,
        role: str = "*",
        cost: float | None = None,
    ) -> str:
        """A task that runs there, from what is free; its name."""
        grant = Grant(framework_id, role, agent_id, Resources.parse(text))
        self.cluster.hold(grant)
        return self._started(grant, ran_s, cost)

    def _started(self, grant: Grant, ran_s: float, cost: float | None = None) -> str:
        name = f"t{next(self._numbers)}"
        self.tasks[name] = grant
        since_s = self.now_s - ran_s
        tenant = Tenant(grant.framework_id, grant.role, name, grant.resources, since_s, cost)
        self.cluster.tasks.setdefault(grant.agent_id, []).append(tenant)
        return name

    def fill(
        self, framework_id: str, agent_id: str, text: str, times: int, role: str = "*"
    ) -> list[str]:
        return [self.task(framework_id, agent_id, text, 100.0, role) for _ in range(times)]

    def end(self, name: str) -> None:
        """The task ends.  Nothing if it has ended."""
        grant = self.tasks.pop(name, None)
        if grant is None:
            return
        tenants = self.cluster.tasks[grant.agent_id]
        tenants[:] = [one for one in tenants if one.task_id != name]
        self.cluster.release(grant)
        self.allocator.tell(Freed(grant.agent_id))

    def launch(self, grant: Grant, text: str, times: int = 1) -> list[str]:
        """Run tasks on an offer; the rest is declined for a moment."""
        size = Resources.parse(text)
        self.held.remove(grant)
        rest = grant.resources
        names = []
        for _ in range(times):
            rest = rest - size
            names.append(self._started(replace(grant, resources=size), 0.0))
        if rest:
            self.cluster.release(replace(grant, resources=rest))
            self._refuse(grant, rest, 5.0)
            self.allocator.tell(Freed(grant.agent_id))
        return names

    def remove_agent(self, agent_id: str) -> None:
        for name in [name for name, one in self.tasks.items() if one.agent_id == agent_id]:
            self.cluster.release(self.tasks.pop(name))
        self.cluster.tasks.pop(agent_id, None)
        super().remove_agent(agent_id)

    def remove_framework(self, framework_id: str) -> None:
        super().remove_framework(framework_id)
        for name in [n for n, one in self.tasks.items() if one.framework_id == framework_id]:
            self.end(name)

    # ---- Revocations -----------------------------------------------------------

    def revocations(self) -> list[Revocation]:
        """What the allocator wants back now; the offers are as the ledger has them."""
        self._note_offers()
        found = self.allocator.revocations(self.cluster, self.now_s)
        self.open += found
        self.stopped += self.allocator.called_off()
        return found

    def round(self) -> list[Revocation]:
        """A cycle, and what is to be taken back after it."""
        self.cycle()
        return self.revocations()

    def carry_out(self, revocations: Iterable[Revocation]) -> list[str]:
        """End the tasks (or offers) and answer; the names of what was killed."""
        killed = []
        for revocation in list(revocations):
            for name in revocation.task_ids:
                if name in self.tasks:
                    killed.append(name)
                self.end(name)
            if not revocation.task_ids:
                for grant in [one for one in self.held if _is_of(one, revocation)]:
                    self.give_back(grant)
            self.answer(revocation, freed=True)
        return killed

    def answer(self, revocation: Revocation, freed: bool) -> None:
        if revocation in self.open:
            self.open.remove(revocation)
        self.allocator.tell(RevocationEnded(revocation, freed))

    def held_by(self, framework_id: str, name: str = "cpus") -> float:
        row = self.frameworks[framework_id]
        return sum(self.cluster.held(framework_id, role).get(name, 0) for role in row.roles) / 1000

    def guaranteed(self, framework_id: str, name: str = "cpus") -> float:
        guarantees = self.allocator.guarantees(self.cluster)
        return guarantees.get(framework_id, {}).get(name, 0) / 1000

    def _note_offers(self) -> None:
        self.cluster.offers.clear()
        for grant in self.held:
            self.cluster.offers.setdefault(grant.agent_id, []).append(
                Tenant(grant.framework_id, grant.role, "", grant.resources, self.since(grant))
            )

    def since(self, grant: Grant) -> float:
        """Since when an offer is out: for ever, unless a test says otherwise."""
        return 0.0


def victims(revocations: Sequence[Revocation]) -> list[str]:
    return [name for one in revocations for name in one.task_ids]


def _is_of(grant: Grant, revocation: Revocation) -> bool:
    return (grant.framework_id, grant.role, grant.agent_id) == (
        revocation.framework_id,
        revocation.role,
        revocation.agent_id,
    )
