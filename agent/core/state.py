"""All that the agent's core knows, and the few steps that every topic needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from agent.core.effects import (
    ContainerSpec,
    Drop,
    Effect,
    ExecutorKey,
    ForgetContainer,
    KillContainer,
    LaunchContainer,
    SendMaster,
    SentAway,
    Signal,
    Stop,
    StopProbe,
    TaskEnded,
    TaskKey,
    UnlinkVolumes,
)
from agent.core.journal import Journal, Kind
from agent.core.operations import Operations
from agent.core.past import Past, Tally, note_end, note_status
from agent.core.records import (
    Cause,
    Executor,
    Exit,
    Framework,
    History,
    Reason,
    Source,
    State,
    Task,
)
from agent.core.timers import Timers
from agent.core.updates import UpdateStreams
from agent.core.volume_uses import VolumeKey, uses_in
from agent.core.volumes import NOWHERE, Directories
from mesos_py.clock import Now
from mesos_py.conversions import reserved_part
from mesos_py.resources import Resources
from mesos_py.states import is_terminal, may_follow
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import types_pb2 as pb


@dataclass(frozen=True)
class Settings:
    """What an operator may choose.  Times in seconds."""

    work_dir: str
    # Where custom executors find the gRPC service for them (MESOS_PY_EXECUTOR_ENDPOINT).
    executor_endpoint: str
    # Where they find the HTTP API (MESOS_AGENT_ENDPOINT): IP:PORT; "" if nothing serves it.
    http_endpoint: str = ""
    # Where the agent serves sandboxes by HTTP, if it does: what tasks publish by.
    files_url: str = ""
    executor_registration_timeout_s: float = 60.0
    executor_shutdown_grace_s: float = 5.0
    # Mesos: the command executor's own default.
    kill_grace_s: float = 3.0
    max_completed_tasks: int = 1000
    # Executors that ran when the agent ended have so long to come back to it.
    executor_reregistration_timeout_s: float = 10.0
    # For how long executors may wait for an agent that has ended; 0: not at all.
    recovery_timeout_s: float = 0.0
    # Names this run of the kernel: no process outlives it.
    boot_id: str = ""
    # What tasks may ask for because of the isolators that are on (Isolator.provides), or
    # because docker is there.
    provided: frozenset[str] = frozenset()
    # What runs as the executor of groups of type DEFAULT, and where its modules are; empty:
    # there is none.
    default_executor: tuple[str, ...] = ()
    python_path: str = ""


class Ids(Protocol):
    def container_id(self) -> str: ...

    def uuid(self) -> bytes:
        """16 bytes of an RFC 4122 UUID: names one status update."""
        ...


class AgentState:
    """Plain data; the topics (launch, commands, executors, ...) are functions over it."""

    def __init__(
        self,
        settings: Settings,
        info: pb.AgentInfo,
        ids: Ids,
        directories: Directories = NOWHERE,
    ) -> None:
        self.settings = settings
        self.info = info
        self.ids = ids
        self.registered = False
        # The newest leadership that has given orders: those of older ones are refused.
        self.epoch = 0
        # What is to follow when nothing runs any more, and whether it has; None: it goes on.
        self.stop: Stop | SentAway | None = None
        self.stopped = False
        # How all tasks are to end, and no new one to begin; None: they are welcome.
        self.drain: pb.DrainConfig | None = None
        self.effects: list[Effect] = []
        self.timers = Timers()
        self.journal = Journal()
        # Since when the checkpoint cannot be written; None: it can.
        self.blocked_since_s: float | None = None
        self.updates = UpdateStreams(self.send, self.journal)
        # What the agent has, as it is reserved now, and who is to know what became of it.
        self.total = Resources.from_proto("resources", info.resources)
        self.operations = Operations(self.send, self.journal)
        # Where its volumes are, and how many operations have changed which there are.
        self.directories = directories
        self.generation = 0
        # What was to be done to a volume since the agent has registered, and why it was not.
        self.doubtful: dict[VolumeKey, str] = {}
        self.frameworks: dict[str, Framework] = {}
        # Executors whose processes are not gone, by key and by container.
        self.executors: dict[ExecutorKey, Executor] = {}
        self.containers: dict[str, Executor] = {}
        # Tasks that have not ended, or whose end is not acknowledged.
        self.tasks: dict[TaskKey, Task] = {}
        self.history = History(settings.max_completed_tasks)
        # What only operators are shown.
        self.past = Past(settings.max_completed_tasks)
        self.tally = Tally()
        # The master that has this agent, or had it last.
        self.master = pb.MasterInfo()

    @property
    def agent_id(self) -> str:
        return self.info.id.value

    @property
    def has_networks(self) -> bool:
        """Whether containers can be in another network than its own."""
        return "networks" in self.settings.provided

    @property
    def reserved(self) -> Resources:
        """What of it has been reserved, or made a volume, while the agent ran."""
        return reserved_part(self.total)

    def note_self(self) -> None:
        """Have what the agent knows of itself written down."""
        self.journal.agent(self.info, self.settings.boot_id, self.epoch, self.drain)

    # ---- Output -------------------------------------------------------------------

    def send(self, call: agent_pb2.Call) -> None:
        self.effects.append(SendMaster(call))

    def drop(self, reason: str, **fields: str) -> None:
        self.effects.append(Drop(reason, fields))

    # ---- Containers ---------------------------------------------------------------

    def launch(self, executor: Executor, spec: ContainerSpec) -> None:
        self.executors[executor.key] = executor
        self.containers[executor.container_id] = executor
        self.journal.container(executor)
        self.effects.append(LaunchContainer(spec))

    def end(self, executor: Executor, grace_s: float, now: Now, *, ask: bool = True) -> None:
        """Have the container end within `grace_s`.  A second call may only shorten that.

        `ask`: send TERM first; not when it was told in another way.
        """
        deadline_s = now.monotonic_s + max(0.0, grace_s)
        first = executor.deadline_s is None
        if executor.deadline_s is not None:
            deadline_s = min(deadline_s, executor.deadline_s)
        executor.deadline_s = deadline_s
        self.journal.container(executor)
        for task in executor.tasks.values():
            self.stop_checks(task)
        if deadline_s <= now.monotonic_s:
            self.force(executor)
            return
        if first and ask:
            self.effects.append(KillContainer(executor.container_id, Signal.TERM))
        self.timers.set(("force", executor.container_id), deadline_s)

    def force(self, executor: Executor) -> None:
        """Kill all processes of the container now."""
        self.timers.cancel(("force", executor.container_id))
        if not executor.forced:
            executor.forced = True
            self.journal.container(executor)
            self.effects.append(KillContainer(executor.container_id, Signal.KILL))

    def forget(self, executor: Executor) -> None:
        """Its processes are gone, and its tasks have been reported."""
        del self.containers[executor.container_id]
        del self.executors[executor.key]
        self.journal.remove(Kind.CONTAINER, (executor.container_id,))
        self.effects.append(ForgetContainer(executor.container_id))
        for kind in ("force", "completion", "registration", "drain"):
            self.timers.cancel((kind, executor.container_id))
        self.tally.executors_ended += 1
        self.past.add(executor)

    # ---- Tasks --------------------------------------------------------------------

    def stop_checks(self, task: Task) -> None:
        """It is ending, or has ended: nobody looks any more whether it is well."""
        container_id = task.executor.container_id
        for check in task.checks:
            for what in ("due", "limit"):
                self.timers.cancel((f"{check.kind} {what}", container_id, check.name))
            if check.in_flight:
                check.in_flight = False
                self.effects.append(StopProbe(container_id, check.name))

    def report(
        self,
        task: Task,
        state: State,
        now: Now,
        *,
        source: Source = pb.TaskStatus.SOURCE_EXECUTOR,
        reason: Reason | None = None,
        message: str | None = None,
        exit: Exit | None = None,
        limitation: pb.TaskResourceLimitation | None = None,
    ) -> None:
        """Make an update about the task and take it into the task's stream."""
        status = pb.TaskStatus()
        # To copy costs a fifth of what it takes to fill in each field.
        status.CopyFrom(self._form(task))
        status.state, status.source = state, source
        status.timestamp, status.uuid = now.wall_s, self.ids.uuid()
        if task.executor.pid is not None:
            status.container_status.executor_pid = task.executor.pid
        if reason is not None:
            status.reason = reason
        if message is not None:
            status.message = message
        if exit is not None:
            exit.fill(status)
        if limitation is not None:
            status.limitation.CopyFrom(limitation)
        task.fill(status)
        self.take(task, status, now)

    def _form(self, task: Task) -> pb.TaskStatus:
        """What all statuses that the agent makes of the task have in common."""
        if task.form is None:
            form = task.form = pb.TaskStatus(task_id=task.info.task_id, agent_id=self.info.id)
            form.executor_id.value = task.executor.key[1]
            where, networks = form.container_status, self.has_networks
            task.executor.fill(where, task.info, self.info.ip, networks=networks)
        return task.form

    def report_cause(self, task: Task, cause: Cause, now: Now, exit: Exit | None = None) -> None:
        """The update for a task whose container the agent ended, or that went away."""
        self.report(
            task,
            cause.state,
            now,
            source=cause.source,
            reason=cause.reason,
            message=cause.message,
            exit=exit,
            limitation=cause.limitation,
        )

    def take(self, task: Task, status: pb.TaskStatus, now: Now) -> None:
        """An update that is complete: the task's state follows it, and it goes out."""
        if status.state in (pb.TASK_KILLING, pb.TASK_KILLED):
            if self.drain is not None:
                self._blame_the_drain(task, status, self.drain)
            elif task.kill_cause is not None:
                task.kill_cause.fill(status)
        if may_follow(task.state, status.state):
            task.state = status.state
        task.status = status
        self.tally.updates += 1
        note_status(task, status)
        self.journal.task(task)
        if is_terminal(status.state):
            task.executor.tasks.pop(task.key[1], None)
            self.stop_checks(task)
            if task.executor.custom and task.info.HasField("max_completion_time"):
                for kind in ("overtime", "overtime end"):
                    self.timers.cancel((kind, task.executor.container_id, task.key[1]))
            if task.executor.custom:
                self.unlink_volumes(task)
            self.note_end(task)
        if task.executor.abandoned:
            self.settle(task.key, status)
            return
        self.updates.add(task.key, status, task.state, now)

    def unlink_volumes(self, task: Task) -> None:
        """The task of an executor has ended: what is in a sandbox is not the task's, whose
        executor goes on.  (Tasks of groups have sandboxes of their own.)"""
        uses = [] if task.executor.default else uses_in(task.info.resources)
        for other in task.executor.tasks.values() if uses else ():
            if other is not task and not is_terminal(other.state):
                others = uses_in(other.info.resources)
                uses = [each for each in uses if each not in others]
        if uses:
            self.effects.append(UnlinkVolumes(task.executor.sandbox, uses))

    def _blame_the_drain(self, task: Task, status: pb.TaskStatus, drain: pb.DrainConfig) -> None:
        """Whoever killed the task while the agent is drained, that would have.

        GONE_BY_OPERATOR (Mesos says so of KILLING, too) only when its processes are gone.
        """
        status.reason = pb.TaskStatus.REASON_AGENT_DRAINING
        aware = task.executor.framework.partition_aware
        if drain.mark_gone and aware and status.state == pb.TASK_KILLED:
            status.state = pb.TASK_GONE_BY_OPERATOR

    def settle(self, key: TaskKey, status: pb.TaskStatus) -> None:
        """Of a task whose framework is gone the master still wants to know when its
        resources are free.  No uuid: nobody acknowledges."""
        if not is_terminal(status.state):
            return
        status.ClearField("uuid")
        update = agent_pb2.Call.Update(
            framework_id=pb.FrameworkID(value=key[0]),
            status=status,
            latest_state=status.state,
        )
        self.forget_task(key)
        self.send(agent_pb2.Call(type=agent_pb2.Call.UPDATE, update=update))

    def forget_task(self, key: TaskKey) -> None:
        task = self.tasks.pop(key, None)
        if task is not None:
            self.journal.no_task(task)

    def answer(
        self,
        key: TaskKey,
        partition_aware: bool,
        now: Now,
        reason: Reason,
        message: str,
        *,
        state: State | None = None,
    ) -> None:
        """An update about a task that is not here: it was dropped, or is LOST."""
        if state is None:
            state = pb.TASK_DROPPED if partition_aware else pb.TASK_LOST
        status = pb.TaskStatus(
            task_id=pb.TaskID(value=key[1]),
            state=state,
            source=pb.TaskStatus.SOURCE_AGENT,
            reason=reason,
            message=message,
            agent_id=self.info.id,
            timestamp=now.wall_s,
            uuid=self.ids.uuid(),
        )
        self.updates.add(key, status, state, now)

    def note_end(self, task: Task) -> None:
        executor = task.executor
        self.history.add(task.key, executor.place(task.key[1]))
        self.effects.append(TaskEnded(task.key))
        self.tally.ended[task.state] += 1
        note_end(task)

    def framework(self, info: pb.FrameworkInfo) -> Framework:
        """The framework that `info` describes, made known or brought up to date."""
        known = self.frameworks.get(info.id.value)
        if known is not None:
            if known.info != info:
                known.update(info)
                self.journal.framework(info)
            return known
        used = self.used_frameworks()
        for framework_id in self.frameworks.keys() - used:
            del self.frameworks[framework_id]
            self.journal.remove(Kind.FRAMEWORK, (framework_id,))
        self.journal.framework(info)
        framework = self.frameworks[info.id.value] = Framework(info)
        return framework

    def used_frameworks(self) -> set[str]:
        """Those that have processes, unacknowledged updates or operations here."""
        used = {key[0] for key in self.executors} | {key[0] for key in self.updates}
        return used | self.operations.frameworks()
