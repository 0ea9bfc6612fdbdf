"""`mesos-py roles`: what operators have said of roles, and how they stand."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import click
from click.core import ParameterSource

from mesos_py.cli import completing, output
from mesos_py.cli.options import (
    json_option,
    master_option,
    naming_the_default,
    open_master,
    timeout_option,
    with_master,
)
from mesos_py.cli.output import Column, Row
from mesos_py.cli.summaries import SUMMARIES
from mesos_py.errors import InvalidValue, NotFound

if TYPE_CHECKING:
    from mesos_py.operator import OperatorClient
    from mesos_py.v1.types_pb2 import Role, RolePolicy

_AMOUNTS: Final = {"guarantee": "guarantees", "limit": "limits", "need_limit": "need_limits"}


@click.group(short_help=SUMMARIES["roles"], invoke_without_command=True)
@json_option
@master_option
@timeout_option
@click.pass_context
def command(ctx: click.Context, *, as_json: bool, master: str | None, timeout_s: float) -> None:
    """List roles, or say what a role may have.

    Without a sub-command: the roles with a framework, those of which operators have said
    something, and those above them.  SHARE is the largest fraction of any resource of
    the cluster that a role and those below it hold (offers included), divided by the
    weight; HELD is what that is.

    \b
    mesos-py roles
    mesos-py roles set web --weight 2 --guarantee "cpus:10;mem:20480"
    mesos-py roles show web
    """
    if ctx.invoked_subcommand is not None:
        for name in ("as_json", "master", "timeout_s"):
            if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
                option = {"as_json": "json", "timeout_s": "timeout"}.get(name, name)
                raise click.UsageError(f"give --{option} behind {ctx.invoked_subcommand!r}", ctx)
        return
    from mesos_py.cli import rows

    with open_master(master, timeout_s) as client, naming_the_default(master):
        listed = [rows.role_row(each) for each in client.roles()]
    output.show(listed, columns(), as_json=as_json, empty="no roles")


def columns() -> list[Column]:
    """The columns of a table of roles."""
    return [
        Column("ROLE", lambda row: row["name"]),
        Column("WEIGHT", lambda row: output.amount(row["weight"]), right=True),
        Column("PRIORITY", lambda row: str(row["priority"]), right=True),
        Column("GUARANTEE", lambda row: output.amounts(row["guarantee"])),
        Column("LIMIT", lambda row: output.amounts(row["limit"])),
        Column("AGENTS", lambda row: str(len(row["agents"])), right=True),
        Column("SHARE", lambda row: _percent(row["share"]), right=True),
        Column("HELD", lambda row: output.amounts(row["resources"])),
        Column("FRAMEWORKS", lambda row: str(len(row["frameworks"])), right=True),
    ]


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share * 100:.1f}%"


# ---- set, unset --------------------------------------------------------------


@command.command("set", short_help="Say what a role may have.")
@click.argument("role", shell_complete=completing.roles)
@click.option(
    "--weight", type=float, metavar="NUMBER", help="Its share among roles with the same parent."
)
@click.option(
    "--priority",
    type=int,
    metavar="N",
    help="The highest comes first, with --allocator priority.",
)
@click.option(
    "--guarantee",
    metavar="AMOUNTS",
    help="What it gets whenever it wants it, with the roles below it.",
)
@click.option(
    "--limit", metavar="AMOUNTS", help="What it never gets more of, with the roles below it."
)
@click.option(
    "--need-limit",
    metavar="AMOUNTS",
    help="The most that one framework of it may state as its needs.",
)
@click.option(
    "--agents",
    metavar="HOST[,HOST...]",
    help="Agents, by host name or id, that are offered to it and the roles below it only.",
)
@click.option("--no-weight", is_flag=True, help="Back to what the master's --weights say, or 1.")
@click.option("--no-priority", is_flag=True, help="Back to 0.")
@click.option("--no-guarantee", is_flag=True, help="Nothing is guaranteed any more.")
@click.option("--no-limit", is_flag=True, help="There is no limit any more.")
@click.option("--no-need-limit", is_flag=True, help="Its frameworks may need what they like.")
@click.option("--no-agents", is_flag=True, help="No agents are its own any more.")
@click.option(
    "--force", is_flag=True, help="Guarantee more than the agents of now have, all roles together."
)
@with_master
def set_(client: OperatorClient, /, *, role: str, force: bool, **options: Any) -> None:
    """Say what ROLE may have; what is not named stays as it is.

    AMOUNTS are such as "cpus:10;mem:2048"; they replace all that was said before under
    that option.  It counts once it is stored, for offers from then on: offers that are
    out and contradict it are taken back, tasks that run are not touched.

    \b
    Twice as much as other roles, when all want more than there is:
      mesos-py roles set web --weight 2
    Ten cores whenever it wants them, and never more than forty:
      mesos-py roles set web --guarantee cpus:10 --limit cpus:40
    Two machines of its own:
      mesos-py roles set web --agents db1,db2
    A part of what "web" has, for a role below it:
      mesos-py roles set web/batch --limit cpus:5
    No limit any more, but still a guarantee:
      mesos-py roles set web --no-limit
    """
    policy, fields = changes_of(options)
    client.update_role(role, policy, fields, force=force)
    click.echo(f"{role}: {_summary(client, role)}")
    _warn_of_unknown(client, policy.agents)


@command.command(short_help="Take back all that was said of a role.")
@click.argument("role", shell_complete=completing.roles)
@with_master
def unset(client: OperatorClient, *, role: str) -> None:
    """Take back all that operators have said of ROLE: weight, priority, guarantee, limits
    and agents.  Its frameworks go on."""
    from mesos_py.v1.types_pb2 import RolePolicy

    client.update_role(role, RolePolicy())
    click.echo(f"{role}: {_summary(client, role)}")


def changes_of(options: dict[str, Any]) -> tuple[RolePolicy, list[str]]:
    """The policy that the options of `set` describe, and which of its fields they name.

    Raises InvalidValue naming the option."""
    from mesos_py.policy import parse_amounts
    from mesos_py.resources import MILLI
    from mesos_py.v1.types_pb2 import RolePolicy

    policy, fields = RolePolicy(), []
    for name in ("weight", "priority", *_AMOUNTS, "agents"):
        value, cleared = options[name], options[f"no_{name}"]
        option = f"--{name.replace('_', '-')}"
        if value is not None and cleared:
            cleared_by = f"--no-{name.replace('_', '-')}"
            raise InvalidValue(option, value, f"cannot be given together with {cleared_by}")
        if value is None and not cleared:
            continue
        fields.append(_AMOUNTS.get(name, name))
        if cleared:
            continue
        if name in _AMOUNTS:
            for scalar, milli in parse_amounts(option, value).items():
                getattr(policy, _AMOUNTS[name])[scalar].value = milli / MILLI
        elif name == "agents":
            policy.agents.extend(_hosts(option, value))
        else:
            try:
                setattr(policy, name, value)
            except ValueError:
                raise InvalidValue(option, value, "must be a 32-bit number") from None
    if not fields:
        raise click.UsageError("nothing to set: give --weight, --limit, or another of the options")
    return policy, fields


def _hosts(option: str, text: str) -> list[str]:
    hosts = [host.strip() for host in text.split(",")]
    if "" in hosts:
        raise InvalidValue(option, text, "has an empty name")
    return hosts


def _warn_of_unknown(client: OperatorClient, named: Iterable[str]) -> None:
    """Agents may come later; a name that is written wrongly never does."""
    unknown = _unknown(client, named)
    if unknown:
        click.echo(f"note: no agent is known as {', '.join(unknown)} (it may come)", err=True)


def _unknown(client: OperatorClient, named: Iterable[str]) -> list[str]:
    wanted = set(named)
    if not wanted:
        return []
    for agent in client.agents():
        wanted -= {agent.agent_info.hostname, agent.agent_info.id.value}
    return sorted(wanted)


# ---- show --------------------------------------------------------------------


@command.command(short_help="Show one role: what was said of it, and what it holds.")
@click.argument("role", shell_complete=completing.roles)
@json_option
@with_master
def show(client: OperatorClient, *, role: str, as_json: bool) -> None:
    """Show what operators have said of ROLE, and what it and the roles below it hold."""
    from mesos_py.cli import rows

    row = rows.role_row(_find(client, role))
    if as_json:
        output.show_json([row])
        return
    unknown = _unknown(client, row["agents"])
    agents = [host if host not in unknown else f"{host} (not known)" for host in row["agents"]]
    lines = {
        "weight": output.amount(row["weight"]),
        "priority": str(row["priority"]),
        "guarantee": output.amounts(row["guarantee"]),
        "limit": output.amounts(row["limit"]),
        "need limit": output.amounts(row["need_limit"]),
        "agents": ", ".join(agents),
        "share": _percent(row["share"]),
        "held": output.amounts(row["resources"]),
        "frameworks": ", ".join(row["frameworks"]),
    }
    click.secho(f"role {row['name']}", bold=True)
    for name, text in lines.items():
        click.echo(f"  {name + ':':<12} {text or output.NOTHING}")


def _find(client: OperatorClient, role: str) -> Role:
    for each in client.roles():
        if each.name == role:
            return each
    raise NotFound("role", role, "no framework is in it, and nothing was said of it")


def _summary(client: OperatorClient, role: str) -> str:
    """What is said of the role now, in one line."""
    from mesos_py.cli import rows

    try:
        row: Row = rows.role_row(_find(client, role))
    except NotFound:
        return "nothing is said of it"
    parts = [f"weight {output.amount(row['weight'])}"]
    if row["priority"]:
        parts.append(f"priority {row['priority']}")
    for name in ("guarantee", "limit", "need_limit"):
        if row[name]:
            parts.append(f"{name.replace('_', ' ')} {output.amounts(row[name])}")
    if row["agents"]:
        parts.append(f"agents {','.join(row['agents'])}")
    return ", ".join(parts)
