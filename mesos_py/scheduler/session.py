"""The scheduler's side of a subscription, without IO.

A shell opens a stream, writes `opening()`, gives what arrives to `receive`, says
`lost` when the stream has ended, writes what `take_calls` returns, and hands what
`take_items` returns to the framework in that order.  Streams come and go; one session
lives as long as the framework's scheduler.

What is proof against a lost link, and how:

- Offers die with their subscription.  A launch on a dead one is answered here, with
  the status that a master would send, so that no task vanishes without a word.
- A launch that may not have arrived is asked for by RECONCILE until the task is heard of.
- Kills are said again until the task is known to have ended.
- Acknowledgements and reconciliations made while there is no stream wait for the next;
  reconciliations that may not have arrived are asked for again (`written.py`).
- Needs, suppressed roles and filters are state (`wants.py`) and are stated anew.
- An update that comes again although it was acknowledged is acknowledged again, and
  not shown a second time: the first acknowledgement has been lost.

A standby (STANDBY in place of SUBSCRIBED) makes no calls: another instance is active,
and to that one belongs what there is to do.  So nothing waits for its promotion, which
may be weeks away, when a kill would hit another task: what waited when it became a
standby, and what is called for since, is answered with REFUSED, launches as above.
Acknowledgements are left out, since the agent sends the update to the active one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from mesos_py import rpc
from mesos_py.clock import Clock
from mesos_py.errors import InvalidResources, InvalidValue, MesosPyError, Refused, Unavailable
from mesos_py.resources import EMPTY, Resources
from mesos_py.scheduler import answers, checks, needs
from mesos_py.scheduler.kinds import KEPT, SHOWN, STATE
from mesos_py.scheduler.offers import OfferBook
from mesos_py.scheduler.tasks import News, TaskBook
from mesos_py.scheduler.wants import Wants
from mesos_py.scheduler.written import Written
from mesos_py.v1 import scheduler_pb2 as pb
from mesos_py.v1.types_pb2 import (
    Filters,
    FrameworkInfo,
    Offer,
    OfferID,
    Request,
    Resource,
    TaskStatus,
)

Call = pb.Call
Event = pb.Event

# A batch has room for its own frame around the largest call.
MAX_CALL_BYTES: Final = rpc.MAX_MESSAGE_BYTES - 64 * 1024
BATCH_CALLS: Final = 10_000
BATCH_BYTES: Final = 4 * 1024 * 1024
# Calls that wait for a subscription; more are refused, except acknowledgements,
# which may be dropped: the agent sends the update again.
MAX_KEPT: Final = 100_000
RECONCILE_AT_ONCE: Final = 1_000
# Mesos: DEFAULT_HEARTBEAT_INTERVAL, for a master that names none.
DEFAULT_HEARTBEAT_S: Final = 15.0

_SMALL: Final = 256
_STANDS_BY: Final = "another instance of the framework is active, this one stands by"


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The subscription, or the place among the standbys, has ended, for `reason`; it is
    being renewed."""

    reason: str


Item: TypeAlias = pb.Event | Disconnected


class SchedulerSession:
    """See the module's docstring.  Not thread-safe: its owner locks."""

    def __init__(
        self,
        framework: FrameworkInfo,
        *,
        clock: Clock,
        client: str,
        instance: str,
        implicit_acknowledgements: bool = True,
        standby: bool = False,
        max_call_bytes: int = MAX_CALL_BYTES,
    ) -> None:
        # Half: filters of the whole framework may come on top.
        checks.checked_size("framework", framework.ByteSize(), max_call_bytes // 2)
        self.wants = Wants(framework)
        self.offers = OfferBook()
        # At most one of the two: this instance is active, or it waits at a master to be.
        self.subscribed = False
        self.standing_by = False
        # Which of the two it was last.
        self.was_active = False
        self.heartbeat_s = DEFAULT_HEARTBEAT_S
        self.guaranteed_share: Resources = EMPTY
        # Why there can never be another subscription.
        self.fatal: MesosPyError | None = None
        # No call does anything any more.
        self.closed = False
        self.tearing_down = False
        self.ignored = 0
        self._standby = standby
        # Whether our state has changed since a SUBSCRIBE stated it.
        self._unsaid = False
        self._clock = clock
        self._client = client
        # Names this process, so that none of its streams is taken for another one's.
        self._instance = instance
        self._attempts = 0
        self._max_call_bytes = max_call_bytes
        self._out: deque[tuple[pb.Call, int]] = deque()
        self._items: list[Item] = []
        self._written = Written()
        self._tasks = TaskBook(implicit_acknowledgements)
        self._heartbeats = 0

    @property
    def framework_id(self) -> str:
        return self.wants.framework_id

    @property
    def linked(self) -> bool:
        """Whether a master has taken us in, as the active instance or as a standby."""
        return self.subscribed or self.standing_by

    @property
    def writable(self) -> bool:
        """Whether `take_calls` has something to give."""
        return self.subscribed and bool(self._out)

    # ---- The stream ---------------------------------------------------------

    def opening(self) -> pb.Calls:
        """What a new stream begins with."""
        self._attempts += 1
        subscribe = self.wants.subscribe(self._client)
        subscribe.instance, subscribe.attempt = self._instance, self._attempts
        if self._standby:
            subscribe.standby, subscribe.was_active = True, self.was_active
        self._unsaid = False
        call = self._call(Call.SUBSCRIBE, subscribe=subscribe)
        return pb.Calls(calls=[call])

    def receive(self, events: Iterable[pb.Event]) -> None:
        for event in events:
            kind = event.type
            if kind == Event.UPDATE:
                if self._receive_update(event.update.status):
                    self._items.append(event)
            elif kind == Event.HEARTBEAT:
                self._heartbeat()
            elif kind == Event.SUBSCRIBED:
                self._receive_subscribed(event)
            elif kind == Event.STANDBY:
                self._receive_standby(event)
            elif kind == Event.ERROR:
                self.fatal = Refused(event.error.message)
            elif kind == Event.REFUSED and not self.linked:
                self.fatal = answers.error_of(event.refused)
            elif kind in SHOWN:
                self._note(event)
                self._items.append(event)
            else:
                # An addition of a later protocol, which its master may only send
                # to clients that know it; nothing can be done about it here.
                self.ignored += 1

    def lost(self, reason: str) -> None:
        """The stream has ended (or could not be had)."""
        was_linked = self.linked
        self.subscribed = self.standing_by = False
        self.offers.lose_all("its subscription has ended")
        self._tasks.lost()
        again = self._written.lost(self._clock.now().monotonic_s, self._items)
        waiting, self._out = [*again, *self._out], deque()
        for call, size in waiting:
            if not self.tearing_down:
                self._keep(call, size, "the link to the master was lost", taken=True)
        if was_linked and self.fatal is None:
            self._items.append(Disconnected(reason))

    def take_calls(
        self, max_calls: int = BATCH_CALLS, max_bytes: int = BATCH_BYTES
    ) -> pb.Calls | None:
        """The next batch to write, None when there is nothing."""
        if not self.writable:
            return None
        batch: list[pb.Call] = []
        total, now_s = 0, self._clock.now().monotonic_s
        while self._out and len(batch) < max_calls:
            call, size = self._out[0]
            if batch and total + size > max_bytes:
                break
            self._out.popleft()
            batch.append(call)
            total += size
            self._written.note(call, size, now_s)
            if call.type == Call.ACCEPT:
                self._tasks.wrote(call.accept)
        return pb.Calls(calls=batch)

    def take_items(self) -> list[Item]:
        """What the framework is to be told, in order."""
        items, self._items = self._items, []
        return items

    # ---- What arrives -------------------------------------------------------

    def _receive_subscribed(self, event: pb.Event) -> None:
        subscribed = event.subscribed
        self.wants.framework_id = subscribed.framework_id.value
        self.heartbeat_s = subscribed.heartbeat_interval_seconds or DEFAULT_HEARTBEAT_S
        self._guaranteed(subscribed.guaranteed_share)
        self.subscribed = self.was_active = True
        self.standing_by = False
        self._heartbeats = 0
        waiting, self._out = self._out, deque()
        if self.tearing_down:
            self._out.append((self._call(Call.TEARDOWN), _SMALL))
            return
        again = {id(call) for call, _ in waiting}
        for call in self._tasks.kills.values():
            if id(call) not in again:
                self._out.append((call, _SMALL))
        self._out.extend(waiting)
        if self._unsaid:
            self._unsaid = False
            self._update_framework()
        if self.wants.stated:
            # Also none: the master keeps what it heard last for us.
            self._request()
        self._items.append(event)

    def _receive_standby(self, event: pb.Event) -> None:
        self.heartbeat_s = event.standby.heartbeat_interval_seconds or DEFAULT_HEARTBEAT_S
        self.standing_by = True
        # What was to be torn down belongs to another instance now.
        self.subscribed = self.was_active = self.tearing_down = False
        waiting, self._out = self._out, deque()
        kills, self._tasks.kills = self._tasks.kills, {}
        again = {id(call) for call, _ in waiting}
        for call in [*(c for c in kills.values() if id(c) not in again), *(c for c, _ in waiting)]:
            self._keep(call, _SMALL, _STANDS_BY)
        self._items.append(event)

    def _receive_update(self, status: TaskStatus) -> bool:
        """Note a status; says whether the framework is to see it."""
        news = self._tasks.look_at(status)
        if news is News.ACKNOWLEDGED:
            self._acknowledge(status)
        elif news is News.NEW:
            self._settle(status)
        return news is News.NEW

    def _settle(self, status: TaskStatus) -> None:
        """Something was heard of the task."""
        self._tasks.heard(status)
        self._written.heard(status)

    def _note(self, event: pb.Event) -> None:
        if event.type == Event.OFFERS:
            self.offers.add(event.offers.offers)
        elif event.type == Event.RESCIND:
            self.offers.rescind(event.rescind.offer_id.value)
        elif event.type == Event.GUARANTEE:
            self._guaranteed(event.guarantee.resources)
        elif event.type == Event.REFUSED and event.refused.call == Call.KILL:
            self._tasks.kills.pop(event.refused.value, None)

    def _heartbeat(self) -> None:
        self._heartbeats += 1
        # Not at the first one, which comes right after SUBSCRIBED: a master that has
        # just started knows no agents yet, and would declare their tasks lost.
        doubtful = self._tasks.doubtful
        if self.subscribed and doubtful and self._heartbeats > 1:
            self.reconcile(list(doubtful.items()))

    def _guaranteed(self, share: Iterable[Resource]) -> None:
        try:
            self.guaranteed_share = Resources.from_proto("guaranteed_share", share)
        except InvalidResources:
            self.guaranteed_share = EMPTY

    # ---- Calls about offers -------------------------------------------------

    def accept(
        self,
        offer_ids: list[str],
        operations: Sequence[Offer.Operation],
        filters: Filters | None,
    ) -> None:
        """ACCEPT; without any task or other operation, DECLINE."""
        accept = Call.Accept(
            offer_ids=[OfferID(value=offer_id) for offer_id in offer_ids],
            operations=operations,
            filters=filters,
        )
        gone = self.offers.gone(offer_ids)
        if gone is not None:
            checks.settle_tasks(accept.operations, None)
            self._answer_gone(accept, *gone)
            return
        held = self.offers.common(offer_ids)
        tasks = checks.settle_tasks(accept.operations, held.agent_id)
        if not tasks and all(item.type == item.LAUNCH for item in operations):
            self.decline(offer_ids, filters)
            return
        call = self._call(Call.ACCEPT, accept=accept)
        size = checks.checked_size("the call", call.ByteSize(), self._max_call_bytes)
        self.offers.use(offer_ids, "accepted")
        self._tasks.launching(tasks)
        self._send(call, size)

    def decline(self, offer_ids: list[str], filters: Filters | None) -> None:
        self.offers.gone(offer_ids)
        self._decline(offer_ids, filters)

    def _decline(self, offer_ids: Iterable[str], filters: Filters | None) -> None:
        # Also those that were waited for in vain, so that the master sees that we answer.
        said = self.offers.decline(offer_ids)
        if not said:
            return
        decline = Call.Decline(
            offer_ids=[OfferID(value=offer_id) for offer_id in said], filters=filters
        )
        self._send(self._call(Call.DECLINE, decline=decline), 64 + 80 * len(said))

    def answer_inverse(self, offer_ids: list[str], accept: bool, filters: Filters | None) -> None:
        ids = [OfferID(value=offer_id) for offer_id in offer_ids]
        if accept:
            taken = Call.AcceptInverseOffers(inverse_offer_ids=ids, filters=filters)
            self.say(Call.ACCEPT_INVERSE_OFFERS, accept_inverse_offers=taken)
        else:
            refused = Call.DeclineInverseOffers(inverse_offer_ids=ids, filters=filters)
            self.say(Call.DECLINE_INVERSE_OFFERS, decline_inverse_offers=refused)

    # ---- Calls about tasks --------------------------------------------------

    def kill(self, kill: pb.Call.Kill) -> None:
        call = self._call(Call.KILL, kill=kill)
        self._send(call)
        if not self.closed and not self.standing_by:
            self._tasks.killing(call)

    def acknowledge(self, statuses: Iterable[TaskStatus]) -> None:
        """Those without a uuid need none and are passed over."""
        for status in statuses:
            if status.uuid:
                self._tasks.acknowledged(status)
                self._acknowledge(status)

    def _acknowledge(self, status: TaskStatus) -> None:
        acknowledge = Call.Acknowledge(
            agent_id=status.agent_id, task_id=status.task_id, uuid=status.uuid
        )
        self._send(self._call(Call.ACKNOWLEDGE, acknowledge=acknowledge))

    def reconcile(self, tasks: Sequence[checks.ReconcileLike]) -> None:
        """Empty: all that the master knows."""
        entries = checks.reconcile_entries(tasks)
        for start in range(0, len(entries), RECONCILE_AT_ONCE) or (0,):
            part = entries[start : start + RECONCILE_AT_ONCE]
            call = self._call(Call.RECONCILE, reconcile=Call.Reconcile(tasks=part))
            self._send(call, 64 + 160 * len(part))

    def message(self, message: pb.Call.Message) -> None:
        size = checks.checked_size("data", len(message.data), self._max_call_bytes)
        self._send(self._call(Call.MESSAGE, message=message), _SMALL + size)

    def say(self, kind: pb.Call.Type.ValueType, **parts: object) -> None:
        """A call on which nothing here rests."""
        self._send(self._call(kind, **parts))

    # ---- Calls about the framework ------------------------------------------

    def set_needs_offers(self, needs: bool, roles: str | Iterable[str] | None) -> None:
        named = self.wants.checked_roles(roles)
        if needs:
            self.wants.suppressed.difference_update(named)
            self._send(self._call(Call.REVIVE, revive=Call.Revive(roles=named)))
        elif not self.wants.suppressed.issuperset(named):
            self.wants.suppressed.update(named)
            self._send(self._call(Call.SUPPRESS, suppress=Call.Suppress(roles=named)))

    def request(self, stated: Iterable[needs.NeedLike]) -> None:
        self._state(needs.requests_of(stated), self.wants.waiting)

    def wait_for(self, waiting: Iterable[needs.NeedLike]) -> None:
        self._state(self.wants.needs, needs.requests_of(waiting, waiting=True))

    def _state(self, stated: list[Request], waiting: list[Request]) -> None:
        """One call states both, since it replaces all that was stated."""
        if len(stated) + len(waiting) > needs.MAX_NEEDS:
            most = f"must be at most {needs.MAX_NEEDS} with what waits"
            raise InvalidValue("needs", len(stated) + len(waiting), most)
        size = Call.Request(requests=[*stated, *waiting]).ByteSize()
        checks.checked_size("needs", size, min(needs.MAX_BYTES, self._max_call_bytes))
        if (stated, waiting) != (self.wants.needs, self.wants.waiting):
            self.wants.needs, self.wants.waiting = stated, waiting
            self.wants.stated = True
            self._request()

    def _request(self) -> None:
        call = self._call(Call.REQUEST, request=Call.Request(requests=self.wants.requests))
        self._send(call, call.ByteSize())

    def set_filters(
        self,
        hosts: Sequence[str] | None,
        min_free: Resources | Sequence[Resources] | None,
        constraints: checks.RoleConstraints | None,
    ) -> None:
        self.wants.set_filters(hosts, min_free, constraints)
        self._update_framework()

    def update_framework(self, info: FrameworkInfo) -> None:
        """`info` is complete (checks.complete_framework), except for the id."""
        checks.checked_size("framework", info.ByteSize(), self._max_call_bytes // 2)
        self.wants.replace_info(info)
        self._update_framework()

    def _update_framework(self) -> None:
        update = self.wants.update_framework()
        call = self._call(Call.UPDATE_FRAMEWORK, update_framework=update)
        self._send(call, call.ByteSize())

    def close(self, *, teardown: bool) -> None:
        """Later calls do nothing.  `teardown`: say TEARDOWN, after what waits to be written,
        and if need be on a subscription to come."""
        if self.closed:
            return
        if teardown:
            self._send(self._call(Call.TEARDOWN))
            self.tearing_down = True
        self.closed = True

    # ---- Sending ------------------------------------------------------------

    def _call(self, kind: pb.Call.Type.ValueType, **parts: object) -> pb.Call:
        call = pb.Call(type=kind, **parts)  # type: ignore[arg-type]
        if self.wants.framework_id:
            call.framework_id.value = self.wants.framework_id
        return call

    def _send(self, call: pb.Call, size: int = _SMALL) -> None:
        if self.closed:
            return
        if self.subscribed:
            self._out.append((call, size))
        else:
            why = _STANDS_BY if self.standing_by else "there is no link to a master"
            self._keep(call, size, why)

    def _keep(self, call: pb.Call, size: int, why: str, taken: bool = False) -> None:
        """A call without a subscription (`taken` while there was one) waits, or is answered."""
        kind = call.type
        if kind in STATE:
            self._unsaid = True
        elif kind == Call.ACCEPT:
            self._answer_gone(call.accept, call.accept.offer_ids[0].value, why)
        elif kind == Call.MESSAGE or (kind in KEPT and self.standing_by):
            if kind != Call.ACKNOWLEDGE:
                self._items.append(answers.refused(kind, *answers.subject_of(call), why))
        elif kind in KEPT:
            if taken or len(self._out) < MAX_KEPT:
                self._out.append((call, size))
            elif kind != Call.ACKNOWLEDGE:
                raise Unavailable(f"{why}, and {MAX_KEPT} calls wait for it already")

    def _answer_gone(self, accept: pb.Call.Accept, offer_id: str, why: str) -> None:
        """Answer an ACCEPT as a master does that no longer has one of its offers."""
        for status in answers.lost_launches(
            accept,
            f"offer {offer_id} is gone: {why}",
            partition_aware=self.wants.partition_aware,
            wall_s=self._clock.now().wall_s,
        ):
            self._settle(status)
            self._items.append(Event(type=Event.UPDATE, update=Event.Update(status=status)))
        self._items.extend(answers.lost_others(accept, offer_id, f"is gone: {why}"))
        # The rest of the call's offers comes back at once, as the master does it.
        self._decline([item.value for item in accept.offer_ids], Filters(refuse_seconds=0))


__all__ = ["Disconnected", "Item", "SchedulerSession"]
