"""What is heard of containers: started, could not be started, over a limit, ended."""

from __future__ import annotations

from agent.core import commands, executors, probing
from agent.core.effects import Signal
from agent.core.environment import shutdown_grace_s
from agent.core.records import Cause, Exit, Reason
from agent.core.state import AgentState
from mesos_py.clock import Now
from mesos_py.v1 import types_pb2 as pb


def addressed(s: AgentState, container_id: str, addresses: tuple[str, ...]) -> None:
    executor = s.containers.get(container_id)
    if executor is None:
        s.drop("unknown container has addresses", container=container_id)
        return
    executor.addresses = addresses
    for task in executor.tasks.values():
        task.form = None


def started(s: AgentState, container_id: str, pid: int, start_ticks: int, now: Now) -> None:
    executor = s.containers.get(container_id)
    if executor is None:
        s.drop("unknown container started", container=container_id)
        return
    executor.pid, executor.start_ticks = pid, start_ticks
    s.journal.container(executor)
    if executor.custom:
        executors.started(s, executor, now)
    else:
        commands.started(s, executor, now)
        for task in executor.tasks.values():
            probing.start(s, task, now)


def failed(s: AgentState, container_id: str, message: str, now: Now) -> None:
    executor = s.containers.get(container_id)
    if executor is None:
        s.drop("unknown container failed to start", container=container_id)
        return
    if executor.custom:
        executors.failed(s, executor, message, now)
    else:
        commands.failed(s, executor, message, now)
    s.tally.launches_failed += 1
    s.forget(executor)
    say_if_stopped(s)


def ended(s: AgentState, container_id: str, exit: Exit, now: Now) -> None:
    """Nothing of the container runs any more: not before may its resources be free."""
    executor = s.containers.get(container_id)
    if executor is None:
        s.drop("unknown container ended", container=container_id)
        return
    if executor.custom:
        executors.ended(s, executor, exit, now)
    else:
        commands.ended(s, executor, exit, now)
    s.forget(executor)
    say_if_stopped(s)


def unwanted(s: AgentState, container_id: str, signal: Signal, now: Now) -> None:
    """An operator has it ended, as if it had by itself: by KILL at once, by TERM with the grace
    of a shutdown.  Nobody has its tasks killed: they end as it does."""
    executor = s.containers.get(container_id)
    if executor is None:
        s.drop("unknown container is unwanted", container=container_id)
        return
    grace_s = 0.0
    if signal is Signal.TERM and executor.info is not None:
        grace_s = shutdown_grace_s(s, executor.info)
    elif signal is Signal.TERM:
        grace_s = commands.shutdown_grace_s(s, executor)
    s.timers.cancel(("registration", container_id))
    s.end(executor, grace_s, now)


def over_limit(
    s: AgentState,
    container_id: str,
    reason: Reason,
    message: str,
    limitation: pb.TaskResourceLimitation,
    now: Now,
) -> None:
    """An isolator found that the container took more than it was given."""
    executor = s.containers.get(container_id)
    if executor is None or executor.killed or executor.cause is not None:
        s.drop("limit of a container that ends anyway", container=container_id)
        return
    executor.cause = Cause(pb.TASK_FAILED, reason, message, limitation=limitation)
    s.end(executor, 0.0, now)


def hurt(
    s: AgentState,
    container_id: str,
    reason: Reason,
    message: str,
    limitation: pb.TaskResourceLimitation,
    now: Now,
) -> None:
    """A part of the container was ended for a limit, and the rest goes on: its tasks are
    told by an update that changes no state."""
    executor = s.containers.get(container_id)
    if executor is None:
        s.drop("limit of an unknown container", container=container_id)
        return
    executor.hurt = message
    for task in list(executor.tasks.values()):
        if task.state == pb.TASK_RUNNING:
            s.report(
                task,
                pb.TASK_RUNNING,
                now,
                source=pb.TaskStatus.SOURCE_AGENT,
                reason=reason,
                message=message,
                limitation=limitation,
            )


def say_if_stopped(s: AgentState) -> None:
    """The agent is to stop, and its last container is gone."""
    if s.stop is not None and not s.stopped and not s.containers:
        s.stopped = True
        s.effects.append(s.stop)
