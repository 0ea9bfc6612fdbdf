"""What the records say of themselves."""

import pytest

from master.core.ledger import Holder
from master.core.records import Agent, Executor, Framework, Task, extras_of
from mesos_py.clock import Now
from mesos_py.constraints import Host
from mesos_py.resources import EMPTY
from mesos_py.v1 import types_pb2 as pb

MULTI_ROLE = pb.FrameworkInfo.Capability(type=pb.FrameworkInfo.Capability.MULTI_ROLE)
NOW = Now(0.0, 0.0)


def task(**fields):
    return Task("f", "t", "a", "n", "web", EMPTY, **fields)


def test_holders_are_named_by_framework_role_kind_and_id():
    assert task().holder == Holder("f", "web", "task", "t")
    executor = Executor("f", "a", "e", "web", pb.ExecutorInfo(), EMPTY)
    assert executor.holder == Holder("f", "web", "executor", "e")


def test_the_framework_may_be_told_what_was_last_forwarded_else_the_newest():
    assert task(state=pb.TASK_RUNNING).told_state == pb.TASK_RUNNING
    waiting = task(state=pb.TASK_FINISHED, update_state=pb.TASK_STARTING)
    assert waiting.told_state == pb.TASK_STARTING


def test_who_has_a_link_is_connected():
    framework = Framework("f", pb.FrameworkInfo(), ("*",), NOW)
    agent = Agent("a", pb.AgentInfo(), Host("h", {}), EMPTY, "1", NOW)
    assert (framework.connected, agent.connected) == (False, False)
    framework.link = agent.link = 0
    assert (framework.connected, agent.connected) == (True, True)


@pytest.mark.parametrize("capabilities", [[], [MULTI_ROLE]])
def test_multi_role_is_a_capability(capabilities):
    framework = Framework("f", pb.FrameworkInfo(capabilities=capabilities), (), NOW)
    assert framework.multi_role == bool(capabilities)


def test_a_task_is_found_on_its_agent_or_on_one_that_is_cut_off():
    framework = Framework("f", pb.FrameworkInfo(), ("*",), NOW)
    framework.tasks["here"] = framework.unreachable_tasks["away"] = task()
    assert framework.find("here") is framework.find("away") is not None
    assert framework.find("nowhere") is None


def test_most_tasks_have_nothing_that_is_only_shown():
    info = pb.TaskInfo(name="t", command=pb.CommandInfo(value="true"), data=b"x")
    assert extras_of(info, "") is None


def test_what_is_only_shown_of_a_task():
    info = pb.TaskInfo(name="t", resources=[pb.Resource(name="cpus")])
    info.labels.labels.add(key="k")
    info.discovery.name = "web"
    info.container.hostname = "h"
    info.health_check.delay_seconds = 1
    info.kill_policy.grace_period.nanoseconds = 5
    info.limits["mem"].value = 64
    extras = extras_of(info, "nobody")
    assert extras is not None
    assert extras.labels.labels[0].key == "k"
    assert extras.discovery.name == "web"
    assert extras.container.hostname == "h"
    assert extras.health_check.delay_seconds == 1
    assert extras.kill_policy.grace_period.nanoseconds == 5
    assert extras.limits["mem"].value == 64
    assert extras.user == "nobody"
    assert not extras.resources
    assert not extras.name


@pytest.mark.parametrize(("user", "limits"), [("nobody", {}), ("", {"cpus": 1.0})])
def test_one_such_thing_is_enough(user, limits):
    info = pb.Task(name="t")
    for name, limit in limits.items():
        info.limits[name].value = limit
    extras = extras_of(info, user)
    assert extras is not None
    assert (extras.user, set(extras.limits)) == (user, set(limits))
