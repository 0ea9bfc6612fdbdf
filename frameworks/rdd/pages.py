"""The status page as HTML: tables, without scripts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final, TypeVar

from frameworks.rdd.core.views import JobView, StageView, View

# How often browsers ask again.
REFRESH_S: Final = 3
# Of what has ended so much is shown, the latest first.
MOST_ENDED: Final = 50

_AnyView = TypeVar("_AnyView", JobView, StageView)

_STYLE: Final = """
body { font: 14px sans-serif; margin: 1.5em; color: #222; }
h1 { font-size: 1.3em; } h2 { font-size: 1.1em; margin-top: 1.5em; }
table { border-collapse: collapse; } td, th { padding: .2em .7em; text-align: left;
border-bottom: 1px solid #ddd; vertical-align: top; } td.n { text-align: right; }
.failed { color: #a00; } .bar { background: #eee; width: 12em; display: inline-block; }
.bar span { background: #6a9; display: block; height: .8em; } pre { margin: 0; }
"""


def html(title: str, view: View) -> str:
    """The whole page."""
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        f"<meta http-equiv='refresh' content='{REFRESH_S}'><title>{escape(title)}</title>",
        f"<style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>",
        f"<p>{len(view.executors)} executors with {sum(e.slots for e in view.executors)} slots; "
        f"{len(view.tasks)} tasks run, {view.waiting} wait. "
        "<a href='/api'>The same as JSON</a></p>",
        _jobs(view),
        _stages(view),
        _tasks(view),
        _kept(view),
        _executors(view),
        "</body></html>",
    ]
    return "\n".join(parts)


def _jobs(view: View) -> str:
    rows = [
        (
            str(job.number),
            _cell(job.description or f"{job.action} at {job.place}", job.group),
            _status(job.status, job.error),
            _took(view.now_s, job),
            ", ".join(map(str, job.stages)),
        )
        for job in _latest(view.jobs, "RUNNING")
    ]
    return _table("Jobs", ("job", "what", "status", "took", "stages"), rows)


def _stages(view: View) -> str:
    rows = [
        (
            str(stage.id) + (f" (try {stage.attempt + 1})" if stage.attempt else ""),
            escape(stage.name),
            _status(stage.status, ""),
            _bar(stage),
            _took(view.now_s, stage),
            ", ".join(f"shuffle {each}" for each in stage.reads),
            "" if stage.shuffle_id is None else f"shuffle {stage.shuffle_id}",
            "<pre>" + "\n".join(map(escape, stage.lineage)) + "</pre>",
        )
        for stage in _latest(view.stages, "ACTIVE", "WAITING")
    ]
    names = ("stage", "what", "status", "tasks", "took", "reads", "writes", "lineage")
    return _table("Stages", names, rows)


def _tasks(view: View) -> str:
    rows = [
        (
            str(task.task_id),
            str(task.stage),
            str(task.partition),
            str(task.attempt),
            escape(f"{task.executor} on {task.host}"),
            _seconds(task.ran_s) + (" (cancelled)" if task.cancelled else ""),
            str(task.elements),
        )
        for task in view.tasks
    ]
    names = ("task", "stage", "partition", "attempt", "executor", "runs for", "elements read")
    return _table("Tasks that run", names, rows)


def _kept(view: View) -> str:
    rows = [
        (
            f"RDD {each.rdd_id}",
            str(each.partitions),
            _bytes(each.memory_bytes),
            _bytes(each.disk_bytes),
        )
        for each in view.kept
    ]
    return _table("What is kept", ("data set", "partitions", "in memory", "on disk"), rows)


def _executors(view: View) -> str:
    rows = [
        (
            escape(each.id),
            escape(each.host),
            f"{each.running} of {each.slots}",
            _bytes(each.memory_bytes),
            _bytes(each.disk_bytes),
            "excluded" if each.excluded else "leaves" if each.leaving else "",
        )
        for each in view.executors
    ]
    names = ("executor", "host", "slots in use", "kept in memory", "on disk", "")
    return _table("Executors", names, rows)


# ---- Parts ---------------------------------------------------------------------------------


def _table(title: str, names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells are HTML."""
    body = [f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows]
    if not body:
        return ""
    head = "".join(f"<th>{name}</th>" for name in names)
    return f"<h2>{title}</h2><table><tr>{head}</tr>{''.join(body)}</table>"


def _latest(views: Sequence[_AnyView], *going: str) -> list[_AnyView]:
    """Those that go on, then those that have ended, the latest first."""
    found = [each for each in views if each.status in going]
    ended = [each for each in reversed(views) if each.status not in going]
    return found + ended[:MOST_ENDED]


def _status(status: str, error: str) -> str:
    shown = status.lower()
    if status == "FAILED":
        return f"<span class='failed'>{shown}</span> {escape(error)}"
    return shown


def _bar(stage: StageView) -> str:
    share = 100 * stage.done // stage.total if stage.total else 100
    failed = f" <span class='failed'>{stage.failed} failed</span>" if stage.failed else ""
    return (
        f"<span class='bar'><span style='width:{share}%'></span></span> "
        f"{stage.done}/{stage.total} (+{stage.running}){failed}"
    )


def _took(now_s: float, view: JobView | StageView) -> str:
    if view.began_s is None:
        return ""
    return _seconds((now_s if view.ended_s is None else view.ended_s) - view.began_s)


def _cell(text: str, group: str) -> str:
    return escape(text) + (f" <i>{escape(group)}</i>" if group else "")


def _seconds(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s"


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TB"


__all__ = ["html"]
