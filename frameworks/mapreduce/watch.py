"""Stay with a job until it ends, show how far it is, and end it when asked to."""

from __future__ import annotations

import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Final, Protocol

from frameworks.mapreduce.client.base import has_ended
from frameworks.mapreduce.core.views import JobView, TaskView
from mesos_py.errors import MesosPyError, Unavailable

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LOOK_S: Final = (0.05, 0.5)
# So long the end of a job that is to be killed is waited for.
_KILL_S: Final = 30.0


class Watched(Protocol):
    """What is asked of a job (`api.Job`)."""

    @property
    def job_id(self) -> str: ...

    def status(self) -> JobView: ...

    def tasks(self) -> Sequence[TaskView]: ...

    def kill(self, why: str) -> None: ...


class Display(ABC):
    """Shows a job to someone.  Called from one thread."""

    @abstractmethod
    def begin(self, job_id: str) -> None:
        """It was accepted."""

    @abstractmethod
    def update(self, view: JobView, tasks: Sequence[TaskView]) -> None:
        """How it is.  `tasks` are given when attempts have failed since the last time, else ()."""

    @abstractmethod
    def note(self, text: str) -> None:
        """Something to know."""

    @abstractmethod
    def end(self, view: JobView, tasks: Sequence[TaskView]) -> None:
        """It has ended."""


class Interrupts:
    """Signals that ask for the end, counted."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self._told = threading.Event()

    def asked(self, number: int, frame: FrameType | None) -> None:
        """The handler."""
        self.numbers.append(number)
        self._told.set()

    def wait(self, seconds: float) -> None:
        """Shorter, if a signal comes."""
        self._told.wait(seconds)
        self._told.clear()


@contextmanager
def interrupts() -> Iterator[Interrupts]:
    """Inside, SIGINT, SIGTERM and SIGHUP are only counted."""
    found = Interrupts()
    before: dict[int, Any] = {}
    try:
        for number in map(int, SIGNALS):
            # Who was started to ignore one (nohup) goes on doing so.
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, found.asked)
        yield found
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def watch(job: Watched, display: Display, asked: Interrupts) -> JobView | None:
    """Until it has ended, or a second signal comes: then None.

    The first signal kills the job, and says so.  That nobody reads what is shown any more (a
    terminal that was closed) is no matter for the job.
    """
    watcher = _Watcher(job, _Unread(display))
    pause = _LOOK_S[0]
    while True:
        view = watcher.look()
        if view is not None and has_ended(view):
            watcher.end(view)
            return view
        if asked.numbers and not watcher.end_is_asked(asked.numbers):
            return None
        asked.wait(pause)
        pause = min(pause * 1.3, _LOOK_S[1])


class _Unread(Display):
    """Shows as another one does, and does not fail when that cannot write."""

    def __init__(self, display: Display) -> None:
        self._display = display

    def begin(self, job_id: str) -> None:
        with suppress(OSError):
            self._display.begin(job_id)

    def update(self, view: JobView, tasks: Sequence[TaskView]) -> None:
        with suppress(OSError):
            self._display.update(view, tasks)

    def note(self, text: str) -> None:
        with suppress(OSError):
            self._display.note(text)

    def end(self, view: JobView, tasks: Sequence[TaskView]) -> None:
        with suppress(OSError):
            self._display.end(view, tasks)


class _Watcher:
    def __init__(self, job: Watched, display: Display) -> None:
        self._job = job
        self._display = display
        display.begin(job.job_id)
        self._failures = 0
        self._away = False
        self._killed_at: float | None = None
        self._kill_sent = False

    def look(self) -> JobView | None:
        """None if the tracker does not answer now."""
        try:
            view = self._job.status()
            failures = view.maps.attempts_failed + view.reduces.attempts_failed
            tasks = self._job.tasks() if failures > self._failures else ()
        except Unavailable as error:
            if not self._away:
                self._display.note(f"the tracker does not answer, asking on: {error.message}")
            self._away = True
            return None
        if self._away:
            self._display.note("the tracker answers again")
        self._away = False
        self._failures = failures
        self._display.update(view, tasks)
        return view

    def end(self, view: JobView) -> None:
        self._display.end(view, self._job.tasks())

    def end_is_asked(self, numbers: Sequence[int]) -> bool:
        """False: do not wait any longer."""
        name = signal.Signals(numbers[0]).name
        if self._killed_at is None:
            self._killed_at = time.monotonic()
            self._display.note(f"{name}: killing {self._job.job_id}; once more: do not wait")
        elif len(numbers) > 1:
            self._display.note(f"not waiting for the end of {self._job.job_id}")
            return False
        if not self._kill_sent:
            try:
                self._job.kill(f"its user ended it ({name})")
                self._kill_sent = True
            except MesosPyError as error:
                self._display.note(f"cannot kill it: {error.message}")
        if time.monotonic() - self._killed_at > _KILL_S:
            self._display.note(f"{self._job.job_id} has not ended within {_KILL_S:.0f} s")
            return False
        return True
