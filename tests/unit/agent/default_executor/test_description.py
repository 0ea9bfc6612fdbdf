"""What a task of a group is started with."""

import pytest

from agent.default_executor import description
from agent.default_executor.program import command_line, limits_of
from agent.fetcher.fetcher import Limits
from mesos_py.errors import InvalidValue
from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb

EXECUTOR = pb.ExecutorInfo(resources=Resources.parse("cpus:1;ports:[9-9]").to_proto())
INHERITED = {
    "PATH": "/bin",
    "MESOS_SANDBOX": "/s",
    "MESOS_DIRECTORY": "/s",
    "MESOS_CONTAINER_ID": "c",
    "MESOS_PY_EXECUTOR_ENDPOINT": "unix:/x",
    "MESOS_CHECKPOINT": "1",
    "PYTHONPATH": "/p",
    "MESOS_PY_FILES_URL": "http://here/c",
    "PORT": "9",
    "PORT0": "9",
}


def task(value="run", **more):
    command = pb.CommandInfo(value=value, **more)
    return pb.TaskInfo(
        task_id=pb.TaskID(value="t"),
        command=command,
        resources=Resources.parse("cpus:1;ports:[7-7]").to_proto(),
    )


def test_a_task_has_what_the_agent_tells_tasks_and_its_own_directory():
    variables = [pb.Environment.Variable(name="A", value="b")]
    given = task(environment=pb.Environment(variables=variables))
    assert description.environment_of(given, INHERITED, EXECUTOR, "10.0.0.1") == {
        "PATH": "/bin",
        "MESOS_CONTAINER_ID": "c",
        "MESOS_TASK_ID": "t",
        "MESOS_SANDBOX": "/s/tasks/t",
        "MESOS_DIRECTORY": "/s/tasks/t",
        "MESOS_CONTAINER_IP": "10.0.0.1",
        "MESOS_PORTS": "7",
        "PORTS": "7",
        "PORT": "7",
        "PORT0": "7",
        "A": "b",
    }


def test_an_address_of_its_own_is_not_the_agents():
    own = pb.ExecutorInfo(container=pb.ContainerInfo(network_infos=[pb.NetworkInfo()]))
    assert "MESOS_CONTAINER_IP" not in description.environment_of(task(), INHERITED, own, "1.2.3.4")


def test_a_command_that_nobody_can_run_is_refused():
    with pytest.raises(InvalidValue):
        description.program_of(task("", shell=False))


def test_its_user_is_the_commands_or_else_the_frameworks():
    framework = pb.FrameworkInfo(user="f")
    assert description.user_of(task(), framework) == "f"
    assert description.user_of(task(user="u"), framework) == "u"


def test_the_process_is_told_the_limits_of_fetching_but_has_no_cache():
    limits = Limits(max_bytes=7, frameworks_home="/h")
    assert limits_of(command_line(limits, "/srv")[-2]) == Limits(
        cache_bytes=0, max_bytes=7, frameworks_home="/h"
    )
