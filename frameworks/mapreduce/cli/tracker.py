"""`mesos-py mapreduce tracker`."""

from __future__ import annotations

from typing import Any

import click

from frameworks.mapreduce.cli.flags import ENV_PREFIX, TrackerFlags, options_of
from mesos_py import config, logs
from mesos_py.cli.options import environ_with_master


@click.command("tracker", short_help="Run a tracker that others submit jobs to.")
@config.click_options(TrackerFlags, ENV_PREFIX)
def command(**options: Any) -> None:
    """Run a tracker: it takes jobs from clients (`run --tracker URL`) and runs them on the
    cluster, many at once.

    Ends on SIGTERM or SIGINT; tasks go on, and the next tracker with the same --state goes on
    with its jobs.  Where there are no jobs, nothing is left on the cluster.
    """
    environ = environ_with_master(ENV_PREFIX)
    flags = config.from_command(TrackerFlags, ENV_PREFIX, options, environ)
    logs.setup(flags.log_level, flags.log_format)
    from frameworks.mapreduce.tracker.run import serve

    serve(options_of(flags), ip=flags.ip, port=flags.port, port_file=flags.port_file)
