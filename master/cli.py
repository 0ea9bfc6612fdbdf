"""`mesos-py master`."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from master.app import serve
from master.flags import ENV_PREFIX, MasterFlags
from mesos_py import config, logs


@click.command("master", short_help="Run a master.")
@config.click_options(MasterFlags, ENV_PREFIX)
def command(**options: Any) -> None:
    """Run a master: it offers the resources of its agents to frameworks.

    Ends on SIGTERM or SIGINT; agents and schedulers go on and come back to the next one.
    """
    flags = config.from_command(MasterFlags, ENV_PREFIX, options)
    logs.setup(flags.log_level, flags.log_format)
    asyncio.run(serve(flags))
