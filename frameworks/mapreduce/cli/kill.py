"""`mesos-py mapreduce kill`."""

from __future__ import annotations

import getpass

import click

from frameworks.mapreduce.cli.options import tracker_of, tracker_option


@click.command(short_help="End a job.")
@tracker_option
@click.argument("jobs", nargs=-1, required=True, metavar="JOB...")
def command(tracker: str | None, jobs: tuple[str, ...]) -> None:
    """End jobs: their tasks are killed, and what they have written is removed.

    A job that has ended already stays as it is.
    """
    from frameworks.mapreduce.client import connect

    with connect(tracker_of(tracker)) as client:
        for job in jobs:
            client.kill(job, f"killed by {getpass.getuser()}")
            click.echo(job)
