"""`mesos-py agent`."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from agent.app import serve
from agent.flags import ENV_PREFIX, AgentFlags
from mesos_py import config, logs


@click.command("agent", short_help="Run an agent.")
@config.click_options(AgentFlags, ENV_PREFIX)
def command(**options: Any) -> None:
    """Run an agent: it offers what this machine has and runs tasks here.

    Ends on SIGTERM or SIGINT, after its tasks; asked a second time, at once.  Exit
    codes: 0 ended as asked; 1 the work directory or port is taken, or the master will
    never take this agent; 2 a flag is wrong; 70 a bug.
    """
    flags = config.from_command(AgentFlags, ENV_PREFIX, options)
    logs.setup(flags.log_level, flags.log_format)
    asyncio.run(serve(flags))
