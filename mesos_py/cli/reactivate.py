"""`mesos-py reactivate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mesos_py.cli import completing
from mesos_py.cli.options import with_master
from mesos_py.cli.summaries import SUMMARIES

if TYPE_CHECKING:
    from mesos_py.operator import OperatorClient


@click.command(short_help=SUMMARIES["reactivate"])
@click.argument("agent", shell_complete=completing.agents)
@with_master
def command(client: OperatorClient, *, agent: str) -> None:
    """Offer AGENT (a host name, an id, or the beginning of an id) again.

    It was deactivated, or has been drained.
    """
    from mesos_py.cli import find

    info = find.agent_entry(client, agent).agent_info
    client.reactivate_agent(info.id.value)
    click.echo(f"reactivated agent {info.id.value} ({info.hostname})")
