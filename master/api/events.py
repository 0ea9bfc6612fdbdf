"""What happens in the cluster, for those who subscribed to it: the operator API's events.

While nobody is subscribed the core tells nothing, and nothing is kept here.  A subscriber joins
before its snapshot is begun: so nothing falls between that and the events after it.  What
happens while the snapshot is made waits behind it; some of that may be in it already.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, TypeAlias

from master.api import convert
from master.core.cluster import Cluster
from master.core.records import Agent, Framework, Task
from mesos_py import logs
from mesos_py.outbox import Outbox
from mesos_py.v1 import operator_pb2 as op
from mesos_py.v1 import types_pb2 as pb

log = logs.get("master.events")

# Above that the oldest has to go.
MAX_SUBSCRIBERS: Final = 1000
# What may wait for a subscriber while its snapshot is made.
MAX_EARLY: Final = 100_000

# An event as it goes out to one kind of client.
Encode: TypeAlias = Callable[[op.Event], bytes]
# What is known of a framework: its event is sent when that has changed.
_Known: TypeAlias = tuple[bytes, bool, bool]


class Subscriber:
    """One who is sent all events from its beginning on."""

    def __init__(self, encode: Encode, cut: Callable[[], None]) -> None:
        self.encode = encode
        self.queue: Outbox[bytes] = Outbox(on_overflow=lambda _: cut())
        # What happened before it had its snapshot; None once it has that.
        self._early: list[bytes] | None = []

    def put(self, record: bytes) -> None:
        """Queue an event behind the snapshot."""
        if self._early is None:
            self.queue.put(record, len(record))
        elif len(self._early) < MAX_EARLY:
            self._early.append(record)
        else:
            self.queue.close("too much has happened while the state was written")

    def begin(self, *first: bytes) -> None:
        """The snapshot, and what is to follow it at once; then what has happened since."""
        early, self._early = self._early, None
        # Of one record the length says nothing about how its reader reads.
        for record in first:
            self.queue.put(record, 1)
        for record in early or ():
            self.queue.put(record, len(record))


class Events:
    """The core's News, while there are subscribers.  Used from one event loop."""

    def __init__(self, cluster: Callable[[], Cluster]) -> None:
        self._cluster = cluster
        self._subscribers: OrderedDict[Subscriber, None] = OrderedDict()
        self._ended = False
        # In order, each made an event when the step is over.
        self._pending: list[Callable[[], op.Event | None]] = []
        self._agents: set[str] = set()
        self._frameworks: dict[str, _Known] = {}
        self.sent = 0

    def __len__(self) -> int:
        return len(self._subscribers)

    # ---- Subscribers -------------------------------------------------------------

    def join(self, subscriber: Subscriber) -> None:
        """Send it what happens from now on."""
        if self._ended:
            subscriber.queue.close("the leadership has ended")
            return
        if not self._subscribers:
            self._begin()
        self._subscribers[subscriber] = None
        while len(self._subscribers) > MAX_SUBSCRIBERS:
            oldest, _ = self._subscribers.popitem(last=False)
            oldest.queue.close(f"there are more than {MAX_SUBSCRIBERS} subscribers")

    def leave(self, subscriber: Subscriber) -> None:
        """It is gone.  Idempotent."""
        self._subscribers.pop(subscriber, None)
        if not self._subscribers:
            self._cluster().news = None
            self._agents.clear()
            self._frameworks.clear()
            self._pending.clear()

    def end(self) -> None:
        """The leadership is over, and so are all streams.  Idempotent."""
        self._ended = True
        for subscriber in list(self._subscribers):
            subscriber.queue.close("the leadership has ended")
            self.leave(subscriber)

    def _begin(self) -> None:
        c = self._cluster()
        self._agents = {each.agent_id for each in c.agents.values() if each.unreachable is None}
        self._frameworks = {each.framework_id: _known(each) for each in c.frameworks.values()}
        c.news = self

    # ---- What the core tells -----------------------------------------------------

    def task_added(self, task: Task) -> None:
        event = op.Event(type=op.Event.TASK_ADDED)
        event.task_added.task.CopyFrom(convert.task_message(task))
        self._later(lambda: event)

    def task_updated(self, task: Task, status: pb.TaskStatus) -> None:
        event = op.Event(type=op.Event.TASK_UPDATED)
        update = event.task_updated
        update.framework_id.value = task.framework_id
        update.status.CopyFrom(status)
        # The framework's own affair, and it may be large.
        update.status.ClearField("data")
        update.state = status.state
        self._later(lambda: event)

    def agent_changed(self, agent: Agent) -> None:
        self._later(lambda: self._agent(agent))

    def agent_removed(self, agent_id: str) -> None:
        self._later(lambda: self._no_agent(agent_id))

    def framework_changed(self, framework: Framework) -> None:
        self._later(lambda: self._framework(framework))

    def framework_removed(self, framework: Framework) -> None:
        self._later(lambda: self._no_framework(framework))

    def _agent(self, agent: Agent) -> op.Event | None:
        c, agent_id = self._cluster(), agent.agent_id
        here = c.agents.get(agent_id) is agent and agent.unreachable is None
        if not here or agent_id in self._agents:
            return None
        self._agents.add(agent_id)
        event = op.Event(type=op.Event.AGENT_ADDED)
        event.agent_added.agent.CopyFrom(convert.agent_message(c, agent))
        return event

    def _no_agent(self, agent_id: str) -> op.Event | None:
        if agent_id not in self._agents:
            return None
        self._agents.discard(agent_id)
        event = op.Event(type=op.Event.AGENT_REMOVED)
        event.agent_removed.agent_id.value = agent_id
        return event

    def _framework(self, framework: Framework) -> op.Event | None:
        c, framework_id = self._cluster(), framework.framework_id
        if c.frameworks.get(framework_id) is not framework:
            return None
        before, known = self._frameworks.get(framework_id), _known(framework)
        if before == known:
            return None
        self._frameworks[framework_id] = known
        message = convert.framework_message(c, framework)
        if before is None:
            event = op.Event(type=op.Event.FRAMEWORK_ADDED)
            event.framework_added.framework.CopyFrom(message)
        else:
            event = op.Event(type=op.Event.FRAMEWORK_UPDATED)
            event.framework_updated.framework.CopyFrom(message)
        return event

    def _no_framework(self, framework: Framework) -> op.Event | None:
        if self._frameworks.pop(framework.framework_id, None) is None:
            return None
        event = op.Event(type=op.Event.FRAMEWORK_REMOVED)
        event.framework_removed.framework_info.CopyFrom(framework.info)
        return event

    # ---- Out ---------------------------------------------------------------------

    def _later(self, make: Callable[[], op.Event | None]) -> None:
        if not self._pending:
            asyncio.get_running_loop().call_soon(self.flush)
        self._pending.append(make)

    def flush(self) -> None:
        """Send what the core has told of.  Called by itself, when the step is over."""
        pending, self._pending = self._pending, []
        for make in pending:
            try:
                event = make()
                if event is not None:
                    self._send(event)
            except Exception:
                # One that cannot be told must not keep the others from being.
                log.exception("event failed")

    def _send(self, event: op.Event) -> None:
        self.sent += 1
        encoded: dict[Encode, bytes] = {}
        for subscriber in self._subscribers:
            record = encoded.get(subscriber.encode)
            if record is None:
                record = encoded[subscriber.encode] = subscriber.encode(event)
            subscriber.put(record)


def _known(framework: Framework) -> _Known:
    return framework.info.SerializeToString(), framework.connected, framework.recovered


__all__ = ["MAX_SUBSCRIBERS", "Events", "Subscriber"]
