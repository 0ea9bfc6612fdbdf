"""`mesos-py reserve`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mesos_py.cli import completing
from mesos_py.cli.options import label_option, with_master
from mesos_py.cli.summaries import SUMMARIES

if TYPE_CHECKING:
    from mesos_py.operator import OperatorClient


@click.command(short_help=SUMMARIES["reserve"])
@click.argument("agent", shell_complete=completing.agents)
@click.argument("resources")
@click.option("--role", required=True, shell_complete=completing.roles, help="For whom.")
@click.option("--principal", help="Who reserves it, kept with the reservation.")
@label_option
@with_master
def command(
    client: OperatorClient,
    *,
    agent: str,
    resources: str,
    role: str,
    principal: str | None,
    labels: tuple[str, ...],
) -> None:
    """Reserve a part of AGENT (a host name, an id, or its beginning) for a role.

    It is offered to this role and those below it only, until it is unreserved.  Offers of it are
    taken back; what tasks use cannot be reserved.  What the agent's own --resources reserve
    for a role can be reserved once more for a role below it.

    \b
    mesos-py reserve node1 "cpus:4;mem:8192;disk:20480" --role db --label for=orders
    mesos-py reserve node1 "cpus(db):2" --role db/backup
    """
    from mesos_py.cli import find, kept, output
    from mesos_py.reservations import reserved_for
    from mesos_py.resources import Resources

    wanted = Resources.parse_reserved(resources)
    said = kept.new_labels(labels) or None
    made = reserved_for(wanted, role, principal=principal, labels=said)
    info = find.agent_entry(client, agent).agent_info
    client.reserve_resources(info.id.value, made)
    where = f"agent {info.id.value} ({info.hostname})"
    output.tell_ordered(f"reserve {wanted} of {where} for {role}")
