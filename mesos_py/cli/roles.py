"""`mesos-py roles`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mesos_py.cli import output
from mesos_py.cli.options import json_option, with_master
from mesos_py.cli.output import Column
from mesos_py.cli.summaries import SUMMARIES

if TYPE_CHECKING:
    from mesos_py.operator import OperatorClient


@click.command(short_help=SUMMARIES["roles"])
@json_option
@with_master
def command(client: OperatorClient, *, as_json: bool) -> None:
    """List roles: those with a framework, and those with a weight of their own.

    The share is the largest fraction of any resource of the cluster that the role's
    frameworks hold (offers included), divided by the weight.
    """
    from mesos_py.cli import rows

    listed = [rows.role_row(each) for each in client.roles()]
    output.show(listed, columns(), as_json=as_json, empty="no roles")


def columns() -> list[Column]:
    """The columns of a table of roles."""
    return [
        Column("ROLE", lambda row: row["name"]),
        Column("WEIGHT", lambda row: output.amount(row["weight"]), right=True),
        Column("SHARE", lambda row: _percent(row["share"]), right=True),
        Column("FRAMEWORKS", lambda row: str(len(row["frameworks"])), right=True),
        Column("RESOURCES", lambda row: output.amounts(row["resources"])),
    ]


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share * 100:.1f}%"
