"""The sub-commands of `mesos-py webfarm`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from frameworks.webfarm.options import ENV_PREFIX, STATE_DIRECTORY, FarmFlags
from mesos_py import config, logs
from mesos_py.cli.options import DURATION, master_option
from mesos_py.cli.summaries import SUMMARIES

state_option = click.option(
    "--state-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=STATE_DIRECTORY.expanduser(),
    show_default=str(STATE_DIRECTORY),
    envvar=f"{ENV_PREFIX}STATE_DIR",
    help="Which farm: the directory that `up` was given.",
)


@click.group(short_help=SUMMARIES["webfarm"])
def command() -> None:
    """A web site on as many servers as it needs: haproxy in front of Apache instances, which
    run as tasks and are started and stopped by the load.

    Bring a farm up (and keep this running: systemd, tmux), look at it, replace its site, end it:

    \b
    mesos-py webfarm up --site https://host/site.tar.gz --max 8 --target-sessions 150 &
    mesos-py webfarm status --watch
    mesos-py webfarm deploy https://host/site-2.tar.gz
    mesos-py webfarm down

    Users come to port 8080 of this machine.  All that a farm is known by is in its --state-dir:
    with one for each there may be several, with ports of their own.  docs/webfarm.md tells how
    many servers there are when, and what survives what.
    """


@command.command("up")
@master_option
@config.click_options(FarmFlags, ENV_PREFIX)
def up(master: str | None, **options: Any) -> None:
    """Bring a farm up, or take over one that is there, and look after it.

    haproxy is started on this machine; servers are tasks, at most one on each agent.  There are
    as many as keep each of them at or under --target-sessions.

    SIGTERM, Ctrl-C and kill -9 end only this command: haproxy and the servers go on as they
    are, and `up` with the same --state-dir goes on with them.  `down` ends the farm.

    \b
    mesos-py webfarm up --min 2 --max 8 --target-sessions 150 --site /srv/site/
    mesos-py webfarm up --config farm.toml       # [webfarm]  min = 2  max = 8 ...
    """
    flags = config.from_command(FarmFlags, ENV_PREFIX, options)
    logs.setup(flags.log_level, flags.log_format)
    from frameworks.webfarm.cli.acts import run_farm

    run_farm(master, flags)


@command.command("status")
@state_option
@click.option("--watch", is_flag=True, help="Show it as it changes, until Ctrl-C.")
@click.option("--json", "as_json", is_flag=True, help="Print it as one JSON object.")
def status(state_dir: Path, watch: bool, as_json: bool) -> int:
    """Show the servers of a farm, what each of them gets, and what is waited for.

    Exit code 1 if nobody looks after the farm (`up` does not run): it serves on as it is.

    \b
    mesos-py webfarm status --watch
    mesos-py webfarm status --json | jq '.servers[] | {host, phase, rate}'
    """
    from frameworks.webfarm.cli.view import show

    return show(state_dir, watch=watch, as_json=as_json)


@command.command("deploy")
@state_option
@click.option(
    "--timeout",
    "timeout_s",
    type=DURATION,
    default="10m",
    show_default=True,
    help="How long to wait for the end; it goes on without us.",
)
@click.argument("site")
def deploy(state_dir: Path, timeout_s: float, site: str) -> None:
    """Replace all servers by ones with SITE, with no request lost, and wait for that.

    One after the other (`up --batch N`: N at a time): a new one is started; when haproxy finds
    it well, an old one gets no more sessions, finishes those it has, and ends.  When a new one
    fails, that is the end: the old ones stay, and the exit code is 1.

    SITE is a URI of an archive that agents fetch, or a directory that all of them have; the
    same one again replaces all servers, too.

    \b
    mesos-py webfarm deploy 'https://host/site.tar.gz#sha256=9f86d08...'
    mesos-py webfarm deploy /srv/site/
    """
    from frameworks.webfarm.cli.acts import deploy_site

    deploy_site(state_dir, site, timeout_s)


@command.command("down")
@state_option
@master_option
@click.option(
    "--timeout",
    "timeout_s",
    type=DURATION,
    default="2m",
    show_default=True,
    help="How long to wait for `up` to end the farm.",
)
def down(state_dir: Path, master: str | None, timeout_s: float) -> None:
    """End a farm: haproxy takes nothing new and finishes what is open, then all servers end.

    Whether `up` runs or not.  The master is the one that `up` was given, if none is named.
    To end `up` alone, and leave the farm as it is, send it SIGTERM.
    """
    from frameworks.webfarm.cli.acts import end_farm

    end_farm(state_dir, master, timeout_s)


__all__ = ["command"]
