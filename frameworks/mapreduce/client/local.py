"""Jobs in this process, without a cluster: `worker.local` on a thread."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from frameworks.mapreduce import submission
from frameworks.mapreduce.client.base import Client
from frameworks.mapreduce.client.book import Book
from frameworks.mapreduce.core.views import JobView, TaskView
from frameworks.mapreduce.job import JobSpec
from frameworks.mapreduce.worker.local import (
    AttemptEnded,
    LocalEvent,
    LocalOutcome,
    Moved,
    Planned,
    Started,
    run_local,
)
from mesos_py.errors import AlreadyExists, MesosPyError, NotFound


class _Stop(Exception):
    """Ends the job from inside."""


class LocalClient(Client):
    """Runs one job after the other, each in `parallel` processes."""

    def __init__(self, parallel: int) -> None:
        self._parallel = parallel
        self._runs: dict[str, _Run] = {}
        self._directory = Path(tempfile.mkdtemp(prefix="mesos-py-local-"))

    def staging(self, job_id: str) -> str:
        return f"file://{self._directory / job_id}"

    def submit(self, spec: JobSpec) -> None:
        if spec.job_id in self._runs:
            raise AlreadyExists(f"job {spec.job_id} is there already", job_id=spec.job_id)
        run = _Run(spec, self._parallel)
        run.start()
        self._runs[spec.job_id] = run

    def view(self, job_id: str) -> JobView:
        return self._run(job_id).view()

    def views(self) -> list[JobView]:
        return [run.view() for run in self._runs.values()]

    def tasks(self, job_id: str) -> Sequence[TaskView]:
        return self._run(job_id).tasks()

    def kill(self, job_id: str, why: str) -> None:
        self._run(job_id).kill(why)

    def close(self) -> None:
        for run in self._runs.values():
            run.kill("its program has ended")
            run.join()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _run(self, job_id: str) -> _Run:
        if job_id not in self._runs:
            raise NotFound("job", job_id)
        return self._runs[job_id]


class _Run:
    """One job on a thread of its own."""

    def __init__(self, spec: JobSpec, parallel: int) -> None:
        self._spec = spec
        self._parallel = parallel
        self._book = Book(spec)
        self._lock = threading.Lock()
        self._accepted = threading.Event()
        self._refused: BaseException | None = None
        self._why_stop = ""
        self._thread = threading.Thread(target=self._go, name=spec.job_id, daemon=True)

    def start(self) -> None:
        """Raises what is wrong with the job."""
        self._thread.start()
        self._accepted.wait()
        if self._refused is not None:
            self._thread.join()
            raise self._refused

    def view(self) -> JobView:
        with self._lock:
            return self._book.view()

    def tasks(self) -> list[TaskView]:
        with self._lock:
            return self._book.tasks()

    def kill(self, why: str) -> None:
        if not self._why_stop:
            self._why_stop = why

    def join(self) -> None:
        self._thread.join()

    def _go(self) -> None:
        try:
            self._ended(run_local(self._spec, self._parallel, self._told))
        except _Stop:
            self._finish_killed()
        except BaseException as error:
            self._broken(error)
        finally:
            submission.unship(self._spec)
            self._accepted.set()

    def _told(self, event: LocalEvent) -> None:
        now_s = time.time()
        with self._lock:
            match event:
                case Planned():
                    self._book.planned(event.maps, event.reduces)
                case Started():
                    self._book.started(event.attempt, now_s)
                case Moved():
                    self._book.moved(event.attempt, event.running)
                case AttemptEnded():
                    self._book.ended(event.attempt, event.outcome, now_s)
        self._accepted.set()
        if self._why_stop:
            raise _Stop

    def _ended(self, outcome: LocalOutcome) -> None:
        cause = None if outcome.failure is None else (outcome.attempt, outcome.failure)
        with self._lock:
            self._book.finished(
                "failed" if cause else "succeeded",
                time.time(),
                counters=outcome.counters,
                cause=cause,
            )

    def _finish_killed(self) -> None:
        with self._lock:
            self._book.finished("killed", time.time(), why=self._why_stop)

    def _broken(self, error: BaseException) -> None:
        if not self._accepted.is_set():
            self._refused = error
            return
        why = (
            error.message if isinstance(error, MesosPyError) else f"{type(error).__name__}: {error}"
        )
        with self._lock:
            self._book.finished("failed", time.time(), why=why)
