"""`mesos-py master`."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import click

from master.app import serve
from master.flags import ENV_PREFIX, MasterFlags
from master.mesos_flags import TABLE
from mesos_py import config, logs, mesos_flags


@click.command("master", cls=mesos_flags.MesosCommand, short_help="Run a master.")
@config.click_options(MasterFlags, ENV_PREFIX)
def command(**options: Any) -> None:
    """Run a master: it offers the resources of its agents to frameworks.

    Ends on SIGTERM or SIGINT; agents and schedulers go on and come back to the next one.
    """
    flags, useless = mesos_flags.from_command(TABLE, MasterFlags, ENV_PREFIX, options, os.environ)
    logs.setup(flags.log_level, flags.log_format)
    mesos_flags.tell(useless)
    asyncio.run(serve(flags))


command.table = TABLE
