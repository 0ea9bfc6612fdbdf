"""What a task of a group is started with: user, environment, program.  Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from agent.core import environment, sandbox_paths
from agent.core.launch import argv_of
from agent.core.records import TASKS
from agent.core.sandbox_paths import Link
from mesos_py.v1 import types_pb2 as pb

# By this variable a process is known that has left its task's process group.
MARKER: Final = b"MESOS_TASK_ID="

# What the agent has told its executor, and that alone.
_OF_EXECUTORS: Final = frozenset(
    {
        *("MESOS_PY_EXECUTOR_ENDPOINT", "MESOS_AGENT_ENDPOINT", "MESOS_SLAVE_PID"),
        *("LIBPROCESS_PORT", "MESOS_CHECKPOINT", "MESOS_RECOVERY_TIMEOUT"),
        *("MESOS_SUBSCRIPTION_BACKOFF_MAX", "MESOS_HTTP_COMMAND_EXECUTOR"),
        *("MESOS_EXECUTOR_SHUTDOWN_GRACE_PERIOD", environment.FILES_URL, "PYTHONPATH"),
    }
)


def sandbox_of(task: pb.TaskInfo) -> tuple[str, ...]:
    """Beneath that of the executor."""
    return (TASKS, task.task_id.value)


def links_of(task: pb.TaskInfo) -> list[Link]:
    """How its volumes are shown in its sandbox.  Raises InvalidValue."""
    return sandbox_paths.links_of("container", task.container, in_group=True)


def user_of(task: pb.TaskInfo, framework: pb.FrameworkInfo) -> str:
    return task.command.user or framework.user


def program_of(task: pb.TaskInfo) -> tuple[str, list[str]]:
    """What to run, and its argv.  Raises InvalidValue."""
    return argv_of(task.command)


def environment_of(
    task: pb.TaskInfo,
    inherited: Mapping[str, str],
    executor: pb.ExecutorInfo,
    agent_ip: str,
) -> dict[str, str]:
    """`inherited`: that of the executor, which the agent has made.  Raises InvalidValue."""
    dropped = _OF_EXECUTORS | environment.of_ports(executor.resources).keys()
    kept = {name: value for name, value in inherited.items() if name not in dropped}
    directory = "/".join((inherited["MESOS_SANDBOX"], *sandbox_of(task)))
    own = {
        **environment.of_ports(task.resources),
        "MESOS_TASK_ID": task.task_id.value,
        "MESOS_DIRECTORY": directory,
        "MESOS_SANDBOX": directory,
    }
    if agent_ip and not executor.container.network_infos:
        own["MESOS_CONTAINER_IP"] = agent_ip
    return {**kept, **own, **environment.of_command(task.command)}
