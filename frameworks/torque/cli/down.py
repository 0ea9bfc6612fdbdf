"""`mesos-py torque down`."""

from __future__ import annotations

from pathlib import Path

import click

from frameworks.torque.cli.options import state_dir_option


@click.command(short_help="End it and give all nodes back.")
@state_dir_option
@click.option("--force", is_flag=True, help="Also while jobs run: they start anew, or are closed.")
def command(state_dir: Path, force: bool) -> None:
    """End the wrapper, all nodes, and the batch server.

    What is queued stays in the state directory: the next `up` goes on with it.
    """
    from frameworks.torque.serving import end

    end(state_dir, force)
    click.echo("down")
