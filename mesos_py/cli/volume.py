"""`mesos-py volume`: persistent volumes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from mesos_py.cli import completing, output
from mesos_py.cli.names import short_ids
from mesos_py.cli.options import json_option, label_option, with_master
from mesos_py.cli.output import Column, Row
from mesos_py.cli.summaries import SUMMARIES
from mesos_py.errors import Conflict, InvalidValue

if TYPE_CHECKING:
    from mesos_py.operator import OperatorClient
    from mesos_py.resources import Resources

role_option = click.option(
    "--role", shell_complete=completing.roles, help="Whose it is, if several have one of this ID."
)
by_option = click.option("--by", "mb", type=float, required=True, metavar="MB", help="How much.")


@click.group(short_help=SUMMARIES["volume"])
def command() -> None:
    """Make, resize, erase and list persistent volumes.

    A volume is made of disk of an agent that is reserved for a role.  It outlives the tasks that
    use it.  AGENT is a host name, an id, or its beginning.
    """


@command.command(short_help="Make a volume of reserved disk.")
@click.argument("agent", shell_complete=completing.agents)
@click.option("--role", required=True, shell_complete=completing.roles, help="Whose it is.")
@click.option("--disk", "mb", type=float, required=True, metavar="MB", help="Its size.")
@click.option("--id", "volume_id", required=True, metavar="ID", help="One of its own.")
@click.option("--path", required=True, help="Where a task sees it, below its sandbox.")
@click.option("--principal", help="Who makes it, kept with the volume.")
@click.option("--reserved-by", metavar="PRINCIPAL", help="Of disk that this one has reserved.")
@label_option
@with_master
def create(
    client: OperatorClient,
    *,
    agent: str,
    role: str,
    mb: float,
    volume_id: str,
    path: str,
    principal: str | None,
    reserved_by: str | None,
    labels: tuple[str, ...],
) -> None:
    """Make a volume of disk of AGENT that is reserved for a role (`mesos-py reserve`).

    Where disk is reserved for the role in several ways, --reserved-by and --label say of
    which it is to be.

    \b
    mesos-py reserve node1 disk:20480 --role db
    mesos-py volume create node1 --role db --disk 10240 --id orders --path data
    """
    from mesos_py.cli import find, kept
    from mesos_py.volumes import volume_on

    size = _disk("--disk", mb)
    wanted = kept.Wanted(role, reserved_by, kept.labels_of(labels))
    found = find.agent_entry(client, agent)
    info = found.agent_info
    where = f"agent {info.id.value} ({info.hostname})"
    disk = kept.disk_for_volume(where, kept.has(found), wanted, size)
    made = volume_on(disk, volume_id, path, principal=principal)
    client.create_volumes(info.id.value, made)
    output.tell_ordered(f"make volume {volume_id} of {role}, {output.amount(mb)} MB, on {where}")


@command.command(short_help="Erase a volume.")
@click.argument("agent", shell_complete=completing.agents)
@click.argument("volume_id", metavar="ID")
@role_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_master
def destroy(
    client: OperatorClient, *, agent: str, volume_id: str, role: str | None, yes: bool
) -> None:
    """Erase what is in the volume ID of AGENT; its disk stays reserved.  No task may use it."""
    agent_id, where, volume = _find_unused(client, agent, volume_id, role)
    if not yes:
        if not sys.stdin.isatty():
            raise InvalidValue("yes", "not given", "must be, where nobody can be asked")
        click.confirm(f"Erase all that is in volume {volume_id} on {where}?", abort=True, err=True)
    client.destroy_volumes(agent_id, volume)
    output.tell_ordered(f"erase volume {volume_id} on {where}")


@command.command(short_help="Make a volume larger.")
@click.argument("agent", shell_complete=completing.agents)
@click.argument("volume_id", metavar="ID")
@by_option
@role_option
@with_master
def grow(
    client: OperatorClient, *, agent: str, volume_id: str, mb: float, role: str | None
) -> None:
    """Make the volume ID of AGENT larger, by disk that is reserved as the volume is.

    No task may use it.
    """
    from mesos_py.reserved import disk_of

    size = _disk("--by", mb)
    agent_id, where, volume = _find_unused(client, agent, volume_id, role)
    (key,) = volume.names()
    client.grow_volume(agent_id, volume, size.renamed(lambda _: disk_of(key)))
    _tell_size(volume_id, volume.scalar(key) + mb, where)


@command.command(short_help="Make a volume smaller.")
@click.argument("agent", shell_complete=completing.agents)
@click.argument("volume_id", metavar="ID")
@by_option
@role_option
@with_master
def shrink(
    client: OperatorClient, *, agent: str, volume_id: str, mb: float, role: str | None
) -> None:
    """Make the volume ID of AGENT smaller; what it gives back is reserved disk then.

    What is in it stays, also if it is more.  No task may use it.
    """
    _disk("--by", mb)
    agent_id, where, volume = _find_unused(client, agent, volume_id, role)
    (key,) = volume.names()
    client.shrink_volume(agent_id, volume, mb)
    _tell_size(volume_id, volume.scalar(key) - mb, where)


def _tell_size(volume_id: str, mb: float, where: str) -> None:
    output.tell_ordered(f"{output.amount(mb)} MB for volume {volume_id} on {where}")


def _disk(option: str, mb: float) -> Resources:
    from mesos_py.errors import InvalidResources
    from mesos_py.resources import Resources

    try:
        return Resources.of(disk=mb)
    except InvalidResources as error:
        raise InvalidValue(option, mb, error.reason) from None


def _find_unused(
    client: OperatorClient, agent: str, volume_id: str, role: str | None
) -> tuple[str, str, Resources]:
    """The agent's id, the agent in words, and the volume as it has it.  Raises Conflict for
    one that is used, and says by whom."""
    from mesos_py.cli import find, kept, kept_rows
    from mesos_py.reserved import role_of

    found = find.agent_entry(client, agent)
    info = found.agent_info
    where = f"agent {info.id.value} ({info.hostname})"
    volume = kept.find_volume(where, kept.has(found), volume_id, role)
    (key,) = volume.names()
    for row in kept_rows.volume_rows([found], client.tasks()):
        if row["used"] and (row["id"], row["role"]) == (volume_id, role_of(key)):
            text = f"volume {volume_id!r} on {where} is used by {_users(row)}"
            raise Conflict(text, kind="volume", name=volume_id)
    return info.id.value, where, volume


# ---- list ------------------------------------------------------------------------------------


@command.command("list", short_help="List volumes, and who uses them.")
@click.option("--role", shell_complete=completing.roles, help="Only those of this role.")
@click.option("--agent", shell_complete=completing.agents, help="Only those on this agent.")
@json_option
@with_master
def list_(client: OperatorClient, *, role: str | None, agent: str | None, as_json: bool) -> None:
    """List volumes with their sizes (MB) and the tasks that use them."""
    from mesos_py.cli import find, kept_rows

    found = client.agents() if agent is None else [find.agent_entry(client, agent)]
    listed = [
        row for row in kept_rows.volume_rows(found, client.tasks()) if role in (None, row["role"])
    ]
    output.show(listed, columns(listed), as_json=as_json, empty="no volumes")


def columns(listed: Sequence[Row]) -> list[Column]:
    """The columns of a table of volumes."""
    agents = short_ids([row["agent_id"] for row in listed])
    return [
        Column("ID", lambda row: row["id"]),
        Column("ROLE", lambda row: row["role"]),
        Column("AGENT", lambda row: row["agent_id"], lambda row: agents[row["agent_id"]]),
        Column("HOST", lambda row: row["hostname"]),
        Column("MB", lambda row: output.amount(row["disk"]), right=True),
        Column("PATH", lambda row: row["container_path"]),
        Column("BY", lambda row: row["principal"] or ""),
        Column("USED BY", _users),
    ]


def _users(row: Row) -> str:
    if row["tasks"]:
        return ",".join(row["tasks"])
    return "an executor" if row["used"] else ""
