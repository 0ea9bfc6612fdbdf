"""The master's core and cores of agents, joined by streams that are cut at any moment.

What each sends waits in order until a step delivers it, or a cut loses it.  Masters die with
all that they know, agents with all but their checkpoint.  Frameworks reserve, run tasks on it
and unreserve, some of it in ways that cannot be.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agent.core.effects import Effect, SendMaster
from mesos_py import reserved
from mesos_py.conversions import conversion_of, with_reserved
from mesos_py.errors import MesosPyError
from mesos_py.resources import EMPTY, Resources
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import AgentWorld
from tests.kit.core import FakeFramework, World
from tests.kit.reserving import amount, by, launch, reserve, unreserve

Capability = pb.FrameworkInfo.Capability
CAPABILITIES = [
    Capability(type=Capability.PARTITION_AWARE),
    Capability(type=Capability.RESERVATION_REFINEMENT),
]
SETTLED = (pb.OPERATION_FINISHED, pb.OPERATION_ERROR, pb.OPERATION_DROPPED)


@dataclass
class Party:
    """An agent and its stream.  `down` and `up`: what is under way on it."""

    agent: AgentWorld
    number: int
    link: int = 0
    down: list[Any] = field(default_factory=list)
    up: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.settle_down()

    def settle_down(self) -> None:
        """Be where it is: there is no other agent at its address."""
        info = self.agent.core.state.info
        info.hostname, info.ip, info.port = f"host{self.number}", "127.0.0.1", 1 + self.number


class Scheduler(FakeFramework):
    """A framework that answers for itself: `statuses` are those of its operations."""

    def __init__(self, world: World, role: str) -> None:
        info = pb.FrameworkInfo(name=role, user="nobody", role=role, principal=role)
        info.failover_timeout = 1e6
        info.capabilities.extend(CAPABILITIES)
        super().__init__(world, info)
        self.open: dict[str, pb.Offer] = {}
        self.statuses: dict[str, list[pb.OperationStatus]] = {}
        self.sent: list[str] = []

    def hear(self, dice: random.Random) -> None:
        for event in self.take():
            if event.type == sched.Event.OFFERS:
                self.open.update((offer.id.value, offer) for offer in event.offers.offers)
                for offer in event.offers.offers:
                    self._require_mine(offer)
            elif event.type == sched.Event.RESCIND:
                self.open.pop(event.rescind.offer_id.value, None)
            elif event.type == sched.Event.UPDATE:
                self._acknowledge(event.update.status, dice)
            elif event.type == sched.Event.UPDATE_OPERATION_STATUS:
                self._note(event.update_operation_status.status, dice)

    def _require_mine(self, offer: pb.Offer) -> None:
        for key in Resources.from_proto("offer", offer.resources).names():
            assert reserved.is_for(key, self.info.role), (key, self.info.role)

    def _acknowledge(self, status: pb.TaskStatus, dice: random.Random) -> None:
        if status.uuid and dice.random() < 0.8:
            acknowledge = sched.Call.Acknowledge(
                agent_id=status.agent_id, task_id=status.task_id, uuid=status.uuid
            )
            self.call(type=sched.Call.ACKNOWLEDGE, acknowledge=acknowledge)

    def _note(self, status: pb.OperationStatus, dice: random.Random) -> None:
        known = self.statuses.setdefault(status.operation_id.value, [])
        known.append(status)
        if status.HasField("uuid") and dice.random() < 0.7:
            self.acknowledge_operation(status)

    def acknowledge_operation(self, status: pb.OperationStatus) -> None:
        call = sched.Call.AcknowledgeOperationStatus(
            agent_id=status.agent_id, uuid=status.uuid.value, operation_id=status.operation_id
        )
        self.call(type=sched.Call.ACKNOWLEDGE_OPERATION_STATUS, acknowledge_operation_status=call)


class Model:
    """See the module's docstring."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.world = World()
        self.parties = [Party(self.agent(), number) for number in range(2)]
        self.schedulers = [Scheduler(self.world, role) for role in ("ads", "ads/x", "web")]
        self.seen: Counter[str] = Counter()
        self._numbers = 0
        for party in self.parties:
            self.join(party)
        for scheduler in self.schedulers:
            scheduler.subscribe()

    def agent(self) -> AgentWorld:
        """A new one."""
        return AgentWorld(registered=False)

    def go(self, steps: int) -> None:
        moves = (
            [self.deliver] * 12
            + [self.answer] * 6
            + [self.work] * 3
            + [self.settle] * 6
            + [self.cut, self.kill_agent, self.come_again]
            + self.more_moves()
        )
        for _ in range(steps):
            self.dice.choice(moves)()
            if self.dice.random() < 0.01:
                self.kill_master()
            self.check()
        self.heal()

    def more_moves(self) -> list[Callable[[], None]]:
        """What else may happen, each as often as it is named."""
        return []

    def check(self) -> None:
        self.world.check()
        for scheduler in self.schedulers:
            scheduler.hear(self.dice)
        for party in self.parties:
            state = party.agent.core.state
            configured = Resources.from_proto("it", state.info.resources)
            assert state.total == with_reserved(configured, state.reserved)
            assert state.total.plain == configured.plain
            total = self.world.cluster.ledger.total(state.agent_id)
            known = self.world.cluster.agents.get(state.agent_id)
            assert known is None or known.unreachable or known.total == total
            assert total is EMPTY or total.plain == configured.plain

    # ---- Streams ---------------------------------------------------------------------

    def join(self, party: Party) -> None:
        """A new stream, on which the agent registers."""
        if party.link:
            party.agent.core.on_disconnected()
        party.link, party.down = self.world.link(), []
        party.up = [party.agent.core.register_call("v", 1)]

    def deliver(self) -> None:
        """One message, in one direction."""
        party = self.dice.choice(self.parties)
        if party.link in self.world.outbox.closed:
            self.cut(party)
            return
        party.down.extend(self.world.outbox.take(party.link))
        if party.up and (not party.down or self.dice.random() < 0.5):
            call = party.up.pop(0)
            self.world.core.agent_call(party.link, call, self.world.clock.now())
            self.world.stored()
        elif party.down:
            event = party.down.pop(0)
            assert event.type != agent_pb2.Event.REFUSED, event.refused.message
            if event.type != agent_pb2.Event.PING:
                self.say(party, party.agent.master(event))

    def say(self, party: Party, effects: list[Effect]) -> None:
        party.up.extend(effect.call for effect in effects if isinstance(effect, SendMaster))

    def cut(self, party: Party | None = None) -> None:
        """The stream ends; what is under way is lost.  The master hears it now or never."""
        party = party or self.dice.choice(self.parties)
        self.seen["cut"] += 1
        if self.dice.random() < 0.7:
            self.world.core.agent_disconnected(party.link, self.world.clock.now())
        self.join(party)

    def kill_agent(self) -> None:
        party = self.dice.choice(self.parties)
        party.agent.restart()
        party.settle_down()
        self.seen["agent killed"] += 1
        self.cut(party)

    def kill_master(self) -> None:
        self.seen["master killed"] += 1
        clock, uuids, links = self.world.clock, self.world._uuids, self.world._links
        self.world = World(epoch=self.world.cluster.epoch + 1)
        self.world.clock, self.world._uuids, self.world._links = clock, uuids, links
        for party in self.parties:
            self.join(party)
        for scheduler in self.schedulers:
            scheduler.world = self.world
            scheduler.open.clear()
            scheduler.subscribe()

    # ---- Frameworks --------------------------------------------------------------------

    def settle(self) -> None:
        self.world.settle()

    def come_again(self) -> None:
        """A scheduler subscribes anew; what was sent to the old stream is lost."""
        scheduler = self.dice.choice(self.schedulers)
        scheduler.open.clear()
        scheduler.subscribe()

    def answer(self) -> None:
        """Some offer is used for something."""
        scheduler = self.dice.choice(self.schedulers)
        if not scheduler.open:
            return
        _, offer = scheduler.open.popitem()
        left = Resources.from_proto("offer", offer.resources)
        operations = []
        for _ in range(self.dice.randint(0, 3)):
            made, left = self.operation(scheduler, offer, left)
            operations.append(made)
        scheduler.accept([offer], operations, refuse_s=0.0)

    def operation(
        self, scheduler: Scheduler, offer: pb.Offer, left: Resources
    ) -> tuple[pb.Offer.Operation, Resources]:
        """One that is possible, mostly, and what is left after it."""
        self._numbers += 1
        operation_id = self.dice.choice(["", f"op{self._numbers}"])
        role, kind = scheduler.info.role, self.dice.choice(["reserve", "unreserve", "launch"])
        own = [key for key in left.scalars if key.endswith(")")]
        bundle = amount(by(role, role), cpus=self.dice.choice([1, 1, 1, 2, 2, 9]))
        if kind == "launch":
            key = self.dice.choice(sorted(left.scalars) or ["cpus"])
            wanted = Resources({key: min(1000, left.scalars.get(key, 1000))})
            task = self.world.task(f"t{self._numbers}", offer.agent_id.value)
            task.ClearField("resources")
            task.resources.extend(wanted.to_proto())
            self.seen[kind] += left.contains(wanted)
            return launch(task), left - wanted if left.contains(wanted) else left
        if kind == "unreserve" and own:
            key = self.dice.choice(sorted(own))
            bundle = Resources({key: min(left.scalars[key], 1000)})
        made = (reserve if kind == "reserve" else unreserve)(bundle, operation_id)
        if operation_id:
            scheduler.sent.append(operation_id)
        try:
            left = conversion_of(made).apply(left)
            self.seen[kind] += 1
        except MesosPyError:
            self.seen["impossible"] += 1
        return made, left

    def work(self) -> None:
        """A task begins, or ends."""
        party = self.dice.choice(self.parties)
        state = party.agent.core.state
        running = sorted(key[1] for key in state.executors)
        if running:
            task_id = self.dice.choice(running)
            executor = next(each for key, each in state.executors.items() if key[1] == task_id)
            act = party.agent.started if executor.pid is None else party.agent.ended
            self.say(party, act(task_id))

    # ---- The end -----------------------------------------------------------------------

    def heal(self) -> None:
        """No more is lost: all agree on what is reserved, and every outcome is known."""
        for party in self.parties:
            self.cut(party)
        for scheduler in self.schedulers:
            scheduler.open.clear()
            scheduler.subscribe()
        for _ in range(2_000):
            self.deliver()
            self.check()
            if self.quiet():
                break
        else:
            raise AssertionError("it never becomes quiet")
        for party in self.parties:
            state = party.agent.core.state
            assert self.world.cluster.agents[state.agent_id].total == state.total
            assert self.world.cluster.ledger.total(state.agent_id) == state.total
        for scheduler in self.schedulers:
            self.require_outcomes(scheduler)

    def quiet(self) -> bool:
        return not any(p.up or p.down or self.world.outbox.to.get(p.link) for p in self.parties)

    def require_outcomes(self, scheduler: Scheduler) -> None:
        """Of each operation its framework was told what became of it, once it asks."""
        scheduler.call(type=sched.Call.RECONCILE_OPERATIONS)
        asked = sched.Call.ReconcileOperations()
        for operation_id in scheduler.sent:
            asked.operations.add(operation_id=pb.OperationID(value=operation_id))
        if scheduler.sent:
            scheduler.call(type=sched.Call.RECONCILE_OPERATIONS, reconcile_operations=asked)
        scheduler.hear(self.dice)
        there = self.world.cluster.frameworks[scheduler.id].operations
        known = {each.operation_id: each for each in there.values()}
        here = {party.agent.core.state.agent_id for party in self.parties}
        for operation_id in scheduler.sent:
            if operation_id in known and known[operation_id].agent_id not in here:
                continue  # its agent has another id now, and this one is judged in time
            states = [each.state for each in scheduler.statuses[operation_id]]
            assert states[-1] in (*SETTLED, pb.OPERATION_UNKNOWN), (operation_id, states)
            final = {state for state in states if state in SETTLED}
            assert len(final) <= 1, (operation_id, states)
            self.seen["outcomes"] += bool(final)
