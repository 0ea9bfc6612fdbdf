"""What the agent tells a master when it registers, and what it is asked about after."""

from __future__ import annotations

from typing import Final

from agent.core.effects import Stop
from agent.core.records import task_message
from agent.core.state import AgentState
from mesos_py.clock import Now
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import types_pb2 as pb

CAPABILITIES: Final = (
    pb.AgentInfo.Capability.RESERVATION_REFINEMENT,
    pb.AgentInfo.Capability.AGENT_OPERATION_FEEDBACK,
    pb.AgentInfo.Capability.AGENT_DRAINING,
    # It knows persistent volumes.
    pb.AgentInfo.Capability.RESIZE_VOLUME,
)


def register_call(s: AgentState, version: str, protocol_version: int) -> agent_pb2.Call:
    """All that the agent has: a master that knows nothing of it can go on from here."""
    register = agent_pb2.Call.Register(
        agent_info=s.info,
        tasks=[
            task_message(task, s.agent_id, s.updates.head(key)) for key, task in s.tasks.items()
        ],
        executors=[each.info for each in s.executors.values() if each.info is not None],
        frameworks=[
            s.frameworks[framework_id].info
            for framework_id in sorted(s.used_frameworks())
            if framework_id in s.frameworks
        ],
        version=version,
        protocol_version=protocol_version,
        epoch=s.epoch,
        capabilities=[pb.AgentInfo.Capability(type=each) for each in CAPABILITIES],
        draining=s.drain is not None,
        reserved=s.reserved.to_proto(),
        operations=s.operations,
        not_done=s.operations.not_done(),
    )
    return agent_pb2.Call(type=agent_pb2.Call.REGISTER, register=register)


def on_event(s: AgentState, event: agent_pb2.Event, now: Now) -> bool:
    """An answer to what the agent has told, or a question about it.  False if it is neither."""
    if event.type == agent_pb2.Event.REGISTERED:
        registered(s, event.registered, now)
    elif event.type == agent_pb2.Event.RECONCILE:
        reconcile(s, event.reconcile, now)
    elif event.type == agent_pb2.Event.REPEAT_UPDATES:
        s.updates.repeat_framework(event.repeat_updates.framework_id.value, now)
        s.operations.repeat_framework(event.repeat_updates.framework_id.value, now)
    else:
        return False
    return True


def registered(s: AgentState, event: agent_pb2.Event.Registered, now: Now) -> None:
    agent_id = event.agent_id.value
    if s.agent_id and s.agent_id != agent_id:
        # Sandboxes and tasks are filed under the id; a master never changes it.
        text = f"the master took agent {s.agent_id} for {agent_id or 'one without id'}"
        s.effects.append(Stop(text, wanted=False))
        return
    s.info.id.value = agent_id
    s.note_self()
    s.registered = True
    # What follows rests on what the agent has told.
    s.doubtful.clear()
    s.master = event.master_info
    s.updates.resume(now)
    s.operations.resume(now)


def orders_of(s: AgentState, epoch: int) -> None:
    """Orders of this leadership follow.  That it is the newest is written down before
    they are carried out, so that this agent obeys no older one after a restart."""
    if epoch <= s.epoch:
        return
    s.epoch = epoch
    if s.agent_id:
        s.note_self()


def disconnected(s: AgentState) -> None:
    s.registered = False
    s.updates.pause()
    s.operations.pause()


def reconcile(s: AgentState, event: agent_pb2.Event.Reconcile, now: Now) -> None:
    """Tasks that the master believes to be here: those that are not were lost on the way."""
    for expected in event.tasks:
        key = (expected.framework_id.value, expected.task_id.value)
        if key in s.tasks or key in s.updates:
            continue
        reason = pb.TaskStatus.REASON_RECONCILIATION
        s.answer(key, expected.partition_aware, now, reason, "Task unknown to the agent")
