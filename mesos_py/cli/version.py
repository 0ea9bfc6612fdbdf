"""`mesos-py version`."""

from __future__ import annotations

import platform

import click

from mesos_py.cli.options import master_option, naming_the_default, open_master, timeout_option
from mesos_py.cli.summaries import SUMMARIES
from mesos_py.version import VERSION


@click.command(short_help=SUMMARIES["version"])
@click.option("--remote", is_flag=True, help="Also ask the master for its version.")
@master_option
@timeout_option
@click.option("--json", "as_json", is_flag=True, help="Print an array of JSON objects.")
def command(master: str | None, timeout_s: float, remote: bool, as_json: bool) -> None:
    """Show the version of this program, with --remote also that of the master."""
    from mesos_py.cli import output

    listed: list[output.Row] = [
        {"component": "mesos-py", "version": VERSION, "python": platform.python_version()}
    ]
    if remote:
        with open_master(master, timeout_s) as client, naming_the_default(master):
            answer = client.version()
        listed.append(
            {
                "component": "master",
                "version": answer.version,
                "protocol": answer.protocol_version,
                "oldest_protocol": answer.oldest_protocol_version,
            }
        )
    if as_json:
        output.show_json(listed)
        return
    click.echo(f"mesos-py {VERSION} (Python {platform.python_version()})")
    for row in listed[1:]:
        click.echo(f"master   {row['version']} (protocol {row['protocol']})")
