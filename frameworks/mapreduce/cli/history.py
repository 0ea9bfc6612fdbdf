"""`mesos-py mapreduce history`."""

from __future__ import annotations

import time

import click

from frameworks.mapreduce.cli.options import json_option


@click.command(short_help="List jobs that have ended, from a tracker's state.")
@click.option("--state", metavar="URL", required=True, help="The state of a tracker.")
@click.option(
    "-n", "count", type=click.IntRange(1), default=100, show_default=True, help="The N newest."
)
@json_option
@click.argument("job", required=False)
def command(state: str, count: int, as_json: bool, job: str | None) -> None:
    """List jobs that have ended, or show how JOB went and its tasks.

    Read from the --state itself: no tracker has to run.
    """
    from frameworks.mapreduce.cli import rows
    from frameworks.mapreduce.cli.status import show_job
    from frameworks.mapreduce.tracker.store import Store
    from mesos_py.cli.output import show, show_json

    store = Store(state)
    now_s = time.time()
    if job is None:
        views = [summary.view for summary in store.summaries(count)]
        found = [rows.job_json(view) if as_json else rows.job_row(view, now_s) for view in views]
        show(found, rows.JOB_COLUMNS, as_json=as_json, empty="no jobs have ended")
        return
    view, tasks = store.summary(job).view, store.tasks(job)
    if as_json:
        show_json([{**rows.job_json(view), "tasks": [rows.plain(task) for task in tasks]}])
    else:
        show_job(view, tasks, now_s, 100)
