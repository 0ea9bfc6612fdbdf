"""Runs a job: subscribes, holds offers until all ranks fit, launches them, ends."""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import sys
from collections.abc import AsyncGenerator, Sequence
from typing import Final, cast

from frameworks.common.gang import Gang, Piece, Share
from frameworks.mpi.attempt import Attempt
from frameworks.mpi.cluster import Agent, Master, refusal
from frameworks.mpi.core.contest import Contest, Turn
from frameworks.mpi.core.job import LOST, Verdict
from frameworks.mpi.output import Output
from frameworks.mpi.settings import Settings
from mesos_py import FrameworkInfo, MesosPyError, Need, Offer, Resources, SchedulerClient
from mesos_py.cli.exits import Exit, of_signal
from mesos_py.cli.output import discard_stdout
from mesos_py.cli.running.signals import on_ending_signals
from mesos_py.v1.scheduler_pb2 import Event

# The exit code of a job that this cluster, role or guarantee has no room for.
TOO_LARGE: Final = 5
CONNECT_S: Final = 10.0
# A wrapper that is killed leaves its tasks for so long; a link that is lost for less costs none.
FAILOVER_S: Final = 5.0
LOOK_EVERY_S: Final = 0.2
EXPLAIN_EVERY_S: Final = 5.0
EXPLAIN_AFTER_S: Final = 3.0
# When nothing is wanted, and for what never will be.
REFUSE_S: Final = 3600.0
KILLED_WITHIN_S: Final = 8.0
ENDED_WITHIN_S: Final = 3.0
MOST_ATTEMPTS: Final = 10


class Runner:
    """One job, from subscription to exit code."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._master = Master(settings.master)
        self._client = SchedulerClient(
            FrameworkInfo(
                name=settings.name,
                user=settings.user,
                role=settings.role,
                failover_timeout=FAILOVER_S,
            ),
            settings.master,
            connect_timeout_s=CONNECT_S,
            on_disconnected=self._disconnected,
        )
        self._gang = Gang(settings.ask)
        self._agents: dict[str, Agent] = {}
        self._output = Output(prefix=settings.prefix)
        self._attempt: Attempt | None = None
        # Its launcher has said what it wants, but an offer had gone by then.
        self._prepared: Attempt | None = None
        self._attempts = 0
        self._starting: asyncio.Task[None] | None = None
        self._verdict: Verdict | None = None
        self._wake = asyncio.Event()
        self._said = ""
        self._not_admitted = ""

    async def run(self) -> int:
        """Returns the exit code; raises what keeps it from running at all."""
        settings = self._settings
        settings.backend.program()
        self._agents = await self._master.agents()
        limits = await self._master.limits(settings.role)
        why = refusal(settings.ask, self._agents, limits, beyond=settings.beyond)
        if why:
            self._say(why)
            return TOO_LARGE
        self._contest = Contest(settings.ask, beyond=settings.beyond)
        self._begun_s = self._now_s()
        with on_ending_signals(self._on_signal):
            async with self._client:
                self._contend()
                helpers = [
                    asyncio.create_task(self._events()),
                    asyncio.create_task(self._explain()),
                ]
                try:
                    await self._until_over(helpers)
                    await self._clear()
                finally:
                    for helper in helpers:
                        helper.cancel()
                    await asyncio.gather(*helpers, return_exceptions=True)
        assert self._verdict is not None
        if self._verdict.why:
            self._say(self._verdict.why)
        return self._verdict.code

    async def _until_over(self, helpers: Sequence[asyncio.Task[None]]) -> None:
        while not self._look():
            for helper in [*helpers, self._starting]:
                if helper is not None and helper.done():
                    helper.result()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_EVERY_S):
                    await self._wake.wait()
            self._wake.clear()

    # ---- Events ----------------------------------------------------------

    async def _events(self) -> None:
        iterator = cast("AsyncGenerator[Event, None]", aiter(self._client))
        async with contextlib.aclosing(iterator) as events:
            async for event in events:
                match event.type:
                    case Event.OFFERS:
                        await self._offers(event.offers.offers)
                    case Event.RESCIND:
                        self._rescinded(event.rescind.offer_id.value)
                    case Event.UPDATE if self._attempt is not None:
                        self._attempt.status(event.update.status)
                    case Event.NEEDS:
                        self._needs_answered(event.needs)
                    case Event.REFUSED:
                        self._say(f"the master refused a call: {event.refused.message}")
                self._wake.set()
        raise MesosPyError("the subscription has ended")

    async def _offers(self, offers: Sequence[Offer]) -> None:
        now_s = self._now_s()
        if any(offer.agent_id.value not in self._agents for offer in offers):
            self._agents = await self._master.agents()
        for offer in offers:
            if not self._gathering:
                self._client.decline_offers(offer, REFUSE_S)
                continue
            piece = Piece(
                offer.id.value, offer.agent_id.value, Resources.from_proto("offer", offer.resources)
            )
            hold_s = self._settings.hold_s * (1 + random.random())
            known = offer.agent_id.value in self._agents
            short = offer.HasField("max_task_duration")
            if short or not known or not self._gang.offered(piece, now_s, hold_s):
                self._client.decline_offers(offer, REFUSE_S)

    @property
    def _gathering(self) -> bool:
        return self._verdict is None and self._attempt is None and self._contest.contending

    def _rescinded(self, offer_id: str) -> None:
        self._gang.gone(offer_id)

    def _disconnected(self, why: str) -> None:
        for offer_id in self._gang.give_back():
            self._gang.gone(offer_id)
        self._say(f"lost the master ({why}); trying again")

    def _needs_answered(self, answer: Event.Needs) -> None:
        self._not_admitted = "" if answer.admitted else answer.message
        granted = sum(each.count for each in answer.accepted)
        if (
            self._contest.contending
            and self._attempt is None
            and granted < self._settings.ask.slots
        ):
            self._over(Verdict(TOO_LARGE, answer.message))

    # ---- Gathering -------------------------------------------------------

    def _needs(self) -> list[Need]:
        ask = self._settings.ask
        return [Need("rank", ask.each, ask.slots, mandatory=True)]

    def _contend(self) -> None:
        ask = self._settings.ask
        self._client.request_resources(self._needs())
        self._client.state_waiting([("rank", ask.each, ask.slots)])
        self._client.set_needs_offers(True)

    def _rest(self) -> None:
        if held := self._gang.give_back():
            self._client.decline_offers(held, 0.0)
        self._client.set_needs_offers(False)
        self._client.request_resources([])

    def _look(self) -> bool:
        """Whether it is over."""
        now_s = self._now_s()
        settings = self._settings
        if self._output.broken:
            discard_stdout()
            self._over(Verdict(Exit.NO_READER, "nobody reads the output any more"))
        elif settings.timeout_s is not None and now_s >= self._begun_s + settings.timeout_s:
            self._over(Verdict(Exit.TIMED_OUT, f"not done within {settings.timeout_s:g} s"))
        elif self._attempt is not None:
            self._look_at_attempt(now_s)
        else:
            self._look_at_offers(now_s)
        return self._verdict is not None

    def _look_at_offers(self, now_s: float) -> None:
        share = self._client.guaranteed_share()
        turn = self._contest.look(share, now_s, random.random())
        if turn is Turn.CONTEND:
            self._contend()
        elif turn is Turn.REST:
            self._rest()
        if not self._gathering:
            return
        shares = self._gang.complete()
        if shares is not None and not self._contest.short(share):
            self._launch(shares)
        elif self._gang.due(now_s):
            self._contest.collided(now_s, self._settings.hold_s, random.random())
            self._rest()

    # ---- One launch ------------------------------------------------------

    def _launch(self, shares: Sequence[Share]) -> None:
        self._attempts += 1
        # Ranks are numbered by host name, not by who happened to be offered first.
        shares = sorted(shares, key=lambda share: self._agents[share.agent_id].hostname)
        if self._prepared is not None and self._prepared.is_for(shares):
            attempt, self._prepared = self._prepared, None
            attempt.shares = shares
        else:
            attempt = Attempt(self._settings, shares, self._agents, self._output, self._now_s)
            attempt.news = self._wake
        self._attempt = attempt
        self._starting = asyncio.create_task(self._start(attempt))

    async def _start(self, attempt: Attempt) -> None:
        if self._prepared is not None:
            await self._prepared.close()
            self._prepared = None
        try:
            tasks = await attempt.tasks()
        except MesosPyError as error:
            self._over(Verdict(LOST, str(error)))
            return
        # All are there still, or none is taken.
        wanted = [offer for share in attempt.shares for offer in share.offer_ids]
        held = set(self._gang.give_back())
        if not held.issuperset(wanted):
            if held:
                self._client.decline_offers(sorted(held), 0.0)
            # On a slow machine offers do not last until the launcher has answered: the same
            # agents will be offered again.
            self._prepared = attempt
            self._gather_again("an offer has gone")
            return
        if rest := held - set(wanted):
            self._client.decline_offers(sorted(rest), REFUSE_S)
        attempt.begin(tasks)
        for share, task in zip(attempt.shares, tasks, strict=True):
            self._client.launch_tasks(list(share.offer_ids), task, REFUSE_S)
        self._client.state_waiting([])
        self._client.set_needs_offers(False)
        self._wake.set()

    async def _again(self, attempt: Attempt, why: str) -> None:
        await attempt.close()
        self._gather_again(why)

    def _gather_again(self, why: str) -> None:
        if self._attempts >= MOST_ATTEMPTS:
            self._over(Verdict(LOST, f"given up after {MOST_ATTEMPTS} launches: {why}"))
        elif self._verdict is None:
            self._attempt = None
            self._contend()
        self._wake.set()

    def _look_at_attempt(self, now_s: float) -> None:
        job = self._attempt.job if self._attempt is not None else None
        if job is None or (self._starting is not None and not self._starting.done()):
            return
        job.look(now_s)
        if job.verdict is None:
            return
        if job.verdict.again and self._attempts < MOST_ATTEMPTS:
            self._starting = asyncio.create_task(self._start_over(job.verdict.why))
        else:
            self._over(job.verdict)

    async def _start_over(self, why: str) -> None:
        assert self._attempt is not None
        await self._end_tasks(self._attempt, KILLED_WITHIN_S)
        await self._again(self._attempt, why)

    # ---- Ending ----------------------------------------------------------

    def _over(self, verdict: Verdict) -> None:
        if self._verdict is None:
            self._verdict = verdict
            self._wake.set()

    async def _clear(self) -> None:
        """Leave nothing: the launcher first, then tasks; what is left the teardown ends."""
        assert self._verdict is not None
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)
        self._client.set_needs_offers(False)
        if self._prepared is not None:
            await self._prepared.close()
        if self._attempt is not None:
            if self._verdict.code == 0:
                await self._gone(self._attempt, ENDED_WITHIN_S)
            await self._end_tasks(self._attempt, KILLED_WITHIN_S)

    async def _end_tasks(self, attempt: Attempt, within_s: float) -> None:
        await attempt.close()
        if attempt.job is not None:
            for host in attempt.job.live_tasks:
                self._client.kill_task(host.task_id, host.agent_id)
        await self._gone(attempt, within_s)
        with contextlib.suppress(BrokenPipeError):
            await self._output.end()

    async def _gone(self, attempt: Attempt, within_s: float) -> None:
        until_s = self._now_s() + within_s
        while attempt.job is not None and attempt.job.awaited_tasks:
            left_s = until_s - self._now_s()
            if left_s <= 0 or not self._client.connected:
                return
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left_s, LOOK_EVERY_S)):
                    await self._wake.wait()

    # ---- Saying ----------------------------------------------------------

    def _on_signal(self, number: signal.Signals) -> None:
        code = Exit.INTERRUPTED if number == signal.SIGINT else of_signal(number)
        self._over(Verdict(code, f"interrupted by {number.name}"))

    async def _explain(self) -> None:
        """Say why it waits, when it does, and again when that changes."""
        await asyncio.sleep(EXPLAIN_AFTER_S)
        while True:
            if self._attempt is None and self._client.connected:
                why = self._contest.short(self._client.guaranteed_share()) or self._not_admitted
                if not why:
                    found = await self._master.reasons(self._client.framework_id)
                    why = found[0] if found else "no offers so far"
                if why != self._said and self._attempt is None:
                    self._said = why
                    self._say(f"waiting for {self._settings.ask.slots} slots: {why}")
            await asyncio.sleep(EXPLAIN_EVERY_S)

    def _say(self, text: str) -> None:
        if not self._settings.quiet:
            sys.stderr.write(f"mesos-py mpi: {' '.join(text.split())}\n")
            sys.stderr.flush()

    @staticmethod
    def _now_s() -> float:
        return asyncio.get_running_loop().time()
