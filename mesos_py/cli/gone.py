"""`mesos-py gone`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from mesos_py.cli import completing
from mesos_py.cli.options import with_master
from mesos_py.cli.summaries import SUMMARIES
from mesos_py.errors import InvalidValue

if TYPE_CHECKING:
    from mesos_py.operator import OperatorClient


@click.command(short_help=SUMMARIES["gone"])
@click.argument("agent", shell_complete=completing.agents)
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_master
def command(client: OperatorClient, *, agent: str, yes: bool) -> None:
    """Tell everybody that AGENT (a host name, an id, or its beginning) never comes back.

    For a machine that is lost: frameworks start its tasks elsewhere at once.  If the
    agent lives after all it ends its tasks and itself, and its id is refused for ever.
    """
    from mesos_py.cli import find

    found = find.agent_entry(client, agent)
    agent_id, host = found.agent_info.id.value, found.agent_info.hostname
    if not yes:
        if not sys.stdin.isatty():
            raise InvalidValue("yes", "not given", "must be, where nobody can be asked")
        click.confirm(
            f"Agent {agent_id} ({host}, {found.state}, {found.running_tasks} tasks) "
            "can never come back.  Mark it as gone?",
            abort=True,
            err=True,
        )
    client.mark_agent_gone(agent_id)
    click.echo(f"marked agent {agent_id} ({host}) as gone")
