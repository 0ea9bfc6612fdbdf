"""Faults that random histories (tests/property/test_master_core.py) found, each alone."""

import pytest

from master.core.cluster import Options
from master.core.tasks import MAX_ENDED
from mesos_py.states import (
    TASK_FAILED,
    TASK_FINISHED,
    TASK_KILLED,
    TASK_RUNNING,
    TASK_STARTING,
)
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import World

AWARE = [pb.FrameworkInfo.Capability(type=pb.FrameworkInfo.Capability.PARTITION_AWARE)]
AWAY_S = Options().agent_timeout_s


@pytest.fixture
def world():
    made = World()
    yield made
    made.check()


def states(statuses):
    return [pb.TaskState.Name(status.state) for status in statuses]


def away_and_back(world, agent, *tasks, **report):
    """The agent becomes unreachable and registers again."""
    agent.disconnect()
    world.advance(AWAY_S)
    agent.register(tasks, **report)


def test_a_refusal_that_has_ended_does_not_keep_the_master_awake_until_the_cycle_is_due():
    world = World(Options(offer_timeout_s=10.0))
    world.agent()
    world.framework()
    world.settle()
    world.clock.advance(10.0)
    world.core.tick(world.clock.now())  # the offer expires: refused for no time at all
    assert (world.core.next_deadline_s() or 0.0) > world.clock.monotonic_s


def test_a_new_instance_is_offered_what_the_one_that_it_displaced_has_refused(world):
    world.agent()
    framework = world.framework(failover_timeout=60.0)
    framework.decline(*framework.offers(), refuse_s=1000.0)
    framework.subscribe()
    assert framework.offers()


def test_a_new_instance_has_not_stated_the_needs_of_the_one_that_it_displaced(world):
    framework = world.framework(failover_timeout=60.0)
    needs = sched.Call.Request(requests=[pb.Request(name="rank 0", waiting=True)])
    framework.call(type=sched.Call.REQUEST, request=needs)
    framework.subscribe()
    assert world.cluster.frameworks[framework.id].requests == []


def test_the_agent_is_told_which_executors_the_master_takes_to_be_new(world):
    # An agent that had one exit a moment ago must not start it again uncharged.
    agent = world.agent()
    framework = world.framework()
    new = []
    for task_id in ("t1", "t2"):
        framework.launch(framework.offers()[0], world.custom_task(task_id, "e1"))
        (order,) = agent.take(agent_pb2.Event.RUN_TASKS)
        new.append([each.value for each in order.run_tasks.new_executors])
    assert new == [["e1"], []]


def test_an_end_that_was_told_when_the_agent_was_cut_off_is_not_taken_back_when_it_returns(world):
    agent = world.agent()
    framework = world.framework(capabilities=AWARE)
    framework.start("t1")
    first = agent.report("t1", TASK_STARTING, framework, latest=TASK_FAILED)
    framework.take()
    listed = agent.task(
        "t1", framework, TASK_FAILED, status_update_state=TASK_STARTING, status_update_uuid=first
    )
    away_and_back(world, agent, listed)
    assert states(framework.updates()) == ["TASK_FAILED"]
    agent.report("t1", TASK_STARTING, framework, uuid=first, latest=TASK_FAILED)
    assert framework.updates() == []
    (told,) = agent.take(agent_pb2.Event.ACKNOWLEDGE)
    assert told.acknowledge.uuid == first
    last = agent.report("t1", TASK_FAILED, framework)
    assert states(framework.updates()) == ["TASK_FAILED"]
    framework.acknowledge(agent, "t1", last)
    assert world.cluster.frameworks[framework.id].tasks == {}


def test_an_end_that_could_not_be_told_when_the_agent_was_cut_off_is_told_from_the_start(world):
    agent = world.agent()
    framework = world.framework(capabilities=AWARE, failover_timeout=3600.0)
    framework.start("t1")
    first = agent.report("t1", TASK_STARTING, framework, latest=TASK_FAILED)
    framework.disconnect()
    listed = agent.task(
        "t1", framework, TASK_FAILED, status_update_state=TASK_STARTING, status_update_uuid=first
    )
    away_and_back(world, agent, listed)
    framework.subscribe()
    agent.report("t1", TASK_STARTING, framework, uuid=first, latest=TASK_FAILED)
    assert states(framework.updates()) == ["TASK_STARTING"]


def test_an_end_that_was_seen_before_the_cut_is_acknowledged_after_the_return(world):
    agent = world.agent()
    framework = world.framework(capabilities=AWARE)
    framework.start("t1")
    last = agent.report("t1", TASK_FINISHED, framework)
    listed = agent.task(
        "t1", framework, TASK_FINISHED, status_update_state=TASK_FINISHED, status_update_uuid=last
    )
    away_and_back(world, agent, listed)
    framework.acknowledge(agent, "t1", last)
    assert world.cluster.frameworks[framework.id].tasks == {}


def test_running_after_finished_is_acknowledged_and_not_shown(world):
    agent = world.agent()
    framework = world.framework()
    framework.start("t1")
    agent.report("t1", TASK_FINISHED, framework)
    framework.take()
    late = agent.report("t1", TASK_RUNNING, framework)
    assert framework.updates() == []
    (told,) = agent.take(agent_pb2.Event.ACKNOWLEDGE)
    assert told.acknowledge.uuid == late


def test_a_task_of_a_forgotten_framework_that_is_back_ends_without_an_acknowledgement():
    # The agent took the framework for gone: it keeps no update of the end.
    world = World(Options(max_completed_frameworks=0))
    agent = world.agent()
    framework = world.framework()
    framework.start("t1")
    agent.disconnect()
    framework.call(type=sched.Call.TEARDOWN)
    framework.subscribe()
    agent.register([agent.task("t1", framework, TASK_RUNNING)], frameworks=[framework.info])
    framework.take()
    agent.report("t1", TASK_KILLED, framework, uuid=b"")
    (update,) = framework.updates()
    assert update.state == TASK_KILLED
    assert not update.uuid
    assert world.cluster.frameworks[framework.id].tasks == {}
    assert not world.cluster.ledger.allocated(agent.id)
    world.check()


def test_an_agent_that_repeats_an_update_of_an_ended_framework_is_told_of_the_end(world):
    # Its own copy of the task had been replaced, so the teardown did not concern it.
    agent = world.agent()
    framework = world.framework()
    framework.call(type=sched.Call.TEARDOWN)
    agent.take()
    agent.report("t1", TASK_RUNNING, framework)
    assert agent.orders() == ["SHUTDOWN_FRAMEWORK"]


def test_an_agent_that_settles_a_task_of_an_ended_framework_is_told_nothing(world):
    agent = world.agent()
    framework = world.framework()
    framework.start("t1")
    framework.call(type=sched.Call.TEARDOWN)
    agent.take()
    agent.report("t1", TASK_KILLED, framework, uuid=b"")
    assert agent.orders() == []
    assert not world.cluster.ledger.allocated(agent.id)


def test_a_task_that_was_history_is_charged_as_its_agent_says_when_it_is_back(world):
    agent = world.agent()
    framework = world.framework()
    framework.start("t1", text="cpus:1;mem:32")
    framework.acknowledge(agent, "t1", agent.report("t1", TASK_FAILED, framework))
    agent.register([agent.task("t1", framework, TASK_RUNNING, "cpus:2;mem:64")])
    task = world.cluster.frameworks[framework.id].tasks["t1"]
    assert world.cluster.ledger.allocation(agent.id, task.holder) == task.resources
    assert task.resources.scalar("cpus") == 2.0


def test_the_repeated_end_of_a_task_is_not_taken_for_that_of_the_next_with_its_id(world):
    agent = world.agent()
    framework = world.framework()
    framework.start("t1")
    last = agent.report("t1", TASK_KILLED, framework)
    framework.acknowledge(agent, "t1", last)
    framework.start("t1")
    agent.take()
    agent.report("t1", TASK_KILLED, framework, uuid=last)  # it was on its way already
    assert framework.updates() == []
    assert agent.orders() == ["ACKNOWLEDGE"]
    task = world.cluster.frameworks[framework.id].tasks["t1"]
    assert world.cluster.ledger.allocation(agent.id, task.holder) == task.resources


def test_a_task_whose_order_was_lost_with_the_acknowledgement_of_its_namesake_is_dropped(world):
    agent = world.agent()
    framework = world.framework(capabilities=AWARE)
    framework.start("t1")
    last = agent.report("t1", TASK_KILLED, framework)
    framework.acknowledge(agent, "t1", last)
    framework.start("t1")
    framework.take()
    listed = agent.task(
        "t1", framework, TASK_KILLED, status_update_state=TASK_KILLED, status_update_uuid=last
    )
    agent.register([listed])
    assert states(framework.updates()) == ["TASK_DROPPED"]
    agent.report("t1", TASK_KILLED, framework, uuid=last)
    assert framework.updates() == []
    assert agent.orders() == ["ACKNOWLEDGE"]
    assert world.cluster.frameworks[framework.id].tasks == {}
    assert not world.cluster.ledger.allocated(agent.id)


def test_the_acknowledged_ends_that_are_remembered_of_an_agent_are_bounded(world):
    agent = world.agent()
    framework = world.framework()
    for number in range(MAX_ENDED + 1):
        framework.start(f"t{number}")
        uuid = agent.report(f"t{number}", TASK_FINISHED, framework)
        framework.acknowledge(agent, f"t{number}", uuid)
    ended = world.cluster.agents[agent.id].ended
    assert len(ended) == MAX_ENDED
    assert (framework.id, "t0") not in ended


def late(world, agent, instance, attempt):
    """A REGISTER of the agent that arrives now on a stream of its own; what comes back."""
    link = world.link()
    register = agent_pb2.Call.Register(
        agent_info=agent.info, protocol_version=1, instance=instance, attempt=attempt
    )
    call = agent_pb2.Call(type=agent_pb2.Call.REGISTER, register=register)
    world.core.agent_call(link, call, world.clock.now())
    return world.outbox.take(link)


def test_a_registration_that_was_overtaken_by_a_later_one_is_ignored(world):
    # It names what ran long ago, and would free what has been started since.
    agent = world.agent()
    assert late(world, agent, "process 1", attempt=2)
    record = world.cluster.agents[agent.id]
    link = record.link
    assert late(world, agent, "process 1", attempt=1) == []
    assert record.link == link
    assert late(world, agent, "process 1", attempt=3)
    assert late(world, agent, "process 2", attempt=1)


def test_a_subscription_that_was_overtaken_by_a_later_one_displaces_nobody(world):
    framework = world.framework(failover_timeout=60.0)
    framework.subscribe(instance="process 1", attempt=2)
    link = framework.link
    assert framework.subscribe(instance="process 1", attempt=1) == []
    assert world.cluster.frameworks[framework.id].link == link
    assert framework.subscribe(instance="process 2", attempt=1)


def test_the_first_subscription_of_a_process_may_arrive_after_its_second(world):
    framework = world.framework()
    first = pb.FrameworkInfo(name="f", user="nobody")
    framework.subscribe(instance="process 1", attempt=2)
    other = type(framework)(world, first)
    assert other.subscribe(instance="process 1", attempt=1) == []
    assert len(world.cluster.frameworks) == 1
