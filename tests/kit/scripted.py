"""A core whose allocator does what the test says."""

from __future__ import annotations

from collections.abc import Mapping

from master.core.cluster import Options
from mesos_py.allocation import (
    Allocator,
    ClusterView,
    Event,
    Grant,
    Refusal,
    Revocation,
    RevocationEnded,
    Skip,
)
from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import FakeAgent, FakeFramework, World


class Scripted(Allocator):
    """Grants and takes back what it is told to, and notes what it hears."""

    def __init__(self) -> None:
        self.grants: list[Grant] = []
        self.plans: list[Revocation] = []
        self.needless: list[Revocation] = []
        self.guaranteed: dict[str, dict[str, int]] = {}
        self.turned_away: dict[str, str] = {}
        self.heard: list[Event] = []
        # How often it was asked what everybody is guaranteed.
        self.asked_guarantees = 0

    def tell(self, event: Event) -> None:
        self.heard.append(event)

    def allocate(self, view: ClusterView, now_s: float) -> list[Grant]:
        grants, self.grants = self.grants, []
        return grants

    def revocations(self, view: ClusterView, now_s: float) -> list[Revocation]:
        plans, self.plans = self.plans, []
        return plans

    def called_off(self) -> list[Revocation]:
        plans, self.needless = self.needless, []
        return plans

    def guarantees(self, view: ClusterView) -> Mapping[str, Mapping[str, int]]:
        self.asked_guarantees += 1
        return self.guaranteed

    def waiting(self) -> Mapping[str, str]:
        return self.turned_away

    def explain(self, framework_id: str, view: ClusterView, now_s: float) -> list[Skip]:
        return []

    def shares(self, view: ClusterView) -> Mapping[str, float]:
        return {}

    def refusals(self) -> list[Refusal]:
        return [event for event in self.heard if isinstance(event, Refusal)]

    def ends(self) -> list[RevocationEnded]:
        """What it was told since the last time of revocations that are over."""
        found = [event for event in self.heard if isinstance(event, RevocationEnded)]
        self.heard = [event for event in self.heard if not isinstance(event, RevocationEnded)]
        return found


class ScriptedWorld(World):
    """A world with such an allocator, `script`."""

    def __init__(self, options: Options | None = None) -> None:
        self.script = Scripted()
        super().__init__(options, allocator=self.script)

    def grant(
        self, framework: FakeFramework, agent: FakeAgent, text: str = "cpus:4;mem:4096"
    ) -> pb.Offer:
        """Have it offered that; the offer."""
        role = self.cluster.frameworks[framework.id].roles[0]
        self.script.grants.append(Grant(framework.id, role, agent.id, Resources.parse(text)))
        self.core.cluster.want_allocation(self.clock.now())
        return framework.offers()[-1]

    def take_back(
        self, framework: FakeFramework, agent: FakeAgent, text: str, *task_ids: str
    ) -> Revocation:
        """Have that taken back, for "somebody"."""
        role = self.cluster.frameworks[framework.id].roles[0]
        plan = Revocation(
            framework.id, role, agent.id, Resources.parse(text), task_ids, "somebody", "for a test"
        )
        self.script.plans.append(plan)
        self.core.cluster.want_allocation(self.clock.now())
        self.settle()
        return plan

    def call_off(self, plan: Revocation) -> None:
        self.script.needless.append(plan)
        self.core.cluster.want_allocation(self.clock.now())
        self.settle()
