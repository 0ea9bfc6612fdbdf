"""`mesos-py drain`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import click

from mesos_py.cli import completing
from mesos_py.cli.options import DURATION, with_master
from mesos_py.cli.summaries import SUMMARIES
from mesos_py.errors import Conflict, MasterUnreachable, NotFound, NotLeader, Unavailable

if TYPE_CHECKING:
    from mesos_py.operator import OperatorClient
    from mesos_py.v1.operator_pb2 import Response

_LOOK_S: Final = 0.5
# While one leader follows another nobody answers; what was ordered is not lost.
_PATIENCE_S: Final = 60.0


@click.command(short_help=SUMMARIES["drain"])
@click.argument("agent", shell_complete=completing.agents)
@click.option(
    "--grace",
    "grace_s",
    type=DURATION,
    help="The longest time between SIGTERM and SIGKILL.  [default: as each task has it]",
)
@click.option("--mark-gone", is_flag=True, help="Once it is drained it can never come back.")
@click.option("--wait", is_flag=True, help="Return when it is drained, and not before.")
@with_master
def command(
    client: OperatorClient, *, agent: str, grace_s: float | None, mark_gone: bool, wait: bool
) -> None:
    """Have all tasks on AGENT (a host name, an id, or the beginning of an id) end.

    Nothing is offered there any more; it is taken back with `reactivate` once it is
    drained.  An agent that is away is drained when it is back.
    """
    from mesos_py.cli import find

    found = find.agent_entry(client, agent)
    agent_id, host = found.agent_info.id.value, found.agent_info.hostname
    client.drain_agent(agent_id, max_grace_s=grace_s, mark_gone=mark_gone)
    click.echo(f"draining agent {agent_id} ({host})")
    if wait:
        _wait(client, agent_id)
        click.echo(f"drained agent {agent_id} ({host})")


def _wait(client: OperatorClient, agent_id: str) -> None:
    told = ""
    silent_since_s: float | None = None
    while True:
        try:
            left = _what_is_left(client, agent_id)
            silent_since_s = None
        except (MasterUnreachable, NotLeader, Unavailable):
            now_s = time.monotonic()
            silent_since_s = now_s if silent_since_s is None else silent_since_s
            if now_s - silent_since_s > _PATIENCE_S:
                raise
            left = "no master answers"
        if not left:
            return
        if left != told:
            click.echo(f"mesos-py drain: waiting: {left}", err=True)
            told = left
        time.sleep(_LOOK_S)


def _what_is_left(client: OperatorClient, agent_id: str) -> str:
    """What it still waits for, in words; nothing: it is drained."""
    for each in client.agents():
        if each.agent_info.id.value == agent_id:
            return _left_on(each)
    raise NotFound("agent", agent_id, "has left the cluster before it was drained")


def _left_on(agent: Response.GetAgents.Agent) -> str:
    from mesos_py.v1.types_pb2 import DRAINED

    if agent.drain_info.state == DRAINED:
        return ""
    if agent.state == "gone":
        return ""
    if not agent.HasField("drain_info"):
        raise Conflict(f"agent {agent.agent_info.id.value}: was reactivated meanwhile")
    if agent.state != "connected":
        return f"the agent is {agent.state}; it is drained when it is back"
    if agent.running_tasks:
        return f"{agent.running_tasks} task{'s' if agent.running_tasks != 1 else ''} left"
    return "executors, or ends of tasks that their frameworks have not acknowledged"
