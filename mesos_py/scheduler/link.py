"""The scheduler's link to the master that leads: found, watched, lost, renewed.

One loop, one stream at a time.  Decisions about calls and events are the session's.
"""

from __future__ import annotations

import asyncio
import contextlib
import enum
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

from mesos_py import logs
from mesos_py.address import Address, parse_address
from mesos_py.conversation import Conversation
from mesos_py.election import Backoff, Detector, Patience, rest
from mesos_py.errors import (
    InvalidValue,
    MasterUnreachable,
    MesosPyError,
    NotLeader,
    Refused,
    Unavailable,
    UnsupportedProtocol,
)
from mesos_py.rpc import LinkTimeouts
from mesos_py.scheduler.calls import SharedSession
from mesos_py.scheduler.lines import Dial
from mesos_py.scheduler.session import Item
from mesos_py.v1 import scheduler_pb2 as pb

log = logs.get("scheduler.link")
T = TypeVar("T")

# A subscription that was ended before it began, by an answer that will not change.
FINAL = (InvalidValue, UnsupportedProtocol, Refused)
# Masters that name each other as the leader are followed this often without a pause.
MAX_HINTS = 3
# For written bytes to leave when nothing more is waited for.
LEAVE_S = 1.0


class Stop(enum.Enum):
    """How the link is to end; later members overrule earlier ones."""

    TEARDOWN = 1
    LEAVE = 2
    ABORT = 3


class SchedulerLink:
    """Keeps a session subscribed until told to stop.

    `deliver` is given what the framework is to see, on the loop's thread, and may wait
    to hold the master back; `dial` makes the line to a master that the detector has found.
    All methods are for the loop's thread.
    """

    def __init__(
        self,
        shared: SharedSession,
        detector: Detector,
        dial: Dial,
        deliver: Callable[[list[Item]], None],
        room: Callable[[], Awaitable[None]],
        *,
        timeouts: LinkTimeouts,
        connect_timeout_s: float | None,
        stop_timeout_s: float,
        random: Callable[[], float],
    ) -> None:
        self._shared = shared
        self._session = shared.session
        self._detector = detector
        self._dial = dial
        self._deliver = deliver
        self._room = room
        self._timeouts = timeouts
        self._connect_timeout_s = connect_timeout_s
        self._stop_timeout_s = stop_timeout_s
        self._backoff = Backoff(timeouts.backoff_first_s, timeouts.backoff_cap_s, random)
        # A master that has thousands of agents to answer may be this late.
        self._patience = Patience(timeouts.connect_s, timeouts.agent_silence_s)
        self._stop: Stop | None = None
        self._interrupt = asyncio.Event()
        self._conversation: Conversation[pb.Calls, pb.Events] | None = None
        self._linked_at: float | None = None
        self._ever = False
        self._expired = False
        self._torn_down = False
        self._hints = 0
        self._tried: dict[str, str] = {}
        self._timers: list[asyncio.TimerHandle] = []

    # ---- From outside --------------------------------------------------------

    def awake(self) -> None:
        """Calls were made: write and show what there is."""
        with self._shared.lock:
            items, writable = self._session.take_items(), self._session.writable
        self._pass_on(items, writable)

    def stop(self, how: Stop) -> None:
        if self._stop is not None and self._stop.value >= how.value:
            return
        self._stop = how
        self._interrupt.set()
        if how is Stop.TEARDOWN:
            loop = asyncio.get_running_loop()
            self._timers.append(loop.call_later(self._stop_timeout_s, self._too_late))
        conversation = self._conversation
        if conversation is None:
            return
        if how is Stop.ABORT or (how is Stop.LEAVE and not self._session.subscribed):
            conversation.cut(None)
        elif self._session.subscribed:
            self._finish(conversation)

    async def run(self) -> None:
        """Until stopped.  Raises what ends the subscription for good."""
        if self._connect_timeout_s is not None:
            loop = asyncio.get_running_loop()
            self._timers.append(loop.call_later(self._connect_timeout_s, self._expire))
        try:
            while self._wanted():
                if (address := await self._unless_interrupted(self._detector.leader())) is None:
                    continue
                pause_s = self._judge(address, await self._converse(address))
                if pause_s:
                    await self._unless_interrupted(
                        rest(self._detector, address, pause_s, self._backoff)
                    )
        finally:
            for timer in self._timers:
                timer.cancel()
            await self._detector.close()

    # ---- One stream ----------------------------------------------------------

    async def _converse(self, address: Address) -> MesosPyError | None:
        line = self._dial(address)
        with self._shared.lock:
            opening = self._session.opening()
        self._linked_at = None
        take = partial(self._take, line.batch_calls)
        conversation = line.converse(opening, take, self._receive, self._patience.now_s)
        self._conversation = conversation
        watching = asyncio.create_task(self._watch_leader(conversation, address))
        error: MesosPyError | None = None
        try:
            error = await conversation.run()
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            self._conversation = None
            if conversation.unanswered and line.is_up:
                self._patience.exhausted()
            await line.close()
            with self._shared.lock:
                self._session.lost("the link was given up" if error is None else error.message)
                items = self._session.take_items()
            self._pass_on(items, writable=False)
        return error

    def _take(self, most: int) -> pb.Calls | None:
        with self._shared.lock:
            calls = self._session.take_calls(most)
            tearing_down = self._session.tearing_down
        if calls is not None and tearing_down:
            self._torn_down = calls.calls[-1].type == pb.Call.TEARDOWN
        return calls

    async def _receive(self, batch: pb.Events) -> None:
        with self._shared.lock:
            waited = self._session.standing_by
            self._session.receive(batch.events)
            items, writable = self._session.take_items(), self._session.writable
        conversation = self._conversation
        assert conversation is not None
        if self._session.fatal is not None:
            conversation.cut(self._session.fatal)
        elif self._session.linked and self._linked_at is None:
            self._linked(conversation)
        if waited and self._session.subscribed:
            log.info("active now", framework=self._session.framework_id)
        self._pass_on(items, writable)
        await self._room()

    def _linked(self, conversation: Conversation[pb.Calls, pb.Events]) -> None:
        """A master has taken us in."""
        self._linked_at = asyncio.get_running_loop().time()
        self._patience.answered()
        self._ever = True
        self._hints = 0
        conversation.expect(self._timeouts.missed_heartbeats * self._session.heartbeat_s)
        subscribed = self._session.subscribed
        what = "subscribed" if subscribed else "standing by"
        log.info(what, framework=self._session.framework_id)
        if self._stop is Stop.TEARDOWN and subscribed:
            self._finish(conversation)
        elif self._stop is Stop.TEARDOWN:
            log.warning("another instance is active: the framework goes on")
            conversation.cut(None)
        elif self._stop is not None:
            conversation.cut(None)

    async def _watch_leader(
        self, conversation: Conversation[pb.Calls, pb.Events], address: Address
    ) -> None:
        """Leave for another master as soon as it is known to lead."""
        async for leader in self._detector.watch():
            # None: nobody is known to lead.  A link that works is kept; silence ends it.
            if leader is not None and leader != address:
                conversation.cut(NotLeader(str(leader)))

    def _finish(self, conversation: Conversation[pb.Calls, pb.Events]) -> None:
        # After TEARDOWN a master that lives ends the stream at once.  If this one does
        # not, there is as much time again to try it over.
        teardown = self._stop is Stop.TEARDOWN
        conversation.finish(self._stop_timeout_s / 2 if teardown else LEAVE_S)

    def _pass_on(self, items: list[Item], writable: bool) -> None:
        if items:
            self._deliver(items)
        if writable and self._conversation is not None:
            self._conversation.wake()

    # ---- Between streams -----------------------------------------------------

    def _wanted(self) -> bool:
        """Whether to look for a master (again)."""
        match self._stop:
            case None:
                if self._expired:
                    raise self._unreachable()
                return True
            case Stop.TEARDOWN:
                # A framework that no master has named has nothing to be torn down, and
                # another instance, should there be one, goes on.
                wanted = self._session.tearing_down and bool(self._session.framework_id)
                return wanted and not self._torn_down
            case _:
                return False

    def _unreachable(self) -> MasterUnreachable:
        tried = "; ".join(f"{address}: {why}" for address, why in self._tried.items())
        return MasterUnreachable(
            f"no master within {self._connect_timeout_s:g} s ({tried or 'none is known'})",
            addresses=list(self._tried),
        )

    def _judge(self, address: Address, error: MesosPyError | None) -> float:
        """What the end of a stream means: raises if it is the end of all, else the pause."""
        if self._stop is not None:
            self._judge_stopped(error)
            # Teardown goes on trying until its time is over.
            return self._timeouts.backoff_first_s if self._wanted() else 0
        if error is None:
            error = Unavailable(f"{address} ended the subscription")
        if self._session.fatal is not None:
            raise self._session.fatal
        lasted_s = self._lasted_s()
        if lasted_s is None and isinstance(error, FINAL):
            raise error
        if self._expired:
            # "No time left" says less than how an earlier attempt has ended.
            self._tried.setdefault(str(address), error.message)
        else:
            self._tried[str(address)] = error.message
        if isinstance(error, NotLeader) and self._follow(error, address):
            return 0
        self._detector.failed(address)
        if lasted_s is not None and lasted_s >= self._timeouts.backoff_cap_s:
            self._backoff.reset()
        pause_s = self._backoff.next()
        log.warning(
            "no link to a master" if lasted_s is None else "the link to the master is lost",
            master=str(address),
            why=error.message,
            again_in_s=round(pause_s, 3),
        )
        return pause_s

    def _judge_stopped(self, error: MesosPyError | None) -> None:
        if self._session.fatal is not None and self._stop is Stop.TEARDOWN:
            # "Framework has been removed": an earlier TEARDOWN has arrived.
            self._torn_down = True
        elif self._torn_down and isinstance(error, Unavailable):
            # It may not have arrived.
            self._torn_down = False

    def _follow(self, error: NotLeader, asked: Address) -> bool:
        """Go where a master that does not lead sends us; False if that leads nowhere."""
        if error.leader is None:
            return False
        self._hints += 1
        leader = asked
        with contextlib.suppress(InvalidValue):
            leader = parse_address(error.leader, "leader")
        if leader == asked or self._hints > MAX_HINTS:
            self._hints = 0
            return False
        log.info("another master leads", asked=str(asked), leader=str(leader))
        self._detector.hint(leader)
        return True

    def _lasted_s(self) -> float | None:
        if self._linked_at is None:
            return None
        return asyncio.get_running_loop().time() - self._linked_at

    async def _unless_interrupted(self, work: Awaitable[T]) -> T | None:
        """The result of `work`, or None as soon as something changes how to go on."""
        task = asyncio.ensure_future(work)
        interrupt = asyncio.ensure_future(self._interrupt.wait())
        try:
            await asyncio.wait({task, interrupt}, return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() else None
        finally:
            self._interrupt.clear()
            for each in (task, interrupt):
                each.cancel()
            await asyncio.gather(task, interrupt, return_exceptions=True)

    def _expire(self) -> None:
        """The time for the first subscription is over."""
        if self._ever:
            return
        self._expired = True
        self._interrupt.set()
        if self._conversation is not None:
            late = Unavailable(f"no answer in the {self._connect_timeout_s:g} s allowed")
            self._conversation.cut(late)

    def _too_late(self) -> None:
        """The time for TEARDOWN is over."""
        log.warning(
            "TEARDOWN did not reach a master: the tasks end with the failover time-out",
            framework=self._session.framework_id,
            failover_timeout_s=self._session.wants.info().failover_timeout,
        )
        self.stop(Stop.ABORT)


__all__ = ["SchedulerLink", "Stop"]
