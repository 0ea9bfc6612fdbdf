"""What the workload's tasks leave behind: a line when a run begins, and one at its end.

    short7.1 6e8c… start 8123.45 4711
    short7.1 6e8c… end 8124.46 4711

Each run has an id of its own, so that a second run of one task shows.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_MARK: Final = 'mark() {{ read t _ </proc/uptime; echo "{task} $run $1 $t $$" >>{file}; }}'
_BEGIN: Final = "read run </proc/sys/kernel/random/uuid; mark start"


@dataclass
class Run:
    """One run of a task; `ended` is None when nothing was heard of its end."""

    task_id: str
    run_id: str
    pid: int
    begun: float
    ended: float | None = None


def short_command(task_id: str, marks: Path, seconds: float) -> str:
    return _command(task_id, marks, f"sleep {seconds:g}")


def long_command(task_id: str, marks: Path, release: Path) -> str:
    """Runs until the file `release` is there."""
    return _command(
        task_id, marks, f"while [ ! -e {shlex.quote(str(release))} ]; do sleep 0.5; done"
    )


def _command(task_id: str, marks: Path, work: str) -> str:
    mark = _MARK.format(task=task_id, file=shlex.quote(str(marks)))
    return f"{mark}; {_BEGIN}; {work}; mark end"


def runs(lines: Iterable[str]) -> list[Run]:
    """All runs that left a mark, in the order of their beginning."""
    found: dict[str, Run] = {}
    for line in lines:
        task_id, run_id, what, moment, pid = line.split()
        if what == "start":
            found[run_id] = Run(task_id, run_id, int(pid), float(moment))
        else:
            found[run_id].ended = float(moment)
    return list(found.values())


def read(path: Path) -> list[Run]:
    return runs(path.read_text().splitlines()) if path.exists() else []
