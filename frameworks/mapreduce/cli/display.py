"""A job that is watched, on stderr: bars on a terminal, else lines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from frameworks.mapreduce import report
from frameworks.mapreduce.core.views import JobView, PhaseView, TaskView
from frameworks.mapreduce.watch import Display

if TYPE_CHECKING:
    from rich.progress import TaskID

_LINE_EVERY_S: Final = 5.0
_TROUBLE_EVERY_S: Final = 60.0
_NOTE_STYLE: Final = "mapreduce: "


def chosen(*, quiet: bool, now_s: Callable[[], float]) -> Display:
    """What suits stderr."""
    if quiet:
        return Quiet()
    return Bars(now_s) if sys.stderr.isatty() else Lines(now_s)


class Quiet(Display):
    """Says only what is wrong."""

    def begin(self, job_id: str) -> None:
        """Nothing."""

    def update(self, view: JobView, tasks: Sequence[TaskView]) -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        click.echo(f"{_NOTE_STYLE}{text}", err=True)

    def end(self, view: JobView, tasks: Sequence[TaskView]) -> None:
        if view.state == "failed":
            _show(report.failure_lines(view, tasks))
        elif view.state == "killed":
            _show([f"{view.job_id} was killed: {view.why}"])


class Lines(Quiet):
    """A line whenever something has changed, but not all the time."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._said = ""
        self._said_at = 0.0
        self._waiting_for = ""
        self._failed: set[str] = set()
        self._trouble = _TroubleNotes(self.note, now_s)

    def begin(self, job_id: str) -> None:
        self.note(f"{job_id} is accepted")

    def update(self, view: JobView, tasks: Sequence[TaskView]) -> None:
        for text in new_failures(tasks, self._failed):
            self.note(text)
        self._trouble.update(view)
        # That others have the room now is no news.
        if view.waiting_for not in ("", "room", self._waiting_for):
            self.note(f"waiting: {view.waiting_for}")
        self._waiting_for = view.waiting_for
        words = progress_words(view)
        if words != self._said and self._now_s() - self._said_at >= _LINE_EVERY_S:
            self._said, self._said_at = words, self._now_s()
            self.note(words)

    def end(self, view: JobView, tasks: Sequence[TaskView]) -> None:
        for text in new_failures(tasks, self._failed):
            self.note(text)
        super().end(view, tasks)
        _show(end_lines(view))


class _TroubleNotes:
    """Says what goes wrong with the output: once, and again at times while it lasts."""

    def __init__(self, note: Callable[[str], None], now_s: Callable[[], float]) -> None:
        self._note = note
        self._now_s = now_s
        self._said = ("", "")
        self._said_at = 0.0

    def update(self, view: JobView) -> None:
        trouble = view.trouble
        if trouble is None:
            return
        now_s = self._now_s()
        news = (trouble.what, trouble.why)
        if news != self._said or now_s - self._said_at >= _TROUBLE_EVERY_S:
            self._said, self._said_at = news, now_s
            self._note(f"output {view.output}: {report.trouble_words(trouble, now_s)}")


class Bars(Quiet):
    """A bar for maps and one for reduces; what is said stands above them."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._progress = Progress(
            TextColumn("{task.description:<6}"),
            BarColumn(bar_width=30),
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("{task.fields[words]}", markup=False),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._now_s = now_s
        self._rates: dict[str, Rate] = {}
        self._bars: dict[str, TaskID] = {}
        self._failed: set[str] = set()
        self._trouble = _TroubleNotes(self.note, now_s)

    def begin(self, job_id: str) -> None:
        self._progress.start()

    def update(self, view: JobView, tasks: Sequence[TaskView]) -> None:
        for text in new_failures(tasks, self._failed):
            self.note(text)
        self._trouble.update(view)
        for name, phase in (("map", view.maps), ("reduce", view.reduces)):
            if phase.total:
                rate = self._rates.setdefault(name, Rate(_RECORDS[name]))
                words = bar_words(view, phase, rate.told(view, self._now_s()))
                self._bar(name).update(completed=phase.progress * 100, words=words)

    def _bar(self, name: str) -> _Bar:
        if name not in self._bars:
            self._bars[name] = self._progress.add_task(name, total=100, words="")
        return _Bar(self._progress, self._bars[name])

    def note(self, text: str) -> None:
        self._progress.console.print(f"{_NOTE_STYLE}{text}", markup=False, highlight=False)

    def end(self, view: JobView, tasks: Sequence[TaskView]) -> None:
        self._progress.stop()
        super().end(view, tasks)
        _show(end_lines(view))


class _Bar:
    def __init__(self, progress: Any, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    def update(self, **what: Any) -> None:
        self._progress.update(self._task, **what)


def new_failures(tasks: Sequence[TaskView], seen: set[str]) -> list[str]:
    """A line for each attempt that has failed and is not in `seen`, where it is put."""
    lines = []
    for _, attempt in report.failed_attempts(tasks):
        if attempt.attempt not in seen and attempt.failure is not None:
            seen.add(attempt.attempt)
            place = f" on {attempt.hostname}" if attempt.hostname else ""
            lines.append(f"{attempt.attempt}{place} has failed: {attempt.failure.message}")
    return lines


def progress_words(view: JobView) -> str:
    """Both phases in one line."""
    parts = []
    for name, phase in (("map", view.maps), ("reduce", view.reduces)):
        if phase.total:
            done = f"{report.percent(phase.progress)}% ({report.phase_words(phase)})"
            parts.append(f"{name} {done}")
    return "; ".join(parts) or "planning"


class Rate:
    """Records per second by a counter, since it was 0 last, while it rises."""

    def __init__(self, counter: str) -> None:
        self._counter = counter
        self._begun_s = 0.0

    def told(self, view: JobView, now_s: float) -> str:
        """As "1,200 records/s"; "" if that is no question."""
        count = view.counters.get(_TASKS, {}).get(self._counter, 0)
        if not count:
            self._begun_s = now_s
            return ""
        seconds = now_s - self._begun_s
        return f"{count / seconds:,.0f} records/s" if seconds >= 0.5 else ""


def bar_words(view: JobView, phase: PhaseView, rate: str = "") -> str:
    """Beside a bar: counts, rate and the time that is left."""
    parts = [report.phase_words(phase)]
    if rate and phase.running:
        parts.append(rate)
    if phase.eta_s is not None and phase.done < phase.total:
        parts.append(f"{_duration(phase.eta_s)} left")
    if view.waiting_for and not phase.running and phase.done < phase.total:
        parts.append(view.waiting_for)
    return ", ".join(parts)


def end_lines(view: JobView) -> list[str]:
    """How it has ended, and its counters."""
    took = max(0.0, view.ended_s - view.submitted_s)
    lines = [f"{_NOTE_STYLE}{view.job_id} {_ENDINGS[view.state]} after {_duration(took)}"]
    rate = _rate(view, took)
    if rate:
        lines[0] += f" ({rate})"
    if view.state == "succeeded":
        lines[0] += f": {view.output}"
    counters = report.counter_lines(view.counters)
    return [*lines, *(["Counters:", *counters] if counters else [])]


_ENDINGS: Final = {"succeeded": "succeeded", "failed": "failed", "killed": "was killed"}
_RECORDS: Final = {"map": "MAP_INPUT_RECORDS", "reduce": "REDUCE_INPUT_RECORDS"}
_TASKS: Final = "org.apache.hadoop.mapreduce.TaskCounter"


def _rate(view: JobView, seconds: float) -> str:
    records = view.counters.get(_TASKS, {}).get("MAP_INPUT_RECORDS", 0)
    return f"{records / seconds:,.0f} records/s" if records and seconds >= 0.1 else ""


def _duration(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _show(lines: Sequence[str]) -> None:
    for line in lines:
        click.echo(line, err=True)
