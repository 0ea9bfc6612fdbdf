"""The agent's link to the master that leads: found, registered, kept, found again."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Sequence
from typing import Final, Protocol

from mesos_py import logs, rpc
from mesos_py.address import Address, parse_address
from mesos_py.conversation import Conversation
from mesos_py.election import Backoff, Detector, Patience, rest
from mesos_py.errors import InvalidValue, MesosPyError, NotLeader, Refused, Unavailable
from mesos_py.rpc import LINK_TIMEOUTS, LinkTimeouts
from mesos_py.stream import RpcConversation
from mesos_py.v1 import agent_pb2
from mesos_py.v1.agent_pb2_grpc import AgentServiceStub

log = logs.get("agent.link")

Call = agent_pb2.Call
Event = agent_pb2.Event

# A message without a payload, at a guess: statuses, exits, pongs.
_CALL_BYTES: Final = 512
_BATCH_CALLS: Final = 5_000
_BATCH_BYTES: Final = 4 * 1024 * 1024
# A master that reads more slowly than this piles up is left, and asked again.
_MAX_QUEUED: Final = 200_000
_MAX_QUEUED_BYTES: Final = 256 * 1024 * 1024
# REGISTER names all that there is when it is written.  What ends before it is answered is
# said after the answer, or the master would keep for ever what that held.
_ENDS: Final = frozenset({Call.UPDATE, Call.EXECUTOR_EXITED})
# Masters that name each other as the leader are followed this often without a pause.
_MAX_HINTS: Final = 3


class LinkEvents(Protocol):
    """Who hears of the link.  Called on the event loop."""

    async def may_register(self) -> None:
        """Returns when what `register_call` says of reservations is written down."""
        ...

    def register_call(self) -> Call:
        """The first message of a link, made when it is sent; its `epoch` is the newest
        leadership that `master_said` was told of, also before this process began."""
        ...

    def master_said(self, events: Sequence[Event], epoch: int) -> None:
        """All events of one message, REGISTERED among them, REFUSED and PING not: orders
        of the leadership `epoch`."""
        ...

    def link_lost(self) -> None:
        """There is no registered link any more."""
        ...

    def refused_for_good(self, reason: str, *, shut_down: bool) -> None:
        """The master will never take this agent; `shut_down`: nor keep its tasks."""
        ...


class MasterLink:
    """One link at a time to whoever leads.  `run` it as a task; cancel it to end it."""

    def __init__(
        self,
        detector: Detector,
        events: LinkEvents,
        backoff: Backoff,
        instance: str,
        timeouts: LinkTimeouts = LINK_TIMEOUTS,
    ) -> None:
        self._detector = detector
        self._events = events
        self._backoff = backoff
        self._timeouts = timeouts
        self._patience = Patience(timeouts.connect_s, timeouts.agent_silence_s)
        # Names this process, so that a stream that comes late is known as such.
        self._instance = instance
        self._attempts = 0
        self._conversation: Conversation[agent_pb2.Calls, agent_pb2.Events] | None = None
        self._address = Address("", 0)
        self._registered = False
        self._registered_s = 0.0
        self._queue: deque[tuple[Call, int]] = deque()
        self._queued_bytes = 0
        # The newest leadership that gave us orders.
        self._epoch = 0
        self._hints = 0
        self._finished = asyncio.Event()
        self._ending = False

    def send(self, call: Call) -> bool:
        """Queue a call; False when there is no registered master to take it."""
        if self._conversation is None or not (self._registered or call.type in _ENDS):
            return False
        size = _CALL_BYTES
        if call.type == Call.EXECUTOR_MESSAGE:
            size += len(call.executor_message.data)
        elif call.type == Call.UPDATE:
            size += len(call.update.status.data)
        elif call.type == Call.UPDATE_OPERATION:
            size += call.update_operation.ByteSize()
        self._queue.append((call, size))
        self._queued_bytes += size
        if len(self._queue) > _MAX_QUEUED or self._queued_bytes > _MAX_QUEUED_BYTES:
            slow = f"{self._address} reads too slowly: {len(self._queue)} calls are queued"
            self._conversation.cut(Unavailable(slow, address=str(self._address)))
        else:
            self._conversation.wake()
        return True

    async def finish(self, last: Call, within_s: float) -> None:
        """Send `last` after all that is queued, and then no more: `run` returns."""
        self._ending = True
        if not self.send(last) or self._conversation is None:
            return
        self._conversation.finish(within_s)
        await self._finished.wait()

    async def run(self) -> None:
        """Find, register, serve; until `finish`."""
        try:
            while not self._ending:
                # Only a master can change that: it stays so until there is a link again.
                await self._events.may_register()
                address = await self._detector.leader()
                pause_s = self._judge(address, await self._serve(address))
                await rest(self._detector, address, pause_s, self._backoff)
        finally:
            self._finished.set()

    # ---- One stream ---------------------------------------------------------------

    async def _serve(self, address: Address) -> MesosPyError | None:
        """One link, from connecting to its loss; why it ended."""
        channel = rpc.open_channel(address)
        self._address = address
        self._attempts += 1
        opening = self._events.register_call()
        opening.register.instance, opening.register.attempt = self._instance, self._attempts
        self._epoch = opening.register.epoch = max(self._epoch, opening.register.epoch)
        conversation = self._conversation = RpcConversation(
            AgentServiceStub(channel).Connect,
            str(address),
            opening=agent_pb2.Calls(calls=[opening]),
            take=self._take,
            receive=self._receive,
            answer_s=self._patience.now_s,
        )
        watching = asyncio.create_task(self._watch_leader(conversation, address))
        try:
            return await conversation.run()
        finally:
            watching.cancel()
            self._conversation = None
            if conversation.unanswered and rpc.is_up(channel):
                self._patience.exhausted()
            self._queue.clear()
            self._queued_bytes = 0
            if self._registered:
                self._registered = False
                self._events.link_lost()
            await channel.close()

    def _take(self) -> agent_pb2.Calls | None:
        if not self._queue or not self._registered:
            return None
        batch: list[Call] = []
        total = 0
        while self._queue and len(batch) < _BATCH_CALLS and total < _BATCH_BYTES:
            call, size = self._queue.popleft()
            batch.append(call)
            total += size
        self._queued_bytes -= total
        return agent_pb2.Calls(calls=batch)

    async def _receive(self, message: agent_pb2.Events) -> None:
        conversation = self._conversation
        if conversation is None or not message.events:
            return
        if message.epoch < self._epoch:
            text = f"orders of epoch {message.epoch}, but {self._epoch} has begun"
            conversation.cut(Refused(f"{self._address} gives {text}"))
            return
        if not self._registered:
            refusal = self._answered(message, conversation)
            if refusal is not None:
                conversation.cut(refusal)
                return
        self._epoch = message.epoch
        events: list[Event] = []
        for event in message.events:
            if event.type == Event.PING:
                pong = Call.Pong(sequence=event.ping.sequence)
                self.send(Call(type=Call.PONG, pong=pong))
            else:
                events.append(event)
        if events:
            self._events.master_said(events, message.epoch)

    def _answered(
        self,
        message: agent_pb2.Events,
        conversation: Conversation[agent_pb2.Calls, agent_pb2.Events],
    ) -> MesosPyError | None:
        """The answer to REGISTER; an error says that this agent is not registered."""
        first = message.events[0]
        if first.type == Event.REFUSED:
            refused = first.refused
            if refused.final:
                self._ending = True
                self._events.refused_for_good(refused.message, shut_down=refused.shut_down)
            return Refused(f"the master refused this agent: {refused.message}")
        if first.type != Event.REGISTERED:
            return Refused(f"{self._address} answered {first.type} to REGISTER")
        self._registered = True
        conversation.wake()
        self._patience.answered()
        self._registered_s = asyncio.get_running_loop().time()
        self._hints = 0
        # The master pings; what else it says shows as well that it is there.
        conversation.expect(first.registered.ping_timeout_seconds or self._timeouts.agent_silence_s)
        agent_id = first.registered.agent_id.value
        log.info("registered", master=str(self._address), agent=agent_id, epoch=message.epoch)
        return None

    async def _watch_leader(
        self, conversation: Conversation[agent_pb2.Calls, agent_pb2.Events], address: Address
    ) -> None:
        async for leader in self._detector.watch():
            # None: nobody is known to lead.  A link that works is kept; silence ends it.
            if leader is not None and leader != address:
                conversation.cut(NotLeader(str(leader)))

    # ---- Between streams ----------------------------------------------------------

    def _judge(self, address: Address, error: MesosPyError | None) -> float:
        """What the end of a stream means; how long to wait before the next attempt."""
        if self._ending:
            return 0.0
        if isinstance(error, NotLeader) and self._follow(address, error):
            return 0.0
        self._detector.failed(address)
        lasted_s = asyncio.get_running_loop().time() - self._registered_s
        if self._registered_s and lasted_s >= self._timeouts.backoff_cap_s:
            self._backoff.reset()
        self._registered_s = 0.0
        pause_s = self._backoff.next()
        log.warning(
            "no link to a master",
            master=str(address),
            why=error.message if error is not None else "it ended the link",
            again_in_s=round(pause_s, 3),
        )
        return pause_s

    def _follow(self, address: Address, error: NotLeader) -> bool:
        self._hints += 1
        with contextlib.suppress(InvalidValue):
            leader = parse_address(error.leader or "", "leader")
            if leader != address and self._hints <= _MAX_HINTS:
                log.info("another master leads", asked=str(address), leader=error.leader)
                self._detector.hint(leader)
                return True
        # A pause follows: whom they name after it may be another one.
        self._hints = 0
        return False
