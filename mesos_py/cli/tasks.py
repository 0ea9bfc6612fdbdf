"""`mesos-py tasks`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from mesos_py.cli import completing, output
from mesos_py.cli.names import short_ids
from mesos_py.cli.options import json_option, with_master
from mesos_py.cli.output import Column, Row
from mesos_py.cli.summaries import SUMMARIES
from mesos_py.errors import InvalidValue

if TYPE_CHECKING:
    from mesos_py.operator import OperatorClient

_PREFIX = "TASK_"


@click.command(short_help=SUMMARIES["tasks"])
@click.option(
    "--framework",
    metavar="NAME|ID",
    help="Only tasks of this framework.",
    shell_complete=completing.frameworks,
)
@click.option(
    "--agent",
    metavar="ID|HOST",
    help="Only tasks on this agent.",
    shell_complete=completing.agents,
)
@click.option(
    "--state",
    "states",
    metavar="STATE[,...]",
    help="Only tasks in these states, such as RUNNING,FAILED; ended ones included.",
)
@click.option(
    "--all/--active",
    "everything",
    default=None,
    help="With or without ended tasks.  [default: active]",
)
@json_option
@with_master
def command(
    client: OperatorClient,
    *,
    framework: str | None,
    agent: str | None,
    states: str | None,
    everything: bool | None,
    as_json: bool,
) -> None:
    """List tasks: those that have not ended, with --all also those that have.

    The master keeps a bounded number of ended tasks.
    """
    from mesos_py.cli import find, rows
    from mesos_py.states import TERMINAL

    wanted = _states(states)
    framework_id = find.framework(client, framework).id.value if framework else None
    agent_id = find.agent(client, agent) if agent else None
    found = client.tasks(framework_id)
    with_ended = everything if everything is not None else wanted is not None
    listed = [
        rows.task_row(each)
        for each in found
        if (with_ended or each.state not in TERMINAL)
        and (wanted is None or each.state in wanted)
        and (agent_id is None or each.agent_id.value == agent_id)
    ]
    hint = "no tasks"
    if found:
        narrowed = wanted is not None or agent_id is not None
        hint = "no such tasks" if narrowed else "no live tasks (--all lists those that have ended)"
    output.show(listed, columns(listed, time.time()), as_json=as_json, empty=hint)


def _states(text: str | None) -> set[int] | None:
    from mesos_py.v1.types_pb2 import TaskState

    if text is None:
        return None
    known = TaskState.keys()
    wanted: set[int] = set()
    for word in text.split(","):
        name = _PREFIX + word.strip().upper().removeprefix(_PREFIX)
        if name not in known:
            names = ", ".join(sorted(each.removeprefix(_PREFIX) for each in known))
            raise InvalidValue("state", word, f"is no task state; they are {names}")
        wanted.add(TaskState.Value(name))
    return wanted


def columns(listed: Sequence[Row], now: float) -> list[Column]:
    """The columns of a table of tasks, as of `now`."""
    agents = short_ids([row["agent_id"] for row in listed])
    # For the few that have a health check.
    health = [Column("HEALTH", _health)] if any(_health(row) for row in listed) else []
    return [
        Column("ID", lambda row: row["id"]),
        Column("STATE", lambda row: row["state"].removeprefix(_PREFIX)),
        *health,
        Column("AGENT", lambda row: row["agent_id"], lambda row: agents[row["agent_id"]]),
        Column("CPUS", lambda row: output.amount(row["resources"].get("cpus")), right=True),
        Column("MEM", lambda row: output.amount(row["resources"].get("mem")), right=True),
        Column("AGE", lambda row: output.age(row["started"] or row["launched"], now), right=True),
        Column("EXIT", _exit, right=True),
        Column("MESSAGE", lambda row: row["message"] or "", loose=True),
    ]


def _health(row: Row) -> str:
    healthy = row["healthy"]
    return "" if healthy is None else "healthy" if healthy else "unhealthy"


def _exit(row: Row) -> str:
    if row["exit_code"] is not None:
        return str(row["exit_code"])
    return f"SIG{row['signal']}" if row["signal"] is not None else ""
