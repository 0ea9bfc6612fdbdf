"""Progress of stages on a terminal."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from frameworks.rdd.core.views import StageView
from mesos_py import logs
from mesos_py.errors import MesosPyError

log = logs.get("rdd.bars")

PERIOD_S: Final = 0.2
# What is over sooner needs no bar.
FIRST_S: Final = 0.5


class Bars:
    """A line for each stage that runs, below what the program writes; gone when none does.

    console: for tests; otherwise standard error.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._progress: Progress | None = None
        self._lines: dict[int, TaskID] = {}
        # Of all above; and how many jobs have ended: what was asked before is no news.
        self._lock = threading.Lock()
        self._ended = 0

    def start(self, stages: Callable[[], Sequence[StageView]]) -> None:
        """stages: those that run, now; raises MesosPyError when there will be none any more."""

        def run() -> None:
            pause_s = FIRST_S
            try:
                while not self._stopping.wait(pause_s):
                    ended = self._ended
                    found = stages()
                    with self._lock:
                        if ended == self._ended:
                            self.show(found)
                    pause_s = PERIOD_S if self._lines else FIRST_S
            except MesosPyError:
                pass
            except Exception:
                # A terminal that has gone is no reason for a job to fail.
                log.warning("progress cannot be shown", exc_info=True)
            finally:
                with self._lock:
                    self.show(())

        self._thread = threading.Thread(target=run, name="rdd progress", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """May be called twice."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def job_ended(self) -> None:
        """Before its caller hears of it, and goes on writing where the bars are.  Others that run
        are shown again in a moment."""
        with self._lock:
            self._ended += 1
            self.show(())

    def show(self, stages: Sequence[StageView]) -> None:
        """These and no others."""
        progress = self._progress
        if progress is None:
            if not stages:
                return
            progress = self._progress = self._begin()
        for gone in self._lines.keys() - {stage.id for stage in stages}:
            progress.remove_task(self._lines.pop(gone))
        for stage in stages:
            if stage.id not in self._lines:
                line = progress.add_task(_title(stage), total=stage.total, running=0, failed="")
                self._lines[stage.id] = line
            progress.update(
                self._lines[stage.id],
                completed=stage.done,
                total=stage.total,
                running=stage.running,
                failed=f"{stage.failed} failed" if stage.failed else "",
            )
        progress.refresh()
        if not stages:
            progress.stop()
            self._progress = None

    def _begin(self) -> Progress:
        progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=30),
            TextColumn("{task.completed}/{task.total} (+{task.fields[running]})"),
            TextColumn("{task.fields[failed]}", style="red"),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
            auto_refresh=False,
            # What the program prints goes above the bars, unless it goes elsewhere anyway.
            redirect_stdout=sys.stdout is not None and sys.stdout.isatty(),
            redirect_stderr=sys.stderr is not None and sys.stderr.isatty(),
        )
        progress.start()
        return progress


def _title(stage: StageView) -> str:
    name = f" {stage.name}" if stage.name else ""
    return f"stage {stage.id}{name}"


__all__ = ["Bars"]
