"""Custom executors: processes of a framework's own that connect back to the agent."""

from __future__ import annotations

import enum
from collections.abc import Iterable

from agent.core import overtime, probing
from agent.core.effects import ExecutorKey, LinkVolumes, SendExecutor, UpdateContainer
from agent.core.environment import shutdown_grace_s
from agent.core.records import Cause, Executor, Exit, Task
from agent.core.state import AgentState
from agent.core.volume_uses import uses_in, without_volumes
from mesos_py.clock import Now
from mesos_py.states import TERMINAL, is_terminal
from mesos_py.v1 import agent_pb2, executor_pb2
from mesos_py.v1 import types_pb2 as pb

Event = executor_pb2.Event

# What an executor may say of a task: STAGING, UNREACHABLE and UNKNOWN are others' words.
REPORTABLE = TERMINAL | {pb.TASK_STARTING, pb.TASK_RUNNING, pb.TASK_KILLING}
_AT_ONCE = pb.KillPolicy(grace_period=pb.DurationInfo(nanoseconds=0))


class Standing(enum.Enum):
    """What the agent knows of the one who speaks as an executor; the texts are Mesos'."""

    SUBSCRIBED = ""
    # It has not subscribed since this agent was started.
    SILENT = "Executor is not subscribed"
    UNKNOWN = "Executor cannot be found"
    NO_FRAMEWORK = "Framework cannot be found"


def standing(s: AgentState, key: ExecutorKey) -> Standing:
    """Commands have no executor that could speak: UNKNOWN."""
    executor = s.executors.get(key)
    if executor is not None and executor.custom:
        return Standing.SUBSCRIBED if executor.welcomed else Standing.SILENT
    known = executor is not None or key[0] in s.frameworks
    return Standing.UNKNOWN if known else Standing.NO_FRAMEWORK


def subscribe(
    s: AgentState, key: ExecutorKey, call: executor_pb2.Call.Subscribe, now: Now
) -> str | None:
    """The executor is there, for the first time or again.  Returns why it is refused."""
    executor = s.executors.get(key)
    if executor is None or executor.info is None:
        return f"no executor {key[1]!r} of framework {key[0]!r} is expected here"
    executor.connected = executor.welcomed = True
    if not executor.subscribed:
        executor.subscribed = True
        s.journal.container(executor)
    s.timers.cancel(("registration", executor.container_id))
    subscribed = Event.Subscribed(
        executor_info=executor.info,
        framework_info=executor.framework.info,
        agent_info=s.info,
        container_id=pb.ContainerID(value=executor.container_id),
    )
    _send(s, executor, Event(type=Event.SUBSCRIBED, subscribed=subscribed))
    ending = executor.ending
    for repeated in call.unacknowledged_updates:
        refusal = update(s, key, repeated.status, now)
        if refusal is not None:
            s.drop("unacceptable update came again", framework=key[0], refusal=refusal)
    if ending:
        _send(s, executor, Event(type=Event.SHUTDOWN))
    if executor.ending:
        return None
    held = {task.task_id.value for task in call.unacknowledged_tasks}
    missing = [
        task
        for task in executor.tasks.values()
        # Sent but never heard of: the LAUNCH was lost with the old stream.
        if not task.delivered or (task.status is None and task.key[1] not in held)
    ]
    deliver(s, executor, missing, now)
    for task in executor.tasks.values():
        if task.kill is not None:
            _send_kill(s, task, task.kill)
        elif task.cause is not None:
            _send_kill(s, task, _AT_ONCE)
    _end_if_done(s, executor, now)
    return None


def started(s: AgentState, executor: Executor, now: Now) -> None:
    """Its process exists: from now on it has time to connect.  What was fetched for it
    before took none of that."""
    if not executor.subscribed and not executor.ending:
        at_s = now.monotonic_s + s.settings.executor_registration_timeout_s
        s.timers.set(("registration", executor.container_id), at_s)


def deliver(s: AgentState, executor: Executor, tasks: list[Task], now: Now) -> None:
    """Hand tasks to the executor, in order; those of a group together."""
    if not tasks:
        return
    s.effects.append(_limits(executor))
    for together in _by_group(tasks):
        for task in together:
            task.delivered = True
            s.journal.task(task)
        _hand_over(s, executor, together)
        for task in together:
            overtime.watch(s, task, now.monotonic_s, now)


def _hand_over(s: AgentState, executor: Executor, together: list[Task]) -> None:
    event = _launch(together)
    # Our own executor makes the links itself: it knows its tasks' users.
    holders = [] if executor.default else together
    uses = [use for task in holders for use in uses_in(task.info.resources)]
    if uses:
        keys = tuple(task.key for task in together)
        s.effects.append(LinkVolumes(executor.key, event, keys, executor.sandbox, uses))
    else:
        _send(s, executor, event)


def not_handed_over(s: AgentState, key: ExecutorKey, task_id: str, why: str, now: Now) -> None:
    """A task that the executor was not sent, since its volumes cannot be shown."""
    executor = s.executors.get(key)
    task = executor.tasks.get(task_id) if executor is not None else None
    if executor is None or task is None:
        return
    executor.resources = executor.resources - task.resources
    s.effects.append(_limits(executor))
    reason = pb.TaskStatus.REASON_CONTAINER_UPDATE_FAILED
    source = pb.TaskStatus.SOURCE_AGENT
    s.report(task, pb.TASK_FAILED, now, source=source, reason=reason, message=why)


def _limits(executor: Executor) -> UpdateContainer:
    return UpdateContainer(executor.container_id, without_volumes(executor.resources))


def _by_group(tasks: list[Task]) -> Iterable[list[Task]]:
    """As their LAUNCHes go out.  After a restart the tasks of a group may lie apart."""
    found: dict[str, list[Task]] = {}
    for task in tasks:
        # No group's name has a slash in it.
        found.setdefault(task.group or f"/{task.key[1]}", []).append(task)
    return found.values()


def _launch(together: list[Task]) -> executor_pb2.Event:
    if not together[0].group:
        return Event(type=Event.LAUNCH, launch=Event.Launch(task=together[0].info))
    group = pb.TaskGroupInfo(tasks=[task.info for task in together])
    return Event(type=Event.LAUNCH_GROUP, launch_group=Event.LaunchGroup(task_group=group))


def update(s: AgentState, key: ExecutorKey, status: pb.TaskStatus, now: Now) -> str | None:
    """A status update; acknowledged once the agent holds it.  Returns why it is refused."""
    executor = s.executors.get(key)
    if executor is None or executor.info is None:
        return f"executor {key[1]!r} has ended"
    wrong = _wrong(status)
    if wrong is not None:
        s.tally.updates_refused += 1
        return f"update of task {status.task_id.value!r}: {wrong}"
    task_key = (key[0], status.task_id.value)
    task = executor.tasks.get(task_key[1])
    # Made beforehand: what is taken may lose its uuid.
    acknowledged = Event.Acknowledged(task_id=status.task_id, uuid=status.uuid)
    if s.updates.has(task_key, status.uuid):
        s.drop("update came twice", framework=key[0], task=task_key[1])
    elif task is None:
        s.tally.updates_refused += 1
        reason = "update after the end" if task_key in s.tasks else "update of an unknown task"
        s.drop(reason, framework=key[0], task=task_key[1], executor=key[1])
    else:
        _take(s, task, status, now)
    _send(s, executor, Event(type=Event.ACKNOWLEDGED, acknowledged=acknowledged))
    _end_if_done(s, executor, now)
    return None


def _end_if_done(s: AgentState, executor: Executor, now: Now) -> None:
    """Our own executor ends with its last task.  That is decided here, so that it cannot
    end at the moment at which it is given another group."""
    if executor.default and not executor.tasks:
        shut_down(s, executor, now)


def _wrong(status: pb.TaskStatus) -> str | None:
    if len(status.uuid) != 16:
        return f"its uuid has {len(status.uuid)} bytes, not 16"
    if status.HasField("source") and status.source != pb.TaskStatus.SOURCE_EXECUTOR:
        return "its source must be SOURCE_EXECUTOR"
    if status.state not in REPORTABLE:
        known = status.state in pb.TaskState.values()
        name = pb.TaskState.Name(status.state) if known else str(status.state)
        return f"an executor may not report {name}"
    return None


def _take(s: AgentState, task: Task, status: pb.TaskStatus, now: Now) -> None:
    executor = task.executor
    status.source = pb.TaskStatus.SOURCE_EXECUTOR
    status.agent_id.CopyFrom(s.info.id)
    status.executor_id.value = executor.key[1]
    if not status.HasField("timestamp"):
        status.timestamp = now.wall_s
    executor.fill(status.container_status, task.info, s.info.ip, networks=s.has_networks)
    task.delivered = True
    if task.cause is not None and status.state in (pb.TASK_KILLED, pb.TASK_FAILED):
        status.state = task.cause.state
        status.reason, status.message = task.cause.reason, task.cause.message
    task.fill(status)
    if task.unhealthy and status.state == pb.TASK_KILLED:
        status.message = "; ".join(filter(None, (task.unhealthy, status.message)))
    runs_now = status.state == pb.TASK_RUNNING and task.state != pb.TASK_RUNNING
    if is_terminal(status.state):
        executor.resources = executor.resources - task.resources
        s.effects.append(_limits(executor))
    s.take(task, status, now)
    if runs_now:
        probing.start(s, task, now)
    elif status.state == pb.TASK_KILLING:
        s.stop_checks(task)
    elif executor.default and status.state in (pb.TASK_FAILED, pb.TASK_KILLED):
        # It takes the others of its group with it, which end for that and nothing else.
        for other in _group_of(task):
            s.stop_checks(other)
            other.ends_with_group = True
            s.journal.task(other)


def kill(s: AgentState, task: Task, policy: pb.KillPolicy | None, now: Now) -> None:
    """Pass the kill on; a task that the executor was never sent ends here, with its group."""
    executor = task.executor
    if task.key[1] not in executor.tasks:
        return  # it was ended with its group
    if not task.delivered:
        for each in _group_of(task):
            executor.resources = executor.resources - each.resources
            s.report(
                each,
                pb.TASK_KILLED,
                now,
                source=pb.TaskStatus.SOURCE_AGENT,
                reason=pb.TaskStatus.REASON_TASK_KILLED_DURING_LAUNCH,
                message="Killed before it was given to its executor",
            )
        if not executor.tasks and (executor.default or not executor.subscribed):
            # It was started for this task alone.
            shut_down(s, executor, now)
        return
    task.kill = policy if policy is not None else task.info.kill_policy
    s.stop_checks(task)
    s.journal.task(task)
    if executor.connected:
        _send_kill(s, task, task.kill)


def _group_of(task: Task) -> list[Task]:
    if not task.group:
        return [task]
    return [each for each in task.executor.tasks.values() if each.group == task.group]


def _send_kill(s: AgentState, task: Task, policy: pb.KillPolicy) -> None:
    order = Event.Kill(task_id=task.info.task_id)
    if policy.HasField("grace_period"):
        order.kill_policy.CopyFrom(policy)
    _send(s, task.executor, Event(type=Event.KILL, kill=order))


def overdue(s: AgentState, executor: Executor, task_id: str, now: Now) -> None:
    """The task has run for as long as it may: no grace (as for commands).  A kill that came
    before stands.  Neither is waited for without end."""
    task = executor.tasks.get(task_id)
    if task is None or executor.ending:
        return
    grace_s = s.settings.kill_grace_s
    if task.kill is not None:
        grace_s = max(grace_s, task.kill.grace_period.nanoseconds / 1e9)
    else:
        # Not in the checkpoint: the next start of the agent comes to the same result.
        task.cause = overtime.cause(task.info)
        s.stop_checks(task)
        if executor.connected:
            _send_kill(s, task, _AT_ONCE)
    key = ("overtime end", executor.container_id, task_id)
    s.timers.set(key, now.monotonic_s + grace_s)


def outlived(s: AgentState, executor: Executor, task_id: str, now: Now) -> None:
    """The executor has not ended a task that was out of time: it ends itself, with all it
    has, since nothing less is sure to end the task."""
    if task_id not in executor.tasks or executor.ending:
        return
    executor.cause = Cause(
        pb.TASK_FAILED,
        pb.TaskStatus.REASON_EXECUTOR_TERMINATED,
        f"Executor did not end task {task_id!r}, whose time was over",
    )
    s.end(executor, 0.0, now)


def shut_down(s: AgentState, executor: Executor, now: Now) -> None:
    """Tell it to end, and see to it at the end of the grace."""
    if executor.info is None or executor.ending:
        return
    s.timers.cancel(("registration", executor.container_id))
    if executor.connected:
        _send(s, executor, Event(type=Event.SHUTDOWN))
    s.end(executor, shutdown_grace_s(s, executor.info), now, ask=not executor.connected)


def message(s: AgentState, key: ExecutorKey, data: bytes) -> None:
    """A framework's message, delivered at most once."""
    executor = s.executors.get(key)
    if executor is None or not executor.connected:
        s.tally.messages_dropped += 1
        s.drop("message for an executor that is not there", framework=key[0], executor=key[1])
        return
    s.tally.messages += 1
    _send(s, executor, Event(type=Event.MESSAGE, message=Event.Message(data=data)))


def disconnected(s: AgentState, key: ExecutorKey, now: Now) -> None:
    """Its stream is gone.  If it lives it may come back, within the same time as at first."""
    executor = s.executors.get(key)
    if executor is None or not executor.connected:
        return
    executor.connected = False
    if not executor.ending:
        after_s = s.settings.executor_registration_timeout_s
        s.timers.set(("registration", executor.container_id), now.monotonic_s + after_s)


def wait_anew(s: AgentState, now: Now) -> None:
    """The agent could not listen for a while: nobody was silent in that time."""
    at_s = now.monotonic_s + s.settings.executor_registration_timeout_s
    for container_id in s.containers:
        key = ("registration", container_id)
        if s.timers.at_s(key) is not None:
            s.timers.set(key, at_s)


def out_of_time(s: AgentState, executor: Executor, now: Now) -> None:
    """It did not connect in time."""
    timeout_s = s.settings.executor_registration_timeout_s
    if executor.subscribed:
        executor.cause = Cause(
            executor.framework.lost_or(pb.TASK_GONE),
            pb.TaskStatus.REASON_EXECUTOR_REREGISTRATION_TIMEOUT,
            f"Executor did not come back within {timeout_s:g} s",
        )
    else:
        executor.cause = Cause(
            pb.TASK_FAILED,
            pb.TaskStatus.REASON_EXECUTOR_REGISTRATION_TIMEOUT,
            f"Executor did not register within {timeout_s:g} s",
        )
    s.end(executor, 0.0, now)


def failed(s: AgentState, executor: Executor, why: str, now: Now) -> None:
    """Its process could not be started."""
    reason = pb.TaskStatus.REASON_CONTAINER_LAUNCH_FAILED
    _end_tasks(s, executor, Cause(pb.TASK_FAILED, reason, why), now)
    exited(s, executor.key, Exit(None, why))


def ended(s: AgentState, executor: Executor, exit: Exit, now: Now) -> None:
    """All its processes are gone: so are the tasks that it had."""
    reason = pb.TaskStatus.REASON_EXECUTOR_TERMINATED
    cause = executor.cause or Cause(pb.TASK_FAILED, reason, exit.text("Executor"))
    _end_tasks(s, executor, cause, now)
    exited(s, executor.key, exit)


def _end_tasks(s: AgentState, executor: Executor, cause: Cause, now: Now) -> None:
    for task in list(executor.tasks.values()):
        s.report_cause(task, task.cause or cause, now)


def exited(s: AgentState, key: ExecutorKey, exit: Exit) -> None:
    """Nothing of the executor runs, or ever will: the master may give its resources away."""
    report = agent_pb2.Call.ExecutorExited(
        framework_id=pb.FrameworkID(value=key[0]),
        executor_id=pb.ExecutorID(value=key[1]),
        status=-1 if exit.status is None else exit.status,
    )
    s.send(agent_pb2.Call(type=agent_pb2.Call.EXECUTOR_EXITED, executor_exited=report))


def _send(s: AgentState, executor: Executor, event: executor_pb2.Event) -> None:
    s.effects.append(SendExecutor(executor.key, event))
