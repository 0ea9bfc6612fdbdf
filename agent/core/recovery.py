"""The agent is started again: from the records of its earlier run to what it had then.

    restore(records) -> the containers to look for -> (launcher) -> started, ended, failed

What the records say is where the agent was; how its containers are now is told after
that, by the same events as always.  A record that cannot be read costs the task that
it was about, and nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeVar

from google.protobuf.message import DecodeError, Message

from agent.core import overtime, probing
from agent.core.effects import TaskKey, sum_of
from agent.core.journal import Kind, RecordKey
from agent.core.past import note_end, note_status
from agent.core.records import Cause, Executor, Exit, Framework, KillCause, Task
from agent.core.state import AgentState
from mesos_py.clock import Now
from mesos_py.conversions import with_reserved, with_volumes_as
from mesos_py.errors import InvalidValue, MesosPyError
from mesos_py.resources import EMPTY, Resources
from mesos_py.states import is_terminal
from mesos_py.v1 import checkpoint_pb2
from mesos_py.v1 import types_pb2 as pb

M = TypeVar("M", bound=Message)

_FORGET: Final = "; `--recover forget` forgets this agent and its reservations"
REBOOTED = "the machine was started anew meanwhile"


class Record(NamedTuple):
    """As it was found.  `data` is None when its bytes are not those that were written."""

    kind: Kind
    key: RecordKey
    data: bytes | None


@dataclass(frozen=True)
class SavedContainer:
    """A container that ran, or was about to, when the agent ended."""

    container_id: str
    framework_id: str
    executor_id: str
    sandbox: tuple[str, ...]
    pid: int | None
    start_ticks: int
    resources: Resources
    info: pb.ContainerInfo | None


@dataclass
class Restored:
    """What came of `restore`."""

    # The agent as it registered last; None: it never did.
    info: pb.AgentInfo | None = None
    boot_id: str = ""
    # What could not be read, for the log.
    damaged: list[str] = field(default_factory=list)


class _Damaged(Exception):
    pass


def _parsed(record: Record, message: M) -> M:
    if record.data is None:
        raise _Damaged("its checksum is wrong")
    try:
        message.ParseFromString(record.data)
    except DecodeError as error:
        raise _Damaged(str(error)) from None
    return message


def agent_record(records: Iterable[Record]) -> checkpoint_pb2.Agent | None:
    """Who this agent is; None: it has not registered yet.

    Raises InvalidValue when that cannot be read: without its id nothing else is its own.
    """
    for record in records:
        if record.kind is Kind.AGENT:
            try:
                return _parsed(record, checkpoint_pb2.Agent())
            except _Damaged as error:
                text = f"cannot be read ({error}); see --recover"
                raise InvalidValue("checkpoint", "the agent's own record", text) from None
    return None


def restore(s: AgentState, records: list[Record], now: Now) -> Restored:
    """Put everything back as it was.

    Raises InvalidValue as `agent_record` does, and where the agent does not have (any more)
    what is reserved of it: that is somebody's, and not to be forgotten by a flag.
    """
    restored = Restored()
    own = agent_record(records)
    if own is not None:
        restored.info, restored.boot_id = own.info, own.boot_id
        s.info.id.CopyFrom(own.info.id)
        s.epoch = own.epoch
        s.drain = own.drain if own.HasField("drain") else None
    # Of an agent that was stopped only this is left.
    s.total = _total(s, records)
    s.generation = _generation(records)
    restoring = _Restoring(s, restored, now)
    for kind, take in (
        (Kind.FRAMEWORK, restoring.framework),
        (Kind.CONTAINER, restoring.container),
        (Kind.TASK, restoring.task),
        (Kind.OPERATION, restoring.operation),
    ):
        for record in records:
            if record.kind is kind:
                restoring.tried(record, take)
    restoring.updates([record for record in records if record.kind is Kind.UPDATE])
    restoring.settle()
    return restored


def _total(s: AgentState, records: Iterable[Record]) -> Resources:
    """What the agent offers now, and of it is reserved what was."""
    found = [record for record in records if record.kind is Kind.RESERVED]
    if not found:
        return s.total
    try:
        saved = _parsed(found[0], checkpoint_pb2.Reserved())
    except _Damaged as error:
        text = f"cannot be read ({error}){_FORGET}"
        raise InvalidValue("checkpoint", "what is reserved", text) from None
    reserved = Resources.from_proto("reserved", saved.resources)
    try:
        return with_reserved(s.total, reserved)
    except MesosPyError as error:
        text = f"{reserved} is reserved here: {error.message}{_FORGET}"
        raise InvalidValue("resources", str(s.total), text) from None


def _generation(records: Iterable[Record]) -> int:
    """Of operations on volumes."""
    for record in records:
        if record.kind is Kind.VOLUMES:
            try:
                return _parsed(record, checkpoint_pb2.Volumes()).generation
            except _Damaged as error:
                # It decides whether what was in a volume is given back or erased.
                text = f"cannot be read ({error}){_FORGET}"
                raise InvalidValue("checkpoint", "what was done to volumes", text) from None
    return 0


class _Restoring:
    def __init__(self, state: AgentState, restored: Restored, now: Now) -> None:
        self.s = state
        self._restored = restored
        self._now = now
        self._damaged_tasks: list[RecordKey] = []
        # By container, of versions that wrote it down with that.
        self._unhealthy: dict[str, str] = {}

    def tried(self, record: Record, take: Callable[[Record], None]) -> None:
        try:
            take(record)
        except (_Damaged, MesosPyError, ValueError) as error:
            self._restored.damaged.append(f"{record.kind.value} {'/'.join(record.key)}: {error}")
            if record.kind is Kind.TASK and len(record.key) == 3:
                self._damaged_tasks.append(record.key)
            else:
                self.s.journal.remove(record.kind, record.key)

    def operation(self, record: Record) -> None:
        self.s.operations.restore(_parsed(record, checkpoint_pb2.Operation()).operation)

    def framework(self, record: Record) -> None:
        info = _parsed(record, pb.FrameworkInfo())
        self.s.frameworks[info.id.value] = Framework(info)

    def _framework(self, framework_id: str) -> Framework:
        known = self.s.frameworks.get(framework_id)
        if known is not None:
            return known
        # Gone, and its tasks are being ended; or its record is damaged.
        return Framework(pb.FrameworkInfo(id=pb.FrameworkID(value=framework_id)))

    def container(self, record: Record) -> None:
        saved = _parsed(record, checkpoint_pb2.Container())
        framework_id = saved.framework_id.value
        executor = Executor(
            key=(framework_id, saved.executor_id.value),
            container_id=saved.container_id,
            framework=self._framework(framework_id),
            sandbox=tuple(saved.sandbox),
            info=saved.executor if saved.HasField("executor") else None,
            pid=saved.pid if saved.HasField("pid") else None,
            start_ticks=saved.start_ticks,
            subscribed=saved.subscribed,
            forced=saved.forced,
            killed=saved.killed,
            abandoned=saved.abandoned,
            knows_volumes=saved.knows_volumes,
        )
        if executor.info is not None:
            executor.resources = Resources.from_proto("executor", executor.info.resources)
        if saved.HasField("cause"):
            cause = saved.cause
            executor.cause = Cause(
                cause.state,
                cause.reason,
                cause.message,
                cause.source,
                cause.limitation if cause.HasField("limitation") else None,
            )
        if saved.unhealthy:
            self._unhealthy[saved.container_id] = saved.unhealthy
        self._put(executor)
        if saved.ending and not saved.forced:
            # Perhaps it was not told any more: twice is better than never.
            self.s.end(executor, self._left_s(saved), self._now, ask=not executor.custom)
        elif saved.forced:
            executor.forced = False
            self.s.end(executor, 0.0, self._now)

    def _left_s(self, saved: checkpoint_pb2.Container) -> float:
        """How long a container that is being ended still has."""
        # What runs was started under this kernel, so its clock has gone on since.
        if saved.HasField("deadline_monotonic"):
            return max(0.0, saved.deadline_monotonic - self._now.monotonic_s)
        if saved.deadline:
            return max(0.0, saved.deadline - self._now.wall_s)
        # Of a version that did not write it down.
        return self.s.settings.executor_shutdown_grace_s

    def _put(self, executor: Executor) -> None:
        self.s.executors[executor.key] = executor
        self.s.containers[executor.container_id] = executor

    def _launched(self, saved: checkpoint_pb2.Task) -> Now:
        if saved.HasField("launched_monotonic"):
            return Now(saved.launched_monotonic, saved.launched)
        ago_s = self._now.wall_s - saved.launched
        return Now(self._now.monotonic_s - ago_s, saved.launched)

    def task(self, record: Record) -> None:
        saved = _parsed(record, checkpoint_pb2.Task())
        key = (saved.framework_id.value, saved.info.task_id.value)
        executor = self.s.containers.get(saved.container_id)
        if executor is None:
            executor = self.s.past.get(saved.container_id) or self._gone(key, saved)
        task = Task(key, saved.info, executor, self._launched(saved), saved.state)
        task.delivered, task.group = saved.delivered, saved.group
        task.ends_with_group = saved.ends_with_group
        task.unhealthy = saved.unhealthy or self._unhealthy.get(saved.container_id, "")
        if saved.HasField("status"):
            task.status = saved.status
            note_status(task, saved.status)
        task.kill = saved.kill if saved.HasField("kill") else None
        if saved.HasField("kill_reason"):
            task.kill_cause = KillCause(saved.kill_reason, saved.kill_message)
        self.s.tasks[key] = task
        if is_terminal(task.state):
            self.s.history.add(key, executor.place(key[1]))
            note_end(task)
            if executor.container_id not in self.s.containers:
                self.s.past.add(executor)
            return
        executor.tasks[key[1]] = task
        if executor.custom:
            task.resources = Resources.from_proto("resources", saved.info.resources)
            executor.resources = executor.resources + task.resources
        if executor.default or not executor.custom:
            task.checks = probing.of(task)

    def _gone(self, key: TaskKey, saved: checkpoint_pb2.Task) -> Executor:
        """The container of a task that has ended; or one whose own record is damaged."""
        custom = saved.info.HasField("executor")
        executor = Executor(
            key=(key[0], saved.info.executor.executor_id.value if custom else key[1]),
            container_id=saved.container_id,
            framework=self._framework(key[0]),
            sandbox=_sandbox(self.s, key[0], saved),
            info=saved.info.executor if custom else None,
        )
        if saved.status.container_status.HasField("executor_pid"):
            executor.pid = saved.status.container_status.executor_pid
        if not is_terminal(saved.state):
            self._put(executor)
            self._end_damaged(executor)
        return executor

    def _end_damaged(self, executor: Executor) -> None:
        executor.cause = Cause(
            pb.TASK_FAILED,
            pb.TaskStatus.REASON_AGENT_RESTARTED,
            "its record in the agent's checkpoint is damaged",
        )
        self.s.end(executor, 0.0, self._now)

    # ---- Updates -------------------------------------------------------------------

    def updates(self, records: list[Record]) -> None:
        streams: dict[TaskKey, list[tuple[int, checkpoint_pb2.Update]]] = defaultdict(list)
        for record in sorted(records):

            def take(record: Record) -> None:
                update = _parsed(record, checkpoint_pb2.Update())
                framework_id, task_id, number = record.key
                streams[framework_id, task_id].append((int(number), update))

            self.tried(record, take)
        for key, found in streams.items():
            passed = [(number, each.status.uuid) for number, each in found if each.acknowledged]
            waiting = [(number, each.status) for number, each in found if not each.acknowledged]
            self.s.updates.restore(key, passed, waiting, found[-1][1].latest)

    # ---- What does not fit together ------------------------------------------------

    def settle(self) -> None:
        for record_key in self._damaged_tasks:
            self._settle_damaged(record_key)
        for key, task in list(self.s.tasks.items()):
            if is_terminal(task.state) and key not in self.s.updates:
                # The update of its end is damaged.
                self.s.report(task, task.state, self._now, message="its update was damaged")
            lives_on = task.executor.container_id in self.s.containers
            if is_terminal(task.state) and lives_on and task.executor.custom:
                # The agent may have ended between the one and the other.
                self.s.unlink_volumes(task)
        for executor in self.s.containers.values():
            self._set_timers(executor)

    def _settle_damaged(self, record_key: RecordKey) -> None:
        """Of this task only its id and its container are known."""
        s = self.s
        framework_id, task_id, container_id = record_key
        key = (framework_id, task_id)
        executor = s.containers.get(container_id)
        if executor is None:
            s.journal.remove(Kind.TASK, record_key)
            if key not in s.updates:
                aware = self._framework(framework_id).partition_aware
                reason = pb.TaskStatus.REASON_AGENT_RESTARTED
                s.answer(key, aware, self._now, reason, "its checkpoint is damaged")
            return
        info = pb.TaskInfo(task_id=pb.TaskID(value=task_id))
        task = Task(key, info, executor, self._now, delivered=True)
        s.tasks[key] = executor.tasks[task_id] = task
        s.journal.task(task)
        if executor.custom:
            # It has the task, and is told when it is back.
            task.status = pb.TaskStatus(task_id=info.task_id, state=pb.TASK_RUNNING)
            task.kill = pb.KillPolicy()
        else:
            self._end_damaged(executor)

    def _set_timers(self, executor: Executor) -> None:
        s, now = self.s, self._now
        if executor.custom and not executor.ending:
            _wait_for(s, executor, now)
        for task in executor.tasks.values():
            if executor.pid is not None and (not executor.custom or task.state == pb.TASK_RUNNING):
                # Anew: what they had found is not remembered.
                probing.start(s, task, now)
            most_s = overtime.limit_s(task.info)
            if executor.custom and task.delivered:
                overtime.watch(s, task, task.launched.monotonic_s, now)
            elif not executor.custom and most_s is not None:
                until_s = max(now.monotonic_s, task.launched.monotonic_s + most_s)
                s.timers.set(("completion", executor.container_id), until_s)


def _wait_for(s: AgentState, executor: Executor, now: Now) -> None:
    within_s = s.settings.executor_reregistration_timeout_s
    if not executor.subscribed:
        within_s = s.settings.executor_registration_timeout_s
    s.timers.set(("registration", executor.container_id), now.monotonic_s + within_s)


def wait_for_executors(s: AgentState, now: Now) -> None:
    """They can connect from now on, and not since `restore`."""
    for executor in s.containers.values():
        if s.timers.at_s(("registration", executor.container_id)) is not None:
            _wait_for(s, executor, now)


def _sandbox(s: AgentState, framework_id: str, saved: checkpoint_pb2.Task) -> tuple[str, ...]:
    info = saved.info
    executor_id = info.executor.executor_id.value or info.task_id.value
    return (
        *("agents", s.agent_id),
        *("frameworks", framework_id),
        *("executors", executor_id),
        *("runs", saved.container_id),
    )


def saved_containers(s: AgentState) -> list[SavedContainer]:
    """All containers that ran, or were about to, when the agent ended."""
    return [_saved(executor) for executor in s.containers.values()]


def _saved(executor: Executor) -> SavedContainer:
    info: pb.ContainerInfo | None = None
    holders: list[pb.TaskInfo | pb.ExecutorInfo] = [each.info for each in executor.tasks.values()]
    first = executor.info if executor.info is not None else next(iter(holders), None)
    if first is not None and first.HasField("container"):
        info = first.container
    return SavedContainer(
        container_id=executor.container_id,
        framework_id=executor.key[0],
        executor_id=executor.key[1],
        sandbox=executor.sandbox,
        pid=executor.pid,
        start_ticks=executor.start_ticks,
        resources=executor.resources if executor.custom else sum_of(holders),
        info=info,
    )


def rebooted(s: AgentState, now: Now) -> list[tuple[str, Exit]]:
    """The kernel is another one: no process has outlived that.  The ends to be told."""
    for executor in s.containers.values():
        lost = executor.framework.lost_or(pb.TASK_GONE)
        executor.cause = Cause(lost, pb.TaskStatus.REASON_AGENT_RESTARTED, REBOOTED)
    return [(container_id, Exit(None, REBOOTED)) for container_id in s.containers]


def require_compatible(
    old: pb.AgentInfo, new: pb.AgentInfo, saved: list[SavedContainer], reserved: Resources = EMPTY
) -> None:
    """Whether the agent may go on under its id with what it was told this time.

    With nothing running anything may change but the host name: the id belongs to the
    machine.  What runs must fit into what is offered now, and was placed by attributes,
    which therefore may be added and not changed (Mesos: --reconfiguration_policy).
    Raises InvalidValue.
    """
    way_out = "; `--recover cleanup` ends what runs and forgets this agent"
    if old.hostname != new.hostname:
        text = f"was {old.hostname!r} when this agent registered{way_out}"
        raise InvalidValue("hostname", new.hostname, text)
    if not saved:
        return
    used = EMPTY
    offered = with_reserved(Resources.from_proto("resources", new.resources), reserved)
    for container in saved:
        used = used + with_volumes_as(offered, container.resources)
    short = offered.shortfalls(used)
    if short:
        name, needed, there = short[0]
        text = f"running tasks hold {needed} of {name}, and {there} would be offered{way_out}"
        raise InvalidValue("resources", str(offered), text)
    now = {each.name: each for each in new.attributes}
    for attribute in old.attributes:
        if now.get(attribute.name) != attribute:
            text = f"was another when running tasks were placed here{way_out}"
            raise InvalidValue("attributes", attribute.name, text)
