"""The group of sub-commands."""

from __future__ import annotations

import importlib
from typing import Final

import click

from mesos_py.cli.summaries import SUMMARIES

_COMMANDS: Final = {
    "up": "Bring a batch server up and keep its nodes.",
    "status": "Show its nodes, and what jobs wait for.",
    "down": "End it and give all nodes back.",
}


class _Group(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"frameworks.torque.cli.{cmd_name}")
        found: click.Command = module.command
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.command(cls=_Group, short_help=SUMMARIES["torque"])
def command() -> None:
    """A batch system of the PBS kind, with nodes that come from the cluster and go back to it.

    Users see qsub, qstat, qdel and pbsnodes. With no jobs there are no nodes:

    \b
    mesos-py torque up --state-dir /var/lib/pbs --max-nodes 20 &
    . /var/lib/pbs/env.sh
    qsub -l nodes=2:ppn=4,walltime=1:00:00 job.sh
    qstat
    mesos-py torque status --state-dir /var/lib/pbs
    mesos-py torque down --state-dir /var/lib/pbs
    """
