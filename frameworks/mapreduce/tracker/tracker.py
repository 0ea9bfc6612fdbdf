"""A tracker in this process: what runs jobs on a cluster."""

from __future__ import annotations

import secrets
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, TypeVar

import msgspec

from frameworks.mapreduce.core.views import JobView, TaskState, TaskView
from frameworks.mapreduce.data import files
from frameworks.mapreduce.data.splits import plan
from frameworks.mapreduce.job import JobSpec
from frameworks.mapreduce.names import Kind, checked_job_id
from frameworks.mapreduce.records import encode
from frameworks.mapreduce.tracker.abandoned import is_abandoned
from frameworks.mapreduce.tracker.committing import Output, Owner
from frameworks.mapreduce.tracker.numbers import Numbers
from frameworks.mapreduce.tracker.options import TrackerOptions
from frameworks.mapreduce.tracker.place import Place
from frameworks.mapreduce.tracker.scheduler import TrackerScheduler
from frameworks.mapreduce.tracker.store import Store, Summary
from frameworks.mapreduce.tracker.tenure import Tenure
from frameworks.mapreduce.tracker.wire import TrackerInfo
from frameworks.runtime.rounds import Rounds
from mesos_py import FrameworkID, FrameworkInfo, SchedulerDriver, __version__, logs
from mesos_py.errors import (
    AlreadyExists,
    Conflict,
    InvalidValue,
    MesosPyError,
    NotFound,
    Refused,
    Superseded,
    Unavailable,
)

log = logs.get("mapreduce.tracker")

T = TypeVar("T")

# Why a master refuses an id for good.
_REMOVED: Final = "Framework has been removed"
_LOOK_EVERY_S: Final = 0.05
_LOCKS: Final = 64


class Tracker:
    """From `start` to `stop`; all calls from any thread but the engine's own.

    ::

        tracker = Tracker(TrackerOptions(master="127.0.0.1:5050", state="/shared/mapreduce"))
        tracker.start()
        tracker.submit(spec)
        ...
        tracker.stop(end=True)

    With a state in which another tracker has left jobs, it goes on with them.  Calls about
    jobs raise Unavailable while it is not the active one.
    """

    def __init__(self, options: TrackerOptions) -> None:
        """Raises InvalidValue."""
        self.options = options
        self.store = Store(options.state)
        self._numbers = Numbers()
        self._engine = Rounds(self._settle, self._failed, "tracker")
        self._scheduler = TrackerScheduler(self)
        self._tenure: Tenure | None = None
        self._driver: SchedulerDriver | None = None
        self._framework_id = ""
        # Whether the present driver has had a subscription.
        self._known = False
        self._failure: BaseException | None = None
        self._stopping = False
        self._ended = threading.Event()
        self._active = threading.Event()
        self._thread = threading.Thread(target=self._drive, name="mapreduce driver", daemon=True)
        self._lock = threading.Lock()
        # Jobs that somebody is about to be told are begun.
        self._taking_on: set[str] = set()
        self._accepting = tuple(threading.Lock() for _ in range(_LOCKS))

    # ---- Life ------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin, and return at once.  Raises what the state's file system raises."""
        self._framework_id = self.store.framework_id()
        self._driver = self._new_driver()
        self._engine.start()
        self._thread.start()

    def wait_active(self, timeout_s: float | None = None) -> bool:
        """Until it is the active tracker, and has read what there was; False if it is not in
        time.  Raises what it has ended with."""
        end_s = None if timeout_s is None else time.monotonic() + timeout_s
        while not self._active.wait(_LOOK_EVERY_S):
            self._raise_failure()
            if self._ended.is_set() or (end_s is not None and time.monotonic() >= end_s):
                return False
        return True

    def stop(self, *, end: bool, rest_s: float = 0.0) -> None:
        """Leave; returns when all is settled here.

        end: the framework ends for the cluster, with all its tasks and workers; its jobs do not
        end in the state, and the next tracker begins their unfinished tasks anew.  Else tasks
        go on, and another tracker with this state may take over.
        rest_s: wait so long for jobs that are over to be cleaned up.
        """
        deadline_s = time.monotonic() + rest_s
        while not self._is_resting() and time.monotonic() < deadline_s:
            time.sleep(_LOOK_EVERY_S)
        self._stopping = True
        self._engine.stop()
        self._engine.join()
        was_active = self._tenure is not None
        self._end_tenure()
        if self._driver is not None and self._thread.is_alive():
            self._driver.stop(failover=not end)
            self._thread.join()
        if end and was_active and self._failure is None:
            self.store.forget_framework()
        self._ended.set()

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait until it has ended; False if it has not in time.  Raises what it has ended
        with, if it was not `stop`."""
        if not self._ended.wait(timeout_s):
            return False
        self._raise_failure()
        return True

    @property
    def is_idle(self) -> bool:
        """Whether it is the active one, and there is no job.  Not so once it has ended, which
        says nothing about jobs."""
        if self._tenure is None:
            return False
        try:
            return self._ask(lambda tenure: tenure.resting)
        except Unavailable:
            return False

    @property
    def info(self) -> TrackerInfo:
        tenure = self._tenure
        return TrackerInfo(
            framework_id=self._framework_id,
            state=self.store.place.url,
            active=tenure is not None,
            epoch=tenure.epoch if tenure else 0,
            hostname=socket.gethostname(),
            version=__version__,
        )

    # ---- Jobs ------------------------------------------------------------------------------

    def staging(self, job_id: str) -> str:
        """The URL of the directory in which a job that is to be submitted puts its files."""
        return self.store.staging(job_id)

    def submit(self, spec: JobSpec) -> None:
        """Take a job on: it is begun when this returns, and survives this tracker.  Nothing if
        it was taken on before.  Looks at the input, so it may take a while.

        Raises InvalidValue, NotFound (an input), AlreadyExists (the output, or another job with
        this id).  After Unavailable it is not known whether it was taken on: say it again.
        """
        checked_job_id("job_id", spec.job_id)
        if not spec.staging:
            spec = msgspec.structs.replace(spec, staging=self.store.staging(spec.job_id))
        # One and the same job may be said twice at once.
        with self._accepting[hash(spec.job_id) % len(self._accepting)]:
            self._taking_on.add(spec.job_id)
            try:
                if not self._is_known(spec):
                    self._take_on(spec)
            finally:
                self._taking_on.discard(spec.job_id)

    def view(self, job_id: str) -> JobView:
        """Of any job, also one that has ended.  Raises NotFound."""
        try:
            return self._ask(lambda tenure: tenure.brain.view(job_id))
        except NotFound:
            return self.store.summary(job_id).view

    def views(self, ended: int = 100) -> list[JobView]:
        """Jobs that have not ended, and the newest others, by their ids."""
        found = {each.view.job_id: each.view for each in self.store.summaries(ended)}
        for view in self._ask(lambda tenure: tenure.brain.views()):
            found[view.job_id] = view
        return [found[job_id] for job_id in sorted(found)]

    def summaries(self, limit: int = 100) -> list[Summary]:
        """Of the newest jobs that have ended."""
        return self.store.summaries(limit)

    def tasks(
        self,
        job_id: str,
        kind: Kind | None = None,
        state: TaskState | None = None,
        since: int = 0,
        limit: int = 1000,
    ) -> list[TaskView]:
        """At most `limit` of the tasks of a job, those before the `since`-th left out.  Raises
        NotFound."""
        try:
            return self._ask(lambda tenure: tenure.brain.tasks(job_id, kind, state, since, limit))
        except NotFound:
            found = [
                task
                for task in self.store.tasks(job_id)
                if kind in (None, task.kind) and state in (None, task.state)
            ]
            return found[since : since + limit]

    def kill(self, job_id: str, why: str) -> None:
        """End a job; nothing if it has ended.  Raises NotFound."""
        try:
            self._ask(lambda tenure: tenure.kill(job_id, why))
        except NotFound:
            self.store.summary(job_id)

    def metrics(self) -> bytes:
        """In the text format of Prometheus."""
        tenure = self._tenure
        if tenure is None:
            return self._numbers.rendered(None)
        return self._ask(lambda tenure: self._numbers.rendered(tenure.brain.views()))

    # ---- Taking a job on -------------------------------------------------------------------

    def _is_known(self, spec: JobSpec) -> bool:
        known = self._ask(lambda tenure: tenure.spec(spec.job_id))
        if known is not None and known != spec:
            raise AlreadyExists(f"job {spec.job_id}: another job has this id", job_id=spec.job_id)
        if known is None:
            try:
                self.store.summary(spec.job_id)
            except NotFound:
                return False
        return True

    def _take_on(self, spec: JobSpec) -> None:
        again = self.store.put_job(spec)
        output = Output(spec)
        try:
            if spec.staging.rstrip("/") != self.store.staging(spec.job_id):
                Place(spec.staging).replace("job.json", encode(spec))
            splits = plan(spec)
            output.prepare(again, self.store.place.url, self._is_abandoned)
            self._ask(lambda tenure: tenure.submit(spec, splits))
        except (InvalidValue, NotFound, Conflict):
            self._withdraw(spec, output)
            raise
        except OSError as error:
            self._withdraw(spec, output)
            raise InvalidValue("output", spec.output, files.why(error)) from error
        log.info("job taken on", job=spec.job_id, name=spec.name, maps=len(splits))

    def _is_abandoned(self, owner: Owner) -> bool:
        def is_ours(job_id: str) -> bool:
            if job_id in self._taking_on:
                return True
            return self._ask(lambda tenure: tenure.spec(job_id)) is not None

        return is_abandoned(owner, self.store.place.url, is_ours, secrets.token_hex(8))

    def _withdraw(self, spec: JobSpec, output: Output) -> None:
        with suppress(OSError):
            output.undo()
            self.store.withdraw_job(spec.job_id)

    # ---- Whether it is the active one (scheduler.Leadership) -------------------------------

    def activated(self, driver: SchedulerDriver) -> None:
        self._known = True
        self._engine.post(lambda: self._activate(driver))

    def stood_down(self, ahead: int) -> None:
        self._known = True
        log.info("standing by", ahead=ahead)
        self._engine.post(self._end_tenure)

    def while_active(self, work: Callable[[Tenure], object]) -> None:
        def do() -> None:
            if self._tenure is not None:
                work(self._tenure)

        self._engine.post(do)

    def _activate(self, driver: SchedulerDriver) -> None:
        if self._tenure is not None and not self._tenure.is_over():
            self._tenure.linked()
            return
        self._end_tenure()
        try:
            self._tenure = Tenure(
                self.options, self.store, driver, self._engine.post, self._numbers
            )
        except Superseded as error:
            self._superseded(error)
        else:
            self._active.set()

    def _end_tenure(self) -> None:
        if self._tenure is not None:
            self._tenure.close()
            self._tenure = None
            self._active.clear()

    # ---- Inside ----------------------------------------------------------------------------

    def _ask(self, work: Callable[[Tenure], T]) -> T:
        return self._engine.call(lambda: work(self._active_tenure()))

    def _active_tenure(self) -> Tenure:
        if self._tenure is None:
            raise Unavailable("this tracker is not the active one (yet): ask another, or again")
        return self._tenure

    def _is_resting(self) -> bool:
        if self._tenure is None:
            # Nor may there be anybody yet who would answer.
            return True
        try:
            return self._ask(lambda tenure: tenure.resting)
        except Unavailable:
            return True

    def _settle(self) -> float | None:
        if self._tenure is None:
            return None
        try:
            return self._tenure.settle()
        except Superseded as error:
            self._superseded(error)
            return None

    def _superseded(self, error: Superseded) -> None:
        """With several instances another one may have been active while the link was lost: this
        one waits for its turn."""
        if not self.options.standby:
            raise error
        log.warning("another tracker is active", error=error.message)
        self._end_tenure()

    def _new_driver(self) -> SchedulerDriver:
        options = self.options
        framework = FrameworkInfo(
            id=FrameworkID(value=self._framework_id),
            name=options.name,
            roles=[options.role],
            failover_timeout=options.failover_s,
            checkpoint=True,
            capabilities=[FrameworkInfo.Capability(type=FrameworkInfo.Capability.PARTITION_AWARE)],
        )
        if options.user:
            framework.user = options.user
        self._known = False
        return SchedulerDriver(
            self._scheduler,
            framework,
            options.master,
            implicit_acknowledgements=False,
            standby=options.standby,
            connect_timeout_s=options.connect_s,
        )

    def _drive(self) -> None:
        """On the driver's thread: until it ends, however it does."""
        while True:
            assert self._driver is not None
            try:
                self._driver.run()
                return
            except Refused as error:
                if self._known or self._stopping or _REMOVED not in error.message:
                    self._failed(error)
                    return
                log.warning("framework of before was removed", framework=self._framework_id)
                self.store.forget_framework()
                self._framework_id = self.store.framework_id()
                self._driver = self._new_driver()
            except BaseException as error:
                self._failed(error)
                return

    def _failed(self, error: BaseException) -> None:
        """The engine or the driver has ended; the other one is to, with the first cause."""
        with self._lock:
            first, self._failure = self._failure is None, self._failure or error
        if not first or self._stopping:
            return
        log.error("tracker has ended", error=_text(error))
        self._engine.stop()
        self._engine.join()
        self._end_tenure()
        if self._driver is not None:
            self._driver.abort()
        self._ended.set()

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure


def _text(error: BaseException) -> str:
    return error.message if isinstance(error, MesosPyError) else repr(error)


def history(state: str, limit: int = 100) -> Sequence[Summary]:
    """Of the newest jobs that have ended, from a state, whether a tracker runs or not.  Raises
    InvalidValue."""
    return Store(state).summaries(limit)


__all__ = ["Tracker", "history"]
