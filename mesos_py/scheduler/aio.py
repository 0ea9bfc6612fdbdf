"""The scheduler's client for asyncio code; the callback driver is built on it."""

from __future__ import annotations

import asyncio
import getpass
import os
import random
import socket
import time
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Final

from mesos_py.clock import Clock, SystemClock
from mesos_py.election import Detector
from mesos_py.errors import InvalidValue, MesosPyError
from mesos_py.inbox import Doorbell, Inbox
from mesos_py.rpc import LINK_TIMEOUTS, LinkTimeouts
from mesos_py.scheduler import checks, lines
from mesos_py.scheduler.calls import SchedulerCalls, SharedSession
from mesos_py.scheduler.link import SchedulerLink, Stop
from mesos_py.scheduler.session import Disconnected, Item, SchedulerSession
from mesos_py.v1.scheduler_pb2 import Event
from mesos_py.v1.types_pb2 import FrameworkInfo, TaskStatus
from mesos_py.version import VERSION

STOP_TIMEOUT_S: Final = 5.0
# Slow handling of a long batch must not hold back what was dealt with long ago.
ACKNOWLEDGE_AFTER_S: Final = 0.05


class SchedulerClient(SchedulerCalls):
    """A subscription as an asynchronous iterator of events.

    ::

        async with SchedulerClient(framework, "10.0.0.1:5060") as client:
            async for event in client:
                if event.type == Event.OFFERS:
                    client.launch_tasks(event.offers.offers[0], task)

    The calls are those of `SchedulerCalls`; they may be made from any thread, and also
    before the first subscription.  Events are the messages of scheduler.proto, in the
    order of the master, without HEARTBEAT, acknowledged duplicates and ERROR.  SUBSCRIBED
    comes at each subscription: from the second on, all earlier offers are dead.  With
    `standby`, STANDBY comes while another instance is active, and whenever our place has
    changed; calls are answered by REFUSED then.

    The iteration ends after `stop` or `abort`.  It raises what ends the subscription for
    good: Refused (by the master, or because another instance took over), InvalidValue,
    UnsupportedProtocol, MasterUnreachable (only with `connect_timeout_s`).  Lost links
    are renewed without end otherwise.

    Leaving the block by its end stops with TEARDOWN, as does a cancellation, unless `stop`
    was called before; leaving it by any other exception leaves the framework registered
    for its failover time-out.
    """

    def __init__(
        self,
        framework: FrameworkInfo,
        master: str | Detector,
        *,
        implicit_acknowledgements: bool = True,
        standby: bool = False,
        connect_timeout_s: float | None = None,
        stop_timeout_s: float = STOP_TIMEOUT_S,
        on_disconnected: Callable[[str], None] | None = None,
        timeouts: LinkTimeouts = LINK_TIMEOUTS,
        clock: Clock | None = None,
    ) -> None:
        """Starts nothing yet.

        framework: needs a name; user, host name and failover time-out (an hour) get
            defaults, an id makes this the successor of an earlier scheduler.
        master: `host:port`, `h1:p1,h2:p2` of which one leads, or `zk://h1:p1,h2:p2/path`
            by which the leader is found; or a Detector.  `http://host:port` (or more of
            them, also `http://principal:secret@...`) and `http+zk://...` speak the Mesos v1
            HTTP API to the master, which may be one of Apache Mesos.
        implicit_acknowledgements: an update is acknowledged when the iteration asks for
            what follows it; else call `acknowledge`.
        standby: if another instance of the framework is active, wait behind it (STANDBY),
            and take over when it goes (SUBSCRIBED).  All instances say so; the framework's
            id must be given.  Who has only waited ends alone: `stop` is no TEARDOWN then.
        connect_timeout_s: give up (MasterUnreachable) when the first subscription (or the
            place among the standbys) takes longer; None: never.
        stop_timeout_s: how long to try to deliver TEARDOWN.
        on_disconnected: called with the reason, in order with the events, when a
            subscription is lost.

        Raises InvalidValue for a framework or master text that cannot be.
        """
        if standby and not framework.id.value:
            raise InvalidValue(
                "framework.id", "", "standby needs an id of your own that all instances give"
            )
        if connect_timeout_s is not None:
            checks.seconds("connect_timeout_s", connect_timeout_s)
        shared = _session(framework, clock or SystemClock(), implicit_acknowledgements, standby)
        super().__init__(shared, implicit_acknowledgements)
        self._detector, self._dial = lines.parse(master)
        self._connect_timeout_s = connect_timeout_s
        self._stop_timeout_s = stop_timeout_s
        self._timeouts = timeouts
        self._on_disconnected = on_disconnected
        self._link: SchedulerLink | None = None
        self._running: asyncio.Task[None] | None = None
        self._stop: Stop | None = None
        # Whether this instance may end the framework, as far as the user of it knows.
        self._in_charge = not standby
        self._inbox: Inbox[Item] = Inbox()
        self._bell = Doorbell(self._awake)
        self._shared.wake = self._bell.ring

    # ---- Life ----------------------------------------------------------------

    async def __aenter__(self) -> SchedulerClient:
        if self._running is not None:
            raise RuntimeError("a client is used once")
        self._link = SchedulerLink(
            self._shared,
            self._detector,
            self._dial,
            self._inbox.put,
            self._inbox.room,
            timeouts=self._timeouts,
            connect_timeout_s=self._connect_timeout_s,
            stop_timeout_s=self._stop_timeout_s,
            random=random.random,
        )
        self._bell.connect(asyncio.get_running_loop())
        self._running = asyncio.create_task(self._run(self._link))
        self._awake()
        if self._stop is not None:
            self._stopped(self._stop)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None or isinstance(error, asyncio.CancelledError):
            self.stop()
        else:
            self.abort()
        assert self._running is not None
        await self._running

    def stop(self, failover: bool = False) -> None:
        """End.  Waits for nothing; leaving the block does.  From any thread.

        The framework ends with all its tasks (TEARDOWN); with `failover` they go on, and
        a scheduler with the framework's id can take over within the failover time-out.
        A standby leaves in either case, and the framework goes on.
        """
        self._end(Stop.LEAVE if failover else Stop.TEARDOWN)

    def abort(self) -> None:
        """End at once, sending nothing more; the framework stays as with `failover`."""
        self._end(Stop.ABORT)

    def _end(self, how: Stop) -> None:
        with self._shared.lock:
            # Leaving by the end of the block must not tear down what was left on purpose.
            if self._stop is Stop.ABORT or (self._stop is not None and how is not Stop.ABORT):
                return
            if how is Stop.TEARDOWN and not self._in_charge:
                how = Stop.LEAVE
            self._stop = how
            self._shared.session.close(teardown=how is Stop.TEARDOWN)
        self._bell.call(lambda: self._stopped(how))

    def _stopped(self, how: Stop) -> None:
        self._inbox.quiet()
        if self._link is not None:
            self._link.stop(how)

    async def _run(self, link: SchedulerLink) -> None:
        failure: BaseException | None = None
        try:
            await link.run()
        except Exception as error:
            failure = error  # the iteration raises it
        finally:
            # Calls do nothing from now on.
            with self._shared.lock:
                self._shared.session.close(teardown=False)
            self._inbox.end(failure)

    # ---- Events --------------------------------------------------------------

    async def __aiter__(self) -> AsyncIterator[Event]:
        done = Acknowledgements(self._acknowledge)
        try:
            async for batch in self.batches():
                for item in batch:
                    if isinstance(item, Disconnected):
                        if self._on_disconnected is not None:
                            self._on_disconnected(item.reason)
                        continue
                    self._note_role(item)
                    yield item
                    if self._implicit and item.type == Event.UPDATE:
                        done.add(item.update.status)
                    elif self._implicit and item.type == Event.UPDATE_OPERATION_STATUS:
                        self._acknowledge_operation(item.update_operation_status.status)
                done.flush()
        except MesosPyError as error:
            self._shared.failure = error
            raise
        finally:
            if self._shared.failure is None:
                done.flush()

    async def batches(self) -> AsyncIterator[list[Item]]:
        """The events in the batches in which they came, and Disconnected between them.

        Acknowledges nothing.  For those who build on the client; else iterate over it.
        """
        if self._running is None:
            raise RuntimeError("not started: use `async with`")
        async for batch in self._inbox.batches():
            yield batch

    def _note_role(self, item: Item) -> None:
        """The user is about to see `item`.  What he has not seen yet does not count: whoever
        stops a standby must not end the framework of which it is in charge by now."""
        if isinstance(item, Disconnected):
            return
        if item.type in (Event.SUBSCRIBED, Event.STANDBY):
            with self._shared.lock:
                self._in_charge = item.type == Event.SUBSCRIBED

    def _awake(self) -> None:
        if self._link is not None:
            self._link.awake()


class Acknowledgements:
    """Collects what was dealt with, so that many go out as one message."""

    def __init__(self, send: Callable[[list[TaskStatus]], None]) -> None:
        self._send = send
        self._statuses: list[TaskStatus] = []
        self._since = time.monotonic()

    def add(self, status: TaskStatus) -> None:
        if status.uuid:
            self._statuses.append(status)
        if time.monotonic() - self._since > ACKNOWLEDGE_AFTER_S:
            self.flush()

    def flush(self) -> None:
        self._since = time.monotonic()
        if self._statuses:
            statuses, self._statuses = self._statuses, []
            self._send(statuses)


def _session(
    framework: FrameworkInfo, clock: Clock, implicit_acknowledgements: bool, standby: bool
) -> SharedSession:
    """Raises InvalidValue for a framework that cannot be."""
    user, hostname = default_user(), socket.gethostname()
    session = SchedulerSession(
        checks.complete_framework(framework, user, hostname),
        clock=clock,
        client=f"mesos-py {VERSION}",
        instance=os.urandom(8).hex(),
        implicit_acknowledgements=implicit_acknowledgements,
        standby=standby,
    )
    return SharedSession(session, user, hostname)


def default_user() -> str:
    """Who runs this process, "nobody" where the system cannot say."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "nobody"


__all__ = ["Acknowledgements", "Disconnected", "Event", "SchedulerClient", "default_user"]
