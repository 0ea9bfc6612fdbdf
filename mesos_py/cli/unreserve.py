"""`mesos-py unreserve`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mesos_py.cli import completing
from mesos_py.cli.options import label_option, with_master
from mesos_py.cli.summaries import SUMMARIES
from mesos_py.errors import InvalidValue

if TYPE_CHECKING:
    from mesos_py.operator import OperatorClient


@click.command(short_help=SUMMARIES["unreserve"])
@click.argument("agent", shell_complete=completing.agents)
@click.argument("resources", required=False)
@click.option("--role", required=True, shell_complete=completing.roles, help="For whom it is.")
@click.option("--principal", help="Only what this one has reserved.")
@label_option
@click.option("--all", "everything", is_flag=True, help="All that is reserved so.")
@with_master
def command(
    client: OperatorClient,
    *,
    agent: str,
    resources: str | None,
    role: str,
    principal: str | None,
    labels: tuple[str, ...],
    everything: bool,
) -> None:
    """Give back what was reserved on AGENT for a role while the agent ran.

    RESOURCES are plain amounts such as "cpus:4"; where there are several reservations of
    which they may be, --principal and --label say which.  What tasks use cannot be given back,
    and volumes have to be destroyed first.

    \b
    mesos-py unreserve node1 "cpus:4;mem:8192" --role db
    mesos-py unreserve node1 --all --role db --label for=orders
    """
    from mesos_py.cli import find, kept, output
    from mesos_py.resources import Resources

    if everything == (resources is not None):
        reason = "either amounts or --all must be given"
        raise InvalidValue("resources", resources or "", reason)
    amounts = Resources.parse(resources) if resources is not None else None
    wanted = kept.Wanted(role, principal, kept.labels_of(labels))
    found = find.agent_entry(client, agent)
    info, there = found.agent_info, kept.has(found)
    where = f"agent {info.id.value} ({info.hostname})"
    if amounts is None:
        meant = kept.all_to_unreserve(where, there, wanted)
    else:
        meant = kept.to_unreserve(where, there, wanted, amounts)
    client.unreserve_resources(info.id.value, meant)
    output.tell_ordered(f"unreserve {meant.plain} of {where}")
