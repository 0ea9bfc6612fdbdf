"""`mesos-py teardown`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mesos_py.cli import completing
from mesos_py.cli.options import with_master
from mesos_py.cli.summaries import SUMMARIES

if TYPE_CHECKING:
    from mesos_py.operator import OperatorClient


@click.command(short_help=SUMMARIES["teardown"])
@click.argument("framework", shell_complete=completing.frameworks)
@with_master
def command(client: OperatorClient, *, framework: str) -> None:
    """End FRAMEWORK (a name, an id, or the beginning of an id) and all its tasks.

    It cannot subscribe again.
    """
    from mesos_py.cli import find

    found = find.framework(client, framework, ended=False)
    client.teardown(found.id.value)
    click.echo(f"tore down framework {found.id.value} ({found.name})")
