"""The containers of this agent, as operators are shown them."""

from __future__ import annotations

from agent.core.records import Executor
from agent.core.state import AgentState
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
