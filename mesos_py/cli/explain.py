"""`mesos-py explain`: why a framework, or a task that waits, gets what it gets."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from mesos_py.cli import completing, output
from mesos_py.cli.names import tail
from mesos_py.cli.options import json_option, with_master
from mesos_py.cli.output import Column, Row
from mesos_py.cli.summaries import SUMMARIES
from mesos_py.errors import NotFound

if TYPE_CHECKING:
    from mesos_py.operator import OperatorClient
    from mesos_py.v1.operator_pb2 import Response


@click.command(short_help=SUMMARIES["explain"])
@click.argument(
    "subject", metavar="[FRAMEWORK|TASK]", required=False, shell_complete=completing.either
)
@click.option("--role", help="A role instead: where it stands, and what its frameworks wait for")
@json_option
@with_master
def command(
    client: OperatorClient, *, subject: str | None, role: str | None, as_json: bool
) -> None:
    """Say why a framework, a task or a role gets what it gets; without one: all frameworks.

    A task that waits for its resources is known by the name under which its framework
    has asked for them, as `mesos-py run` does.
    """
    from mesos_py.cli import rows

    if role is not None:
        if subject is not None:
            raise click.UsageError("a framework or task, or --role: not both")
        _tell_role(rows.explain_role_row(client.explain_role(role)), as_json)
        return
    listed = [rows.explain_row(each) for each in _answers(client, subject)]
    if as_json:
        output.show_json(listed)
    elif not listed:
        click.echo("no framework is connected", err=True)
    else:
        now = time.time()
        for row in listed:
            _tell(row, now)


def _answers(client: OperatorClient, subject: str | None) -> Sequence[Response.Explain.Framework]:
    from mesos_py.cli import find

    if subject is None:
        return client.explain()
    try:
        return client.explain(framework_id=find.framework(client, subject).id.value)
    except NotFound:
        pass
    # Asked for and not launched: a master knows such a task by the request only.
    waiting = [
        each
        for each in client.explain()
        if any(request.name == subject for request in each.requests)
    ]
    if waiting:
        return waiting
    try:
        found = find.task(client, subject)
    except NotFound:
        raise NotFound(
            "framework or task", subject, "none has this id, name, or beginning of an id"
        ) from None
    return client.explain(found.framework_id.value, found.task_id.value)


def _tell_role(row: Row, as_json: bool) -> None:
    if as_json:
        output.show_json([row])
        return
    click.secho(f"role {row['role']}", bold=True)
    for finding in row["findings"]:
        click.echo(f"  * {finding}")
    if row["standings"]:
        click.echo("")
        _table("the order", row["standings"], _STANDINGS)


def _tell(row: Row, now: float) -> None:
    click.secho(f"{row['name']} ({row['framework_id']})", bold=True)
    for finding in row["findings"]:
        click.echo(f"  * {finding}")
    if row["standings"]:
        click.echo("")
        _table("the order", row["standings"], _STANDINGS)
    if row["requests"]:
        click.echo("")
        _table("asked for", row["requests"], _REQUESTS)
    if row["refusals"]:
        click.echo("")
        _table("passed over or refused", row["refusals"], _refusals(now))
    click.echo("")


def _table(title: str, listed: Sequence[Row], columns: Sequence[Column]) -> None:
    click.echo(f"  {title}:")
    output.show(listed, columns, as_json=False, empty="")


_REQUESTS = [
    Column("WHAT", lambda row: row["name"] or ""),
    Column("COUNT", lambda row: str(row["count"]), right=True),
    Column("EACH", lambda row: output.amounts(row["resources"])),
]


def _place(row: Row) -> str:
    return f"{row['position']}/{row['contenders']}" if row["position"] else "-"


_STANDINGS = [
    Column("ROLE", lambda row: row["role"]),
    Column("FRAMEWORK", lambda row: row["framework_id"] or ""),
    Column("PLACE", _place, right=True),
    Column("SHARE", lambda row: f"{row['share']:.3f}", right=True),
    Column("WEIGHT", lambda row: f"{row['weight']:g}", right=True),
    Column("HELD", lambda row: output.amounts(row["held"])),
    Column("GUARANTEED", lambda row: output.amounts(row["guarantee"])),
    Column("LACKS", lambda row: output.amounts(row["lacking"])),
]


def _refusals(now: float) -> list[Column]:
    return [
        Column("REASON", lambda row: row["code"]),
        Column("COUNT", lambda row: str(row["count"]), right=True),
        Column("LAST", lambda row: output.age(row["last"], now), right=True),
        Column("AGENT", lambda row: row["agent_id"] or "", lambda row: tail(row["agent_id"] or "")),
        Column("WHY", lambda row: row["message"]),
    ]
