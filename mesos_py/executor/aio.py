"""The executor's client for asyncio code; the callback driver is built on it."""

from __future__ import annotations

import asyncio
import os
import random
import threading
import uuid
from collections.abc import AsyncIterator, Iterable
from types import TracebackType

from mesos_py import logs
from mesos_py.clock import Clock, SystemClock
from mesos_py.errors import Unavailable
from mesos_py.executor.environment import ExecutorEnvironment
from mesos_py.executor.link import ExecutorLink, Stop
from mesos_py.executor.session import Disconnected, ExecutorSession, Item
from mesos_py.inbox import Doorbell, Inbox
from mesos_py.rpc import LINK_TIMEOUTS, LinkTimeouts
from mesos_py.v1.executor_pb2 import Event
from mesos_py.v1.types_pb2 import TaskStatus

log = logs.get("executor")


class ExecutorClient:
    """The link to the agent as an asynchronous iterator of events.

    ::

        async with ExecutorClient() as client:
            async for event in client:
                if event.type == Event.LAUNCH:
                    client.send_status(status(event.launch.task.task_id, TASK_RUNNING))

    Events are the messages of executor.proto, in the order of the agent, without
    HEARTBEAT, ACKNOWLEDGED and ERROR; the tasks of a group come in one LAUNCH_GROUP.  The
    iteration ends after SHUTDOWN, which also comes when the agent is gone for good, and
    after `stop`.  It raises what ends the link: Refused by the agent, Unavailable when the
    agent was never there.

    Leaving the block waits until all statuses are acknowledged, at most for the shutdown
    grace.  The calls may be made from any thread.
    """

    def __init__(
        self,
        environment: ExecutorEnvironment | None = None,
        *,
        timeouts: LinkTimeouts = LINK_TIMEOUTS,
        clock: Clock | None = None,
    ) -> None:
        """environment: None reads that of the process; InvalidValue if it is incomplete."""
        self.environment = environment or ExecutorEnvironment.read(os.environ)
        self._session = ExecutorSession(
            self.environment.framework_id,
            self.environment.executor_id,
            clock=clock or SystemClock(),
            make_uuid=lambda: uuid.uuid4().bytes,
        )
        self._lock = threading.Lock()
        self._timeouts = timeouts
        self._inbox: Inbox[Item] = Inbox()
        self._bell = Doorbell(self._awake)
        self._link: ExecutorLink | None = None
        self._running: asyncio.Task[None] | None = None
        self._stop: Stop | None = None
        # Why calls cannot be made any more.
        self.failure: BaseException | None = None

    # ---- Calls ---------------------------------------------------------------

    def send_status(self, status: TaskStatus) -> None:
        """Report a task's state.

        A copy is completed (uuid, time, source, ids) and kept until the agent has it for
        good; it is sent again after a lost link.  Raises InvalidValue for a task that this
        executor never got and for TASK_STAGING, TooLarge for more than fits into a message,
        Unavailable after a failure.  Ignored after `abort`.
        """
        self._raise_failure()
        if self._stop is Stop.ABORT:
            return
        with self._lock:
            self._session.send_status(status)
        self._bell.ring()

    def send_framework_message(self, data: bytes) -> None:
        """Send `data` to the scheduler.  Best effort: without a link it is lost (and logged)."""
        self._raise_failure()
        with self._lock:
            sent = self._session.message(data)
        if not sent:
            log.warning("message to the scheduler lost: no link to the agent", bytes=len(data))
        self._bell.ring()

    @property
    def unacknowledged(self) -> int:
        """How many statuses the agent may not have yet."""
        return self._session.unacknowledged

    def kill_grace_s(self, kill: Event.Kill) -> float | None:
        """How long the task of a KILL may take to end; None: nobody has said."""
        with self._lock:
            return self._session.kill_grace_s(kill)

    def stop(self) -> None:
        """End once all statuses are acknowledged, at the latest after the shutdown grace."""
        self._end(Stop.FLUSH)

    def abort(self) -> None:
        """End at once; what was not acknowledged is lost."""
        self._end(Stop.ABORT)

    def _raise_failure(self) -> None:
        if self.failure is not None:
            raise Unavailable(f"the executor has ended: {self.failure}") from self.failure

    # ---- Life ----------------------------------------------------------------

    async def __aenter__(self) -> ExecutorClient:
        if self._running is not None:
            raise RuntimeError("a client is used once")
        self._link = ExecutorLink(
            self._session,
            self._lock,
            self.environment,
            self._inbox.put,
            self._inbox.room,
            timeouts=self._timeouts,
            random=random.random,
        )
        self._bell.connect(asyncio.get_running_loop())
        self._running = asyncio.create_task(self._run(self._link))
        if self._stop is not None:
            self._stopped(self._stop)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        assert self._running is not None
        await self._running

    def _end(self, how: Stop) -> None:
        with self._lock:
            if self._stop is not None and self._stop.value >= how.value:
                return
            self._stop = how
        self._bell.call(lambda: self._stopped(how))

    def _stopped(self, how: Stop) -> None:
        self._inbox.quiet()
        if self._link is not None:
            self._link.stop(how)

    async def _run(self, link: ExecutorLink) -> None:
        failure: BaseException | None = None
        try:
            await link.run()
        except Exception as error:
            failure = error  # the iteration raises it
        finally:
            self._inbox.end(failure)

    def _awake(self) -> None:
        if self._link is not None:
            self._link.awake()

    # ---- Events --------------------------------------------------------------

    async def __aiter__(self) -> AsyncIterator[Event]:
        async for batch in self.batches():
            for event in _events(batch):
                yield event
                if event.type == Event.SHUTDOWN:
                    return

    async def batches(self) -> AsyncIterator[list[Item]]:
        """The events in the batches in which they came, and Disconnected between them.

        For those who build on the client; else iterate over it.
        """
        if self._running is None:
            raise RuntimeError("not started: use `async with`")
        async for batch in self._inbox.batches():
            yield batch


def _events(batch: Iterable[Item]) -> Iterable[Event]:
    for item in batch:
        if not isinstance(item, Disconnected):
            yield item
        elif item.final:
            yield Event(type=Event.SHUTDOWN)


__all__ = ["Disconnected", "Event", "ExecutorClient"]
