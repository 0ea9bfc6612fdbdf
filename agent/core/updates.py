"""Status updates on their way to the framework: one acknowledged stream per task.

Only the head of a stream is in flight; the next update goes out when the framework
has acknowledged it.  A head that is not acknowledged is repeated for ever, and all
heads are sent again when the agent has registered, those of a framework when its
scheduler has subscribed anew.  An update is thus delivered at least once and, within
its task, in order.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from agent.core.effects import TaskKey
from agent.core.journal import Journal
from agent.core.timers import Timers
from mesos_py.clock import Now
from mesos_py.states import is_terminal
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import types_pb2 as pb

# Mesos: STATUS_UPDATE_RETRY_INTERVAL_MIN and _MAX.
FIRST_RETRY_S = 10.0
MAX_RETRY_S = 600.0
# A head that waits while its task has ended is repeated after this long already:
# the master frees the task's resources on the news that rides with it.
NEWS_RETRY_S = 1.0
# For a scheduler that has subscribed anew, so many heads are sent at a time, and so long
# after them the next ones: neither agent nor master is to stand still for one framework.
SLICE = 500
SLICE_S = 0.05
# So many acknowledged updates of a task are remembered: an executor has no reason to
# repeat more than it sent before its agent acknowledged them.
MAX_REMEMBERED = 1000


class Ack(enum.Enum):
    """What an acknowledgement did."""

    NEXT = "the head was acknowledged"
    ENDED = "the stream's terminal update was acknowledged"
    UNKNOWN = "acknowledgement for a task without updates"
    MISMATCH = "acknowledgement of another update than the one in flight"


@dataclass(slots=True)
class Stream:
    """The updates of one task that the framework has not acknowledged, oldest first."""

    queue: deque[pb.TaskStatus] = field(default_factory=deque)
    latest: pb.TaskState.ValueType = pb.TASK_STAGING
    # Of all updates so far: an executor may repeat any of them.
    uuids: set[bytes] = field(default_factory=set)
    # The numbers of those in the queue, by which their records are known.
    numbers: deque[int] = field(default_factory=deque)
    next_number: int = 0
    # Those before them, as far as they are remembered, oldest first.
    passed: deque[tuple[int, bytes]] = field(default_factory=deque)

    def append(self, status: pb.TaskStatus) -> int:
        number = self.next_number
        self.next_number += 1
        self.numbers.append(number)
        self.queue.append(status)
        self.uuids.add(status.uuid)
        return number

    interval_s: float = FIRST_RETRY_S
    due_s: float = 0.0


class UpdateStreams:
    """All streams.  `send` takes the calls for the master, in order."""

    def __init__(self, send: Callable[[agent_pb2.Call], None], journal: Journal) -> None:
        self._send = send
        self._journal = journal
        self._streams: dict[TaskKey, Stream] = {}
        self._timers = Timers()
        self._paused = True
        # When the latest slice goes out, and how many are in it.
        self._slice_s = 0.0
        self._in_slice = 0

    def __len__(self) -> int:
        return len(self._streams)

    def __contains__(self, key: TaskKey) -> bool:
        return key in self._streams

    def __iter__(self) -> Iterator[TaskKey]:
        return iter(self._streams)

    def has(self, key: TaskKey, uuid: bytes) -> bool:
        """Whether an update with this uuid was taken before."""
        stream = self._streams.get(key)
        return stream is not None and uuid in stream.uuids

    def ended(self, key: TaskKey) -> bool:
        """Whether the task's terminal update was taken and waits to be acknowledged."""
        stream = self._streams.get(key)
        return stream is not None and is_terminal(stream.latest)

    def head(self, key: TaskKey) -> pb.TaskStatus | None:
        stream = self._streams.get(key)
        return stream.queue[0] if stream is not None and stream.queue else None

    def waiting(self, key: TaskKey) -> int:
        """How many updates of the task are not acknowledged."""
        stream = self._streams.get(key)
        return len(stream.queue) if stream is not None else 0

    def add(
        self, key: TaskKey, status: pb.TaskStatus, latest: pb.TaskState.ValueType, now: Now
    ) -> None:
        """Take an update.  `latest` is the task's newest state, which goes with it."""
        stream = self._streams.get(key)
        if stream is None:
            stream = self._streams[key] = Stream()
        stream.latest = latest
        self._journal.update(key, stream.append(status), status, latest)
        if self._paused:
            return
        if len(stream.queue) == 1:
            self._send_head(key, stream, FIRST_RETRY_S, now.monotonic_s)
        elif is_terminal(latest):
            news_s = now.monotonic_s + NEWS_RETRY_S
            if news_s < stream.due_s:
                stream.due_s = news_s
                self._timers.set(key, news_s)

    def restore(
        self,
        key: TaskKey,
        passed: list[tuple[int, bytes]],
        waiting: list[tuple[int, pb.TaskStatus]],
        latest: pb.TaskState.ValueType,
    ) -> None:
        """A stream of an earlier run of the agent: numbers and uuids of the updates that
        were acknowledged, and the others, oldest first."""
        stream = self._streams[key] = Stream(latest=latest, passed=deque(passed))
        stream.uuids.update(uuid for _, uuid in passed)
        stream.next_number = passed[-1][0] + 1 if passed else 0
        for number, status in waiting:
            stream.next_number = number
            stream.append(status)

    def acknowledge(self, key: TaskKey, uuid: bytes, now: Now) -> Ack:
        stream = self._streams.get(key)
        if stream is None or not stream.queue:
            return Ack.UNKNOWN
        if stream.queue[0].uuid != uuid:
            return Ack.MISMATCH
        acknowledged = stream.queue.popleft()
        number = stream.numbers.popleft()
        self._journal.acknowledged(key, number, acknowledged, stream.latest)
        stream.passed.append((number, uuid))
        if len(stream.passed) > MAX_REMEMBERED:
            oldest, forgotten = stream.passed.popleft()
            stream.uuids.discard(forgotten)
            self._journal.no_updates(key, [oldest])
        if is_terminal(acknowledged.state):
            self._close(key)
            return Ack.ENDED
        if stream.queue and not self._paused:
            self._send_head(key, stream, FIRST_RETRY_S, now.monotonic_s)
        else:
            self._timers.cancel(key)
        return Ack.NEXT

    def pause(self) -> None:
        """There is no master to send to."""
        self._paused = True

    def resume(self, now: Now) -> None:
        """The agent has registered: all heads go out again."""
        self._paused = False
        for key, stream in self._streams.items():
            if stream.queue:
                self._send_head(key, stream, FIRST_RETRY_S, now.monotonic_s)

    def repeat_framework(self, framework_id: str, now: Now) -> None:
        """Its scheduler has subscribed anew, and may have missed what was sent: all heads
        go out again, in slices, and their intervals start anew."""
        if self._paused:
            return  # all go out in `resume`
        if self._slice_s <= now.monotonic_s - SLICE_S:
            self._slice_s, self._in_slice = now.monotonic_s, 0
        for key, stream in self._streams.items():
            if key[0] != framework_id or not stream.queue:
                continue
            if self._in_slice >= SLICE:
                self._slice_s, self._in_slice = self._slice_s + SLICE_S, 0
            stream.interval_s = 0.0
            if self._slice_s <= now.monotonic_s:
                self._in_slice += 1
                self._send_head(key, stream, FIRST_RETRY_S, now.monotonic_s)
            elif self._slice_s < stream.due_s:
                self._in_slice += 1
                stream.due_s = self._slice_s
                self._timers.set(key, stream.due_s)

    def drop_framework(self, framework_id: str) -> list[pb.TaskStatus]:
        """The framework is gone: nobody will ever acknowledge.  Returns the ends of its
        tasks, which may not have been told yet."""
        ends: list[pb.TaskStatus] = []
        for key in [key for key in self._streams if key[0] == framework_id]:
            stream = self._streams[key]
            if stream.queue and is_terminal(stream.queue[-1].state):
                ends.append(stream.queue[-1])
            self._close(key)
        return ends

    def next_s(self) -> float | None:
        """When `repeat` should be called, on the monotonic clock."""
        return None if self._paused else self._timers.next_s()

    def repeat(self, now: Now) -> None:
        """Send the heads again whose time has come."""
        if self._paused:
            return
        for due in self._timers.due(now.monotonic_s):
            key = (due[0], due[1])
            stream = self._streams[key]
            interval_s = max(FIRST_RETRY_S, min(MAX_RETRY_S, stream.interval_s * 2))
            self._send_head(key, stream, interval_s, now.monotonic_s)

    def _send_head(self, key: TaskKey, stream: Stream, interval_s: float, now_s: float) -> None:
        stream.interval_s = interval_s
        stream.due_s = now_s + interval_s
        self._timers.set(key, stream.due_s)
        call = agent_pb2.Call(type=agent_pb2.Call.UPDATE)
        # In place: a message given to a constructor is copied once more.
        update = call.update
        update.framework_id.value = key[0]
        update.latest_state = stream.latest
        update.status.CopyFrom(stream.queue[0])
        self._send(call)

    def _close(self, key: TaskKey) -> None:
        stream = self._streams.pop(key)
        self._timers.cancel(key)
        self._journal.no_updates(key, [*(number for number, _ in stream.passed), *stream.numbers])
