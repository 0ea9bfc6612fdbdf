"""What a task must be like: each rule of Mesos by itself, with the field that it names."""

import math
from typing import Any

import pytest

from master.core.records import Executor, Framework, Task
from master.core.validate import executor_resources, require_role, task_resources
from mesos_py.clock import Now
from mesos_py.errors import InvalidResources, InvalidValue, MesosPyError, TooLarge
from mesos_py.resources import EMPTY, Resources
from mesos_py.v1 import types_pb2 as pb

AGENT = "m-S0"
Variable = pb.Environment.Variable
ODD: Any = 77  # an enum's number that only a newer peer knows


@pytest.fixture
def framework():
    return Framework("f", pb.FrameworkInfo(), ("*",), Now(0.0, 0.0))


def command_task():
    return pb.TaskInfo(
        name="t",
        task_id=pb.TaskID(value="t1"),
        agent_id=pb.AgentID(value=AGENT),
        resources=Resources.parse("cpus:1;mem:32").to_proto(),
        command=pb.CommandInfo(value="true"),
    )


def executor_info():
    return pb.ExecutorInfo(
        executor_id=pb.ExecutorID(value="e1"),
        command=pb.CommandInfo(value="run"),
        resources=Resources.parse("cpus:0.1").to_proto(),
    )


def known_task(task_id):
    return Task("f", task_id, AGENT, "n", "*", EMPTY)


def check(framework, task, max_bytes=100_000):
    return task_resources(framework, task, AGENT, max_bytes)


def refused(framework, task):
    """The field at fault and why."""
    with pytest.raises(MesosPyError) as caught:
        check(framework, task)
    return str(caught.value)


# ---- Good ones ----------------------------------------------------------


def test_a_plain_command_task_is_good(framework):
    assert check(framework, command_task()) == Resources.parse("cpus:1;mem:32")


def test_a_task_with_everything_is_good(framework):
    task = command_task()
    task.command.user = "nobody"
    task.command.environment.variables.add(name="A", value="")
    task.command.environment.variables.add(name="B", value="x=y", type=Variable.VALUE)
    task.kill_policy.grace_period.nanoseconds = 0
    task.max_completion_time.nanoseconds = 10
    task.limits["cpus"].value = math.inf
    task.limits["mem"].value = 32
    assert check(framework, task)


def test_a_command_without_a_shell_may_be_arguments_alone(framework):
    task = command_task()
    task.command.shell = False
    task.command.ClearField("value")
    task.command.arguments.extend(["/bin/true", ""])
    assert check(framework, task)


def test_a_limit_of_something_not_asked_for_is_good(framework):
    task = command_task()
    del task.resources[1:]
    task.limits["mem"].value = 64
    assert check(framework, task)


# ---- Ids ----------------------------------------------------------


@pytest.mark.parametrize("task_id", ["", ".", "a/b", "x" * 300, "a\nb"])
def test_an_id_that_cannot_be(framework, task_id):
    task = command_task()
    task.task_id.value = task_id
    assert refused(framework, task).startswith("task_id: ")


def test_an_id_that_is_taken(framework):
    framework.tasks["t1"] = known_task("t1")
    assert "has not ended yet" in refused(framework, command_task())


def test_an_id_of_a_task_on_an_unreachable_agent(framework):
    framework.unreachable_tasks["t1"] = known_task("t1")
    assert "unreachable agent" in refused(framework, command_task())


def test_another_agent_than_the_offers(framework):
    task = command_task()
    task.agent_id.value = "m-S9"
    assert refused(framework, task) == "agent_id: 'm-S9': the offers are of agent m-S0"


def test_a_task_that_is_too_large(framework):
    task = command_task()
    with pytest.raises(TooLarge, match=f"at most {task.ByteSize() - 1} are taken"):
        check(framework, task, task.ByteSize() - 1)
    assert check(framework, task, task.ByteSize())


# ---- Resources ----------------------------------------------------------


def test_the_resources_of_a_task_for_an_executor_are_its_own(framework):
    task = command_task()
    task.ClearField("command")
    task.executor.CopyFrom(executor_info())
    assert check(framework, task) == Resources.parse("cpus:1;mem:32")


def test_no_resources(framework):
    task = command_task()
    task.ClearField("resources")
    assert refused(framework, task) == "resources: '': a task must ask for some resources"


def test_an_amount_of_nothing_says_nothing(framework):
    task = command_task()
    before = check(framework, task)
    task.resources.add(name="gpus", type=pb.Value.SCALAR).scalar.value = 0
    assert check(framework, task) == before
    for each in task.resources:
        each.scalar.value = 0
    assert refused(framework, task) == "resources: '': a task must ask for some resources"


@pytest.mark.parametrize("amount", [-1.0, math.nan, math.inf, 1e15])
def test_an_amount_that_is_none(framework, amount):
    task = command_task()
    task.resources[0].scalar.value = amount
    assert refused(framework, task).startswith("resources.cpus: ")


def test_a_role_that_is_not_the_offers():
    task = command_task()
    require_role(task, "web")
    task.resources[1].allocation_info.role = "web"
    require_role(task, "web")
    with pytest.raises(InvalidValue, match=r"resources.mem.allocation_info.role: 'web'"):
        require_role(task, "db")


@pytest.mark.parametrize(
    ("name", "limit", "why"),
    [
        ("disk", 5.0, "only cpus and mem"),
        ("cpus", 0.999, "at least what the task asks for"),
        ("mem", -1.0, "at least what the task asks for"),
        ("cpus", math.nan, "at least what the task asks for"),
        ("cpus", -math.inf, "at least what the task asks for"),
    ],
)
def test_a_limit_that_cannot_be(framework, name, limit, why):
    task = command_task()
    task.limits[name].value = limit
    text = refused(framework, task)
    assert text.startswith(f"limits.{name}: ")
    assert why in text


# ---- Commands ----------------------------------------------------------


def test_neither_command_nor_executor(framework):
    task = command_task()
    task.ClearField("command")
    assert refused(framework, task).startswith("command: 'neither'")


def test_both_command_and_executor(framework):
    task = command_task()
    task.executor.CopyFrom(executor_info())
    assert refused(framework, task).startswith("command: 'both'")


@pytest.mark.parametrize("shell", [None, True, False])
def test_a_command_that_is_empty(framework, shell):
    task = command_task()
    task.command.value = ""
    if shell is not None:
        task.command.shell = shell
    assert refused(framework, task) == "command.value: '': must not be empty"


def test_arguments_do_not_make_up_for_an_empty_shell_command(framework):
    task = command_task()
    task.command.value = ""
    task.command.arguments.append("true")
    assert refused(framework, task) == "command.value: '': must not be empty"


@pytest.mark.parametrize("where", ["value", "user", "arguments"])
def test_a_nul_in_a_command(framework, where):
    task = command_task()
    if where == "arguments":
        task.command.arguments.append("a\0b")
    else:
        setattr(task.command, where, "a\0b")
    assert "NUL" in refused(framework, task)


@pytest.mark.parametrize(
    ("variable", "why"),
    [
        (Variable(name="", value="x"), "no usable name"),
        (Variable(name="A=B", value="x"), "no usable name"),
        (Variable(name="A\0", value="x"), "no usable name"),
        (Variable(name="A", value="x\0"), "no usable name"),
        (Variable(name="A", value="x", type=Variable.SECRET), "'SECRET': must be a VALUE"),
        (Variable(name="A", value="x", type=Variable.UNKNOWN), "'UNKNOWN': must be a VALUE"),
        (Variable(name="A", value="x", type=ODD), "'77': must be a VALUE"),
        (Variable(name="A"), "the value is missing"),
    ],
)
def test_a_variable_that_cannot_be_set(framework, variable, why):
    task = command_task()
    task.command.environment.variables.append(variable)
    text = refused(framework, task)
    assert text.startswith(f"command.environment.{variable.name}: ")
    assert why in text


# ---- Times ----------------------------------------------------------


Volume = pb.Volume


@pytest.mark.parametrize(
    ("volume", "why"),
    [
        (Volume(), "volumes[1]: '': must have exactly one of host_path, image, source"),
        (
            Volume(host_path="d", source=Volume.Source(type=Volume.Source.HOST_PATH)),
            "volumes[1]: 'host_path, source': must have exactly one",
        ),
        (
            Volume(host_path="d", image=pb.Image()),
            "volumes[1]: 'host_path, image': must have exactly one",
        ),
        (Volume(source=Volume.Source()), "volumes[1].source.type: 'UNKNOWN': must be there"),
        (
            Volume(source=Volume.Source(type=Volume.Source.SANDBOX_PATH)),
            "volumes[1].source.sandbox_path: '': is missing",
        ),
    ],
)
def test_a_volume_that_makes_no_sense(framework, volume, why):
    container = pb.ContainerInfo(volumes=[Volume(host_path="/fine"), volume])
    task = command_task()
    task.container.CopyFrom(container)
    assert f"container.{why}" in refused(framework, task)
    executor = executor_info()
    executor.container.CopyFrom(container)
    with pytest.raises(InvalidValue) as caught:
        executor_resources(framework, executor, None)
    assert f"executor.container.{why}" in str(caught.value)


def test_volumes_of_which_only_the_agent_can_tell_are_left_to_that(framework):
    task = command_task()
    path = Volume.Source.SandboxPath(path="/x")
    sources = [
        Volume.Source(type=Volume.Source.SECRET),
        Volume.Source(type=Volume.Source.SANDBOX_PATH, sandbox_path=path),
    ]
    task.container.volumes.extend(Volume(source=each) for each in sources)
    check(framework, task)


def test_a_grace_period_below_zero(framework):
    task = command_task()
    task.kill_policy.grace_period.nanoseconds = -1
    assert refused(framework, task) == "kill_policy.grace_period: -1: must not be negative"


def test_a_completion_time_below_zero(framework):
    task = command_task()
    task.max_completion_time.nanoseconds = -1
    assert refused(framework, task) == "max_completion_time: -1: must not be negative"


# ---- Executors ----------------------------------------------------------


def running(framework, info):
    info.framework_id.value = framework.framework_id
    return Executor("f", AGENT, "e1", "*", info, Resources.parse("cpus:0.1"))


def test_a_new_executor_needs_its_resources(framework):
    assert executor_resources(framework, executor_info(), None) == Resources.of(cpus=0.1)


def test_a_new_executor_may_need_nothing_for_itself(framework):
    info = executor_info()
    info.ClearField("resources")
    assert executor_resources(framework, info, None) == EMPTY


def test_an_executor_that_runs_needs_nothing_more(framework):
    same = executor_info()
    same.type = pb.ExecutorInfo.CUSTOM
    known = running(framework, executor_info())
    with pytest.raises(InvalidValue, match="another description"):
        executor_resources(framework, same, known)
    assert executor_resources(framework, executor_info(), known) == EMPTY


def test_an_executor_may_name_its_framework(framework):
    info = executor_info()
    info.framework_id.value = "f"
    assert executor_resources(framework, info, None)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda e: e.executor_id.Clear(), "executor.executor_id: '': must not be empty"),
        (lambda e: setattr(e, "type", pb.ExecutorInfo.DEFAULT), "'DEFAULT': must be CUSTOM"),
        (lambda e: setattr(e, "type", 77), "'77': must be CUSTOM"),
        (lambda e: setattr(e.framework_id, "value", "g"), "is not this framework's id"),
        (lambda e: e.ClearField("command"), "executor.command: '': is missing"),
        (lambda e: setattr(e.command, "value", ""), "executor.command.value"),
        (
            lambda e: setattr(e.shutdown_grace_period, "nanoseconds", -1),
            "executor.shutdown_grace_period: -1",
        ),
    ],
)
def test_an_executor_that_cannot_be(framework, change, why):
    info = executor_info()
    change(info)
    with pytest.raises(InvalidValue, match=why):
        executor_resources(framework, info, None)


def test_wrong_executor_resources_name_their_place(framework):
    info = executor_info()
    info.resources[0].scalar.value = -1
    with pytest.raises(InvalidResources, match=r"executor.resources.cpus: -1.0"):
        executor_resources(framework, info, None)


# ---- Checks -------------------------------------------------------------


def test_a_good_health_check_and_check_are_taken(framework):
    task = command_task()
    task.health_check.CopyFrom(pb.HealthCheck(command=pb.CommandInfo(value="true")))
    task.check.type = pb.CheckInfo.TCP
    task.check.tcp.port = 80
    assert check(framework, task)


@pytest.mark.parametrize(
    ("field", "message", "words"),
    [
        ("health_check", pb.HealthCheck(), "health_check.type: 'UNKNOWN'"),
        (
            "health_check",
            pb.HealthCheck(command=pb.CommandInfo(value="x"), delay_seconds=-1),
            "health_check.delay_seconds: -1",
        ),
        ("check", pb.CheckInfo(), "check.type: 'UNKNOWN'"),
    ],
)
def test_a_wrong_one_is_named(framework, field, message, words):
    task = command_task()
    getattr(task, field).CopyFrom(message)
    assert refused(framework, task).startswith(words)
