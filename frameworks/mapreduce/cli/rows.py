"""Jobs and tasks as rows of tables, and as JSON."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from frameworks.mapreduce import report
from frameworks.mapreduce.core.views import AttemptView, JobView, TaskView
from mesos_py.cli.output import Column, Row, age

JOB_COLUMNS: Final = (
    Column("JOB", lambda row: str(row["job_id"])),
    Column("NAME", lambda row: str(row["name"]), loose=True),
    Column("USER", lambda row: str(row["user"])),
    Column("STATE", lambda row: str(row["state"])),
    Column("MAPS", lambda row: str(row["map_words"]), right=True),
    Column("REDUCES", lambda row: str(row["reduce_words"]), right=True),
    Column("AGE", lambda row: str(row["age"]), right=True),
    Column("WHY", lambda row: str(row["note"]), loose=True),
)

TASK_COLUMNS: Final = (
    Column("TASK", lambda row: str(row["task"])),
    Column("STATE", lambda row: str(row["state"])),
    Column("HOST", lambda row: str(row["host"])),
    Column("LOCALITY", lambda row: str(row["locality"])),
    Column("ATTEMPTS", lambda row: str(row["attempts"]), right=True),
    Column("DONE", lambda row: str(row["done"]), right=True),
    Column("TIME", lambda row: str(row["time"]), right=True),
    Column("NOTE", lambda row: str(row["note"]), loose=True),
)


def job_row(view: JobView, now_s: float) -> Row:
    """One job."""
    why = view.why if view.state in ("failed", "killed", "stopping") else view.waiting_for
    if view.trouble is not None:
        why = f"output: {report.trouble_words(view.trouble, now_s)}"
    return {
        **plain(view),
        "map_words": f"{view.maps.done}/{view.maps.total}",
        "reduce_words": f"{view.reduces.done}/{view.reduces.total}",
        "age": age(view.submitted_s, now_s),
        "note": why.partition("\n")[0],
    }


def job_json(view: JobView) -> Row:
    """One job, for programs."""
    return plain(view)


def plain(record: msgspec.Struct) -> dict[str, Any]:
    """As JSON has it."""
    found: dict[str, Any] = msgspec.to_builtins(record)
    return found


def task_row(task: TaskView, now_s: float) -> Row:
    """One task, by its last attempt or the one that has done it."""
    shown = best(task.attempts)
    return {
        "task": f"{task.kind} {task.number}",
        "state": task.state,
        "host": shown.hostname if shown else "",
        "locality": shown.locality if shown else "",
        "attempts": len(task.attempts),
        "done": f"{report.percent(1.0 if task.state == 'done' else _progress(shown))}%",
        "time": _time(shown, now_s),
        "note": note(task),
    }


def best(attempts: Sequence[AttemptView]) -> AttemptView | None:
    """The one that counts: that has done it, or is at it, or was the last."""
    for states in (("done", "committing"), ("running", "launched")):
        found = [each for each in attempts if each.state in states]
        if found:
            return max(found, key=lambda each: each.progress)
    return attempts[-1] if attempts else None


def note(task: TaskView) -> str:
    """What is to be said of it, on one line."""
    shown = best(task.attempts)
    failed = [each for each in task.attempts if each.failure is not None]
    if failed and failed[-1].failure is not None and task.state != "done":
        return report.one_line(failed[-1].failure.message)
    if shown is None:
        return ""
    return report.one_line(shown.status or (shown.why if task.state != "done" else ""))


def _progress(attempt: AttemptView | None) -> float:
    return attempt.progress if attempt is not None else 0.0


def _time(attempt: AttemptView | None, now_s: float) -> str:
    if attempt is None or not attempt.started_s:
        return ""
    return f"{max(0.0, (attempt.ended_s or now_s) - attempt.started_s):.1f}s"


def when(at_s: float) -> str:
    """A time as people read it, here."""
    if not at_s:
        return ""
    return f"{datetime.datetime.fromtimestamp(at_s).astimezone():%Y-%m-%d %H:%M:%S}"
