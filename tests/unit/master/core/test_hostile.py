"""Messages whose fields may hold anything: no call raises, and the account stays in order."""

import math
import random

import pytest
from google.protobuf.descriptor import FieldDescriptor as Field

from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import World

DOUBLES = [0.0, -0.0, 1.0, 0.1, -1.0, 1e-9, 1e300, math.nan, math.inf, -math.inf, 2.0**63]
WHOLE = [0, 1, 2, 5, 80, 2**31 - 1]
TEXTS = ["", "a", "*", ".", "a/b", "a\0b", "ü" * 200, "x" * 300, "\u202e", "cpus", "mem", "ports"]


class Dice:
    """Fills messages with values that are ids in use, odd, or out of every bound."""

    def __init__(self, seed, ids):
        self.random = random.Random(seed)
        self.ids = ids

    def message(self, message, depth=0):
        for field in message.DESCRIPTOR.fields:
            if self.random.random() < (0.35 if depth else 0.5):
                continue
            if field.is_repeated:
                self._many(getattr(message, field.name), field, depth)
            elif field.type == Field.TYPE_MESSAGE:
                getattr(message, field.name).SetInParent()
                if depth < 6:
                    self.message(getattr(message, field.name), depth + 1)
            else:
                setattr(message, field.name, self._value(field))
        return message

    def _many(self, container, field, depth):
        map_of = field.message_type and field.message_type.GetOptions().map_entry
        for _ in range(self.random.choice([0, 1, 1, 2, 3])):
            if map_of:
                value = field.message_type.fields_by_name["value"]
                entry = container[self._text()]
                if value.type == Field.TYPE_MESSAGE and depth < 6:
                    self.message(entry, depth + 1)
            elif field.type == Field.TYPE_MESSAGE:
                added = container.add()
                if depth < 6:
                    self.message(added, depth + 1)
            else:
                container.append(self._value(field))

    def _text(self):
        return self.random.choice(self.ids if self.random.random() < 0.6 else TEXTS)

    def _value(self, field):
        dice = self.random
        match field.type:
            case Field.TYPE_STRING:
                return self._text()
            case Field.TYPE_BYTES:
                return dice.choice([b"", b"x", b"u" * 16, b"u" * 17])
            case Field.TYPE_DOUBLE:
                return dice.choice(DOUBLES)
            case Field.TYPE_BOOL:
                return dice.random() < 0.5
            case Field.TYPE_ENUM:
                known = [value.number for value in field.enum_type.values]
                return dice.choice([*known, *known, 77, -1])
            case Field.TYPE_INT32 | Field.TYPE_INT64:
                return dice.choice([*WHOLE, -1, -(2**31)])
            case _:
                return dice.choice(WHOLE)

    def mend(self, call, world):
        """Put enough of a scheduler's call in order for the rest of it to be looked at."""
        live = list(world.cluster.offers.values())
        if not live or self.random.random() < 0.2:
            return
        offer = self.random.choice(live)
        for named in (call.accept.offer_ids, call.decline.offer_ids):
            if self.random.random() < 0.8:
                del named[1:]
                (named[0] if named else named.add()).value = offer.offer_id
        for operation in call.accept.operations:
            if self.random.random() < 0.8:
                operation.type = pb.Offer.Operation.LAUNCH
            for info in operation.launch.task_infos:
                self._mend_task(info, offer, world)

    def _mend_task(self, info, offer, world):
        sound = world.task(f"x{self.random.randrange(10**6)}", offer.agent_id, text="cpus:0.01")
        for name in ("task_id", "agent_id", "resources", "command", "executor"):
            if self.random.random() < 0.85:
                info.ClearField(name)
                if name in ("task_id", "agent_id", "command"):
                    getattr(info, name).CopyFrom(getattr(sound, name))
        if self.random.random() < 0.3:
            info.ClearField("command")
            info.executor.executor_id.value = self.random.choice(self.ids)
            info.executor.command.value = "run"
        if not info.resources:
            info.resources.extend(sound.resources)
        for name in ("limits", "kill_policy", "max_completion_time"):
            if self.random.random() < 0.6:
                info.ClearField(name)

    def mend_update(self, update, framework, tasks):
        """The same for an agent's."""
        if self.random.random() < 0.8:
            update.framework_id.value = framework.id
        if tasks and self.random.random() < 0.8:
            update.status.task_id.value = self.random.choice(tasks)
        if self.random.random() < 0.8:
            update.status.uuid = bytes(self.random.randrange(256) for _ in range(16))


def scene():
    """A world with something of everything, and the ids that are in use there."""
    world = World()
    agents = [world.agent(resources="cpus:8;mem:4096;ports:[1-100]") for _ in range(2)]
    framework = world.framework(failover_timeout=60.0)
    offers = framework.offers()
    for number, offer in enumerate(offers):
        framework.launch(offer, world.task(f"t{number}"))
    ids = [framework.id, *(agent.id for agent in agents), "t0", "t1", "e1", "*", "m-O2", "m-O3"]
    return world, agents, framework, ids


@pytest.mark.parametrize("seed", range(6))
def test_no_call_of_a_scheduler_raises_or_breaks_the_account(seed):
    world, _, framework, ids = scene()
    dice = Dice(seed, ids)
    kinds = [kind for kind in sched.Call.Type.values() if kind != sched.Call.TEARDOWN]
    for number in range(150):
        call = sched.Call()
        dice.message(call)
        call.type = dice.random.choice(kinds)
        dice.mend(call, world)
        if dice.random.random() < 0.8:
            call.ClearField("framework_id")
        link = world.link() if call.type == sched.Call.SUBSCRIBE else framework.link
        world.core.framework_call(link, call, world.clock.now())
        if number % 10 == 0:
            world.advance(0.1)
            world.check()
        if framework.link not in world.cluster.framework_of_link:
            framework.info.ClearField("id")
            framework.subscribe()
    world.check()
    assert world.cluster.frameworks[framework.id].connected


@pytest.mark.parametrize("seed", range(6))
def test_no_call_of_an_agent_raises_or_breaks_the_account(seed):
    world, (agent, other), framework, ids = scene()
    dice = Dice(seed, ids)
    kinds = [kind for kind in agent_pb2.Call.Type.values() if kind != agent_pb2.Call.UNREGISTER]
    for number in range(150):
        call = agent_pb2.Call()
        dice.message(call)
        call.type = dice.random.choice(kinds)
        if call.type == agent_pb2.Call.REGISTER:
            # As much of it in order as is needed for the rest to be looked at.
            info = call.register.agent_info
            info.CopyFrom(agent.info)
            call.register.protocol_version = 1
            world.core.agent_call(world.link(), call, world.clock.now())
            agent.register(frameworks=[framework.info])
        else:
            tasks = list(world.cluster.frameworks[framework.id].tasks)
            dice.mend_update(call.update, framework, tasks)
            world.core.agent_call(agent.link, call, world.clock.now())
        if number % 10 == 0:
            world.advance(0.1)
            world.check()
        framework.take()
    assert world.cluster.agents[other.id].connected
    world.check()


def test_the_dice_reach_every_kind_of_field():
    """Else the tests above prove less than they seem to."""
    dice = Dice(0, ["a"])
    seen: set[str] = set()
    for _ in range(200):
        call = dice.message(sched.Call())
        seen.update(field.name for field, _ in call.ListFields())
    assert seen == {field.name for field in sched.Call.DESCRIPTOR.fields}
