"""How frameworks end, and what stays of them until their processes are gone."""

import pytest

from master.core.cluster import Options
from mesos_py.resources import EMPTY, Resources
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import FakeFramework, World

Call = sched.Call
Capability = pb.FrameworkInfo.Capability
MULTI_ROLE = Capability(type=Capability.MULTI_ROLE)
PARTITION_AWARE = Capability(type=Capability.PARTITION_AWARE)


@pytest.fixture
def world():
    made = World()
    yield made
    made.check()


def record(framework):
    return framework.world.cluster.frameworks[framework.id]


def attempt(world, info=None, **fields):
    """SUBSCRIBE with what may be refused: the error's text, None if it is not."""
    framework = FakeFramework(world, info or pb.FrameworkInfo(name="f", user="u"))
    events = framework.subscribe(**fields)
    if events[0].type != sched.Event.ERROR:
        return None
    assert len(events) == 1
    message = events[0].error.message
    assert world.outbox.closed[framework.link] == message
    assert framework.link not in world.cluster.framework_of_link
    return message


def filters(*names):
    """Offer filters for the role "*" with the given amounts, as (name, value)."""
    quantities = pb.OfferFilters.ResourceQuantities()
    for name, value in names:
        quantities.quantities[name].value = value
    least = pb.OfferFilters.MinAllocatableResources(quantities=[quantities])
    return pb.OfferFilters(min_allocatable_resources=least)


# ---- Ends ---------------------------------------------------------------------------------------


def test_without_a_failover_timeout_a_framework_ends_with_its_stream(world):
    agent = world.agent()
    framework = world.framework()
    framework.start("t1")
    agent.take()
    framework.disconnect()
    assert framework.id not in world.cluster.frameworks
    assert agent.orders() == ["SHUTDOWN_FRAMEWORK"]


def test_a_framework_ends_when_its_failover_timeout_is_over(world):
    framework = world.framework(failover_timeout=60.0)
    framework.disconnect()
    world.advance(59.9)
    assert framework.id in world.cluster.frameworks
    world.advance(0.2)
    assert framework.id not in world.cluster.frameworks
    ended = world.cluster.completed_frameworks[framework.id]
    assert ended.unregistered is not None


def test_a_framework_that_could_not_be_heard_before_its_time_was_over_is_forgiven(world):
    framework = world.framework(failover_timeout=60.0)
    framework.disconnect()
    world.advance(30)
    # The master stands still, and wakes just when the time is over.
    world.clock.advance(30.5)
    world.core.tick(world.clock.now())
    world.advance(25)
    assert framework.id in world.cluster.frameworks
    world.advance(40)
    assert framework.id not in world.cluster.frameworks


def test_a_teardown_ends_everything_of_the_framework(world):
    agent = world.agent()
    framework = world.framework()
    framework.start("t1")
    (offer,) = framework.offers()
    agent.take()
    framework.call(type=Call.TEARDOWN)
    assert agent.orders() == ["SHUTDOWN_FRAMEWORK"]
    assert "was torn down" in world.outbox.closed[framework.link]
    assert framework.take() == []
    assert offer.id.value not in world.cluster.offers
    ended = world.cluster.completed_frameworks[framework.id]
    (task,) = ended.completed_tasks
    assert task.state == pb.TASK_KILLED
    assert task.statuses[-1].reason == pb.TaskStatus.REASON_FRAMEWORK_REMOVED


def test_what_a_removed_framework_has_stays_charged_until_its_processes_are_gone(world):
    agent = world.agent()
    framework = world.framework()
    framework.start("t1")
    framework.call(type=Call.TEARDOWN)
    other = world.framework("other")
    (offer,) = other.offers()
    assert Resources.from_proto("o", offer.resources) == Resources.parse("cpus:3;mem:4064")
    assert world.cluster.ledger.allocated(agent.id) == Resources.parse("cpus:1;mem:32")
    # The agent says so without a uuid: nobody would acknowledge.
    agent.report("t1", pb.TASK_KILLED, framework, uuid=b"")
    assert world.cluster.ledger.allocated(agent.id) == EMPTY
    agent.report("t1", pb.TASK_KILLED, framework, uuid=b"")
    assert len(other.offers()) == 1


def test_an_executor_of_a_removed_framework_stays_charged_until_it_has_exited(world):
    agent = world.agent()
    framework = world.framework()
    (offer,) = framework.offers()
    framework.launch(offer, world.custom_task("t1"))
    framework.call(type=Call.TEARDOWN)
    agent.report("t1", pb.TASK_KILLED, framework, uuid=b"")
    assert world.cluster.ledger.allocated(agent.id) == Resources.of(cpus=0.5)
    agent.executor_exited("e1", framework)
    assert world.cluster.ledger.allocated(agent.id) == EMPTY


def test_an_executor_without_resources_of_its_own_leaves_nothing_charged(world):
    agent = world.agent()
    framework = world.framework()
    (offer,) = framework.offers()
    task = world.custom_task("t1")
    task.executor.ClearField("resources")
    framework.launch(offer, task)
    framework.call(type=Call.TEARDOWN)
    assert world.cluster.ledger.allocated(agent.id) == Resources.parse("cpus:1;mem:32")


def test_unreachable_tasks_of_a_removed_framework_are_killed_in_the_books(world):
    agent = world.agent()
    framework = world.framework(capabilities=[PARTITION_AWARE])
    framework.start("t1")
    agent.disconnect()
    world.advance(75)
    framework.call(type=Call.TEARDOWN)
    (task,) = world.cluster.completed_frameworks[framework.id].completed_tasks
    assert task.state == pb.TASK_KILLED
    assert task.statuses[-1].reason == pb.TaskStatus.REASON_FRAMEWORK_REMOVED


def test_a_task_that_ended_before_its_framework_keeps_its_end(world):
    agent = world.agent()
    framework = world.framework()
    framework.start("t1")
    agent.report("t1", pb.TASK_FINISHED, framework)
    framework.call(type=Call.TEARDOWN)
    (task,) = world.cluster.completed_frameworks[framework.id].completed_tasks
    assert task.state == pb.TASK_FINISHED


def test_an_agent_that_is_away_learns_of_the_removal_when_it_is_back(world):
    agent = world.agent()
    framework = world.framework()
    framework.start("t1", "t2", text="cpus:0.5;mem:32")
    agent.disconnect()
    framework.call(type=Call.TEARDOWN)
    running = [
        agent.task(name, framework, pb.TASK_RUNNING, "cpus:0.5;mem:32") for name in ("t1", "t2")
    ]
    agent.register(tasks=running, frameworks=[framework.info])
    assert world.cluster.ledger.allocated(agent.id) == Resources.parse("cpus:1;mem:64")
    agent.disconnect()
    agent.link = 0
    agent.register(tasks=running[:1])
    assert world.cluster.ledger.allocated(agent.id) == Resources.parse("cpus:0.5;mem:32")


def test_only_so_many_ended_frameworks_are_remembered():
    world = World(Options(max_completed_frameworks=2))
    ended = []
    for _ in range(3):
        framework = world.framework()
        framework.call(type=Call.TEARDOWN)
        ended.append(framework)
    assert list(world.cluster.completed_frameworks) == [ended[1].id, ended[2].id]
    assert attempt(world, ended[0].info) is None
    assert attempt(world, ended[1].info) is not None


def test_only_so_many_ended_tasks_are_remembered():
    world = World(Options(max_completed_tasks=3))
    world.agent()
    framework = world.framework()
    (offer,) = framework.offers()
    framework.launch(offer, *(world.task(f"t{number}", cpus=100) for number in range(5)))
    names = [task.task_id for task in record(framework).completed_tasks]
    assert names == ["t2", "t3", "t4"]


def test_the_end_of_a_stream_that_never_subscribed_is_nothing(world):
    world.core.framework_disconnected(world.link(), world.clock.now())
    assert world.outbox.drops == []
