"""`mesos-py kill`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mesos_py.cli import completing
from mesos_py.cli.options import DURATION, with_master
from mesos_py.cli.summaries import SUMMARIES
from mesos_py.errors import Conflict

if TYPE_CHECKING:
    from mesos_py.operator import OperatorClient


@click.command(short_help=SUMMARIES["kill"])
@click.argument("task", shell_complete=completing.live_tasks)
@click.option(
    "--framework",
    metavar="NAME|ID",
    help="Whose task it is, where several have one with this id.",
    shell_complete=completing.frameworks,
)
@click.option(
    "--grace",
    "grace_s",
    type=DURATION,
    help="Time between SIGTERM and SIGKILL.  [default: the task's own, else the agent's]",
)
@with_master
def command(
    client: OperatorClient, *, task: str, framework: str | None, grace_s: float | None
) -> None:
    """End TASK (an id, a name, or the beginning of an id).

    Returns when the master has taken the order; `logs -f TASK` waits for the end.
    """
    from mesos_py.cli import find
    from mesos_py.states import is_terminal, short_name

    found = find.task(client, task, framework, prefer_live=True)
    name = found.task_id.value
    if is_terminal(found.state):
        raise Conflict(f"task {name!r} has ended already: {short_name(found.state)}")
    client.kill_task(found.framework_id.value, name, grace_s=grace_s)
    click.echo(f"killing task {name}")
