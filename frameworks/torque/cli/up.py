"""`mesos-py torque up`."""

from __future__ import annotations

from typing import Any

import click

from frameworks.torque.cli.flags import ENV_PREFIX, UpFlags, options_of
from mesos_py import config, logs
from mesos_py.cli.options import environ_with_master


@click.command("up", short_help="Bring a batch server up and keep its nodes.")
@config.click_options(UpFlags, ENV_PREFIX)
def command(**options: Any) -> None:
    """Bring a batch server up, and start and end nodes for it as its queue needs them.

    Prints `ready ENV_FILE` on stdout once jobs can be submitted: whoever has read that file in
    (`. ENV_FILE`) has a qsub, qstat, qdel and pbsnodes that speak to this server.

    Ends on Ctrl-C or SIGTERM; the server, its nodes and its jobs go on, and the next `up` with
    the same --state-dir goes on with them (also after this was killed). `down` ends them.

    \b
    mesos-py torque up --state-dir /var/lib/pbs --max-nodes 20 --idle 5m
    """
    environ = environ_with_master(ENV_PREFIX)
    flags = config.from_command(UpFlags, ENV_PREFIX, options, environ)
    logs.setup(flags.log_level, flags.log_format)
    from frameworks.torque.serving import serve

    serve(options_of(flags), ready=lambda path: click.echo(f"ready {path}"))
