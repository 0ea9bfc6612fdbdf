"""`mesos-py frameworks`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from mesos_py.cli import output
from mesos_py.cli.names import short_ids
from mesos_py.cli.options import json_option, with_master
from mesos_py.cli.output import Column, Row
from mesos_py.cli.summaries import SUMMARIES

if TYPE_CHECKING:
    from mesos_py.operator import OperatorClient


@click.command(short_help=SUMMARIES["frameworks"])
@click.option("--all", "everything", is_flag=True, help="Also those that are not there any more.")
@json_option
@with_master
def command(client: OperatorClient, *, everything: bool, as_json: bool) -> None:
    """List the frameworks that the master serves, or waits for to come back."""
    from mesos_py.cli import rows

    listed = [
        row
        for row in rows.framework_rows(client.frameworks())
        if everything or row["state"] != "completed"
    ]
    hint = "no frameworks" if everything else "no frameworks (--all lists those that have ended)"
    output.show(listed, columns(listed, time.time()), as_json=as_json, empty=hint)


def columns(listed: Sequence[Row], now: float) -> list[Column]:
    """The columns of a table of frameworks, as of `now`."""
    ids = short_ids([row["id"] for row in listed])
    waiting = Column("STANDBYS", lambda row: str(len(row["standbys"])), right=True)
    return [
        Column("ID", lambda row: row["id"], lambda row: ids[row["id"]]),
        Column("NAME", lambda row: row["name"]),
        Column("STATE", lambda row: row["state"]),
        *([waiting] if any(row["standbys"] for row in listed) else []),
        Column("ROLES", lambda row: ",".join(row["roles"])),
        Column("TASKS", lambda row: str(row["tasks"]), right=True),
        Column("OFFERS", lambda row: str(row["offers"]), right=True),
        Column("CPUS", lambda row: output.amount(row["allocated"].get("cpus", 0.0)), right=True),
        Column("MEM", lambda row: output.amount(row["allocated"].get("mem", 0.0)), right=True),
        Column("USER", lambda row: row["user"], loose=True),
        Column("AGE", lambda row: output.age(row["registered"], now), right=True),
    ]
