"""The wrapper: has the farm run against a real balancer and a real cluster."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import secrets
import signal
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, cast

from frameworks.webfarm.core.balancer import Balancer, Reading
from frameworks.webfarm.core.farm import Farm, FarmRules, Instance, Order
from frameworks.webfarm.core.policy import SAMPLES, Limits, Meter, Policy
from frameworks.webfarm.core.report import Report
from frameworks.webfarm.core.rollout import Rollout
from frameworks.webfarm.core.server import LINGER_S, PORT_IN_USE, Server
from frameworks.webfarm.guard import guard
from frameworks.webfarm.places import Places
from frameworks.webfarm.state import Record, StateDirectory, Wish
from mesos_py import (
    InverseOffer,
    Need,
    Offer,
    Resources,
    Room,
    SchedulerClient,
    TaskStatus,
    asked_back,
    command_task,
    is_preempted,
    is_terminal,
    logs,
    short_name,
)
from mesos_py.errors import InvalidValue, MesosPyError, Unavailable
from mesos_py.states import (
    TASK_ERROR,
    TASK_FAILED,
    TASK_FINISHED,
    TASK_KILLED,
    TASK_KILLING,
    TASK_RUNNING,
)
from mesos_py.v1.scheduler_pb2 import Event
from mesos_py.v1.types_pb2 import FrameworkID, FrameworkInfo

log = logs.get("webfarm")
Capability = FrameworkInfo.Capability

ROUND_S: Final = 0.5
# While an instance comes or goes: each step of that waits for a round.
MOVING_ROUND_S: Final = 0.1
CONNECT_S: Final = 10.0
# Refused for as long as nothing changes here; what changes asks for all again.
REFUSE_S: Final = 3600.0
# Apache lingers and finishes for less long (server.py).
KILL_GRACE_S: Final = 20.0
# Of a machine that is to be absent we have gone when we are asked again.
ABSENCE_AGAIN_S: Final = 600.0
_PORTS_LOOKED_AT: Final = 256
# The cluster is asked for all that it may have told us in vain.
_RECONCILE_S: Final = 60.0
_FAULTS: Final = frozenset({TASK_FAILED, TASK_ERROR, TASK_FINISHED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a wrapper is to do.  site: "": what it has, or the server's own page."""

    master: str
    name: str
    role: str
    user: str
    site: str
    period_s: float
    failover_s: float
    limits: Limits
    rules: FarmRules


class Wrapper:
    """One life of it."""

    def __init__(
        self, settings: Settings, state: StateDirectory, balancer: Balancer, server: Server
    ) -> None:
        """Takes up what the last one left in the state directory.  Raises InvalidValue."""
        self._settings = settings
        self._state = state
        self._balancer = balancer
        self._server = server
        record = state.record() or Record(rollout=Rollout.first(settings.site), asked=settings.site)
        record.master = settings.master
        self._record = record
        self._policy = Policy(settings.limits, record.wanted)
        self._farm = Farm(settings.rules, record.rollout, self._policy.servers)
        self._meter = Meter()
        self._measure_s = 0.0
        self._reconcile_s = 0.0
        self._outcome = record.rollout.outcome
        self._report = Report(settings.limits.target)
        self._places = Places(settings.master)
        self._wants = 0
        self._closing = False
        self._finished = asyncio.Event()
        # Two rounds at a time would both put one instance into a slot.
        self._one_round = asyncio.Lock()
        # Said again it is no news: another site may have been deployed since.
        if settings.site and settings.site != record.asked:
            record.rollout.begin(settings.site)
            record.asked = settings.site
        server.command("", 1, record.rollout.site)  # raises for a site that cannot be
        self._client = SchedulerClient(
            FrameworkInfo(
                id=FrameworkID(value=record.framework_id) if record.framework_id else None,
                name=settings.name,
                role=settings.role,
                user=settings.user,
                failover_timeout=settings.failover_s,
                checkpoint=True,
                # Of one that others end we hear before it has ended.
                capabilities=[Capability(type=Capability.TASK_KILLING_STATE)],
            ),
            settings.master,
            connect_timeout_s=None if record.framework_id else CONNECT_S,
            on_disconnected=lambda why: log.warning("master lost", why=why),
        )

    # ---- Life ------------------------------------------------------------------

    async def run(self) -> None:
        """Until SIGTERM or SIGINT, which leave the farm as it is, or until it was asked to end
        it.  Raises what it cannot go on with."""
        now_s = self._now_s()
        for instance in self._record.instances:
            self._farm.adopt(instance, now_s)
        taken_over = await self._balancer.start()
        log.info(
            "farm begins",
            balancer="taken over" if taken_over else "started",
            instances=len(self._record.instances),
            wanted=self._farm.wanted,
        )
        least = self._settings.limits.minimum
        self._client.request_resources([Need("web servers", self._settings.rules.each, least)])
        with self._signals():
            async with self._client, asyncio.TaskGroup() as group:
                guarded = guard(self._balancer, self._report)
                workers = [
                    group.create_task(work)
                    for work in (self._events(), self._rounds(), guarded, self._explain())
                ]
                await self._finished.wait()
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)
                if self._closing:
                    await self._balancer.close()
                    # Nobody sends them anything any more: they need not linger.
                    for instance in self._farm.instances:
                        self._client.kill_task(instance.task_id, instance.agent_id, grace_s=0)
                self._client.stop(failover=not self._closing)
        if self._closing:
            self._state.clear()

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._finished.set)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    # ---- The cluster -------------------------------------------------------------

    async def _events(self) -> None:
        iterator = cast("AsyncGenerator[Event, None]", aiter(self._client))
        async with contextlib.aclosing(iterator) as events:
            async for event in events:
                match event.type:
                    case Event.SUBSCRIBED:
                        self._subscribed()
                    case Event.OFFERS:
                        await self._offers(event.offers.offers)
                    case Event.INVERSE_OFFERS:
                        await self._asked_back(event.inverse_offers.inverse_offers)
                    case Event.UPDATE:
                        await self._update(event.update.status)
                    case Event.REFUSED:
                        log.warning("call refused", why=event.refused.message)

    def _subscribed(self) -> None:
        self._record.framework_id = self._client.framework_id
        self._keep()
        self._reconcile()
        # Offers came with the subscription, if they are wanted.
        self._wants = 0
        self._want()

    def _reconcile(self) -> None:
        """What is told of those that are gone ends them here."""
        self._reconcile_s = self._now_s() + _RECONCILE_S
        asked = [(each.task_id, each.agent_id) for each in self._farm.instances]
        if asked:
            self._client.reconcile_tasks(asked)

    async def _offers(self, offers: Sequence[Offer]) -> None:
        for offer in sorted(offers, key=lambda each: self._farm.is_used(each.agent_id.value)):
            refuse_s = await self._consider(offer)
            if refuse_s is not None:
                self._client.decline_offers(offer, refuse_s)
        self._want()

    async def _consider(self, offer: Offer) -> float | None:
        """Launch there, or say for how long it is not wanted."""
        now_s = self._now_s()
        if not self._farm.to_start(now_s):
            return REFUSE_S
        if offer.HasField("max_task_duration") or offer.HasField("unavailability"):
            return REFUSE_S
        refuse_s = self._farm.refusal_s(offer.agent_id.value, now_s)
        if refuse_s is not None:
            return min(refuse_s, REFUSE_S)
        room = Room(offer)
        if not room.take(self._settings.rules.each):
            return REFUSE_S
        try:
            address = await self._places.address(offer.agent_id.value, offer.hostname)
        except Unavailable as error:
            log.warning("agent not used", host=offer.hostname, why=str(error))
            return self._places.retry_s
        port = self._farm.port_of(address, _ports(room.left))
        if port is None:
            return REFUSE_S
        self._launch(offer, address, port, now_s)
        return None

    def _launch(self, offer: Offer, address: str, port: int, now_s: float) -> None:
        rollout = self._farm.rollout
        instance = Instance(
            f"web-{rollout.version}-{secrets.token_hex(4)}",
            offer.agent_id.value,
            offer.hostname,
            address,
            port,
            rollout.version,
        )
        command, uris = self._server.command(address, port, rollout.site)
        task = command_task(
            f"{self._settings.name}-{rollout.version}",
            instance.task_id,
            offer,
            command,
            resources=self._settings.rules.each + Resources.of(ports=[(port, port)]),
            kill_grace_s=KILL_GRACE_S,
            labels={"webfarm.version": str(rollout.version), "webfarm.at": instance.at},
            uris=uris,
            health=self._server.health(port),
        )
        self._farm.begin(instance, now_s)
        # Before it is there: whoever takes over asks for it.
        self._keep()
        self._client.launch_tasks(offer, task, REFUSE_S)
        log.info("instance launched", task=instance.task_id, host=offer.hostname, at=instance.at)

    async def _update(self, status: TaskStatus) -> None:
        task_id, now_s = status.task_id.value, self._now_s()
        if not is_terminal(status.state):
            if task_id not in self._farm:
                log.warning("instance of nobody is ended", task=task_id)
                self._client.kill_task(status.task_id, status.agent_id)
            elif status.state == TASK_RUNNING:
                if self._farm.running(task_id):
                    await self._round()
            elif status.state == TASK_KILLING:
                await self._leave([task_id], LINGER_S / 2, status.message or "it is being ended")
            return
        ill = status.state == TASK_KILLED and status.HasField("healthy") and not status.healthy
        fault = (status.state in _FAULTS or ill) and not is_preempted(status)
        why = status.message or short_name(status.state)
        port_in_use = status.state == TASK_FAILED and why.endswith(f" status {PORT_IN_USE}")
        if port_in_use:
            why = "its port is in use"
        gone = self._farm.ended(task_id, now_s, fault=fault, why=why, site=not port_in_use)
        if gone is None:
            return
        log.info("instance ended", task=task_id, at=gone.at, host=gone.hostname, why=why)
        if fault:
            self._report.trouble = f"{gone.task_id} on {gone.hostname} ({gone.at}): {why}"
        self._keep()
        # Its agent may be used again.
        self._wants = 0
        await self._round()

    async def _asked_back(self, offers: Sequence[InverseOffer]) -> None:
        for offer in offers:
            asked = asked_back(offer)
            if asked is not None:
                self._client.accept_inverse_offers(offer)
                # Half of the time for others to serve instead, half for what is open.
                within_s = max(0.0, asked.deadline_s - time.time()) / 2
                await self._leave(asked.task_ids, within_s, f"room is wanted back: {asked.reason}")
            else:
                self._client.accept_inverse_offers(offer, ABSENCE_AGAIN_S)
                agent_id = offer.agent_id.value
                there = [e.task_id for e in self._farm.instances if e.agent_id == agent_id]
                left_s = offer.unavailability.start.nanoseconds / 1e9 - time.time()
                within_s = max(0.0, left_s - self._settings.rules.drain_s)
                await self._leave(there, within_s, "its machine is to be absent")

    async def _leave(self, task_ids: Sequence[str], within_s: float, why: str) -> None:
        if self._farm.leave(task_ids, self._now_s(), within_s):
            log.info("instances have to go", tasks=list(task_ids), within_s=within_s, why=why)
            self._wants = 0
            await self._round()

    # ---- Rounds --------------------------------------------------------------------

    async def _rounds(self) -> None:
        while True:
            try:
                self._take_up(self._state.wish())
            except InvalidValue as error:
                self._report.trouble = str(error)
            await self._round()
            if self._client.connected and self._now_s() >= self._reconcile_s:
                self._reconcile()
            await asyncio.sleep(ROUND_S if self._farm.is_settled else MOVING_ROUND_S)

    def _take_up(self, wish: Wish | None) -> None:
        if wish is None or wish.number <= self._record.handled:
            return
        if wish.down:
            self._closing = True
            self._finished.set()
            return
        rollout = self._farm.rollout
        try:
            self._server.command("", 1, wish.site)
            rollout.begin(wish.site)
        except InvalidValue as error:
            rollout.outcome, rollout.why = "failed", str(error)
        self._record.handled = wish.number
        self._keep()
        self._wants = 0

    async def _round(self) -> None:
        async with self._one_round:
            await self._look_and_act()

    async def _look_and_act(self) -> None:
        try:
            reading = await self._balancer.read()
        except MesosPyError as error:
            self._report.trouble = str(error)
            self._measured(None)
            self._show(None)
            return
        self._measured(reading)
        await self._carry_out(self._farm.round(self._now_s(), reading))
        self._deployed()
        self._want()
        self._show(reading)

    def _deployed(self) -> None:
        rollout = self._farm.rollout
        if rollout.outcome != self._outcome:
            self._outcome = rollout.outcome
            log.info("deployment", now=rollout.outcome, site=rollout.site, why=rollout.why)
            self._keep()

    def _measured(self, reading: Reading | None) -> None:
        now_s = self._now_s()
        if now_s < self._measure_s:
            return
        # From when it was due: so many samples in each period, whatever the rounds do.
        self._measure_s = max(now_s, self._measure_s + self._settings.period_s / SAMPLES)
        rate = None
        if reading is not None:
            rate = self._meter.read(now_s, reading.epoch, reading.sessions)
        decision = self._policy.decide(now_s, rate)
        self._report.measured(rate, decision)
        if decision.servers != self._farm.wanted:
            log.info("farm is resized", why=decision.why)
            self._farm.wanted = decision.servers
            self._wants = 0
            self._keep()

    async def _carry_out(self, orders: Sequence[Order]) -> None:
        for order in orders:
            try:
                await self._do(order)
            except MesosPyError as error:
                # Things are as they were: the next round orders it again.
                self._report.trouble = str(error)
                log.warning("order not carried out", what=order.what, why=str(error))

    async def _do(self, order: Order) -> None:
        instance = order.instance
        if order.what == "kill" and instance is not None:
            grace_s = 0.0 if order.idle else None
            self._client.kill_task(instance.task_id, instance.agent_id, grace_s=grace_s)
        elif order.what == "put" and instance is not None:
            await self._balancer.put(order.slot, instance.address, instance.port)
        elif order.what == "open":
            await self._balancer.open(order.slot)
        elif order.what == "hold":
            await self._balancer.hold(order.slot)
        elif order.what == "free":
            await self._balancer.free(order.slot)
        if instance is not None:
            log.debug("order", what=order.what, slot=order.slot, task=instance.task_id)

    # ---- What is wanted, kept and shown ----------------------------------------------

    def _want(self) -> None:
        """Ask for offers when more may be launched than when it was asked last."""
        more = self._farm.to_start(self._now_s())
        if more > self._wants:
            self._client.set_needs_offers(True)
        elif not more and self._wants:
            self._client.set_needs_offers(False)
        self._wants = more
        each = self._settings.rules.each
        self._client.state_waiting([("web servers", each, more)] if more else [])
        self._report.missing = more

    async def _explain(self) -> None:
        """Why what is missing does not come."""
        while True:
            await asyncio.sleep(2.0)
            self._report.waits = (
                await self._places.reasons(self._client.framework_id)
                if self._report.missing and self._client.connected
                else []
            )

    def _keep(self) -> None:
        self._record.wanted = self._farm.wanted
        self._record.instances = self._farm.instances
        self._state.keep(self._record)

    def _show(self, reading: Reading | None) -> None:
        status = self._report.of(self._farm, reading, self._now_s())
        status |= {"master": self._settings.master, "framework_id": self._client.framework_id}
        status["handled"] = self._record.handled
        self._state.show(status)

    def _now_s(self) -> float:
        return asyncio.get_running_loop().time()


def _ports(resources: Resources) -> list[int]:
    """Some of those that are there."""
    numbers = itertools.chain.from_iterable(
        range(low, high + 1) for low, high in resources.ranges.get("ports", ())
    )
    return list(itertools.islice(numbers, _PORTS_LOOKED_AT))


__all__ = ["Settings", "Wrapper"]
