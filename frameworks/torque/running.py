"""The wrapper as a process: the driver's callbacks and the engine's rounds, on one thread."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from frameworks.torque import book
from frameworks.torque.backend import Backend
from frameworks.torque.cluster import limit_of, size_in
from frameworks.torque.engine import Census, Engine
from frameworks.torque.options import TorqueOptions
from mesos_py import (
    FrameworkInfo,
    MasterInfo,
    MesosPyError,
    Offer,
    Refused,
    Resources,
    Scheduler,
    SchedulerDriver,
    TaskStatus,
    logs,
)
from mesos_py.operator import OperatorClient

log = logs.get("torque")

BOOK: Final = "wrapper.json"
STATUS: Final = "status.json"
# How often the master is asked while jobs wait.
_CENSUS_EVERY_S: Final = 5.0
_CENSUS_LIMIT_S: Final = 5.0
_AWAY: Final = frozenset({"gone", "unreachable"})

Event = Callable[[Engine, float], None]


class _Callbacks(Scheduler):
    """Each returns at once: what it says is taken in by the thread of the rounds."""

    def __init__(self, events: queue.SimpleQueue[Event | None]) -> None:
        self._events = events

    def registered(
        self, driver: SchedulerDriver, framework_id: str, master_info: MasterInfo
    ) -> None:
        self._events.put(lambda engine, now_s: engine.subscribed(framework_id, now_s))

    def reregistered(self, driver: SchedulerDriver, master_info: MasterInfo) -> None:
        framework_id = driver.framework_id
        self._events.put(lambda engine, now_s: engine.subscribed(framework_id, now_s))

    def disconnected(self, driver: SchedulerDriver) -> None:
        self._events.put(lambda engine, now_s: engine.unlinked())

    def resource_offers(self, driver: SchedulerDriver, offers: Sequence[Offer]) -> None:
        listed = list(offers)
        self._events.put(lambda engine, now_s: engine.offered(listed, now_s))

    def offer_rescinded(self, driver: SchedulerDriver, offer_id: str) -> None:
        self._events.put(lambda engine, now_s: engine.rescinded(offer_id))

    def status_update(self, driver: SchedulerDriver, status: TaskStatus) -> None:
        kept = TaskStatus()
        kept.CopyFrom(status)
        self._events.put(lambda engine, now_s: engine.status(kept, now_s))

    def guarantee_changed(self, driver: SchedulerDriver, share: Resources) -> None:
        self._events.put(lambda engine, now_s: None)

    def error(self, driver: SchedulerDriver, message: str) -> None:
        self._events.put(None)


class Wrapper:
    """Brings the batch server up and keeps its nodes, until `stop`."""

    def __init__(self, options: TorqueOptions, backend: Backend) -> None:
        self._options = options
        self._backend = backend
        self._events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._census_at_s = 0.0

    def stop(self) -> None:
        """From any thread, or a signal's handler: `run` returns, all else goes on."""
        self._events.put(None)

    def run(self, ready: Callable[[], None]) -> None:
        """Until `stop`.  `ready` is called when the batch server answers.

        Raises MesosPyError when it cannot be started, when the master refuses us for good, and
        when the state cannot be read or written.
        """
        self._backend.start()
        ready()
        kept = book.read(self._options.state_dir / BOOK)
        driver = SchedulerDriver(
            _Callbacks(self._events), self._framework(kept.framework_id), self._options.master
        )
        engine = Engine(self._options, self._backend, kept, driver, time.monotonic())
        driver.start()
        try:
            self._rounds(engine, driver)
        finally:
            driver.stop(failover=True)
            try:
                driver.join()
            except Refused:
                # Its id is of no use any more: the next one begins anew.
                kept.framework_id = ""
                kept.save()
                raise

    def _framework(self, framework_id: str) -> FrameworkInfo:
        options = self._options
        info = FrameworkInfo(
            name=options.name,
            user=options.user,
            roles=[options.role],
            failover_timeout=options.failover_s,
            checkpoint=True,
        )
        if framework_id:
            info.id.value = framework_id
        return info

    def _rounds(self, engine: Engine, driver: SchedulerDriver) -> None:
        """A round every while, and soon after something has happened; until `stop`, or until the
        driver has ended."""
        next_s = time.monotonic()
        while not driver.join(0):
            with contextlib.suppress(queue.Empty):
                event = self._events.get(timeout=max(0.0, next_s - time.monotonic()))
                if event is None:
                    return
                event(engine, time.monotonic())
                if not self._events.empty():
                    continue
            engine.round(time.monotonic(), time.time())
            engine.view.write(self._options.state_dir / STATUS)
            next_s = time.monotonic() + self._options.poll_s
            if engine.wants_census and time.monotonic() >= self._census_at_s:
                self._census_at_s = time.monotonic() + _CENSUS_EVERY_S
                threading.Thread(
                    target=self._census,
                    args=[engine.framework_id],
                    name="torque census",
                    daemon=True,
                ).start()

    def _census(self, framework_id: str) -> None:
        """Offers show only what is free, and not why there are none."""
        try:
            with OperatorClient(self._options.master, timeout_s=_CENSUS_LIMIT_S) as master:
                sizes = [
                    size_in(Resources.from_proto("agent", row.total_resources))
                    for row in master.agents()
                    if row.state not in _AWAY
                ]
                limit = limit_of(self._options.role, master.roles())
                told = master.explain(framework_id)
        except MesosPyError as error:
            log.debug("there is no census", why=error.message)
            return
        findings = [text for each in told for text in each.findings]
        found = Census(sizes, limit, findings)

        def tell(engine: Engine, now_s: float) -> None:
            engine.census = found

        self._events.put(tell)


__all__ = ["BOOK", "STATUS", "Wrapper"]
