"""The bar at the bottom of a terminal while several instances run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mesos_py.cli.running.job import Job


class Bar:
    """On stderr.  `show` writes output above it."""

    def __init__(self, job: Job) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
        )

        self._job = job
        self._progress = Progress(
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("{task.description}", markup=False),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._progress.add_task("", total=len(job.instances))
        self.update()

    def start(self) -> None:
        self._progress.start()

    def stop(self) -> None:
        self._progress.stop()

    def update(self) -> None:
        counts = self._job.counts()
        words = [f"{count} {name}" for name, count in counts.items() if count and name != "ended"]
        self._progress.update(self._task, completed=counts["ended"], description=", ".join(words))

    def show(self, data: bytes) -> None:
        text = data.decode(errors="replace")
        self._progress.console.out(text, end="", highlight=False)
