"""`mesos-py reservations`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from mesos_py.cli import completing, output
from mesos_py.cli.names import short_ids
from mesos_py.cli.options import json_option, with_master
from mesos_py.cli.output import Column, Row
from mesos_py.cli.summaries import SUMMARIES

if TYPE_CHECKING:
    from mesos_py.operator import OperatorClient


@click.command(short_help=SUMMARIES["reservations"])
@click.option("--role", shell_complete=completing.roles, help="Only those for this role.")
@click.option("--agent", shell_complete=completing.agents, help="Only those on this agent.")
@json_option
@with_master
def command(client: OperatorClient, *, role: str | None, agent: str | None, as_json: bool) -> None:
    """List what is reserved on agents: for whom, by whom, and how much of it no task uses.

    KIND is static for what an agent's own --resources reserve, and dynamic for what was
    reserved while it ran.  Volumes count as used if a task or an executor has them.
    """
    from mesos_py.cli import find, kept_rows

    found = client.agents() if agent is None else [find.agent_entry(client, agent)]
    listed = [row for row in kept_rows.reservation_rows(found) if role in (None, row["role"])]
    output.show(listed, columns(listed), as_json=as_json, empty="nothing is reserved")


def columns(listed: Sequence[Row]) -> list[Column]:
    """The columns of a table of reservations."""
    agents = short_ids([row["agent_id"] for row in listed])
    return [
        Column("ROLE", lambda row: row["role"]),
        Column("AGENT", lambda row: row["agent_id"], lambda row: agents[row["agent_id"]]),
        Column("HOST", lambda row: row["hostname"]),
        Column("KIND", lambda row: row["kind"]),
        Column("BY", lambda row: row["principal"] or ""),
        Column("LABELS", _labels),
        Column("RESERVED", lambda row: output.amounts(row["reserved"])),
        Column("UNUSED", lambda row: output.amounts(row["unused"])),
        Column("VOLUMES", lambda row: output.amounts(row["volumes"])),
    ]


def _labels(row: Row) -> str:
    from mesos_py.cli.kept import label_text

    return label_text((each["key"], each["value"]) for each in row["labels"])
