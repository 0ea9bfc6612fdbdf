"""The executor's side of its link to the agent, without IO.

A shell opens a stream, writes `opening()`, gives what arrives to `receive`, says
`lost` when the stream has ended, writes what `take_calls` returns, and hands what
`take_items` returns to the executor in that order.

A status is kept until the agent has it for good (ACKNOWLEDGED) and is said again in
the opening of each new stream; so are tasks of which the agent has acknowledged
nothing yet, since it may not know that they have arrived.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

from mesos_py import rpc
from mesos_py.clock import Clock
from mesos_py.errors import InvalidValue, MesosPyError, Refused, TooLarge
from mesos_py.ids import check_id
from mesos_py.recent import Recent
from mesos_py.states import TASK_STAGING, TASK_UNKNOWN, TERMINAL
from mesos_py.v1 import executor_pb2 as pb
from mesos_py.v1.types_pb2 import (
    AgentID,
    ExecutorID,
    FrameworkID,
    TaskGroupInfo,
    TaskInfo,
    TaskState,
    TaskStatus,
)

Call = pb.Call
Event = pb.Event

MAX_CALL_BYTES: Final = rpc.MAX_MESSAGE_BYTES - 64 * 1024
BATCH_CALLS: Final = 10_000
BATCH_BYTES: Final = 4 * 1024 * 1024
# Of this many ended tasks it is still known that they were here.
REMEMBERED: Final = 10_000

_SMALL: Final = 256
_SHOWN: Final = frozenset(
    {Event.SUBSCRIBED, Event.LAUNCH, Event.KILL, Event.MESSAGE, Event.SHUTDOWN}
)


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The link to the agent is lost, for `reason`.

    `final`: the agent is not waited for; the executor is to shut down.
    """

    reason: str
    final: bool


Item: TypeAlias = pb.Event | Disconnected


class ExecutorSession:
    """See the module's docstring.  Not thread-safe: its owner locks."""

    def __init__(
        self,
        framework_id: str,
        executor_id: str,
        *,
        clock: Clock,
        make_uuid: Callable[[], bytes],
        max_call_bytes: int = MAX_CALL_BYTES,
    ) -> None:
        self.framework_id = framework_id
        self.executor_id = executor_id
        self.agent_id = ""
        self.subscribed = False
        # Why there can never be another subscription.
        self.fatal: MesosPyError | None = None
        self._clock = clock
        self._make_uuid = make_uuid
        self._max_call_bytes = max_call_bytes
        self._out: deque[tuple[pb.Call, int]] = deque()
        self._items: list[Item] = []
        self._updates: dict[bytes, TaskStatus] = {}
        # Unacknowledged updates that the present stream has been told in its opening.
        self._stated: frozenset[bytes] = frozenset()
        # Tasks whose last status the agent does not have yet.
        self._tasks: dict[str, TaskInfo] = {}
        # Of these it has acknowledged nothing.
        self._unacked_tasks: dict[str, None] = {}
        self._past: Recent[str, None] = Recent(REMEMBERED)

    @property
    def unacknowledged(self) -> int:
        """How many statuses the agent may not have."""
        return len(self._updates)

    @property
    def writable(self) -> bool:
        """Whether `take_calls` has something to give."""
        return self.subscribed and bool(self._out)

    # ---- The stream ---------------------------------------------------------

    def opening(self) -> pb.Calls:
        """What a new stream begins with."""
        subscribe = Call.Subscribe(
            unacknowledged_tasks=[self._tasks[task_id] for task_id in self._unacked_tasks],
            unacknowledged_updates=[
                Call.Update(status=status) for status in self._updates.values()
            ],
            protocol_version=rpc.PROTOCOL_VERSION,
        )
        self._stated = frozenset(self._updates)
        return pb.Calls(calls=[self._call(Call.SUBSCRIBE, subscribe=subscribe)])

    def receive(self, events: Iterable[pb.Event]) -> None:
        for event in events:
            kind = event.type
            if kind == Event.ACKNOWLEDGED:
                self._acknowledged(event.acknowledged.uuid)
            elif kind == Event.LAUNCH:
                if self._is_new(event.launch.task):
                    self._items.append(event)
            elif kind == Event.LAUNCH_GROUP:
                self._group_launched(event)
            elif kind == Event.ERROR:
                self.fatal = Refused(event.error.message)
            elif kind in _SHOWN:
                if kind == Event.SUBSCRIBED:
                    self._subscribed(event)
                self._items.append(event)

    def lost(self, reason: str, *, final: bool) -> None:
        """The stream has ended.  `final`: there will be no other."""
        was_subscribed, self.subscribed = self.subscribed, False
        # Statuses are in `_updates`; a message to the framework may get lost.
        self._out.clear()
        if was_subscribed or final:
            self._items.append(Disconnected(reason, final))

    def take_calls(self) -> pb.Calls | None:
        """The next batch to write, None when there is nothing."""
        if not self.writable:
            return None
        batch: list[pb.Call] = []
        total = 0
        while self._out and len(batch) < BATCH_CALLS:
            call, size = self._out[0]
            if batch and total + size > BATCH_BYTES:
                break
            self._out.popleft()
            batch.append(call)
            total += size
        return pb.Calls(calls=batch)

    def take_items(self) -> list[Item]:
        """What the executor is to be told, in order."""
        items, self._items = self._items, []
        return items

    # ---- What arrives -------------------------------------------------------

    def _subscribed(self, event: pb.Event) -> None:
        self.subscribed = True
        self.agent_id = event.subscribed.agent_info.id.value
        for uuid, status in self._updates.items():
            if uuid not in self._stated:
                self._send_update(status)

    def _group_launched(self, event: pb.Event) -> None:
        given = event.launch_group.task_group.tasks
        tasks = [task for task in given if self._is_new(task)]
        if len(tasks) < len(given):
            group = TaskGroupInfo(tasks=tasks)
            event = Event(type=Event.LAUNCH_GROUP, launch_group=Event.LaunchGroup(task_group=group))
        if tasks:
            self._items.append(event)

    def _is_new(self, task: TaskInfo) -> bool:
        """Whether it was not launched before: it is said again after a lost link."""
        task_id = task.task_id.value
        if task_id in self._tasks:
            return False
        self._tasks[task_id] = task
        self._unacked_tasks[task_id] = None
        return True

    def _acknowledged(self, uuid: bytes) -> None:
        status = self._updates.pop(uuid, None)
        if status is None:
            return
        task_id = status.task_id.value
        self._unacked_tasks.pop(task_id, None)
        if status.state in TERMINAL:
            self._tasks.pop(task_id, None)
            self._past.add(task_id, None)

    def kill_grace_s(self, kill: pb.Event.Kill) -> float | None:
        """The grace that KILL or else the task itself asks for."""
        if kill.kill_policy.HasField("grace_period"):
            return kill.kill_policy.grace_period.nanoseconds / 1e9
        task = self._tasks.get(kill.task_id.value)
        if task is not None and task.kill_policy.HasField("grace_period"):
            return task.kill_policy.grace_period.nanoseconds / 1e9
        return None

    # ---- Calls --------------------------------------------------------------

    def send_status(self, given: TaskStatus) -> TaskStatus:
        """UPDATE: a copy of `given`, completed, now or as soon as there is a stream."""
        task_id = check_id("status.task_id", given.task_id.value)
        if given.state in (TASK_STAGING, TASK_UNKNOWN):
            name = TaskState.Name(given.state)
            raise InvalidValue("status.state", name, "is not for an executor to report")
        if task_id not in self._tasks and task_id not in self._past:
            raise InvalidValue("status.task_id", task_id, "is no task of this executor")
        status = TaskStatus()
        status.CopyFrom(given)
        status.uuid = self._make_uuid()
        status.source = TaskStatus.SOURCE_EXECUTOR
        status.executor_id.CopyFrom(ExecutorID(value=self.executor_id))
        if self.agent_id:
            status.agent_id.CopyFrom(AgentID(value=self.agent_id))
        if not status.HasField("timestamp"):
            status.timestamp = self._clock.now().wall_s
        if (size := status.ByteSize()) > self._max_call_bytes:
            raise TooLarge(
                f"the status is {size} bytes, at most {self._max_call_bytes} fit into one message",
                size=size,
                limit=self._max_call_bytes,
            )
        self._updates[status.uuid] = status
        if self.subscribed:
            self._send_update(status)
        return status

    def _send_update(self, status: TaskStatus) -> None:
        call = self._call(Call.UPDATE, update=Call.Update(status=status))
        self._out.append((call, _SMALL + len(status.data)))

    def message(self, data: bytes) -> bool:
        """MESSAGE to the scheduler; false if there is no stream and it is lost."""
        if len(data) > self._max_call_bytes:
            raise TooLarge(
                f"data: {len(data)} bytes, at most {self._max_call_bytes} fit into one message",
                size=len(data),
                limit=self._max_call_bytes,
            )
        if not self.subscribed:
            return False
        self._out.append(
            (self._call(Call.MESSAGE, message=Call.Message(data=data)), _SMALL + len(data))
        )
        return True

    def _call(self, kind: pb.Call.Type.ValueType, **parts: object) -> pb.Call:
        return pb.Call(
            type=kind,
            framework_id=FrameworkID(value=self.framework_id),
            executor_id=ExecutorID(value=self.executor_id),
            **parts,  # type: ignore[arg-type]
        )


__all__ = ["Disconnected", "ExecutorSession", "Item"]
