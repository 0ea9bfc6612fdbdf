"""`mesos-py agents`."""

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


@click.command(short_help=SUMMARIES["agents"])
@click.option("--all", "with_gone", is_flag=True, help="Also those that are gone for good.")
@json_option
@with_master
def command(client: OperatorClient, *, with_gone: bool, as_json: bool) -> None:
    """List agents with what they have: used (by tasks), offered (to frameworks), in all."""
    from mesos_py.cli import rows

    listed = [rows.agent_row(each) for each in client.agents()]
    listed = [row for row in listed if with_gone or row["state"] != "gone"]
    output.show(listed, columns(listed, time.time()), as_json=as_json, empty="no agents")


def columns(listed: Sequence[Row], now: float) -> list[Column]:
    """The columns of a table of agents, as of `now`."""
    ids = short_ids([row["id"] for row in listed])
    return [
        Column("ID", lambda row: row["id"], lambda row: ids[row["id"]]),
        Column("HOST", lambda row: row["hostname"]),
        Column("STATE", state),
        Column("TASKS", lambda row: str(row["tasks"]), right=True),
        Column("CPUS", lambda row: _of_total(row, "cpus"), right=True),
        Column("MEM", lambda row: _of_total(row, "mem"), right=True),
        Column("ATTRIBUTES", lambda row: output.amounts(row["attributes"]), loose=True),
        Column("AGE", lambda row: output.age(row["registered"], now), right=True),
    ]


def state(row: Row) -> str:
    """Whether it is there and, if that is so, why nothing is offered of it."""
    service = row["drain"] or ("deactivated" if row["deactivated"] else "")
    if not service or row["state"] == "gone":
        return str(row["state"])
    return service if row["state"] == "connected" else f"{row['state']}, {service}"


def _of_total(row: Row, name: str) -> str:
    used = row["allocated"].get(name, 0.0)
    return f"{output.amount(used)}/{output.amount(row['total'].get(name, 0.0))}"
