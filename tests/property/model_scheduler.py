"""A model of a framework's scheduler: what it wants, holds, has seen, and must believe.

It is proof against a lost link in the way of our SDK: offers die with a
subscription, what was launched is asked for on the next one, an update that it has
acknowledged before is acknowledged again and not looked at.  It makes mistakes now
and then (too large, stale, twice); a faulty one makes all of them.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any, TypeAlias

from mesos_py.errors import InvalidResources
from mesos_py.resources import Resources
from mesos_py.states import (
    TASK_GONE,
    TASK_KILLING,
    TASK_LOST,
    TASK_RUNNING,
    TASK_STAGING,
    TASK_STARTING,
    TASK_UNKNOWN,
    TASK_UNREACHABLE,
    TaskState,
    is_terminal,
    short_name,
)
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.property.model_agent import LIE
from tests.property.model_needs import random_needs
from tests.property.model_net import Net, Stream

Call = sched.Call
Event = sched.Event
State: TypeAlias = TaskState.ValueType

_RANK = {TASK_STAGING: 0, TASK_STARTING: 1, TASK_RUNNING: 2, TASK_KILLING: 3}
_ABSENT = frozenset({TASK_GONE, TASK_LOST, TASK_UNKNOWN, TASK_UNREACHABLE})
Capability = pb.FrameworkInfo.Capability


class Broken(AssertionError):
    """A property does not hold."""


@dataclass(slots=True)
class Launched:
    """A task as its framework sees it.

    `sure`: its id was used once and nobody lied about it, so its states must add up.
    `final` may be taken back in one case: LOST said by the master to a framework
    that is not partition-aware may only mean that the agent was away.
    """

    task_id: str
    agent_id: str
    sure: bool = True
    state: State = TASK_STAGING
    rank: int = 0
    final: bool = False
    perhaps: bool = False
    # The end was told by the master, ahead of updates that its agent still had.
    ahead: bool = False
    updates: int = 0

    def see(self, status: pb.TaskStatus, aware: bool) -> None:
        state = status.state
        self.updates += 1
        if state == TASK_UNKNOWN and not status.agent_id.value:
            return  # asked for without its agent, a task on an unreachable one is not found
        if self.final and self.perhaps and state != self.state:
            self.final = self.perhaps = False
        if self.final:
            # Whether it is there may have been asked before its end was seen.
            answer = status.reason == pb.TaskStatus.REASON_RECONCILIATION and state in _ABSENT
            if self.sure and state != self.state and not answer:
                raise Broken(f"{self.task_id} went from {short_name(self.state)} to {status}")
            return
        if is_terminal(state) or state == TASK_UNKNOWN:
            self.final = True
            by_master = status.source == pb.TaskStatus.SOURCE_MASTER
            self.perhaps = state == TASK_LOST and not aware and by_master
            self.ahead = by_master and status.reason == pb.TaskStatus.REASON_RECONCILIATION
        elif state != TASK_UNREACHABLE:
            rank = _RANK[state]
            if self.sure and rank < self.rank:
                raise Broken(f"{self.task_id} went back from rank {self.rank} to {status}")
            self.rank = rank
        self.state = state


@dataclass(slots=True)
class Held:
    """An offer that the scheduler believes to hold."""

    offer_id: str
    agent_id: str
    role: str
    resources: Resources


class SchedulerModel:
    def __init__(
        self, net: Net, name: str, info: pb.FrameworkInfo, faulty: bool, liars: set[str]
    ) -> None:
        self.name = name
        self.net = net
        self.info = info
        self.faulty = faulty
        # Whether the states of its tasks must add up.
        self.sure = not faulty
        # Ids of agents whose word proves nothing.
        self.liars = liars
        self.stream: Stream | None = None
        self.subscribed = False
        # Nothing can bring it back.
        self.ended = False
        self.offers: dict[str, Held] = {}
        self.tasks: dict[str, Launched] = {}
        self.acknowledged: set[bytes] = set()
        self.to_acknowledge: list[pb.TaskStatus] = []
        # It takes ids of tasks that have ended for new ones.
        self.reuses = False
        # The process loses acknowledgements that it meant to send.
        self.forgetful = False
        self.gone_offers: list[str] = []
        # The states that its tasks were said to be in.
        self.seen: set[str] = set()
        self._serial = 0
        self._life = 1
        self._attempts = 0

    @property
    def id(self) -> str:
        return self.info.id.value

    @property
    def aware(self) -> bool:
        return any(c.type == Capability.PARTITION_AWARE for c in self.info.capabilities)

    @property
    def roles(self) -> list[str]:
        return list(self.info.roles) or [self.info.role or "*"]

    # ---- The stream ------------------------------------------------------------

    def subscribe(self, suppressed: list[str] | None = None, anew: bool = False) -> None:
        """On a new stream; an older one is not ended by us.  `anew`: another process."""
        self._lose()
        self.stream = self.net.open(self, of_agent=False)
        self._life += anew
        self._attempts += 1
        subscribe = Call.Subscribe(
            framework_info=self.info,
            suppressed_roles=suppressed or (),
            instance=f"{self.name}/{self._life}",
            attempt=self._attempts,
        )
        own = self.info.id if self.id else None
        self.say(type=Call.SUBSCRIBE, framework_id=own, subscribe=subscribe)

    def lost(self, stream: Stream) -> None:
        if stream is self.stream:
            self._lose()

    def _lose(self) -> None:
        self.stream = None
        self.subscribed = False
        self.gone_offers = [*self.gone_offers, *self.offers][-5:]
        self.offers.clear()

    def say(self, **fields: Any) -> None:
        if self.stream is not None:
            self.stream.send(Call(**fields))

    def crash(self, rng: random.Random) -> None:
        self._life += 1
        if self.stream is not None:
            self.net.leave(self.stream, rng)
            self._lose()

    # ---- Events ------------------------------------------------------------------

    def receive(self, stream: Stream, event: Any) -> None:
        if stream is not self.stream:
            return
        kind = event.type
        if kind == Event.UPDATE:
            self._update(event.update.status)
        elif kind == Event.OFFERS:
            for offer in event.offers.offers:
                held = Held(
                    offer.id.value,
                    offer.agent_id.value,
                    offer.allocation_info.role or self.roles[0],
                    Resources.from_proto("offer", offer.resources),
                )
                self.offers[held.offer_id] = held
        elif kind == Event.RESCIND:
            self._forget_offer(event.rescind.offer_id.value)
        elif kind == Event.SUBSCRIBED:
            self.info.id.CopyFrom(event.subscribed.framework_id)
            self.subscribed = True
            self.reconcile()
        elif kind == Event.ERROR:
            self.ended = "removed" in event.error.message
            if "failed over" in event.error.message and self._life == 1 and not self.faulty:
                raise Broken(f"{self.name} is displaced by a stream of its own")

    def _forget_offer(self, offer_id: str) -> None:
        if self.offers.pop(offer_id, None) is not None:
            self.gone_offers = [*self.gone_offers, offer_id][-5:]

    def _update(self, status: pb.TaskStatus) -> None:
        self.seen.add(short_name(status.state))
        if status.uuid:
            if status.uuid in self.acknowledged:
                self._acknowledge(status)
                return
            self.to_acknowledge.append(status)
        task = self.tasks.get(status.task_id.value)
        if task is not None:
            where = (task.agent_id, status.agent_id.value)
            if status.message == LIE or not self.liars.isdisjoint(where):
                task.sure = False
            task.see(status, self.aware)
            # What one master has told ahead of the order, the next one does not know.
            task.perhaps = task.perhaps or (self.net.successors and task.final and task.ahead)

    def acknowledge(self, rng: random.Random) -> None:
        """What has been seen is acknowledged, or the process forgets to."""
        if self.to_acknowledge:
            status = self.to_acknowledge.pop(0)
            if not (self.forgetful and rng.random() < 0.3):
                self.acknowledged.add(status.uuid)
                self._acknowledge(status)

    def acknowledge_all(self) -> None:
        for status in self.to_acknowledge:
            self.acknowledged.add(status.uuid)
            self._acknowledge(status)
        self.to_acknowledge.clear()

    def _acknowledge(self, status: pb.TaskStatus) -> None:
        acknowledge = Call.Acknowledge(
            agent_id=status.agent_id, task_id=status.task_id, uuid=status.uuid
        )
        self.say(type=Call.ACKNOWLEDGE, acknowledge=acknowledge)

    # ---- Wishes --------------------------------------------------------------------

    def unfinished(self) -> list[Launched]:
        return [task for task in self.tasks.values() if not task.final]

    def reconcile(self) -> None:
        """By name what has not ended, then whatever the master knows."""
        named = [
            Call.Reconcile.Task(
                task_id=pb.TaskID(value=task.task_id), agent_id=pb.AgentID(value=task.agent_id)
            )
            for task in self.unfinished()
        ]
        if named:
            self.say(type=Call.RECONCILE, reconcile=Call.Reconcile(tasks=named))
        self.say(type=Call.RECONCILE, reconcile=Call.Reconcile())

    def accept(self, rng: random.Random) -> None:
        """Use one offer, or several of one agent, for some tasks."""
        if not self.offers:
            return
        first = rng.choice(list(self.offers.values()))
        used, left = [first], first.resources
        for other in self.offers.values():
            same = (other.agent_id, other.role) == (first.agent_id, first.role)
            if other is first or not same or rng.random() < 0.3:
                continue
            try:
                left = left + other.resources
            except InvalidResources:
                continue  # one of them has been rescinded by now
            used.append(other)
        infos: list[pb.TaskInfo] = []
        for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
            info, left = self._task(rng, first, left)
            infos.append(info)
        if infos and rng.random() < 0.02:
            infos.append(infos[0])
            self.tasks[infos[0].task_id.value].sure = False
        for held in used:
            self._forget_offer(held.offer_id)
        self._accept(rng, [held.offer_id for held in used], infos)

    def _accept(self, rng: random.Random, ids: list[str], infos: list[pb.TaskInfo]) -> None:
        launch = pb.Offer.Operation.Launch(task_infos=infos)
        operation = pb.Offer.Operation(type=pb.Offer.Operation.LAUNCH, launch=launch)
        accept = Call.Accept(offer_ids=_ids(ids), operations=[operation])
        refuse_s = refusal(rng)
        if refuse_s is not None:
            accept.filters.refuse_seconds = refuse_s
        self.say(type=Call.ACCEPT, accept=accept)

    def _task(
        self, rng: random.Random, held: Held, left: Resources
    ) -> tuple[pb.TaskInfo, Resources]:
        wanted = Resources.of(cpus=rng.choice((0.1, 0.25, 0.5, 1)), mem=rng.choice((1, 32, 100.5)))
        ports = left.ranges.get("ports")
        if ports and rng.random() < 0.3:
            wanted = wanted + Resources(ranges={"ports": ((ports[0][0], ports[0][0]),)})
        if rng.random() < 0.03:
            wanted = wanted + Resources.of(cpus=50)
        if left.contains(wanted):
            left = left - wanted
        used = [each.task_id for each in self.tasks.values() if self.faulty or each.final]
        if self.reuses:
            # Best of all of those that may be running yet.
            used = [each for each in used if self.tasks[each].state == TASK_LOST] or used
        if used and (self.faulty or self.reuses) and rng.random() < 0.6:
            task_id = rng.choice(used)
        else:
            self._serial += 1
            task_id = f"t{self._serial}"
        self.tasks[task_id] = Launched(task_id, held.agent_id, sure=self.sure)
        resources = [*wanted.to_proto()]
        info = pb.TaskInfo(
            name=task_id,
            task_id=pb.TaskID(value=task_id),
            agent_id=pb.AgentID(value=held.agent_id),
            resources=resources,
        )
        for item in info.resources:
            item.allocation_info.role = held.role
        if rng.random() < 0.25:
            info.executor.CopyFrom(executor_info(rng.choice(("e0", "e1"))))
        else:
            info.command.value = "true"
        return info, left

    def decline(self, rng: random.Random) -> None:
        if not self.offers:
            return
        ids = [i for i in self.offers if rng.random() < 0.6] or [next(iter(self.offers))]
        for offer_id in ids:
            self._forget_offer(offer_id)
        decline = Call.Decline(offer_ids=_ids(ids))
        refuse_s = refusal(rng)
        if refuse_s is not None:
            decline.filters.refuse_seconds = refuse_s
        self.say(type=Call.DECLINE, decline=decline)

    def kill(self, rng: random.Random) -> None:
        tasks = self.unfinished()
        if tasks:
            task = rng.choice(tasks)
            agent_id = task.agent_id if rng.random() < 0.5 else ""
            kill = Call.Kill(
                task_id=pb.TaskID(value=task.task_id), agent_id=pb.AgentID(value=agent_id)
            )
            self.say(type=Call.KILL, kill=kill)

    def wish(self, rng: random.Random) -> None:
        """Change what is wanted: suppress, revive, other filters, stated needs."""
        some = [role for role in self.roles if rng.random() < 0.5]
        match rng.randrange(5):
            case 0:
                self.say(type=Call.SUPPRESS, suppress=Call.Suppress(roles=some))
            case 1 | 2:
                self.say(type=Call.REVIVE, revive=Call.Revive(roles=some))
            case 3:
                self._update_framework(rng, some)
            case _:
                self.say(type=Call.REQUEST, request=random_needs(rng, list(self.roles)))

    def _update_framework(self, rng: random.Random, suppressed: list[str]) -> None:
        update = Call.UpdateFramework(suppressed_roles=suppressed)
        info = self.info
        info.offer_filters.clear()
        if len(self.roles) > 1 and rng.random() < 0.3:
            info.roles.pop()
            suppressed = [role for role in suppressed if role in info.roles]
            update = Call.UpdateFramework(suppressed_roles=suppressed)
        for role in self.roles:
            if rng.random() < 0.4:
                least = info.offer_filters[role].min_allocatable_resources.quantities.add()
                least.quantities["cpus"].value = rng.choice((0.5, 2.0, 3.0))
            if rng.random() < 0.4:
                term = (
                    update.offer_constraints.role_constraints[role]
                    .groups.add()
                    .attribute_constraints.add()
                )
                term.selector.pseudoattribute_type = sched.AttributeConstraint.Selector.HOSTNAME
                term.predicate.text_equals.value = rng.choice(("host1", "host2", "host3"))
        update.framework_info.CopyFrom(info)
        self.say(type=Call.UPDATE_FRAMEWORK, update_framework=update)

    def end_executor(self, rng: random.Random) -> None:
        if self.tasks:
            shutdown = Call.Shutdown(
                executor_id=pb.ExecutorID(value=rng.choice(("e0", "e1"))),
                agent_id=pb.AgentID(value=rng.choice(list(self.tasks.values())).agent_id),
            )
            self.say(type=Call.SHUTDOWN, shutdown=shutdown)

    def teardown(self) -> None:
        self.say(type=Call.TEARDOWN)

    # ---- Mistakes --------------------------------------------------------------------

    def err(self, rng: random.Random, foreign: list[Held]) -> None:
        """Use offers that are gone, another's, or of two agents."""
        held = list(self.offers.values())
        pools = [*held, *foreign]
        ids = [each.offer_id for each in rng.sample(pools, min(len(pools), 2))]
        ids += rng.sample(self.gone_offers, min(len(self.gone_offers), rng.randint(0, 1)))
        if rng.random() < 0.2 and ids:
            ids.append(ids[0])
        if rng.random() < 0.2:
            self.say(type=Call.DECLINE, decline=Call.Decline(offer_ids=_ids(ids)))
            return
        for offer_id in ids:
            self._forget_offer(offer_id)
        infos = []
        if pools:
            infos = [self._task(rng, rng.choice(pools), Resources())[0]]
        self._accept(rng, ids, infos)

    def lie(self, rng: random.Random) -> None:
        """Say what makes no sense, or at the wrong time."""
        some = rng.choice([*self.tasks, "t?"])
        match rng.randrange(7):
            case 0:
                acknowledge = Call.Acknowledge(
                    agent_id=pb.AgentID(value=rng.choice(("m-S0", "m-S1", "nowhere"))),
                    task_id=pb.TaskID(value=some),
                    uuid=rng.choice([b"", b"x" * 16, *sorted(self.acknowledged)[-3:]]),
                )
                self.say(type=Call.ACKNOWLEDGE, acknowledge=acknowledge)
            case 1:
                self.say(type=rng.choice((0, 13, 99)))
            case 2:
                self.say(type=Call.SUPPRESS, suppress=Call.Suppress(roles=["unheard"]))
            case 3:
                self.say(type=Call.REVIVE, framework_id=pb.FrameworkID(value="m-0000"))
            case 4:
                # A second subscription on the same stream: as itself, or as another.
                info = pb.FrameworkInfo(name="second", user="nobody")
                if rng.random() < 0.5:
                    info = self.info
                own = info.id if info.HasField("id") else None
                subscribe = Call.Subscribe(framework_info=info)
                self.say(type=Call.SUBSCRIBE, framework_id=own, subscribe=subscribe)
            case 5:
                kill = Call.Kill(task_id=pb.TaskID(value=some), agent_id=pb.AgentID(value="m-S1"))
                self.say(type=Call.KILL, kill=kill)
            case _:
                message = Call.Message(agent_id=pb.AgentID(value="m-S0"), data=b"x")
                self.say(type=Call.MESSAGE, message=message)


def _ids(ids: list[str]) -> list[pb.OfferID]:
    return [pb.OfferID(value=offer_id) for offer_id in ids]


def refusal(rng: random.Random) -> float | None:
    # Mostly short: little time passes between most steps.
    return rng.choice((None, *[0.0] * 8, 0.02, 0.02, 0.5, 0.5, 3.0, 60.0, -1.0, float("nan")))


def executor_info(executor_id: str) -> pb.ExecutorInfo:
    """e1 has resources of its own, e0 has none."""
    info = pb.ExecutorInfo(
        type=pb.ExecutorInfo.CUSTOM,
        executor_id=pb.ExecutorID(value=executor_id),
        command=pb.CommandInfo(value="executor"),
    )
    if executor_id == "e1":
        info.resources.extend(Resources.of(cpus=0.1, mem=16).to_proto())
    return info
