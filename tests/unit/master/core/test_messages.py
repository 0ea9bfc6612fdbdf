"""Messages between schedulers and executors, and SHUTDOWN of an executor."""

import pytest

from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import World


class Scene:
    """A framework with a task on the custom executor e1."""

    def __init__(self):
        self.world = World()
        self.agent = self.world.agent()
        self.framework = self.world.framework(failover_timeout=60.0)
        (offer,) = self.framework.offers()
        task = self.world.custom_task("t1", own="")
        self.framework.launch(offer, task)
        self.agent.take()

    def say(self, data, agent_id=None, executor_id="e1"):
        message = sched.Call.Message(
            agent_id=pb.AgentID(value=agent_id or self.agent.id),
            executor_id=pb.ExecutorID(value=executor_id),
            data=data,
        )
        self.framework.call(type=sched.Call.MESSAGE, message=message)

    def answer(self, data, framework_id=None):
        message = agent_pb2.Call.ExecutorMessage(
            framework_id=pb.FrameworkID(value=framework_id or self.framework.id),
            executor_id=pb.ExecutorID(value="e1"),
            data=data,
        )
        self.agent.call(type=agent_pb2.Call.EXECUTOR_MESSAGE, executor_message=message)

    def shutdown(self, executor_id="e1", agent_id=None):
        call = sched.Call.Shutdown(
            executor_id=pb.ExecutorID(value=executor_id),
            agent_id=pb.AgentID(value=agent_id or self.agent.id),
        )
        self.framework.call(type=sched.Call.SHUTDOWN, shutdown=call)


@pytest.fixture
def scene():
    made = Scene()
    yield made
    made.world.check()


def test_a_message_goes_to_the_executor_as_it_is(scene):
    scene.say(b"\0hello")
    (event,) = scene.agent.take()
    assert event.executor_message.framework_id.value == scene.framework.id
    assert event.executor_message.executor_id.value == "e1"
    assert event.executor_message.data == b"\0hello"


def test_a_message_for_an_agent_that_is_away_is_said_to_be_lost(scene):
    scene.agent.disconnect()
    scene.framework.take()
    scene.say(b"hello")
    (refusal,) = scene.framework.refusals()
    assert refusal.call == sched.Call.MESSAGE
    assert refusal.message.endswith("not connected; the message is lost")


def test_a_message_for_an_agent_that_nobody_knows_is_said_to_be_lost(scene):
    scene.say(b"hello", agent_id="nowhere")
    (refusal,) = scene.framework.refusals()
    assert (refusal.field, refusal.value) == ("agent", "nowhere")
    assert refusal.message == "agent 'nowhere': unknown; the message is lost"


def test_a_message_from_an_executor_goes_to_its_framework(scene):
    scene.answer(b"hi")
    (event,) = scene.framework.take()
    assert event.message.agent_id.value == scene.agent.id
    assert event.message.executor_id.value == "e1"
    assert event.message.data == b"hi"


def test_a_message_for_a_framework_that_is_away_or_unknown_is_dropped(scene):
    scene.answer(b"hi", "nobody")
    scene.framework.disconnect()
    scene.answer(b"hi")
    drops = [reason for reason, _ in scene.world.outbox.drops]
    assert drops == ["message-framework-away"] * 2


def test_a_shutdown_goes_to_the_agent(scene):
    scene.shutdown()
    (event,) = scene.agent.take()
    assert event.shutdown_executor.framework_id.value == scene.framework.id
    assert event.shutdown_executor.executor_id.value == "e1"


@pytest.mark.parametrize("case", ["executor", "agent", "away"])
def test_a_shutdown_of_what_is_not_there_is_refused(scene, case):
    match case:
        case "executor":
            scene.shutdown("e9")
        case "agent":
            scene.shutdown(agent_id="nowhere")
        case "away":
            scene.agent.disconnect()
            scene.framework.take()
            scene.shutdown()
    (refusal,) = scene.framework.refusals()
    assert refusal.call == sched.Call.SHUTDOWN
    assert refusal.field == "executor"
    assert scene.agent.take() == []
