"""What this agent has, as operators are shown it: the messages of the operator API."""

from __future__ import annotations

from agent.core.records import Executor, Framework, Task, role_of, task_message
from agent.core.state import AgentState
from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb
from mesos_py.v1.agent_operator_pb2 import Response

Container = Response.GetContainers.Container


def containers(s: AgentState) -> list[Container]:
    """Those whose processes are not gone, without what they use."""
    return [_container(executor) for executor in s.containers.values()]


def _container(executor: Executor) -> Container:
    container_id = pb.ContainerID(value=executor.container_id)
    message = Container(
        framework_id=pb.FrameworkID(value=executor.key[0]),
        executor_id=pb.ExecutorID(value=executor.key[1]),
        container_id=container_id,
        container_status=pb.ContainerStatus(container_id=container_id, executor_pid=executor.pid),
        custom_executor=executor.custom,
        task_ids=[task.info.task_id for task in executor.tasks.values()],
    )
    if executor.info is not None:
        message.executor_name = executor.info.name
        message.resources.extend(executor.resources.to_proto())
    else:
        for task in executor.tasks.values():
            message.executor_name = task.info.name
            message.resources.extend(task.info.resources)
    return message


# ---- Frameworks, executors, tasks ---------------------------------------------------


def present(s: AgentState) -> list[Framework]:
    """Those that have something running here."""
    return list({each.key[0]: each.framework for each in s.executors.values()}.values())


def completed(s: AgentState) -> list[Framework]:
    """Those that only had, as far as that is remembered."""
    there = {key[0] for key in s.executors}
    return list(
        {each.key[0]: each.framework for each in s.past if each.key[0] not in there}.values()
    )


def frameworks(s: AgentState) -> Response.GetFrameworks:
    def shown(each: Framework) -> Response.GetFrameworks.Framework:
        return Response.GetFrameworks.Framework(framework_info=each.info)

    return Response.GetFrameworks(
        frameworks=map(shown, present(s)), completed_frameworks=map(shown, completed(s))
    )


def executors(s: AgentState) -> Response.GetExecutors:
    def shown(each: Executor) -> Response.GetExecutors.Executor:
        return Response.GetExecutors.Executor(executor_info=executor_info(each))

    return Response.GetExecutors(
        executors=map(shown, s.executors.values()), completed_executors=map(shown, s.past)
    )


def tasks(s: AgentState) -> Response.GetTasks:
    found = Response.GetTasks()
    for executor in s.executors.values():
        for task in executor.tasks.values():
            queued = is_queued(task)
            to = found.queued_tasks if queued else found.launched_tasks
            to.append(task_shown(s, task))
    for executor in (*s.executors.values(), *s.past):
        for task in executor.completed:
            waits = s.tasks.get(task.key) is task
            to = found.terminated_tasks if waits else found.completed_tasks
            to.append(task_shown(s, task))
    return found


def agent(s: AgentState) -> Response.GetAgent:
    found = Response.GetAgent(drain_config=s.drain)
    found.agent_info.CopyFrom(s.info)
    if s.info.HasField("http_port"):
        # Mesos has one port, that of HTTP.
        found.agent_info.port = s.info.http_port
    return found


def is_queued(task: Task) -> bool:
    """Whether it waits for its executor."""
    return task.executor.custom and not task.delivered


def task_shown(s: AgentState, task: Task) -> pb.Task:
    message = task_message(task, s.agent_id, s.updates.head(task.key))
    del message.statuses[:]
    message.statuses.extend(task.statuses)
    if task.statuses and not message.HasField("status_update_state"):
        # All are acknowledged.
        message.status_update_state = task.statuses[-1].state
        message.status_update_uuid = task.statuses[-1].uuid
    if task.info.command.HasField("user"):
        message.user = task.info.command.user
    else:
        message.user = task.executor.framework.info.user
    return message


def executor_info(executor: Executor) -> pb.ExecutorInfo:
    """That of a command is made up of its task's: nothing runs but the command."""
    if executor.info is not None:
        if not executor.info.data:
            return executor.info
        kept = pb.ExecutorInfo()
        kept.CopyFrom(executor.info)
        kept.ClearField("data")
        return kept
    found = pb.ExecutorInfo(
        executor_id=pb.ExecutorID(value=executor.key[1]),
        framework_id=pb.FrameworkID(value=executor.key[0]),
        source=executor.key[1],
    )
    for task in tasks_of(executor):
        info = task.info
        found.name = info.name
        found.command.CopyFrom(info.command)
        # What tasks are told so may be secret, and Mesos shows it of no task.
        found.command.ClearField("environment")
        found.command.ClearField("uris")
        for name in ("container", "discovery", "labels"):
            if info.HasField(name):
                getattr(found, name).CopyFrom(getattr(info, name))
    return found


def tasks_of(executor: Executor) -> list[Task]:
    return [*executor.completed, *executor.tasks.values()]


def role(executor: Executor) -> str:
    """The role whose offers it was launched from."""
    for resource in executor.info.resources if executor.info is not None else ():
        if resource.allocation_info.role:
            return resource.allocation_info.role
    for task in tasks_of(executor):
        return role_of(task.info, executor.framework)
    return role_of(pb.TaskInfo(), executor.framework)


def held(executor: Executor) -> list[Resources]:
    """What it has now: its own, and what its tasks have."""
    found = [
        Resources.from_proto("resources", task.info.resources) for task in executor.tasks.values()
    ]
    if executor.info is not None:
        own = Resources.from_proto("executor.resources", executor.info.resources)
        found.append(own)
    return found
