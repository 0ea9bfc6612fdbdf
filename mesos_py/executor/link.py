"""The executor's link to its agent: made, lost, renewed or given up."""

from __future__ import annotations

import asyncio
import enum
import threading
from collections.abc import Awaitable, Callable
from typing import Final

from mesos_py import logs
from mesos_py.conversation import Conversation
from mesos_py.errors import (
    InvalidValue,
    MesosPyError,
    Refused,
    Unavailable,
    UnsupportedProtocol,
)
from mesos_py.executor.environment import ExecutorEnvironment
from mesos_py.executor.lines import dial
from mesos_py.executor.session import ExecutorSession, Item
from mesos_py.rpc import LinkTimeouts
from mesos_py.v1 import executor_pb2 as pb

log = logs.get("executor.link")

# Answers to a first call that will not change.
FINAL = (InvalidValue, UnsupportedProtocol, Refused)
# An agent that has just started this executor is there, give or take a moment.
FIRST_CONTACT_S: Final = 10.0
SHORTEST_PAUSE_S: Final = 0.05
# For written bytes to leave when nothing more is waited for.
LEAVE_S: Final = 1.0


class Stop(enum.Enum):
    """How the link is to end: with all statuses acknowledged, or at once."""

    FLUSH = 1
    ABORT = 2


class ExecutorLink:
    """Keeps a session connected to its agent until told to stop, or the agent is gone.

    `deliver` and `room` are as for the scheduler's link.  For the loop's thread.
    """

    def __init__(
        self,
        session: ExecutorSession,
        lock: threading.Lock,
        environment: ExecutorEnvironment,
        deliver: Callable[[list[Item]], None],
        room: Callable[[], Awaitable[None]],
        *,
        timeouts: LinkTimeouts,
        random: Callable[[], float],
    ) -> None:
        self._session = session
        self._lock = lock
        self._environment = environment
        self._deliver = deliver
        self._room = room
        self._timeouts = timeouts
        self._random = random
        self._stop: Stop | None = None
        self._stopped = asyncio.Event()
        self._conversation: Conversation[pb.Calls, pb.Events] | None = None
        self._ever = False
        self._timer: asyncio.TimerHandle | None = None

    # ---- From outside --------------------------------------------------------

    def awake(self) -> None:
        """Calls were made: write what there is."""
        with self._lock:
            items, writable = self._session.take_items(), self._session.writable
        self._pass_on(items, writable)

    def stop(self, how: Stop) -> None:
        if self._stop is not None and self._stop.value >= how.value:
            return
        self._stop = how
        self._stopped.set()
        if how is Stop.ABORT:
            if self._conversation is not None:
                self._conversation.cut(None)
            return
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._environment.shutdown_grace_s, self._too_late)
        self._finish_if_flushed()

    async def run(self) -> None:
        """Until stopped or the agent is gone.  Raises what ends the link for good."""
        loop = asyncio.get_running_loop()
        since = loop.time()
        try:
            while not self._is_over():
                error, subscribed = await self._converse()
                if subscribed:
                    since = loop.time()
                if self._is_over():
                    return
                error = error or Unavailable("the agent ended the link")
                self._raise_if_final(error, subscribed)
                if loop.time() - since >= self._patience_s():
                    self._give_up(error)
                    return
                await self._pause(error)
        finally:
            if self._timer is not None:
                self._timer.cancel()

    # ---- One stream ----------------------------------------------------------

    async def _converse(self) -> tuple[MesosPyError | None, bool]:
        line = dial(self._environment)
        with self._lock:
            opening = self._session.opening()
        answer_s = self._timeouts.connect_s
        conversation = line.converse(opening, self._take, self._receive, answer_s)
        self._conversation = conversation
        error: MesosPyError | None = None
        try:
            error = await conversation.run()
        finally:
            self._conversation = None
            await line.close()
            with self._lock:
                subscribed = self._session.subscribed
                reason = "the link was given up" if error is None else error.message
                self._session.lost(reason, final=False)
                items = self._session.take_items()
            self._pass_on(items, writable=False)
        return error, subscribed

    def _take(self) -> pb.Calls | None:
        with self._lock:
            return self._session.take_calls()

    async def _receive(self, batch: pb.Events) -> None:
        with self._lock:
            self._session.receive(batch.events)
            items, writable = self._session.take_items(), self._session.writable
        conversation = self._conversation
        assert conversation is not None
        if self._session.fatal is not None:
            conversation.cut(self._session.fatal)
        elif self._session.subscribed:
            # An agent has no heartbeat: one that is gone has closed its socket.
            conversation.expect(None)
            self._ever = True
        self._pass_on(items, writable)
        self._finish_if_flushed()
        await self._room()

    def _pass_on(self, items: list[Item], writable: bool) -> None:
        if items:
            self._deliver(items)
        if writable and self._conversation is not None:
            self._conversation.wake()

    # ---- Ends ----------------------------------------------------------------

    def _finish_if_flushed(self) -> None:
        conversation = self._conversation
        if self._stop is Stop.FLUSH and conversation is not None:
            if not self._session.subscribed and not self._session.unacknowledged:
                conversation.cut(None)
            elif self._session.subscribed and not self._session.unacknowledged:
                conversation.finish(LEAVE_S)

    def _is_over(self) -> bool:
        """Whether no (other) stream is wanted."""
        if self._session.fatal is not None:
            return self._stop is not None
        if self._stop is Stop.FLUSH:
            return not (self._session.unacknowledged and self._environment.checkpoint)
        return self._stop is Stop.ABORT

    def _raise_if_final(self, error: MesosPyError, subscribed: bool) -> None:
        if self._session.fatal is not None:
            raise self._session.fatal
        if not subscribed and isinstance(error, FINAL):
            raise error

    def _patience_s(self) -> float:
        """How long to be without an agent before giving up."""
        if self._environment.checkpoint:
            return self._environment.recovery_timeout_s
        return 0.0 if self._ever else FIRST_CONTACT_S

    def _give_up(self, error: MesosPyError) -> None:
        if not self._ever:
            raise error
        log.warning("the agent is gone", why=error.message)
        with self._lock:
            self._session.lost(error.message, final=True)
            items = self._session.take_items()
        self._pass_on(items, writable=False)

    async def _pause(self, error: MesosPyError) -> None:
        pause_s = max(SHORTEST_PAUSE_S, self._environment.backoff_max_s * self._random())
        log.warning("no link to the agent", why=error.message, again_in_s=round(pause_s, 3))
        try:
            async with asyncio.timeout(pause_s):
                await self._stopped.wait()
        except TimeoutError:
            pass

    def _too_late(self) -> None:
        """The time for acknowledgements is over."""
        if self._session.unacknowledged:
            log.warning(
                "statuses were not acknowledged in time", count=self._session.unacknowledged
            )
        self.stop(Stop.ABORT)


__all__ = ["ExecutorLink", "Stop"]
