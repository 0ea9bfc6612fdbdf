"""Needs that are stated, and what is taken back: at random, and answered at random."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

from master.allocator.drf import DrfAllocator
from mesos_py.allocation import (
    AllocatorOptions,
    ClusterView,
    Event,
    Revocation,
    RevocationEnded,
)
from mesos_py.resources import Resources, total
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.property.model_scheduler import Broken

if TYPE_CHECKING:
    from tests.property.model_run import Run

Call = sched.Call


class TakingBack(DrfAllocator):
    """Takes back what the model says, and nothing else."""

    def __init__(self) -> None:
        super().__init__(AllocatorOptions(victims="off"))
        self.plans: list[Revocation] = []
        # Those that were handed out and are not over, by their reasons, which differ.
        self.open: Counter[str] = Counter()

    def revocations(self, view: ClusterView, now_s: float) -> list[Revocation]:
        plans, self.plans = self.plans, []
        self.open.update(each.reason for each in plans)
        return plans

    def tell(self, event: Event) -> None:
        if isinstance(event, RevocationEnded):
            if not self.open[event.revocation.reason]:
                raise Broken(f"{event.revocation} has ended twice")
            self.open[event.revocation.reason] -= 1
        super().tell(event)


def take_back(run: Run, rng: random.Random) -> None:
    """Some tasks of a framework on one agent; now and then of what is not there."""
    allocator = run.cluster.allocator
    if not isinstance(allocator, TakingBack) or not run.cluster.agents:
        return
    agent_id = rng.choice(sorted(run.cluster.agents))
    tenants = run.cluster.ledger.tenants(agent_id)
    if not tenants:
        return
    first = rng.choice(tenants)
    whose = (first.framework_id, first.role)
    chosen = [each for each in tenants if (each.framework_id, each.role) == whose][:2]
    ids = tuple(each.task_id for each in chosen)
    if rng.random() < 0.2:
        ids = rng.choice(((), ("nobody",), (*ids, "nobody")))
    resources = Resources(total(each.resources for each in chosen).scalars)
    plan = Revocation(*whose, agent_id, resources, ids, "somebody", f"step {run.steps}")
    run.note("take back: %s", plan)
    allocator.plans.append(plan)
    run.cluster.want_allocation(run.world.clock.now())


def answer(run: Run, rng: random.Random) -> None:
    """The framework that is asked says something, or ends a task by itself."""
    takings = [*run.cluster.revoking.by_offer.values()]
    if not takings:
        return
    taking = rng.choice(takings)
    for scheduler in run.schedulers:
        if scheduler.id != taking.plan.framework_id or not scheduler.subscribed:
            continue
        ids = [pb.OfferID(value=taking.offer_id)]
        match rng.randrange(3):
            case 0:
                taken = Call.AcceptInverseOffers(inverse_offer_ids=ids)
                scheduler.say(type=Call.ACCEPT_INVERSE_OFFERS, accept_inverse_offers=taken)
            case 1:
                refused = Call.DeclineInverseOffers(inverse_offer_ids=ids)
                scheduler.say(type=Call.DECLINE_INVERSE_OFFERS, decline_inverse_offers=refused)
            case _ if taking.plan.task_ids:
                task_id = pb.TaskID(value=rng.choice(taking.plan.task_ids))
                scheduler.say(type=Call.KILL, kill=Call.Kill(task_id=task_id))


def check(run: Run) -> None:
    """Whatever was begun is in progress or over, and the other way round."""
    allocator = run.cluster.allocator
    if not isinstance(allocator, TakingBack):
        return
    begun = +allocator.open
    known = Counter(each.plan.reason for each in run.cluster.revoking.by_name.values())
    if begun != known:
        raise Broken(f"of what is taken back {begun - known} is forgotten, {known - begun} is over")


def check_end(run: Run) -> None:
    """Nothing is taken back for ever."""
    if run.cluster.revoking.by_name:
        raise Broken(f"never over: {list(run.cluster.revoking.by_name.values())}")
