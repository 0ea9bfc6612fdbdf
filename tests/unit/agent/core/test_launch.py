"""RUN_TASKS: what is started, how, and what is refused with which words."""

import pytest

from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import (
    CAPABILITY,
    FRAMEWORK,
    AgentWorld,
    command,
    executor_info,
    for_executor,
    framework_info,
)

REASON = pb.TaskStatus


def test_a_shell_command_is_given_to_sh():
    world = AgentWorld()
    world.run(command("t", "echo $HOME | wc"))
    spec = world.specs()[0]
    assert (spec.executable, spec.argv) == ("/bin/sh", ["sh", "-c", "echo $HOME | wc"])


@pytest.mark.parametrize(("arguments", "argv"), [(["name", "-x"], ["name", "-x"]), ([], ["prog"])])
def test_without_a_shell_the_arguments_are_the_whole_argv(arguments, argv):
    world = AgentWorld()
    info = pb.CommandInfo(shell=False, value="prog", arguments=arguments)
    world.run(command("t", command=info))
    spec = world.specs()[0]
    assert (spec.executable, spec.argv) == ("prog", argv)


def test_the_sandbox_is_filed_under_agent_framework_executor_and_container():
    world = AgentWorld()
    world.run(command("t"))
    spec = world.specs()[0]
    assert "/".join(spec.sandbox) == f"agents/A1/frameworks/F1/executors/t/runs/{spec.container_id}"


def test_the_environment_is_what_mesos_sets_and_nothing_of_the_agents():
    world = AgentWorld()
    resources = [
        pb.Resource(
            name="cpus",
            type=pb.Value.SCALAR,
            scalar=pb.Value.Scalar(value=1),
            allocation_info=pb.Resource.AllocationInfo(role="ads"),
        )
    ]
    task = command("t")
    del task.resources[:]
    task.resources.extend(resources)
    world.run(task)
    spec = world.specs()[0]
    directory = "/srv/agent/" + "/".join(spec.sandbox)
    assert spec.environment == {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "MESOS_FRAMEWORK_ID": "F1",
        "MESOS_EXECUTOR_ID": "t",
        "MESOS_AGENT_ID": "A1",
        "MESOS_SLAVE_ID": "A1",
        "MESOS_DIRECTORY": directory,
        "MESOS_SANDBOX": directory,
        "MESOS_CONTAINER_ID": spec.container_id,
        "MESOS_TASK_ID": "t",
        "MESOS_ALLOCATION_ROLE": "ads",
    }


def test_an_executors_environment_says_where_the_agent_is_and_how_long_it_may_take_to_end():
    world = AgentWorld(http_endpoint="10.0.0.2:5051")
    world.run(for_executor("t"))
    spec = world.specs()[0]
    directory = "/srv/agent/" + "/".join(spec.sandbox)
    assert spec.environment == {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LIBPROCESS_PORT": "0",
        "MESOS_AGENT_ENDPOINT": "10.0.0.2:5051",
        "MESOS_AGENT_ID": "A1",
        "MESOS_ALLOCATION_ROLE": "*",
        "MESOS_CHECKPOINT": "0",
        "MESOS_CONTAINER_ID": spec.container_id,
        "MESOS_DIRECTORY": directory,
        "MESOS_EXECUTOR_ID": "ex",
        "MESOS_EXECUTOR_SHUTDOWN_GRACE_PERIOD": "5secs",
        "MESOS_FRAMEWORK_ID": "F1",
        "MESOS_HTTP_COMMAND_EXECUTOR": "0",
        "MESOS_PY_EXECUTOR_ENDPOINT": "unix:/srv/agent/executors.sock",
        "MESOS_SANDBOX": directory,
        "MESOS_SLAVE_ID": "A1",
        "MESOS_SLAVE_PID": "slave(1)@10.0.0.2:5051",
    }


def test_the_users_variables_stay_apart_so_that_isolators_come_before_them():
    world = AgentWorld()
    variables = [pb.Environment.Variable(name="PATH", value="/opt/bin")]
    info = pb.CommandInfo(value="x", environment=pb.Environment(variables=variables))
    world.run(command("t", command=info))
    assert world.specs()[0].command_environment == {"PATH": "/opt/bin"}


@pytest.mark.parametrize(
    ("in_command", "in_framework", "expected"), [("ann", "bob", "ann"), ("", "bob", "bob")]
)
def test_the_user_is_the_commands_or_else_the_frameworks(in_command, in_framework, expected):
    world = AgentWorld()
    world.framework = framework_info(user=in_framework)
    info = pb.CommandInfo(value="x")
    if in_command:
        info.user = in_command
    world.run(command("t", command=info))
    assert world.specs()[0].user == expected


def test_the_same_order_twice_starts_the_task_once():
    world = AgentWorld()
    world.run(command("t"))
    world.run(command("t"), command("u"))
    world.started("t")
    world.ended("t", 0)
    world.run(command("t"))
    assert [spec.executor_id for spec in world.specs()] == ["t", "u"]
    assert world.drops() == ["task is here already"] * 2
    world.acknowledge_all("t")
    world.run(command("t"))
    assert [spec.executor_id for spec in world.specs()] == ["t", "u", "t"]


def _variable(name: str, value: str = "", **more) -> pb.TaskInfo:
    variable = pb.Environment.Variable(name=name, value=value, **more)
    environment = pb.Environment(variables=[variable])
    return command("t", command=pb.CommandInfo(value="x", environment=environment))


SECRET = pb.Environment.Variable.SECRET
REFERENCE = pb.Secret(type=pb.Secret.REFERENCE, reference=pb.Secret.Reference(name="vault"))
BOTH = for_executor("t")
BOTH.command.value = "x"


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (command("../up"), "slash"),
        (command(".."), "must not be"),
        (pb.TaskInfo(task_id=pb.TaskID(value="t")), "either a command or an executor"),
        (BOTH, "either a command or an executor"),
        (command("t", command=pb.CommandInfo(shell=False)), "must name what to run"),
        (command("t", command=pb.CommandInfo(user="x")), "given to the shell"),
        (command("t", "a\0b"), "null character"),
        (_variable(""), "is no name"),
        (_variable("A=B"), "is no name"),
        (_variable("A", "x\0"), "null character"),
        (_variable("A", type=SECRET, secret=REFERENCE), "secret references"),
        (for_executor("t", executor_info("a/b")), "slash"),
        (for_executor("t", pb.ExecutorInfo(executor_id=pb.ExecutorID(value="e"))), "must be there"),
    ],
)
def test_a_task_that_makes_no_sense_is_an_error_and_starts_nothing(task, words):
    world = AgentWorld()
    world.run(task, command("good"))
    last = world.last(task.task_id.value)
    assert (last.state, last.reason) == (pb.TASK_ERROR, REASON.REASON_TASK_INVALID)
    assert words in last.message
    assert [spec.executor_id for spec in world.specs()] == ["good"]


def in_network(**asked):
    return pb.ContainerInfo(type=pb.ContainerInfo.MESOS, network_infos=[pb.NetworkInfo(**asked)])


DOCKER = pb.ContainerInfo(
    type=pb.ContainerInfo.DOCKER, docker=pb.ContainerInfo.DockerInfo(image="redis")
)


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (command("t", container=DOCKER), "redis"),
        (for_executor("t", executor_info(container=DOCKER)), "redis"),
        (
            command("t", container=pb.ContainerInfo(volumes=[pb.Volume(host_path="/v")])),
            "container.volumes[0].host_path: '/v': must be a path beneath the sandbox",
        ),
        (command("t", container=pb.ContainerInfo(hostname="h")), "host names"),
        (command("t", container=pb.ContainerInfo(rlimit_info=pb.RLimitInfo())), "rlimits"),
        (command("t", container=in_network(name="mesos-py")), "networks"),
        (command("t", container=in_network(groups=["g"])), "networks"),
        (
            command("t", container=in_network(labels={"labels": [{"key": "egress"}]})),
            "networks",
        ),
        (
            command("t", container=in_network(ip_addresses=[{"ip_address": "10.0.0.1"}])),
            "networks",
        ),
    ],
)
def test_what_the_agent_cannot_do_is_refused_in_words_and_not_left_out(task, words):
    world = AgentWorld()
    world.run(task)
    last = world.last("t")
    assert (last.state, last.reason) == (pb.TASK_FAILED, REASON.REASON_CONTAINER_LAUNCH_FAILED)
    assert words in last.message
    assert not world.specs()


@pytest.mark.parametrize(
    "asked",
    [{}, {"name": ""}, {"port_mappings": [{"host_port": 31000, "container_port": 80}]}],
    ids=["nothing", "no name", "ports"],
)
def test_a_network_without_a_name_is_the_agents_where_it_has_no_other(asked):
    for provided, addresses in ((frozenset(), ["10.0.0.2"]), (frozenset({"networks"}), [])):
        # Where there are others the container has its own address, which is not known yet.
        world = AgentWorld(provided=provided)
        world.core.state.info.ip = "10.0.0.2"
        world.run(command("t", container=in_network(**asked)))
        world.started("t", pid=7)
        found = world.last("t").container_status.network_infos
        assert [each.ip_address for info in found for each in info.ip_addresses] == addresses


def test_docker_containers_are_for_agents_that_run_them():
    world = AgentWorld(provided=frozenset({"docker"}))
    own = pb.CommandInfo(shell=False)  # what the image says
    world.run(command("t", container=DOCKER), command("u", command=own, container=DOCKER))
    world.run(for_executor("v", executor_info(container=DOCKER)))
    assert [spec.container for spec in world.specs()] == [DOCKER] * 3
    world.run(command("w", command=own))
    assert "must name what to run" in world.last("w").message


def test_a_container_that_asks_for_nothing_special_is_none():
    world = AgentWorld()
    world.run(command("t", container=pb.ContainerInfo(type=pb.ContainerInfo.MESOS)))
    assert len(world.specs()) == 1


def test_a_secret_that_is_given_by_value_is_a_variable():
    world = AgentWorld()
    secret = pb.Secret(type=pb.Secret.VALUE, value=pb.Secret.Value(data=b"s3"))
    world.run(_variable("KEY", type=SECRET, secret=secret))
    assert world.specs()[0].command_environment == {"KEY": "s3"}


def test_limits_without_isolators_are_refused():
    world = AgentWorld()
    task = command("t")
    task.limits["mem"].value = 64
    world.run(task)
    assert world.last("t").state == pb.TASK_LOST


def test_a_command_whose_id_is_that_of_a_running_executor_is_dropped():
    world = AgentWorld()
    world.framework = framework_info(CAPABILITY.PARTITION_AWARE)
    world.run(for_executor("t1", executor_info("e")))
    world.run(command("e"))
    last = world.last("e")
    assert (last.state, last.reason) == (pb.TASK_DROPPED, REASON.REASON_TASK_INVALID)


def test_an_executor_whose_id_is_that_of_a_running_command_is_dropped():
    world = AgentWorld()
    world.run(command("e"))
    world.run(for_executor("t1", executor_info("e")))
    last = world.last("t1")
    assert (last.state, last.reason) == (pb.TASK_LOST, REASON.REASON_TASK_INVALID)


def test_tasks_of_an_executor_are_of_the_same_in_whatever_form_its_resources_are_said():
    world = AgentWorld()
    world.run(for_executor("t1", executor_info("e")))
    info = executor_info("e")
    info.resources[0].role = "*"
    world.run(for_executor("t2", info))
    [executor] = world.core.state.executors.values()
    assert {task.key[1] for task in executor.tasks.values()} == {"t1", "t2"}
    info.resources[0].scalar.value += 1
    world.run(for_executor("t3", info))
    assert world.last("t3").state == pb.TASK_ERROR


def test_frameworks_that_are_not_used_any_more_are_forgotten():
    world = AgentWorld()
    world.run(command("t"))
    world.started("t")
    world.ended("t", 0)
    world.acknowledge_all("t")
    world.framework = framework_info()
    world.framework.id.value = "F2"
    world.run(command("t"))
    assert list(world.core.state.frameworks) == ["F2"]
    assert FRAMEWORK not in world.core.state.used_frameworks()
