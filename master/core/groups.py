"""LAUNCH_GROUP: what a group of tasks must be like beyond what each of them must.

Rules: Mesos v1, src/master/validation.cpp (task::group).
"""

from __future__ import annotations

from typing import Final

from master.core.records import Framework
from mesos_py.enums import name_of
from mesos_py.errors import InvalidValue
from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb

_MIN_CPUS: Final = 0.01
_MIN_MEM_MB: Final = 32.0
# The executor is sent with each of the tasks, and an agent takes messages of 32 MB.
MAX_BYTES: Final = 16 * 1024 * 1024


def sent_bytes(group: pb.Offer.Operation.LaunchGroup) -> int:
    """About how large it is when each of its tasks has the executor with it."""
    return group.ByteSize() + len(group.task_group.tasks) * group.executor.ByteSize()


def complete(group: pb.Offer.Operation.LaunchGroup, framework: Framework) -> list[pb.TaskInfo]:
    """The tasks of the group, each with the group's executor.

    Raises InvalidValue if the executor is none for a group, or a task none for it.
    """
    infos = list(group.task_group.tasks)
    if not infos:
        raise InvalidValue("task_group.tasks", "[]", "a group must have at least one task")
    executor = group.executor
    _own(executor, framework)
    _executor(executor)
    for info in infos:
        _of_group(info, executor, framework)
        if _shares_cgroups(info) != _shares_cgroups(infos[0]):
            text = "shares the cgroups of its executor, or does not, unlike the others"
            raise InvalidValue("task_group", info.task_id.value, text)
        info.executor.CopyFrom(executor)
    return infos


def _own(executor: pb.ExecutorInfo, framework: Framework) -> None:
    """Fill in whose it is; another's id is found later."""
    if not executor.framework_id.value:
        executor.framework_id.value = framework.framework_id


def _executor(executor: pb.ExecutorInfo) -> None:
    container = executor.container
    if executor.type == pb.ExecutorInfo.DEFAULT:
        if executor.HasField("command"):
            text = "must not be there: the agent knows what a DEFAULT executor runs"
            raise InvalidValue("executor.command", executor.command.value, text)
        if executor.HasField("container") and container.mesos.HasField("image"):
            raise InvalidValue("executor.container", "image", "a DEFAULT executor has none")
    elif executor.type != pb.ExecutorInfo.CUSTOM:
        given = name_of(pb.ExecutorInfo.Type, executor.type)
        raise InvalidValue("executor.type", given, "must be DEFAULT or CUSTOM for a group")
    _no_docker("executor.container", container)
    own = Resources.from_proto("executor.resources", executor.resources).plain
    for name, least in (("cpus", _MIN_CPUS), ("mem", _MIN_MEM_MB)):
        if own.scalar(name) < least:
            text = f"must be at least {least:g} for the executor of a group"
            raise InvalidValue(f"executor.resources.{name}", own.scalar(name), text)
    if not own.scalar("disk"):
        text = "must be there for the executor of a group"
        raise InvalidValue("executor.resources.disk", 0, text)


def _of_group(info: pb.TaskInfo, executor: pb.ExecutorInfo, framework: Framework) -> None:
    task_id = info.task_id.value
    if info.HasField("executor"):
        _own(info.executor, framework)
        if info.executor != executor:
            given = info.executor.executor_id.value
            raise InvalidValue(
                "task_group", task_id, f"its executor ({given!r}) differs from the group's"
            )
    if executor.type == pb.ExecutorInfo.DEFAULT and not info.HasField("command"):
        raise InvalidValue("task_group", task_id, "needs a command for the DEFAULT executor")
    _no_docker(f"task {task_id}: container", info.container)
    check = info.health_check
    if info.container.network_infos and (check.HasField("http") or check.HasField("tcp")):
        text = "has a network of its own, where no HTTP or TCP health check of a group looks"
        raise InvalidValue("task_group", task_id, text)
    if info.limits and _shares_cgroups(info):
        text = "has limits, and shares the cgroups of its executor (linux_info.share_cgroups)"
        raise InvalidValue("task_group", task_id, text)


def _shares_cgroups(info: pb.TaskInfo) -> bool:
    linux = info.container.linux_info
    return linux.share_cgroups or not linux.HasField("share_cgroups")


def _no_docker(field: str, container: pb.ContainerInfo) -> None:
    if container.type == pb.ContainerInfo.DOCKER:
        raise InvalidValue(field, "DOCKER", "tasks of a group run in no docker containers")
