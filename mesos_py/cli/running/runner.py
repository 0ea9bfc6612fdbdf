"""Runs a job: subscribes, launches, passes output on, says why it waits, ends."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Final, cast

from mesos_py.cli.exits import Exit, of_signal
from mesos_py.cli.output import discard_stdout
from mesos_py.cli.running.copies import Copies
from mesos_py.cli.running.job import Heard, Instance, Job
from mesos_py.cli.running.progress import Bar
from mesos_py.cli.running.relay import Relay
from mesos_py.cli.running.signals import on_ending_signals
from mesos_py.cli.running.sink import Sink
from mesos_py.scheduler import SchedulerClient
from mesos_py.v1.scheduler_pb2 import Event
from mesos_py.v1.types_pb2 import FrameworkInfo, Offer, TaskStatus

CONNECT_S: Final = 10.0
# A run that is killed outright leaves its tasks behind for this long, and a link that
# breaks for less costs none.
FAILOVER_S: Final = 10.0
EXPLAIN_AFTER_S: Final = 2.0
EXPLAIN_AGAIN_S: Final = 5.0
# After an interrupt: for tasks to end.  What is left then ends by the teardown.
KILL_WAIT_S: Final = 60.0
# Of a task that is lost with its agent: for what is on its way.
LOST_OUTPUT_S: Final = 3.0
# A second Ctrl-C in less than this is the same one, said twice.
SAME_SIGNAL_S: Final = 0.5
# Refused offers come back when they grow, or when we revive.
REFUSE_S: Final = 3600.0


@dataclass(frozen=True)
class Settings:
    """What a run needs to know beside its job."""

    master: str
    framework: FrameworkInfo
    hosts: tuple[str, ...] = ()
    timeout_s: float | None = None
    prefix: bool = False
    quiet: bool = False
    bar: bool = False


class Runner:
    """One run, from subscription to exit code."""

    def __init__(self, job: Job, settings: Settings) -> None:
        self._job = job
        self._settings = settings
        self._client = SchedulerClient(
            settings.framework,
            settings.master,
            connect_timeout_s=CONNECT_S,
            on_disconnected=lambda why: self._say(f"lost the master ({why}); trying again"),
        )
        self._bar = Bar(job) if settings.bar else None
        # One terminal for both: what it shows must go above the bar.
        both = self._bar is not None and sys.stdout.isatty()
        self._sink = Sink(self._bar.show if self._bar is not None and both else None)
        self._relay = Relay(settings.master)
        self._finished = asyncio.Event()
        self._copies = Copies(
            self._relay, self._sink, self._say, self._nobody_reads, prefix=settings.prefix
        )
        self._signalled_at: float | None = None
        self._launched_at = 0.0
        self._said = ""

    async def run(self) -> int:
        """Returns the exit code; raises what keeps it from running at all."""
        spec = self._job.spec
        self._launched_at = asyncio.get_running_loop().time()
        self._client.set_filters(hosts=self._settings.hosts or None, min_free=spec.each)
        self._client.state_waiting(self._job.wants())
        helpers: list[asyncio.Task[None]] = []
        try:
            with on_ending_signals(self._on_signal):
                async with self._client:
                    helpers.append(asyncio.create_task(self._explain()))
                    if self._settings.timeout_s is not None:
                        helpers.append(asyncio.create_task(self._limit(self._settings.timeout_s)))
                    if self._bar is not None:
                        self._bar.start()
                    await self._until_finished()
                    await self._copies.finish()
        finally:
            if self._bar is not None:
                self._bar.stop()
            for task in helpers:
                task.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)
            await self._copies.close()
            await self._relay.close()
        return self._job.exit_code

    async def _until_finished(self) -> None:
        events = asyncio.create_task(self._events())
        finished = asyncio.create_task(self._finished.wait())
        try:
            await asyncio.wait({events, finished}, return_when=asyncio.FIRST_COMPLETED)
            if events.done():
                await events
        finally:
            events.cancel()
            finished.cancel()
            await asyncio.gather(events, finished, return_exceptions=True)

    # ---- Events ----------------------------------------------------------

    async def _events(self) -> None:
        iterator = cast("AsyncGenerator[Event, None]", aiter(self._client))
        async with contextlib.aclosing(iterator) as events:
            async for event in events:
                match event.type:
                    case Event.OFFERS:
                        self._offers(event.offers.offers)
                    case Event.UPDATE:
                        self._update(event.update.status)
                    case Event.REFUSED:
                        self._say(f"the master refused a call: {event.refused.message}")
                if self._bar is not None:
                    self._bar.update()

    def _offers(self, offers: Sequence[Offer]) -> None:
        for answer in self._job.on_offers(offers):
            if answer.tasks:
                self._launched_at = asyncio.get_running_loop().time()
                self._client.launch_tasks(answer.offer, answer.tasks, REFUSE_S)
            else:
                self._client.decline_offers(answer.offer, REFUSE_S)
        self._state_wants()

    def _state_wants(self) -> None:
        wants = self._job.wants()
        self._client.state_waiting(wants)
        if not wants:
            self._client.set_needs_offers(False)

    def _update(self, status: TaskStatus) -> None:
        if self._job.is_stray(status):
            self._client.kill_task(status.task_id, status.agent_id)
            return
        task_id = status.task_id.value
        heard = self._job.on_status(status)
        if heard is None:
            return
        if heard.instance.ran or (heard.ended and status.source != TaskStatus.SOURCE_MASTER):
            self._follow(task_id, heard.instance)
        if heard.ended:
            self._tell(heard)
            if status.source == TaskStatus.SOURCE_MASTER:
                title = self._job.title(heard.instance)
                asyncio.get_running_loop().call_later(
                    LOST_OUTPUT_S, self._copies.give_up, task_id, title
                )
        if heard.again:
            self._client.state_waiting(self._job.wants())
            self._client.set_needs_offers(True)
        if self._job.done:
            self._finished.set()

    def _follow(self, task_id: str, instance: Instance) -> None:
        framework_id, title = self._client.framework_id, self._job.title(instance)
        self._copies.follow(framework_id, task_id, instance.index, title, ran=instance.ran)

    def _tell(self, heard: Heard) -> None:
        instance = heard.instance
        title = self._job.title(instance)
        where = f" (on {instance.hostname})" if instance.hostname else ""
        if heard.again:
            self._say(f"{title}: {heard.text}{where}; trying again")
        elif instance.code and (len(self._job.instances) > 1 or not heard.own_code):
            self._say(f"{title}: {heard.text}{where}")

    # ---- Giving up -------------------------------------------------------

    def _on_signal(self, number: signal.Signals) -> None:
        now = asyncio.get_running_loop().time()
        if self._signalled_at is None:
            self._signalled_at = now
            code = Exit.INTERRUPTED if number == signal.SIGINT else of_signal(number)
            self._give_up(code, "interrupted")
        elif now - self._signalled_at > SAME_SIGNAL_S:
            self._abandon()

    def _give_up(self, code: int, why: str) -> None:
        live = self._job.give_up(code)
        tasks = f"; ending {len(live)} task{'s' if len(live) > 1 else ''}" if live else ""
        self._say(f"{why}{tasks}")
        for each in live:
            self._client.kill_task(each.task_id, each.agent_id)
        self._state_wants()
        if self._job.done:
            self._finished.set()
        else:
            asyncio.get_running_loop().call_later(KILL_WAIT_S, self._abandon)

    def _nobody_reads(self) -> None:
        discard_stdout()
        self._give_up(Exit.NO_READER, "nobody reads the output any more")

    def _abandon(self) -> None:
        """Wait for nothing more: the teardown ends what is left."""
        self._copies.cancel()
        self._finished.set()

    async def _limit(self, timeout_s: float) -> None:
        await asyncio.sleep(timeout_s)
        self._give_up(Exit.TIMED_OUT, f"not done within {timeout_s:g} s")

    # ---- Saying why ------------------------------------------------------

    async def _explain(self) -> None:
        """Only when nothing moves: what is being launched needs no excuse."""
        loop = asyncio.get_running_loop()
        pause_s = EXPLAIN_AFTER_S
        while True:
            await asyncio.sleep(pause_s)
            pause_s = max(0.1, self._launched_at + EXPLAIN_AFTER_S - loop.time())
            if pause_s > 0.1:
                continue
            pause_s = EXPLAIN_AGAIN_S
            if self._job.waiting and self._client.connected:
                await self._say_why()

    async def _say_why(self) -> None:
        findings = await self._relay.explain(self._client.framework_id)
        text = findings[0] if findings else "no offer so far"
        waiting = len(self._job.waiting)
        if waiting and text != self._said:
            self._said = text
            which = "" if len(self._job.instances) == 1 else f" for {waiting} more"
            self._say(f"waiting{which}: {text}")

    def _say(self, text: str) -> None:
        if self._settings.quiet:
            return
        line = f"mesos-py run: {' '.join(text.split())}\n"
        if self._bar is not None:
            self._bar.show(line.encode())
        else:
            sys.stderr.write(line)
            sys.stderr.flush()
