"""`mesos-py torque status`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from frameworks.torque.cli.options import state_dir_option
from mesos_py.cli.options import json_option


@click.command(short_help="Show its nodes, and what jobs wait for.")
@state_dir_option
@json_option
def command(state_dir: Path, as_json: bool) -> int:
    """Show the nodes that there are, how many jobs run and wait, and what they wait for.

    The exit code is 0 if all is well, 1 if no wrapper runs (the queue is served by the nodes
    that are there, and no others come) or the batch server does not answer.
    """
    from frameworks.torque import views
    from frameworks.torque.running import STATUS
    from mesos_py.cli.output import Column, show, show_json

    view = views.read(state_dir / STATUS)
    problem = view.problem
    if not view.is_served:
        problem = "no wrapper runs: nodes neither come nor go (mesos-py torque up)"
    if as_json:
        show_json([{**asdict(view), "problem": problem}])
        return 1 if problem else 0
    if problem:
        click.echo(problem)
    click.echo(f"jobs: {view.running} running, {view.waiting} waiting, {view.held} held")
    if view.waits_for:
        click.echo(f"waiting for: {view.waits_for}")
    for job_id, why in view.never.items():
        click.echo(f"job {job_id} cannot run: {why}")
    columns = [
        Column("node", lambda row: str(row["name"])),
        Column("host", lambda row: str(row["host"])),
        Column("phase", lambda row: str(row["phase"])),
        Column("cpus", lambda row: str(row["cpus"])),
        Column("MB", lambda row: str(row["mem_mb"])),
        Column("idle", lambda row: "-" if row["idle_s"] is None else f"{row['idle_s']:.0f} s"),
    ]
    show([asdict(node) for node in view.nodes], columns, as_json=False, empty="no nodes")
    return 1 if problem else 0
