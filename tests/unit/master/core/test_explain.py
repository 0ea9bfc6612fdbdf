"""Explanations: why a framework, or a task that waits, gets what it gets."""

import pytest

from master.allocator.base import Skip
from master.core import explain
from mesos_py.constraints import hosts_only
from mesos_py.resources import Resources
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import FakeFramework, World


@pytest.fixture
def world():
    return World()


def findings(framework):
    world = framework.world
    record = world.cluster.frameworks[framework.id]
    return explain.findings(world.cluster, record, world.clock.now())


def need(framework, text, name=""):
    wanted = pb.Request(resources=Resources.parse(text).to_proto())
    if name:
        wanted.name = name
    framework.call(type=sched.Call.REQUEST, request=sched.Call.Request(requests=[wanted]))


# ---- What never fits ---------------------------------------------------------------------


def test_more_than_any_agent_has(world):
    world.agent(resources="cpus:2;mem:100")
    world.agent(resources="cpus:1;mem:200")
    framework = world.framework()
    need(framework, "cpus:100")
    assert findings(framework)[0] == "it needs 100 cpus, largest agent has 2"
    need(framework, "cpus:100;mem:1000;ports:[80-80];racks:{a}", "big")
    assert findings(framework)[0] == (
        "'big' needs 100 cpus, largest agent has 2; 1000 mem, largest agent has 200; "
        "ports:[80-80], no agent has it; racks:{a}, no agent has it"
    )


def test_each_part_is_there_but_not_on_one_agent(world):
    world.agent(resources="cpus:8;mem:100")
    world.agent(resources="cpus:1;mem:8000;ports:[80-80]")
    framework = world.framework()
    need(framework, "cpus:4;mem:4000;ports:[80-80]")
    assert findings(framework)[0] == (
        "it needs cpus:4;mem:4000;ports:[80-80]: each part is there, but on no one agent together"
    )


def test_no_agent_at_all(world):
    framework = world.framework()
    need(framework, "cpus:1", "web")
    assert findings(framework)[0] == "'web' needs cpus:1, and no agent is connected"


def test_an_agent_that_is_away_does_not_count(world):
    world.agent().disconnect()
    framework = world.framework()
    need(framework, "cpus:1")
    assert "no agent is connected" in findings(framework)[0]


@pytest.mark.parametrize(("count", "words"), [(1, "the 1 agent"), (2, "the 2 agents")])
def test_a_constraint_that_no_agent_meets(world, count, words):
    for _ in range(count):
        world.agent()
    framework = FakeFramework(world, pb.FrameworkInfo(name="f", user="u"))
    only = sched.OfferConstraints(role_constraints={"*": hosts_only(["nowhere"])})
    framework.subscribe(offer_constraints=only)
    need(framework, "cpus:1")
    assert findings(framework)[0] == (
        f"it needs an agent with hostname equals nowhere, and none of {words} is one"
    )


# ---- What does not fit now ------------------------------------------------------------------


def test_what_is_in_use_now(world):
    agent = world.agent(resources="cpus:4;mem:100")
    framework = world.framework()
    framework.start("t1", text="cpus:2.5;mem:10")
    need(framework, "cpus:4")
    assert findings(framework)[0] == "it needs 4 cpus, at most 1.5 are free on one agent"
    agent.report("t1", pb.TASK_FINISHED, framework)
    assert "needs" not in findings(framework)[0]


def test_ports_that_are_in_use_now(world):
    world.agent(resources="cpus:4;ports:[80-81]")
    framework = world.framework()
    framework.start("t1", text="cpus:1;ports:[80-80]")
    need(framework, "cpus:1;ports:[80-80]")
    assert findings(framework)[0] == (
        "it needs cpus:1;ports:[80-80]: not free together on one agent now"
    )


def test_what_the_framework_has_in_its_hands_is_there(world):
    world.agent()
    framework = world.framework()
    framework.offers()
    need(framework, "cpus:4")
    assert findings(framework)[0].startswith("it holds 1 offer that it has not answered")


# ---- How the framework stands ------------------------------------------------------------------


def test_a_framework_that_is_away(world):
    framework = world.framework(failover_timeout=60.0)
    framework.disconnect()
    assert findings(framework) == [
        "the framework is not connected, so it is offered nothing",
        "role '*' holds a share of 0.000, not in the order, since it wants nothing",
        "in role '*' it holds a share of 0.000, not in the order, since it wants nothing",
        "it has never been sent an offer by this master",
    ]


def test_an_offer_that_is_due(world):
    framework = world.framework()
    world.agent()
    assert findings(framework)[0] == "an offer to it is due with the next allocation"


def test_many_offers_in_its_hands(world):
    for number in range(7):
        world.agent(f"host{number}")
    framework = world.framework()
    framework.offers()
    assert findings(framework)[0] == (
        "it holds 7 offers that it has not answered (host0, host1, host2, host3, host4 and others)"
    )


def test_when_the_last_offer_was(world):
    world.agent()
    framework = world.framework()
    framework.decline(*framework.offers())
    world.clock.advance(2.5)
    assert findings(framework)[-1] == "its last offer was sent 2.5 s ago; 1 in all"
    world.clock.wall_s -= 3600
    assert findings(framework)[-1] == "its last offer was sent 0.0 s ago; 1 in all"


def test_what_it_declined_itself(world):
    world.agent("web1")
    framework = world.framework()
    framework.decline(*framework.offers(), refuse_s=3600)
    text = findings(framework)[0]
    assert text.startswith("web1: ")
    assert "(filtered)" in text


def test_reasons_keep_the_allocators_words_and_are_not_endless():
    skips = [Skip("filtered", f"web{n}: declined", f"m-S{n}") for n in range(25)]
    found = explain._passed_over(skips)
    assert found[0] == "web0: declined (filtered)"
    assert found[-1] == "5 more reasons of these kinds"
    assert len(found) == 21


def test_a_framework_whose_tasks_run_and_that_waits_for_nothing_is_said_to():
    world = World()
    world.agent()
    framework = world.framework()
    framework.start("t1")
    found = explain.findings(
        world.cluster, world.cluster.frameworks[framework.id], world.clock.now()
    )
    assert found[0] == "1 task of it runs; it has not said that anything waits"


# ---- Tasks -----------------------------------------------------------------------------------


def task_findings(framework, task_id="t1"):
    world = framework.world
    record = world.cluster.frameworks[framework.id]
    task = record.find(task_id) or record.completed_tasks[-1]
    return explain.task_findings(world.cluster, record, task)


def test_a_task_that_nothing_was_heard_of(world):
    world.agent("web1")
    framework = world.framework()
    framework.start("t1")
    assert task_findings(framework) == ["task 't1' is STAGING on web1"]


def test_a_task_that_failed_says_why(world):
    agent = world.agent("web1")
    framework = world.framework()
    framework.start("t1")
    agent.report(
        "t1",
        pb.TASK_FAILED,
        framework,
        reason=pb.TaskStatus.REASON_CONTAINER_LAUNCH_FAILED,
        message="no such file",
    )
    assert task_findings(framework) == [
        "task 't1' is FAILED on web1",
        "REASON_CONTAINER_LAUNCH_FAILED: no such file",
    ]


def test_a_reason_of_a_newer_agent_is_shown_by_its_number(world):
    agent = world.agent("web1")
    framework = world.framework()
    framework.start("t1")
    agent.report("t1", pb.TASK_FAILED, framework, reason=777)
    assert task_findings(framework)[1] == "777"


def test_a_status_without_a_word_adds_nothing(world):
    agent = world.agent("web1")
    framework = world.framework()
    framework.start("t1")
    agent.report("t1", pb.TASK_RUNNING, framework)
    assert task_findings(framework) == ["task 't1' is RUNNING on web1"]


def test_a_task_of_parties_that_are_away(world):
    agent = world.agent("web1")
    framework = world.framework(failover_timeout=60.0)
    framework.start("t1")
    agent.disconnect()
    assert task_findings(framework)[1:] == ["its agent web1 is not connected"]
    framework.kill("t1")
    framework.disconnect()
    assert task_findings(framework) == [
        "task 't1' is STAGING on web1",
        "its agent web1 is not connected",
        "it will be killed when its agent is back",
        "its framework is not connected, so its updates wait",
    ]


def test_a_task_of_an_agent_that_is_gone(world):
    agent = world.agent("web1")
    framework = world.framework(failover_timeout=60.0)
    framework.start("t1")
    agent.call(type=agent_pb2.Call.UNREGISTER)
    assert task_findings(framework) == [
        f"task 't1' is LOST on {agent.id}",
        "REASON_AGENT_REMOVED: agent removed: it unregistered",
    ]


# ---- Agents that do not answer ---------------------------------------------------------------


def test_a_disconnected_agent_is_unreachable_and_so_is_one_that_was_taken_for_lost(world):
    agent = world.agent()
    framework = world.framework()
    agent.disconnect()
    assert any(
        text.endswith("the agent is disconnected (unreachable)") for text in findings(framework)
    )
    world.advance(world.cluster.options.agent_timeout_s + 1)
    host = agent.info.hostname
    assert f"1 agent ({host}) cannot be reached (unreachable)" in findings(framework)
    agent.register()
    assert not any("(unreachable)" in text for text in findings(framework))
