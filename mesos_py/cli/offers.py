"""`mesos-py offers`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from mesos_py.cli import output
from mesos_py.cli.names import short_ids, tail
from mesos_py.cli.options import json_option, with_master
from mesos_py.cli.output import Column, Row
from mesos_py.cli.summaries import SUMMARIES

if TYPE_CHECKING:
    from mesos_py.operator import OperatorClient


@click.command(short_help=SUMMARIES["offers"])
@json_option
@with_master
def command(client: OperatorClient, *, as_json: bool) -> None:
    """List offers that frameworks have been made and have not answered yet."""
    from mesos_py.cli import rows

    listed = rows.offer_rows(client.frameworks())
    output.show(listed, columns(listed), as_json=as_json, empty="no offers are out")


def columns(listed: Sequence[Row]) -> list[Column]:
    """The columns of a table of offers."""
    agents = short_ids([row["agent_id"] for row in listed])
    return [
        Column("ID", lambda row: row["id"], lambda row: tail(row["id"])),
        Column("FRAMEWORK", lambda row: row["framework_id"], lambda row: row["framework"]),
        Column("AGENT", lambda row: row["agent_id"], lambda row: agents[row["agent_id"]]),
        Column("HOST", lambda row: row["hostname"]),
        Column("ROLE", lambda row: row["role"] or ""),
        Column("RESOURCES", lambda row: output.amounts(row["resources"])),
    ]
