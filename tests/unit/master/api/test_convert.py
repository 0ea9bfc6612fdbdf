"""The master's records as operators see them."""

import pytest

from master.api import convert
from mesos_py.clock import Now
from mesos_py.constraints import hosts_only
from mesos_py.resources import Resources
from mesos_py.v1 import operator_pb2 as op
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import FakeFramework, World

MULTI_ROLE = pb.FrameworkInfo.Capability(type=pb.FrameworkInfo.Capability.MULTI_ROLE)


@pytest.fixture
def world():
    return World()


def text(resources):
    return str(Resources.from_proto("shown", resources))


def shown_framework(framework):
    c = framework.world.cluster
    record = c.frameworks.get(framework.id) or c.completed_frameworks[framework.id]
    return convert.framework_message(c, record)


def shown_agent(agent):
    c = agent.world.cluster
    return convert.agent_message(c, c.agents[agent.id])


def test_a_moment_is_wall_clock_time():
    assert convert.time_info(Now(5.0, 1.5)).nanoseconds == 1_500_000_000


# ---- Tasks -----------------------------------------------------------------------------


def test_a_task_with_everything(world):
    agent, framework = world.agent(), world.framework()
    (offer,) = framework.offers()
    task = world.custom_task("t1", text="cpus:0.5;mem:32", own="")
    task.labels.labels.add(key="k")
    framework.launch(offer, task)
    uuid = agent.report("t1", pb.TASK_RUNNING, framework, data=b"secret", latest=pb.TASK_FINISHED)
    record = world.cluster.frameworks[framework.id].tasks["t1"]
    message = convert.task_message(record)
    assert message.name == "t1"
    assert message.task_id.value == "t1"
    assert message.framework_id.value == framework.id
    assert message.agent_id.value == agent.id
    assert message.executor_id.value == "e1"
    assert message.state == pb.TASK_FINISHED
    assert message.status_update_state == pb.TASK_RUNNING
    assert message.status_update_uuid == uuid
    assert message.allocation_role == "*"
    assert text(message.resources) == "cpus:0.5;mem:32"
    assert message.labels.labels[0].key == "k"
    assert message.launched_time == record.launched_wall_s
    assert not message.statuses[0].HasField("data")


def test_a_task_that_never_started(world):
    world.agent()
    framework = world.framework()
    framework.start("t1", text="cpus:100")
    (record,) = world.cluster.frameworks[framework.id].completed_tasks
    message = convert.task_message(record)
    assert message.state == pb.TASK_ERROR
    assert not message.HasField("launched_time")
    assert not message.HasField("status_update_state")
    assert not message.HasField("executor_id")
    assert message.ended_time == world.clock.wall_s
    assert not message.resources


def test_a_task_that_an_agent_brought_back_shows_its_resources_once(world):
    agent = world.agent()
    info = pb.FrameworkInfo(name="f", user="u", id=pb.FrameworkID(value="old-1"))
    labels = pb.Labels(labels=[pb.Label(key="k")])
    task = agent.task("t1", "old-1", pb.TASK_RUNNING, "cpus:1;mem:32", labels=labels)
    task.statuses.add(state=pb.TASK_RUNNING)
    agent.register(tasks=[task], frameworks=[info])
    message = convert.task_message(world.cluster.frameworks["old-1"].tasks["t1"])
    assert text(message.resources) == "cpus:1;mem:32"
    assert len(message.statuses) == 1
    assert message.labels == labels


# ---- Agents ----------------------------------------------------------------------------


def test_an_agent_with_tasks_and_offers(world):
    agent, framework = world.agent(), world.framework()
    framework.start("t1", "t2", text="cpus:1;mem:32")
    agent.report("t2", pb.TASK_FINISHED, framework)
    world.settle()
    message = shown_agent(agent)
    assert message.agent_info == agent.info
    assert message.active
    assert message.state == "connected"
    assert message.version == "0.1.0"
    assert message.running_tasks == 1
    assert text(message.total_resources) == "cpus:4;mem:4096"
    assert text(message.allocated_resources) == "cpus:1;mem:32"
    assert text(message.offered_resources) == "cpus:3;mem:4064"
    assert message.HasField("registered_time")
    assert not message.HasField("reregistered_time")


def test_an_agent_that_goes_and_comes_back(world):
    agent = world.agent()
    agent.disconnect()
    assert (shown_agent(agent).state, shown_agent(agent).active) == ("disconnected", False)
    world.advance(75)
    message = shown_agent(agent)
    assert message.state == "unreachable"
    assert message.unreachable_time.nanoseconds > 0
    assert not message.allocated_resources
    agent.register()
    message = shown_agent(agent)
    assert message.state == "connected"
    assert message.HasField("reregistered_time")
    assert not message.HasField("unreachable_time")


# ---- Frameworks --------------------------------------------------------------------------


def test_a_framework_with_tasks_executors_and_offers(world):
    world.agent()
    framework = FakeFramework(world, pb.FrameworkInfo(name="f", user="u", failover_timeout=60.0))
    only = sched.OfferConstraints(role_constraints={"*": hosts_only(["host1", "host2"])})
    framework.subscribe(offer_constraints=only)
    record = world.cluster.frameworks[framework.id]
    assert shown_framework(framework).offer_constraints == record.constraints_proto == only
    framework.subscribe()
    (offer,) = framework.offers()
    task = world.custom_task("t1")
    framework.launch(offer, task)
    world.settle()
    message = shown_framework(framework)
    assert message.framework_info == record.info
    assert (message.active, message.connected, message.recovered) == (True, True, False)
    assert text(message.allocated_resources) == "cpus:1.5;mem:32"
    assert text(message.offered_resources) == "cpus:2.5;mem:4064"
    assert message.running_tasks == 1
    assert [o.id.value for o in message.offers] == list(record.offers)
    assert message.HasField("reregistered_time")
    assert not message.HasField("unregistered_time")
    assert not message.HasField("offer_constraints")
    executor = convert.executor_message(next(iter(record.executors.values())))
    assert executor.executor_info.executor_id.value == "e1"
    assert executor.agent_id == offer.agent_id


def test_what_a_framework_has_is_said_for_each_role_and_of_all_its_agents_together(world):
    for host in ("host1", "host2"):
        world.agent(host, "cpus:4;mem:100;ports:[1-9]")
    framework = world.framework(roles=["a", "b"], capabilities=[MULTI_ROLE])
    for offer in framework.offers():
        task = world.task(f"t{offer.id.value}", offer.agent_id.value, text="cpus:1;ports:[1-2]")
        framework.launch(offer, task, refuse_s=3600.0)
    message = shown_framework(framework)
    roles = [each.allocation_info.role for each in message.allocated_resources]
    assert roles == sorted(roles)
    assert set(roles) <= {"a", "b"}
    assert text(message.allocated_resources) == "cpus:2"
    agent = convert.agent_message(world.cluster, next(iter(world.cluster.agents.values())))
    (role,) = {each.allocation_info.role for each in agent.allocated_resources}
    assert role in ("a", "b")
    assert text(agent.allocated_resources) == "cpus:1;ports:[1-2]"


def test_what_runs_in_a_role_that_was_left_is_still_the_frameworks(world):
    world.agent()
    framework = world.framework(roles=["a"], capabilities=[MULTI_ROLE])
    framework.start("t1")
    del framework.info.roles[:]
    framework.info.roles.append("b")
    update = sched.Call.UpdateFramework(framework_info=framework.info)
    framework.call(type=sched.Call.UPDATE_FRAMEWORK, update_framework=update)
    assert text(shown_framework(framework).allocated_resources) == "cpus:1;mem:32"


def test_a_framework_that_has_suppressed_and_ended(world):
    framework = world.framework(roles=["b", "a"], capabilities=[MULTI_ROLE])
    framework.call(type=sched.Call.SUPPRESS)
    assert list(shown_framework(framework).suppressed_roles) == ["a", "b"]
    framework.call(type=sched.Call.TEARDOWN)
    message = shown_framework(framework)
    assert message.HasField("unregistered_time")
    assert not message.connected
    assert not message.allocated_resources


# ---- Roles ---------------------------------------------------------------------------------


def test_roles_with_a_framework_a_weight_or_a_share(world):
    world.agent()
    framework = world.framework(role="web")
    framework.start("t1")
    world.core.set_weight("db", 2.5, world.clock.now())
    c = world.cluster
    shown = convert.role_messages(c, {"web": 0.25, "old": 0.5})
    assert [role.name for role in shown] == ["db", "old", "web"]
    db, old, web = shown
    assert (db.weight, db.share, list(db.frameworks)) == (2.5, 0.0, [])
    assert (old.weight, old.share) == (1.0, 0.5)
    assert [f.value for f in web.frameworks] == [framework.id]
    assert text(web.resources) == "cpus:1;mem:32"
    assert isinstance(web, pb.Role)


def test_the_messages_are_those_of_the_operator_api(world):
    agent, framework = world.agent(), world.framework()
    assert isinstance(shown_agent(agent), op.Response.GetAgents.Agent)
    assert isinstance(shown_framework(framework), op.Response.GetFrameworks.Framework)
