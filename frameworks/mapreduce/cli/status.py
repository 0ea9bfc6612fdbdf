"""`mesos-py mapreduce status`."""

from __future__ import annotations

import time
from collections.abc import Sequence

import click

from frameworks.mapreduce.cli.options import json_option, tracker_of, tracker_option
from frameworks.mapreduce.core.views import JobView, TaskView


@click.command(short_help="Show a job and its tasks.")
@tracker_option
@click.option("--all", "every", is_flag=True, help="All its tasks, not only the first 100 of note.")
@json_option
@click.argument("job")
def command(tracker: str | None, every: bool, as_json: bool, job: str) -> int:
    """Show how JOB is: its phases, why it failed, and for each task the host, how near its
    input is, the number of attempts and the time.

    Without --all those that run, wait or have failed come first.  The exit code is 0 unless
    the job has failed or was killed.
    """
    from frameworks.mapreduce.cli import rows
    from frameworks.mapreduce.client import connect
    from mesos_py.cli.output import show_json

    with connect(tracker_of(tracker)) as client:
        view = client.view(job)
        tasks = client.tasks(job)
    if as_json:
        show_json([{**rows.job_json(view), "tasks": [rows.plain(task) for task in tasks]}])
    else:
        show_job(view, tasks, time.time(), None if every else 100)
    return 1 if view.state in ("failed", "killed") else 0


def show_job(
    view: JobView, tasks: Sequence[TaskView], now_s: float, limit: int | None = None
) -> None:
    """For people, on stdout."""
    from frameworks.mapreduce import report
    from frameworks.mapreduce.cli import rows
    from frameworks.mapreduce.cli.display import progress_words
    from mesos_py.cli.output import show

    if view.state == "failed":
        for line in report.failure_lines(view, tasks):
            click.echo(line)
        click.echo("")
    click.echo(f"{view.job_id}  {view.name}  ({view.user}, priority {view.priority})")
    facts = [
        ("state", view.state + (f": {view.why}" if view.why and view.state != "failed" else "")),
        ("progress", progress_words(view)),
        ("waiting", view.waiting_for),
        ("trouble", report.trouble_words(view.trouble, now_s) if view.trouble else ""),
        ("excluded", ", ".join(view.excluded)),
        ("submitted", rows.when(view.submitted_s)),
        ("ended", rows.when(view.ended_s)),
        ("locality", locality_words(view)),
        ("output", view.output),
    ]
    for name, text in facts:
        if text:
            click.echo(f"  {name + ':':<11}{text}")
    for line in report.counter_lines(view.counters):
        click.echo(line)
    if tasks:
        click.echo("")
    shown = list(tasks) if limit is None else of_note(tasks)[:limit]
    show([rows.task_row(task, now_s) for task in shown], rows.TASK_COLUMNS, as_json=False, empty="")
    if len(shown) < len(tasks):
        click.echo(f"({len(tasks) - len(shown)} more tasks: --all shows them)")


def of_note(tasks: Sequence[TaskView]) -> list[TaskView]:
    """What failed, runs or waits before what is done; else in their order."""
    order = {"failed": 0, "running": 1, "committing": 1, "waiting": 2, "done": 3}
    return sorted(tasks, key=lambda task: order[task.state])


def locality_words(view: JobView) -> str:
    """How many maps had their input at hand."""
    maps = view.maps
    known = maps.on_host + maps.on_rack + maps.elsewhere
    if not known:
        return ""
    return (
        f"{100 * maps.on_host // known}% of {known} attempts on a host that has the input, "
        f"{maps.on_rack} on its rack, {maps.elsewhere} elsewhere"
    )
