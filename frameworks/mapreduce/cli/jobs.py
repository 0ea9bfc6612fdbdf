"""`mesos-py mapreduce jobs`."""

from __future__ import annotations

import time

import click

from frameworks.mapreduce.cli.options import json_option, tracker_of, tracker_option


@click.command(short_help="List jobs of a tracker.")
@tracker_option
@click.option("--all", "ended", is_flag=True, help="Those that have ended, too.")
@json_option
def command(tracker: str | None, ended: bool, as_json: bool) -> None:
    """List the jobs of a tracker, in the order of their submission."""
    from frameworks.mapreduce.cli import rows
    from frameworks.mapreduce.client import connect
    from frameworks.mapreduce.client.base import has_ended
    from mesos_py.cli.output import show

    with connect(tracker_of(tracker)) as client:
        views = [view for view in client.views() if ended or not has_ended(view)]
    now_s = time.time()
    found = [rows.job_json(view) if as_json else rows.job_row(view, now_s) for view in views]
    show(found, rows.JOB_COLUMNS, as_json=as_json, empty="no jobs")
