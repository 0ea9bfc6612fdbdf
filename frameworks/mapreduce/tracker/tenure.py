"""A tracker while it is the active one: from taking over until another one does."""

from __future__ import annotations

import functools
import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from frameworks.mapreduce.core.brain import Brain
from frameworks.mapreduce.core.journal import JobEnded, Record, WorkerGone
from frameworks.mapreduce.core.options import Options
from frameworks.mapreduce.core.orders import (
    AnyOrder,
    End,
    Failed,
    Journal,
    Launch,
    Lost,
)
from frameworks.mapreduce.core.views import JobView
from frameworks.mapreduce.data.parts import output_codec
from frameworks.mapreduce.job import JobSpec, Split
from frameworks.mapreduce.messages import Forget, Forgotten
from frameworks.mapreduce.names import parse_attempt
from frameworks.mapreduce.records import encode, from_worker
from frameworks.mapreduce.tracker import journal as journals
from frameworks.mapreduce.tracker.carrying import Carrier
from frameworks.mapreduce.tracker.cleaning import TASK_PREFIX, Cleaning, Done, Spot
from frameworks.mapreduce.tracker.departures import Departures
from frameworks.mapreduce.tracker.endings import Endings
from frameworks.mapreduce.tracker.labour import Labour
from frameworks.mapreduce.tracker.numbers import Numbers
from frameworks.mapreduce.tracker.offers import room_of
from frameworks.mapreduce.tracker.options import TrackerOptions
from frameworks.mapreduce.tracker.output_work import OutputWork
from frameworks.mapreduce.tracker.roster import replayed
from frameworks.mapreduce.tracker.statuses import end_of, is_hearsay
from frameworks.mapreduce.tracker.store import (
    NO_JOB,
    Cleaned,
    Store,
    TrackerRecord,
    WorkerKept,
    WorkerStart,
    entries_of,
    lines_of,
    living,
)
from frameworks.mapreduce.tracker.unheard import Unheard
from frameworks.mapreduce.tracker.workers import Workers, prefix, start_of
from frameworks.mapreduce.work import Failure
from mesos_py import (
    TASK_FINISHED,
    TASK_RUNNING,
    InverseOffer,
    Offer,
    SchedulerDriver,
    TaskStatus,
    asked_back,
    is_terminal,
    logs,
    short_name,
)
from mesos_py.errors import InvalidValue

log = logs.get("mapreduce.tracker")

# After a worker's end its attempts' own last words are waited for, so that what is known of
# why they ended is not lost.
LAST_WORDS_S: Final = 5.0
# An offer that we do not understand is not wanted again for so long.
STRANGE_S: Final = 60.0
REPEATED_S: Final = 20.0
MOST_PATIENCE_S: Final = 700.0
SAY_WAITING_EVERY_S: Final = 1.0
MOST_WAITING: Final = 200

_HOST: Final = socket.gethostname()


class Tenure:
    """All methods are for the engine's thread.  After each round `settle` is called.

    later: has a call made in a round to come.
    """

    def __init__(
        self,
        options: TrackerOptions,
        store: Store,
        driver: SchedulerDriver,
        later: Callable[[Callable[[], object]], None],
        numbers: Numbers,
    ) -> None:
        """Takes over from whoever writes to the store.  Blocks while it reads; raises what the
        journal raises."""
        self._options = options
        self._store = store
        self._driver = driver
        self._post = later
        self._numbers = numbers
        self._closed = False
        self._clock = _Clock()
        writer = f"{_HOST}-{secrets.token_hex(8)}"
        self._journal, entries = journals.Journal.take_over(store.place, writer)
        found = lines_of(entries)
        lines = living(found)
        self._parted = {(o.agent_id, o.worker_id) for o in found if isinstance(o, WorkerGone)}
        self._roster = replayed(lines)
        self._brain = self._new_brain()
        records = [one for one in lines if not isinstance(one, (Cleaned, WorkerKept))]
        self._brain.restore(records, self._now())
        self._journal.begin(entries_of(lines))
        # Workers of which the journal says so, whatever becomes of the jobs they came with.
        self._kept = {(one.agent_id, one.worker_id) for one in lines if isinstance(one, WorkerKept)}
        start = start_of(options)
        store.add_tracker(TrackerRecord(self.epoch, writer, _HOST, self._now(), start))
        self._cleaning = Cleaning(self._is_there, str(self.epoch), options.cleanup_s)
        self._labour = Labour()
        self._outputs = OutputWork(self._brain, self._roster, self._labour, self._later, self._now)
        self._endings = Endings(
            self._brain, self._roster, self._cleaning, self._labour, store, self._later, self._over
        )
        self._carrier = Carrier(
            driver,
            Workers(start, self.epoch, self._start_of_epoch),
            self._roster,
            self._cleaning,
            commit=self._outputs.commit,
            finish=self._outputs.finish,
            refused=self._launch_refused,
            released=lambda spot: self._departures.asked(spot, self._now(), told=True),
        )
        self._departures = Departures()
        self._past: list[str] = []
        self._acknowledged: list[TaskStatus] = []
        self._asked_back: set[str] = set()
        # Workers that have ended, and until when their attempts' last words are waited for.
        self._dying: dict[Spot, tuple[float, str]] = {}
        # Offers of their agents, which are kept until then.
        self._held: list[Offer] = []
        # Attempts of which the master knows that they ended, and their agent has not said (again)
        # with what; and until when that is waited for.
        self._resultless: dict[str, float] = {}
        self._unheard = Unheard()
        self._say_waiting_s = 0.0
        self._begin()

    def _new_brain(self) -> Brain:
        options = self._options
        return Brain(
            Options(
                worker_needs=options.worker_needs,
                extension=_extension,
                worker_prefix=prefix(self.epoch),
                order=options.order,
                max_workers=options.max_workers,
                idle_s=options.idle_s,
            )
        )

    def _begin(self) -> None:
        """What a predecessor has left to be done."""
        jobs = self._brain.views()
        log.info("tracker is active", epoch=self.epoch, jobs=len(jobs), state=self._store.place.url)
        for view in jobs:
            if view.state in ("succeeded", "failed", "killed"):
                self._endings.begin(view.job_id, self._now())
        known = {(one.agent_id, one.worker_id) for one in self._brain.agents() if one.worker_id}
        # Of a predecessor it is not known whether its orders to end have arrived.
        for spot in (self._roster.workers - known) | self._parted:
            self._departures.asked(spot, self._now(), told=False)
        self._roster.workers &= known
        self.linked()

    @property
    def epoch(self) -> int:
        return self._journal.epoch

    @property
    def resting(self) -> bool:
        """Whether no job is known that is not over in every respect."""
        return not self._roster.specs

    def is_over(self) -> bool:
        """Whether another tracker has taken over."""
        return self._journal.is_over()

    def close(self) -> None:
        """Another one is active, or this one ends: nothing is done any more."""
        self._closed = True
        self._labour.close()

    # ---- The cluster -----------------------------------------------------------------------

    def linked(self) -> None:
        """There is a subscription (again)."""
        self._brain.link(True, self._now())
        self._held.clear()
        self._departures.linked(self._now())
        self._unheard.linked(self._brain.attempts(), self._now())
        self._driver.reconcile_tasks()

    def unlinked(self) -> None:
        self._held.clear()
        self._brain.link(False, self._now())

    def offers(self, offers: Sequence[Offer]) -> None:
        now_s = self._now()
        rooms = []
        dying = {agent_id for agent_id, _ in self._dying}
        for offer in offers:
            if self._carrier.clean(offer):
                continue
            room = room_of(offer, self._options.rack_attribute, now_s)
            if room is None:
                self._carrier.decline([offer.id.value], STRANGE_S)
            elif room.agent_id in dying:
                self._held.append(offer)
            else:
                rooms.append(room)
        if rooms:
            self._brain.offers(rooms, now_s)

    def asked_back(self, offers: Sequence[InverseOffer]) -> None:
        """End the youngest attempts where something is asked back: they lose least."""
        for offer in offers:
            asked = asked_back(offer)
            chosen = self._roster.youngest(asked.agent_id, asked.resources) if asked else []
            for attempt in chosen:
                self._asked_back.add(attempt)
                self._driver.kill_task(attempt, asked.agent_id if asked else None)
            if chosen:
                log.info("attempts given up", offer=offer.id.value, attempts=chosen)
                self._driver.accept_inverse_offers(offer)
            else:
                self._driver.decline_inverse_offers(offer)

    def status(self, status: TaskStatus) -> None:
        task_id = status.task_id.value
        log.debug("status", task=task_id, state=short_name(status.state), why=status.message)
        self._acknowledged.append(status)
        self._unheard.heard(task_id)
        name = parse_attempt(task_id)
        if name is None:
            self._status_of_other(status)
            return
        if is_hearsay(status):
            self._resultless.setdefault(task_id, self._give_up_s(task_id))
            return
        self._resultless.pop(task_id, None)
        end = end_of(name, status, task_id in self._asked_back)
        if end is not None:
            self._asked_back.discard(task_id)
            self._ended(task_id, end)
        elif status.state == TASK_RUNNING:
            self._brain.started(task_id, self._now())

    def _status_of_other(self, status: TaskStatus) -> None:
        task_id = status.task_id.value
        if not task_id.startswith(TASK_PREFIX):
            log.warning("status of a task that is not ours", task=task_id)
        elif is_terminal(status.state):
            failed = "" if status.state == TASK_FINISHED else status.message or "it failed"
            self._cleaning.task_ended(task_id, failed)

    def message(self, agent_id: str, worker_id: str, data: bytes) -> None:
        try:
            message = from_worker(data)
        except InvalidValue as error:
            log.warning("message of a worker not understood", agent=agent_id, error=error.message)
            return
        if (agent_id, worker_id) not in self._roster.workers:
            self._departures.heard((agent_id, worker_id), self._now())
        if isinstance(message, Forgotten):
            self._cleaning.forgotten((agent_id, worker_id), message.job_id)
        self._brain.said(agent_id, message, self._now())

    def agent_lost(self, agent_id: str) -> None:
        for spot in [each for each in self._dying if each[0] == agent_id]:
            self._settled(spot)
        workers = self._roster.agent_lost(agent_id)
        self._brain.agent_lost(agent_id, self._now())
        self._departures.cut_off(workers, self._now())
        self._cleaning.agent_lost(agent_id)

    def worker_lost(self, agent_id: str, worker_id: str, why: str) -> None:
        self._departures.ended((agent_id, worker_id))
        if (agent_id, worker_id) in self._roster.workers:
            self._dying[agent_id, worker_id] = (self._now() + LAST_WORDS_S, why)

    # ---- Clients ---------------------------------------------------------------------------

    @property
    def brain(self) -> Brain:
        """To look at."""
        return self._brain

    def submit(self, spec: JobSpec, splits: Sequence[Split]) -> None:
        """As `Brain.submit`."""
        self._brain.submit(spec, splits, self._now())

    def spec(self, job_id: str) -> JobSpec | None:
        """None for a job that is not known, or over in every respect."""
        return self._roster.specs.get(job_id)

    def kill(self, job_id: str, why: str) -> JobView:
        self._brain.kill(job_id, why, self._now())
        return self._brain.view(job_id)

    # ---- The end of a round ----------------------------------------------------------------

    def settle(self) -> float | None:
        """Write down, acknowledge, carry out.  Returns in how many seconds to be called again
        at the latest.  Raises what the journal raises."""
        now_s = self._now()
        self._settle_dying(now_s)
        next_s = self._brain.tick(now_s)
        orders = self._brain.take_orders()
        self._write(orders)
        if self._acknowledged:
            self._driver.acknowledge(self._acknowledged)
            self._acknowledged = []
        for agent_id, worker_id in self._departures.due(now_s):
            self._driver.shutdown_executor(worker_id, agent_id)
        self._give_up_resultless(now_s)
        self._clean(now_s)
        self._carrier.carry(orders)
        if self._past:
            self._drop()
        unheard = self._unheard.due(self._roster.live, now_s)
        if unheard:
            self._driver.reconcile_tasks(unheard)
        self._say_waiting(now_s)
        if self._journal.is_long:
            owners = {NO_JOB, *self._roster.specs}
            self._journal.compact(lambda owner: owner in owners)
        times = [next_s, self._cleaning.next_s(), self._departures.next_s()]
        times += [*self._resultless.values(), *(at_s for at_s, _ in self._dying.values())]
        times += [self._unheard.next_s(), self._say_waiting_s]
        return max(0.0, min(at_s for at_s in times if at_s is not None) - self._now())

    def _write(self, orders: Sequence[AnyOrder]) -> None:
        records: list[Record] = [
            record for order in orders if isinstance(order, Journal) for record in order.records
        ]
        if not records:
            return
        self._journal.append(entries_of(records))
        self._numbers.wrote(records, lambda job_id: self._brain.view(job_id).state)
        for record in records:
            self._roster.note(record)
            if isinstance(record, JobEnded):
                self._endings.begin(record.job_id, self._now())

    def _settle_dying(self, now_s: float) -> None:
        for spot, (until_s, why) in list(self._dying.items()):
            if now_s >= until_s or not self._roster.on_worker(spot):
                self._settled(spot)
                self._brain.worker_lost(*spot, why, now_s)
                self._roster.workers.discard(spot)

    def _settled(self, spot: Spot) -> None:
        del self._dying[spot]
        mine = [offer for offer in self._held if offer.agent_id.value == spot[0]]
        if mine:
            self._held = [offer for offer in self._held if offer.agent_id.value != spot[0]]
            self._later(lambda: self.offers(mine))

    def _clean(self, now_s: float) -> None:
        for order in self._cleaning.due(now_s):
            if isinstance(order, Done):
                self._endings.cleaned(order)
                self._numbers.cleaned(order)
            else:
                message = encode(Forget(order.job_id))
                self._driver.send_framework_message(order.worker_id, order.agent_id, message)

    def _give_up_s(self, attempt: str) -> float:
        """An agent repeats its word after pauses that double, from ten seconds to ten minutes: so
        before as much time is over as since the launch, and some more.  Which is about what
        it takes to run the attempt again."""
        live = self._roster.live.get(attempt)
        now_s = self._now()
        age_s = 0.0 if live is None else now_s - live.launched_s
        return now_s + min(age_s + REPEATED_S, MOST_PATIENCE_S)

    def _give_up_resultless(self, now_s: float) -> None:
        for attempt in [each for each, at_s in self._resultless.items() if now_s >= at_s]:
            del self._resultless[attempt]
            self._later(functools.partial(self._ended, attempt, Lost("its result was not told")))

    def _say_waiting(self, now_s: float) -> None:
        if now_s >= self._say_waiting_s:
            self._say_waiting_s = now_s + SAY_WAITING_EVERY_S
            waiting = self._brain.waiting()[:MOST_WAITING]
            self._driver.state_waiting(
                (f"{one.job_id} {one.kind}", one.resources, one.count) for one in waiting
            )

    def _launch_refused(self, launch: Launch, why: str) -> None:
        end = Failed(Failure(blame="job", message=f"cannot be launched: {why}"))
        for start in launch.starts:
            self._later(functools.partial(self._ended, start.attempt, end))

    def _ended(self, attempt: str, end: End) -> None:
        self._brain.ended(attempt, end, self._now())

    def _over(self, job_id: str) -> None:
        """Nothing of the job is left to be done: it is forgotten with the end of the round."""
        self._past.append(job_id)

    def _drop(self) -> None:
        kept = self._roster.workers - self._kept
        self._kept |= kept
        jobs = [Cleaned(job_id) for job_id in self._past]
        self._journal.append(entries_of([*(WorkerKept(*spot) for spot in kept), *jobs]))
        for job_id in self._past:
            self._brain.drop(job_id)
            self._outputs.drop(job_id)
            self._roster.drop(job_id)
        self._past.clear()

    # ---- Inside ----------------------------------------------------------------------------

    def _later(self, call: Callable[[], object]) -> None:
        self._post(lambda: None if self._closed else call())

    def _is_there(self, spot: Spot) -> bool:
        return spot in self._roster.workers

    def _start_of_epoch(self, epoch: int) -> WorkerStart | None:
        found = self._store.tracker(epoch)
        return None if found is None else found.worker

    def _now(self) -> float:
        return self._clock.now_s()


class _Clock:
    """Unix time as it was at the beginning, and from then on without steps."""

    def __init__(self) -> None:
        self._ahead_s = time.time() - time.monotonic()

    def now_s(self) -> float:
        return time.monotonic() + self._ahead_s


def _extension(conf: Mapping[str, str]) -> str:
    codec = output_codec(conf)
    return "" if codec is None else codec.extension


__all__ = ["Tenure"]
