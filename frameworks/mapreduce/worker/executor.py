"""The executor: between the agent and the tracker on one side, attempts on the other."""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

import mesos_py
from frameworks.mapreduce import names, records
from frameworks.mapreduce.messages import Forget, Forgotten, Maps, Progress, Running
from frameworks.mapreduce.work import Failure, Work
from frameworks.mapreduce.worker.host import Event, Finished, Host, Outcome, Reported
from frameworks.mapreduce.worker.place import Place
from mesos_py import Executor, ExecutorDriver, TaskInfo, logs
from mesos_py.errors import InvalidValue, MesosPyError, Unavailable, shortened

log = logs.get("mapreduce.worker")

PROGRESS_EVERY_S: Final = 1.0
# A status is a message of the agent's, and is kept: what a failure tells is cut to fit.
MAX_DATA: Final = 1 << 20
MAX_MESSAGE: Final = 2000


class Worker(Executor):
    """Callbacks of the driver are passed on to one thread that has the host, and everything else
    that changes."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._tasks: dict[str, TaskInfo] = {}
        self._progress: dict[str, Running] = {}
        self._forgetting: set[str] = set()
        self._stopping = False
        # Why it cannot go on; "" if it can.
        self.failed = ""
        self._host = Host(place)
        self._driver: ExecutorDriver | None = None
        self._thread = threading.Thread(target=self._serve, name="attempts")

    # ---- Callbacks of the driver -------------------------------------------------------------

    def run(self, driver: ExecutorDriver) -> None:
        """Until the driver ends, however it does."""
        self._driver = driver
        self._thread.start()
        try:
            driver.run()
        finally:
            self._call(self._stop)
            self._thread.join()

    def launch_task(self, driver: ExecutorDriver, task: TaskInfo) -> None:
        self._call(lambda: self._launch(task))

    def kill_task(self, driver: ExecutorDriver, task_id: str, grace_s: float | None) -> None:
        self._call(lambda: self._host.kill(task_id))

    def framework_message(self, driver: ExecutorDriver, data: bytes) -> None:
        try:
            message = records.to_worker(data)
        except InvalidValue as error:
            log.warning("message of the tracker not understood", error=error.message)
            return
        if isinstance(message, Maps):
            self._call(lambda: self._host.tell(message.attempt, message))
        else:
            self._call(lambda: self._forget(message))

    def shutdown(self, driver: ExecutorDriver) -> None:
        self._call(self._stop)
        self._thread.join()

    # ---- On the thread of the host -----------------------------------------------------------

    def _call(self, call: Callable[[], None]) -> None:
        self._calls.put(call)
        self._host.wake()

    def _serve(self) -> None:
        try:
            while not self._stopping:
                for event in self._host.poll(PROGRESS_EVERY_S):
                    self._take(event)
                while not self._calls.empty():
                    self._calls.get()()
                self._say_progress()
        except Unavailable as error:
            log.error("worker cannot go on", error=error.message)
            self.failed = error.message
        except Exception as error:
            log.exception("worker cannot go on")
            self.failed = repr(error)
        finally:
            self._end_all()
        if self.failed and self._driver is not None:
            # A worker without attempts is of no use; what they have come to is said first.
            self._driver.stop()

    def _launch(self, task: TaskInfo) -> None:
        self._tasks[task.task_id.value] = task
        try:
            work = records.decode(Work, task.data, "work")
            self._host.start(work)
        except InvalidValue as error:
            self._send(task, mesos_py.TASK_FAILED, Failure(blame="job", message=error.message))
            return
        self._status(task, mesos_py.TASK_RUNNING)

    def _take(self, event: Event) -> None:
        if isinstance(event, Reported):
            self._progress[event.attempt] = event.running
        elif isinstance(event, Finished):
            self._finished(event)
        else:
            self._message(event)

    def _finished(self, event: Finished) -> None:
        self._progress.pop(event.attempt, None)
        task = self._tasks.get(event.attempt)
        if task is None:
            return
        outcome = event.outcome
        if outcome is None:
            del self._tasks[event.attempt]
            self._status(task, mesos_py.TASK_KILLED)
        elif isinstance(outcome, Failure):
            self._send(task, mesos_py.TASK_FAILED, outcome)
        else:
            self._send(task, mesos_py.TASK_FINISHED, outcome)
        for job_id in [one for one in self._forgetting if not self._attempts_of(one)]:
            self._forgetting.discard(job_id)
            self._forgotten(job_id)

    def _send(self, task: TaskInfo, state: mesos_py.TaskState.ValueType, outcome: Outcome) -> None:
        self._tasks.pop(task.task_id.value, None)
        data = records.encode(outcome)
        if len(data) > MAX_DATA:
            outcome = too_large(outcome, len(data))
            state = mesos_py.TASK_FAILED
            data = records.encode(outcome)
        text = outcome.message if isinstance(outcome, Failure) else ""
        self._status(task, state, data=data, message=shortened(text, MAX_MESSAGE))

    def _status(
        self,
        task: TaskInfo,
        state: mesos_py.TaskState.ValueType,
        *,
        data: bytes = b"",
        message: str = "",
    ) -> None:
        assert self._driver is not None
        try:
            self._driver.send_status(mesos_py.task_status(task, state, data=data, message=message))
        except MesosPyError as error:
            log.warning("status not sent", task=task.task_id.value, error=error.message)

    def _say_progress(self) -> None:
        if self._progress:
            said, self._progress = self._progress, {}
            self._message(Progress(attempts=said))

    def _message(self, message: object) -> None:
        assert self._driver is not None
        try:
            self._driver.send_framework_message(records.encode(message))  # type: ignore[arg-type]
        except MesosPyError as error:
            log.warning("message not sent", error=error.message)

    # ---- Ends --------------------------------------------------------------------------------

    def _attempts_of(self, job_id: str) -> list[str]:
        parsed = {attempt: names.parse_attempt(attempt) for attempt in self._host.running}
        return [attempt for attempt, name in parsed.items() if name and name.job_id == job_id]

    def _forget(self, message: Forget) -> None:
        attempts = self._attempts_of(message.job_id)
        for attempt in attempts:
            self._host.kill(attempt)
        if attempts:
            self._forgetting.add(message.job_id)
        else:
            self._forgotten(message.job_id)

    def _forgotten(self, job_id: str) -> None:
        try:
            self._host.forget(job_id)
        except InvalidValue as error:
            log.warning("cannot forget", error=error.message)
            return
        self._message(Forgotten(job_id))

    def _stop(self) -> None:
        self._stopping = True

    def _end_all(self) -> None:
        self._host.close()
        why = f"its worker has ended: {self.failed}"
        for task in list(self._tasks.values()):
            if self.failed:
                self._send(task, mesos_py.TASK_FAILED, Failure(blame="place", message=why))
            else:
                self._status(task, mesos_py.TASK_KILLED, message="the worker was shut down")
        self._tasks.clear()


def too_large(outcome: Outcome, size: int) -> Failure:
    """What is said instead of an outcome that does not fit into a status."""
    if isinstance(outcome, Failure):
        return Failure(
            blame=outcome.blame,
            message=outcome.message,
            details=shortened(outcome.details, MAX_DATA // 8),
            where=shortened(outcome.where, 1000),
            log=outcome.log,
            lost=outcome.lost[:1000],
        )
    return Failure(
        blame="job",
        message=f"the record of the attempt's output has {size} bytes, and no more than "
        f"{MAX_DATA} can be reported: the job has too many reduces or counters",
    )


def main() -> None:
    """`python -m frameworks.mapreduce.worker`: what the tracker gives as the executor's command."""
    logs.setup()
    root = Path(os.environ.get("MESOS_SANDBOX") or Path.cwd()).absolute()
    place = Place(root, os.environ.get("MESOS_PY_FILES_URL", "").rstrip("/"))
    worker = Worker(place)
    worker.run(ExecutorDriver(worker))
    if worker.failed:
        sys.exit(1)


__all__ = ["Worker", "main", "too_large"]
