"""`mesos-py agent`."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import click

from agent.app import serve
from agent.flags import ENV_PREFIX, AgentFlags
from agent.mesos_flags import TABLE
from mesos_py import config, logs, mesos_flags


@click.command("agent", cls=mesos_flags.MesosCommand, short_help="Run an agent.")
@config.click_options(AgentFlags, ENV_PREFIX)
def command(**options: Any) -> None:
    """Run an agent: it offers what this machine has and runs tasks here.

    Ends on SIGTERM or SIGINT, after its tasks; asked a second time, at once.  Exit
    codes: 0 ended as asked; 1 the work directory or port is taken, or the master will
    never take this agent; 2 a flag is wrong; 70 a bug.
    """
    flags, useless = mesos_flags.from_command(TABLE, AgentFlags, ENV_PREFIX, options, os.environ)
    logs.setup(flags.log_level, flags.log_format)
    mesos_flags.tell(useless)
    asyncio.run(serve(flags))


command.table = TABLE
