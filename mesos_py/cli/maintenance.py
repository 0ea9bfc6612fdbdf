"""`mesos-py maintenance`: machines that are to be absent for a while."""

from __future__ import annotations

import time
from typing import IO, TYPE_CHECKING

import click

from mesos_py.cli import output
from mesos_py.cli.options import DURATION, json_option, with_master
from mesos_py.cli.output import Column, Row
from mesos_py.cli.summaries import SUMMARIES
from mesos_py.errors import InvalidValue

if TYPE_CHECKING:
    from mesos_py.operator import OperatorClient


@click.group(short_help=SUMMARIES["maintenance"])
def command() -> None:
    """Plan the absence of machines, take them away, and take them back.

    A MACHINE is a host name, an IP address, or both as HOST,IP.
    """


@command.command(short_help="Plan when machines are absent.")
@click.argument("file", type=click.File("rb"), required=False)
@click.option("--machine", "machines", multiple=True, metavar="MACHINE", help="Repeatable.")
@click.option(
    "--start",
    metavar="WHEN",
    help="+DURATION from now, or a time such as 2026-03-01T22:00 (local).  [default: now]",
)
@click.option("--duration", "duration_s", type=DURATION, help="How long.  [default: not known]")
@with_master
def schedule(
    client: OperatorClient,
    *,
    file: IO[bytes] | None,
    machines: tuple[str, ...],
    start: str | None,
    duration_s: float | None,
) -> None:
    """Tell frameworks when machines are to be absent, so that they leave in time.

    With --machine the machines get this window, and the rest of the schedule stays.
    FILE ("-": stdin) has a whole schedule as JSON, in the form of Mesos, and replaces it;
    with neither the schedule is printed in that form.
    """
    from mesos_py.cli import windows

    if file is not None and machines:
        raise InvalidValue("machine", machines[0], "cannot be given together with a file")
    if (start or duration_s is not None) and not machines:
        raise InvalidValue("machine", "", "must be given with --start and --duration")
    if file is not None:
        wanted = windows.from_json(file.read())
        client.update_maintenance_schedule(wanted)
        click.echo(f"scheduled {sum(len(each.machine_ids) for each in wanted.windows)} machines")
        return
    now = client.maintenance_schedule()
    if not machines:
        click.echo(windows.to_json(now))
        return
    named = [windows.machine_of(text) for text in machines]
    window = windows.window_of(named, windows.when(start, time.time()), duration_s)
    client.update_maintenance_schedule(windows.with_window(now, window))
    click.echo(f"scheduled {', '.join(machines)}")


@command.command(short_help="Take machines out of the schedule.")
@click.argument("machines", nargs=-1, required=True, metavar="MACHINE...")
@with_master
def cancel(client: OperatorClient, *, machines: tuple[str, ...]) -> None:
    """Take machines out of the schedule that are not down: they stay."""
    from mesos_py.cli import windows

    now = client.maintenance_schedule()
    named = [windows.entry_of(now, text) for text in machines]
    client.update_maintenance_schedule(windows.without(now, named))
    click.echo(f"cancelled {', '.join(machines)}")


@command.command(short_help="Take machines away.")
@click.argument("machines", nargs=-1, required=True, metavar="MACHINE...")
@with_master
def start(client: OperatorClient, *, machines: tuple[str, ...]) -> None:
    """Take machines away that are in the schedule: their agents end.

    Tasks that are still there are lost, and no agent registers there before `stop`.
    """
    from mesos_py.cli import windows

    now = client.maintenance_schedule()
    client.start_maintenance(windows.entry_of(now, text) for text in machines)
    click.echo(f"down: {', '.join(machines)}")


@command.command(short_help="Take machines back.")
@click.argument("machines", nargs=-1, required=True, metavar="MACHINE...")
@with_master
def stop(client: OperatorClient, *, machines: tuple[str, ...]) -> None:
    """Take machines back that were down; they are in the schedule no more."""
    from mesos_py.cli import windows

    now = client.maintenance_schedule()
    client.stop_maintenance(windows.entry_of(now, text) for text in machines)
    click.echo(f"up: {', '.join(machines)}")


@command.command(short_help="Show scheduled machines and what frameworks say.")
@json_option
@with_master
def status(client: OperatorClient, *, as_json: bool) -> None:
    """List the machines of the schedule with what frameworks have answered."""
    from mesos_py.cli import windows

    now, answered = client.maintenance_schedule(), client.maintenance_status()
    listed = windows.rows(now, answered)
    output.show(listed, columns(time.time()), as_json=as_json, empty="nothing is scheduled")


def columns(now: float) -> list[Column]:
    """The columns of a table of machines, as of `now`."""
    return [
        Column("MACHINE", lambda row: row["machine"]),
        Column("STATE", lambda row: row["state"]),
        Column("START", lambda row: _moment(row["start"])),
        Column("IN", lambda row: _until(row["start"], now), right=True),
        Column("FOR", lambda row: _length(row["duration"]), right=True),
        Column("ANSWERS", _answers),
    ]


def _moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(seconds))


def _until(start: float, now: float) -> str:
    return output.age(now, start) if start > now else ""


def _length(seconds: float | None) -> str:
    return "" if seconds is None else output.age(0, seconds)


def _answers(row: Row) -> str:
    return ", ".join(f"{each['framework_id']} {each['answer']}" for each in row["answers"])
