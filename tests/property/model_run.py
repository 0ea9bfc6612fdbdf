"""A master with its agents, frameworks, operator and network, and all that can happen.

What a step does depends on the number it is given and the state of the world alone
(see model_history.py).  After each step everything is proved anew.
"""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any, Final

from google.protobuf.message import Message

from mesos_py.errors import MesosPyError
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import World
from tests.property import model_revocations as revocations
from tests.property.model_agent import AgentModel
from tests.property.model_agent_steps import AgentSteps
from tests.property.model_net import END, End, Net, Stream, may_vanish
from tests.property.model_offers import OfferRules
from tests.property.model_options import (
    MAX_FRAMEWORKS,
    ROLES,
    random_options,
)
from tests.property.model_scheduler import Broken, Capability, Held, SchedulerModel
from tests.property.model_truth import check_end, check_rest, check_truth


class Run(AgentSteps):
    """See the module's docstring."""

    durable = False

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self.net = Net()
        self.options = random_options(rng, durable=self.durable)
        self.world = World(self.options, revocations.TakingBack(), self.net)
        self.core = self.world.core
        self.cluster = self.world.cluster
        self.rules = OfferRules(self.cluster)
        self.net.on_event = self._sent
        self.agents: list[AgentModel] = []
        self.schedulers: list[SchedulerModel] = []
        # Those that have ended, too.
        self.all_schedulers: list[SchedulerModel] = []
        self.liars: set[str] = set()
        self.rng = rng
        self.steps = 0
        # Whether the core was called since the last proof.
        self._called = True
        self.digest = hashlib.sha256()
        self.record = False
        self.trace: list[str] | None = None
        self._weights = rng.choice(_WEIGHTS)
        self._agents_made = self._schedulers_made = 0
        for _ in range(rng.randint(1, 3)):
            self._join_agent(rng)
            self._join_scheduler(rng)

    # ---- Steps ---------------------------------------------------------------

    def step(self, number: int) -> None:
        rng = self.rng
        rng.seed(number)
        self.steps += 1
        self.act(rng)
        self.check()

    def act(self, rng: random.Random) -> None:
        action = rng.choices(_ACTIONS, cum_weights=self._weights)[0]
        action(self, rng)

    def check(self) -> None:
        if self._called:
            self._called = False
            self.world.check()
            self.rules.check(self.world.clock.now())
            revocations.check(self)
        check_truth(self)

    def note(self, text: str, *args: object) -> None:
        if self.trace is not None:
            moment = self.world.clock.monotonic_s - 1000
            text %= tuple(_shown(arg) if isinstance(arg, (Message, End)) else arg for arg in args)
            self.trace.append(f"{self.steps:5} {moment:9.3f} {text}")

    def _sent(self, link: int, event: Any) -> None:
        if self.record:
            self.digest.update(b"%d:" % link)
            self.digest.update(event.SerializeToString(deterministic=True))
        self.note("        master -> %d: %s", link, event)
        if isinstance(event, sched.Event):
            if event.type == sched.Event.OFFERS:
                self.rules.sent(link, event.offers.offers, self.world.clock.now())
        elif event.type == agent_pb2.Event.REGISTERED:
            peer = self.net.streams[link].peer
            if isinstance(peer, AgentModel) and peer.doubtful:
                self.liars.add(event.registered.agent_id.value)

    # ---- The network -----------------------------------------------------------

    def _deliver(self, rng: random.Random) -> None:
        waiting = self.net.deliverable()
        if not waiting:
            self._pass_time(rng)
            return
        self.deliver(*rng.choice(waiting))

    def deliver(self, stream: Stream, up: bool) -> None:
        if not up:
            item = self.net.deliver_down(stream)
            self.note("%s <- %d: %s", stream.peer.name, stream.number, item)
            return
        now = self.world.clock.now()
        item = self.net.take_up(stream)
        self._called = True
        self.note("%s -> %d: %s", stream.peer.name, stream.number, item)
        if stream.of_agent:
            if item is END:
                self.core.agent_disconnected(stream.number, now)
            else:
                self.core.agent_call(stream.number, item, now)
        elif item is END:
            self.rules.ended(stream.number)
            self.core.framework_disconnected(stream.number, now)
        else:
            self._call(stream, item)

    def _call(self, stream: Stream, call: sched.Call) -> None:
        now = self.world.clock.now()
        framework_id = call.framework_id.value
        if call.type == sched.Call.SUBSCRIBE and framework_id:
            known = self.cluster.frameworks.get(framework_id)
            forgotten = (known is None or known.recovered) and self.may_have_ended(framework_id)
            if forgotten and isinstance(stream.peer, SchedulerModel):
                # The master has forgotten that it ended: what became of its tasks, too.
                for task in stream.peer.tasks.values():
                    task.sure = False
        before = self.rules.before(stream.number, call)
        self.core.framework_call(stream.number, call, now)
        self.rules.after(stream.number, call, before, now)

    def may_have_ended(self, framework_id: str) -> bool:
        """Whether the framework was removed once, perhaps."""
        return True

    def _lose_message(self, rng: random.Random) -> None:
        """An acknowledgement or update vanishes in a stream: both are said again."""
        waiting = [(s, up) for s, up in self.net.deliverable()]
        if not waiting:
            return
        stream, up = rng.choice(waiting)
        queue = stream.up if up else stream.down
        item = queue[0]
        if item is not END and up and may_vanish(stream, item):
            queue.popleft()
            self.note("lost: %s -> %d: %s", stream.peer.name, stream.number, item)

    def _break(self, rng: random.Random) -> None:
        streams = list(self.net.streams.values())
        if streams:
            stream = rng.choice(streams)
            self.note("break %d of %s", stream.number, stream.peer.name)
            self.net.break_off(stream, rng)

    def _freeze(self, rng: random.Random) -> None:
        streams = list(self.net.streams.values())
        if streams:
            stream = rng.choice(streams)
            stream.frozen = not stream.frozen
            self.note("frozen=%s %d of %s", stream.frozen, stream.number, stream.peer.name)

    # ---- Time --------------------------------------------------------------------

    def _pass_time(self, rng: random.Random) -> None:
        self.advance(rng.choice((0.001, 0.01, 0.01, 0.02, 0.02, 0.5, 3.0)))

    def _pass_long(self, rng: random.Random) -> None:
        self.advance(rng.choice((10.0, 30.0, 90.0)))

    def _stall(self, rng: random.Random) -> None:
        """The master's process does not run for a while."""
        self.note("stall")
        self._called = True
        self.world.clock.advance(rng.choice((2.0, 40.0, 400.0)))
        self.core.tick(self.world.clock.now())

    def advance(self, seconds: float) -> None:
        self.note("advance %g", seconds)
        self._called = True
        self.world.advance(seconds)

    # ---- Frameworks ------------------------------------------------------------------

    def _join_scheduler(self, rng: random.Random) -> None:
        self.schedulers = [each for each in self.schedulers if not each.ended]
        if len(self.schedulers) >= MAX_FRAMEWORKS:
            return
        self._schedulers_made += 1
        info = pb.FrameworkInfo(
            name=f"f{self._schedulers_made}",
            user="nobody",
            failover_timeout=rng.choice((0.0, 5.0, 60.0, 3600.0)),
        )
        if rng.random() < 0.6:
            info.capabilities.add(type=Capability.PARTITION_AWARE)
        if rng.random() < 0.4:
            info.capabilities.add(type=Capability.MULTI_ROLE)
            info.roles.extend(rng.sample(ROLES, rng.randint(1, 3)))
        elif rng.random() < 0.5:
            info.role = rng.choice(ROLES)
        faulty = rng.random() < 0.25
        scheduler = SchedulerModel(self.net, info.name, info, faulty, self.liars)
        if self.options.max_completed_tasks == 0:
            # A master without memory may say an end, and then what came before it.
            scheduler.sure = False
        if rng.random() < 0.25:
            scheduler.reuses, scheduler.sure = True, False
        scheduler.forgetful = rng.random() < 0.3
        self.note("new %s faulty=%s aware=%s", info.name, faulty, scheduler.aware)
        self.schedulers.append(scheduler)
        self.all_schedulers.append(scheduler)
        scheduler.subscribe()

    def _scheduler(self, rng: random.Random) -> SchedulerModel:
        return rng.choice(self.schedulers)

    def _accept(self, rng: random.Random) -> None:
        self._scheduler(rng).accept(rng)

    def _decline(self, rng: random.Random) -> None:
        self._scheduler(rng).decline(rng)

    def _kill(self, rng: random.Random) -> None:
        self._scheduler(rng).kill(rng)

    def _acknowledge(self, rng: random.Random) -> None:
        self._scheduler(rng).acknowledge(rng)

    def _wish(self, rng: random.Random) -> None:
        self._scheduler(rng).wish(rng)

    def _reconcile(self, rng: random.Random) -> None:
        self._scheduler(rng).reconcile()

    def _end_executor(self, rng: random.Random) -> None:
        self._scheduler(rng).end_executor(rng)

    def _err(self, rng: random.Random) -> None:
        scheduler = self._scheduler(rng)
        foreign: list[Held] = []
        for other in self.schedulers:
            if other is not scheduler:
                foreign.extend(other.offers.values())
        scheduler.err(rng, foreign)

    def _scheduler_lies(self, rng: random.Random) -> None:
        liars = [each for each in self.schedulers if each.faulty]
        if liars:
            rng.choice(liars).lie(rng)

    def _connect_scheduler(self, rng: random.Random) -> None:
        away = [each for each in self.schedulers if each.stream is None and not each.ended]
        scheduler = rng.choice(away or self.schedulers)
        if scheduler.ended or (scheduler.stream is not None and rng.random() < 0.9):
            return
        suppressed = [role for role in scheduler.roles if rng.random() < 0.1]
        self.note("%s subscribes again", scheduler.name)
        scheduler.subscribe(suppressed, anew=rng.random() < 0.5)

    def _crash_scheduler(self, rng: random.Random) -> None:
        scheduler = self._scheduler(rng)
        self.note("%s crashes", scheduler.name)
        scheduler.crash(rng)

    def _teardown(self, rng: random.Random) -> None:
        scheduler = self._scheduler(rng)
        if rng.random() < 0.5:
            scheduler.teardown()
            return
        self.note("operator tears %s down", scheduler.name)
        self._called = True
        try:
            self.core.teardown(scheduler.id, self.world.clock.now())
        except MesosPyError:
            pass

    # ---- The operator -------------------------------------------------------------------

    def _operate(self, rng: random.Random) -> None:
        now = self.world.clock.now()
        self._called = True
        tasks = [task for f in self.cluster.frameworks.values() for task in f.tasks.values()]
        if rng.random() < 0.5:
            weights = {rng.choice(ROLES): rng.choice((0.5, 1.0, 3.0))}
            self.core.set_weights(weights, now, lambda: None)
        elif tasks:
            self.core.kill_task(rng.choice(tasks), None)

    # ---- The end ---------------------------------------------------------------------------

    def deliver_all(self) -> None:
        for _ in range(100_000):
            waiting = self.net.deliverable()
            if not waiting:
                return
            for stream, up in waiting:
                if stream.up if up else stream.down:
                    self.deliver(stream, up)
        raise Broken("messages go round and round")

    def settle(self) -> None:
        """No more faults: all come back, and everything finds its end."""
        rng = self.rng
        rng.seed(0)
        for stream in list(self.net.streams.values()):
            if stream.frozen:
                self.net.break_off(stream, rng)
        for agent in self.agents:
            agent.refuse_next = None
            if agent.faulty:
                agent.crash(rng)
                agent.faulty = False
        self.deliver_all()
        for _ in range(8):
            self._all_back()
            self.advance(30.0)
            self.check()
        check_rest(self)
        for agent in self.agents:
            agent.finish()
        for scheduler in self.schedulers:
            if scheduler.subscribed and self.rng.random() < 0.3:
                scheduler.teardown()
        for _ in range(3):
            self._all_back()
            self.advance(30.0)
            self.check()
        check_rest(self)
        check_end(self)
        revocations.check_end(self)

    def _all_back(self) -> None:
        self.deliver_all()
        for agent in self.agents:
            if agent.stream is None:
                agent.register()
            agent.end_doomed()
            agent.repeat()
        for scheduler in self.schedulers:
            if scheduler.stream is None and not scheduler.ended:
                scheduler.subscribe()
            elif scheduler.subscribed:
                # Of a launch that was lost while its agent was unreachable nobody tells.
                scheduler.reconcile()
        for _ in range(10):
            self.deliver_all()
            for scheduler in self.schedulers:
                scheduler.acknowledge_all()
        self.deliver_all()


def _shown(item: Message | End) -> str:
    return " ".join(str(item).split())


# How often each happens, and whether it is a fault: of those some runs have more.
_TABLE: Final[Sequence[tuple[int, bool, Callable[[Run, random.Random], None]]]] = (
    (500, False, Run._deliver),
    (50, False, Run._pass_time),
    (4, True, Run._pass_long),
    (1, True, Run._stall),
    (4, True, Run._lose_message),
    (6, True, Run._break),
    (4, True, Run._freeze),
    (5, False, Run._join_agent),
    (80, False, Run._progress),
    (15, False, Run._doom),
    (5, False, Run._exit_executor),
    (15, True, Run._repeat),
    (20, False, Run._connect_agent),
    (3, True, Run._crash_agent),
    (1, True, Run._unregister),
    (6, True, Run._twin),
    (2, True, Run._refuse_task),
    (15, True, Run._agent_lies),
    (5, False, Run._join_scheduler),
    (80, False, Run._accept),
    (20, False, Run._decline),
    (10, False, Run._kill),
    (80, False, Run._acknowledge),
    (10, False, Run._wish),
    (4, True, Run._reconcile),
    (2, False, Run._end_executor),
    (8, True, Run._err),
    (10, True, Run._scheduler_lies),
    (20, False, Run._connect_scheduler),
    (3, True, Run._crash_scheduler),
    (1, True, Run._teardown),
    (2, False, Run._operate),
    (6, False, revocations.take_back),
    (6, False, revocations.answer),
)
_ACTIONS: Final = [action for _, _, action in _TABLE]


def _weights(faults: int) -> list[int]:
    """Cumulated; `faults` in tenths of what the table says."""
    each = [weight * (faults if fault else 10) for weight, fault, _ in _TABLE]
    return list(itertools.accumulate(each))


_WEIGHTS: Final = [_weights(faults) for faults in (1, 5, 10, 10, 20)]
