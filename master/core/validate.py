"""What a task must be like to be launched.  Raises InvalidValue naming the field.

Rules: Mesos v1, src/master/validation.cpp.
"""

from __future__ import annotations

import math
from typing import Final, Literal

from master.core.records import Executor, Framework
from mesos_py.descriptions import same_executor
from mesos_py.enums import name_of
from mesos_py.errors import InvalidValue, TooLarge
from mesos_py.health import check_plan, health_plan
from mesos_py.ids import check_id
from mesos_py.resources import EMPTY, Resources
from mesos_py.v1 import types_pb2 as pb

_LIMITABLE = ("cpus", "mem")
_OF_VOLUMES: Final[tuple[Literal["host_path", "image", "source"], ...]] = (
    "host_path",
    "image",
    "source",
)


def task_resources(
    framework: Framework,
    task: pb.TaskInfo,
    agent_id: str,
    max_bytes: int,
    *,
    in_group: bool = False,
) -> Resources:
    """Check all of a task that does not depend on what is free; its resources.

    in_group: its executor is its group's, which may want a command as well.
    """
    task_id = check_id("task_id", task.task_id.value)
    if task_id in framework.tasks:
        raise InvalidValue("task_id", task_id, "a task with this id has not ended yet")
    if task_id in framework.unreachable_tasks:
        raise InvalidValue("task_id", task_id, "a task with this id is on an unreachable agent")
    if task.agent_id.value != agent_id:
        raise InvalidValue("agent_id", task.agent_id.value, f"the offers are of agent {agent_id}")
    size = task.ByteSize()
    if size > max_bytes:
        raise TooLarge(f"the task is {size} bytes, at most {max_bytes} are taken", field="task")
    has_command = task.HasField("command")
    if has_command == task.HasField("executor") and not in_group:
        has = "both" if has_command else "neither"
        raise InvalidValue("command", has, "exactly one of command and executor must be given")
    resources = Resources.from_proto("resources", task.resources)
    if not resources:
        raise InvalidValue("resources", "", "a task must ask for some resources")
    if has_command:
        _command("command", task.command)
    _volumes("container", task.container)
    _durations(task)
    _cost(task)
    if task.HasField("health_check"):
        health_plan("health_check", task.health_check)
    if task.HasField("check"):
        check_plan("check", task.check)
    if task.limits:
        for name, limit in task.limits.items():
            _limit(name, limit.value, resources)
    return resources


def require_role(task: pb.TaskInfo, role: str) -> None:
    """Raises InvalidValue if the task says that its resources are of another role."""
    for resource in task.resources:
        if not resource.HasField("allocation_info"):
            continue
        given = resource.allocation_info.role
        if given not in ("", role):
            raise InvalidValue(
                f"resources.{resource.name}.allocation_info.role",
                given,
                f"the offers are of {role}",
            )


def executor_resources(
    framework: Framework,
    executor: pb.ExecutorInfo,
    running: Executor | None,
    *,
    in_group: bool = False,
) -> Resources:
    """Check an executor; what it needs beyond what is charged already.

    in_group: its type is the affair of `groups.complete`.
    """
    executor_id = check_id("executor.executor_id", executor.executor_id.value)
    if not in_group and executor.type not in (pb.ExecutorInfo.UNKNOWN, pb.ExecutorInfo.CUSTOM):
        given = name_of(pb.ExecutorInfo.Type, executor.type)
        raise InvalidValue("executor.type", given, "must be CUSTOM for a LAUNCH")
    owner = executor.framework_id.value
    if owner not in ("", framework.framework_id):
        raise InvalidValue("executor.framework_id", owner, "is not this framework's id")
    if executor.type != pb.ExecutorInfo.DEFAULT:
        if not executor.HasField("command"):
            raise InvalidValue("executor.command", "", "is missing")
        _command("executor.command", executor.command)
    _volumes("executor.container", executor.container)
    _grace("executor.shutdown_grace_period", executor, "shutdown_grace_period")
    if running is not None:
        executor.framework_id.value = framework.framework_id
        if not same_executor(running.info, executor):
            raise InvalidValue(
                "executor.executor_id",
                executor_id,
                "an executor with this id and another description runs there",
            )
        return EMPTY
    if not executor.resources:
        return EMPTY
    return Resources.from_proto("executor.resources", executor.resources)


def _command(field: str, command: pb.CommandInfo) -> None:
    shell = command.shell if command.HasField("shell") else True
    if not command.value and (shell or not command.arguments):
        raise InvalidValue(f"{field}.value", command.value, "must not be empty")
    for text in (command.value, command.user, *command.arguments):
        if "\0" in text:
            raise InvalidValue(field, text, "must not contain a NUL character")
    if not command.HasField("environment"):
        return
    for variable in command.environment.variables:
        where = f"{field}.environment.{variable.name}"
        if not variable.name or "=" in variable.name or "\0" in variable.name + variable.value:
            raise InvalidValue(where, variable.name, "is no usable name or value")
        if variable.HasField("type") and variable.type != pb.Environment.Variable.VALUE:
            given = name_of(pb.Environment.Variable.Type, variable.type)
            raise InvalidValue(where, given, "must be a VALUE; secrets are not supported")
        if not variable.HasField("value"):
            raise InvalidValue(where, "", "the value is missing")


def _volumes(field: str, container: pb.ContainerInfo) -> None:
    """What is wrong with volumes wherever they are; the rest is the agent's to say."""
    for number, volume in enumerate(container.volumes):
        where = f"{field}.volumes[{number}]"
        given = [name for name in _OF_VOLUMES if volume.HasField(name)]
        if len(given) != 1:
            text = f"must have exactly one of {', '.join(_OF_VOLUMES)}"
            raise InvalidValue(where, ", ".join(given), text)
        source = volume.source
        if given == ["source"] and source.type == pb.Volume.Source.UNKNOWN:
            raise InvalidValue(f"{where}.source.type", "UNKNOWN", "must be there")
        of_sandbox = source.type == pb.Volume.Source.SANDBOX_PATH
        if of_sandbox and not source.HasField("sandbox_path"):
            text = "is missing; the type is SANDBOX_PATH"
            raise InvalidValue(f"{where}.source.sandbox_path", "", text)


def _durations(task: pb.TaskInfo) -> None:
    if task.HasField("kill_policy"):
        _grace("kill_policy.grace_period", task.kill_policy, "grace_period")
    if task.HasField("max_completion_time") and task.max_completion_time.nanoseconds < 0:
        raise InvalidValue(
            "max_completion_time", task.max_completion_time.nanoseconds, "must not be negative"
        )


def _cost(task: pb.TaskInfo) -> None:
    if task.HasField("revocation_cost") and not task.revocation_cost >= 0:  # or NaN
        raise InvalidValue("revocation_cost", task.revocation_cost, "must be 0 or more")


def _grace(field: str, message: pb.ExecutorInfo | pb.KillPolicy, name: str) -> None:
    nanoseconds: int = getattr(message, name).nanoseconds
    if nanoseconds < 0:
        raise InvalidValue(field, nanoseconds, "must not be negative")


def _limit(name: str, limit: float, resources: Resources) -> None:
    if name not in _LIMITABLE:
        raise InvalidValue(f"limits.{name}", limit, "only cpus and mem can have a limit")
    if math.isnan(limit) or limit < resources.plain.scalar(name):
        raise InvalidValue(f"limits.{name}", limit, "must be at least what the task asks for")
