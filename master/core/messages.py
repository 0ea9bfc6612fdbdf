"""Messages between schedulers and executors, and the end of executors: best effort."""

from __future__ import annotations

from master.core.cluster import Cluster
from master.core.records import Agent, Framework
from mesos_py.clock import Now
from mesos_py.errors import NotFound
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb


def to_executor(c: Cluster, framework: Framework, call: sched.Call.Message, now: Now) -> None:
    """MESSAGE: lost, and said to be, when the agent is away."""
    agent = c.agents.get(call.agent_id.value)
    if agent is None or not agent.connected:
        why = "unknown" if agent is None else "not connected"
        error = NotFound("agent", call.agent_id.value, f"{why}; the message is lost")
        c.refuse_call(framework, sched.Call.MESSAGE, error, now)
        return
    order = agent_pb2.Event.ExecutorMessage(
        framework_id=pb.FrameworkID(value=framework.framework_id),
        executor_id=call.executor_id,
        data=call.data,
    )
    event = agent_pb2.Event(type=agent_pb2.Event.EXECUTOR_MESSAGE, executor_message=order)
    c.to_agent(agent, event)


def from_executor(c: Cluster, agent: Agent, call: agent_pb2.Call.ExecutorMessage) -> None:
    framework = c.frameworks.get(call.framework_id.value)
    message = sched.Event.Message(
        agent_id=pb.AgentID(value=agent.agent_id),
        executor_id=call.executor_id,
        data=call.data,
    )
    event = sched.Event(type=sched.Event.MESSAGE, message=message)
    if framework is None or not c.to_framework(framework, event):
        c.drop("message-framework-away", framework=call.framework_id.value)


def shutdown_executor(
    c: Cluster, framework: Framework, call: sched.Call.Shutdown, now: Now
) -> None:
    """SHUTDOWN: asks the agent to end one executor."""
    key = (call.agent_id.value, call.executor_id.value)
    agent = c.agents.get(call.agent_id.value)
    if agent is None or not agent.connected or key not in framework.executors:
        error = NotFound("executor", call.executor_id.value, f"not on agent {key[0]!r}")
        c.refuse_call(framework, sched.Call.SHUTDOWN, error, now)
        return
    order = agent_pb2.Event.ShutdownExecutor(
        framework_id=pb.FrameworkID(value=framework.framework_id),
        executor_id=call.executor_id,
    )
    event = agent_pb2.Event(type=agent_pb2.Event.SHUTDOWN_EXECUTOR, shutdown_executor=order)
    c.to_agent(agent, event)
