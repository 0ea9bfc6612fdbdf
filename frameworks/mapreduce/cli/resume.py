"""`mesos-py mapreduce resume`."""

from __future__ import annotations

import time

import click

from frameworks.mapreduce.client import MASTER_VARIABLE


@click.command(short_help="Go on with a job whose tracker has ended.")
@click.option(
    "--state", metavar="URL", required=True, help="The state of the tracker that has ended."
)
@click.option(
    "--master",
    metavar="HOST:PORT[,...]|zk://...",
    envvar=MASTER_VARIABLE,
    help=f"Of the cluster.  [environment: {MASTER_VARIABLE}; default: 127.0.0.1:5050]",
)
@click.option("--role", default="*", show_default=True, help="The role that it ran under.")
@click.option("--quiet", is_flag=True, help="Say nothing unless the job fails.")
@click.argument("job", required=False)
def command(state: str, master: str | None, role: str, quiet: bool, job: str | None) -> int:
    """Go on with JOB from the --state of a tracker that has ended, and wait for its end.

    Without JOB: with all that have not ended.  What is done is not done again, and tasks that
    still run are taken over.  Exit codes are those of `run`.
    """
    from frameworks.mapreduce import api
    from frameworks.mapreduce.cli.display import chosen
    from frameworks.mapreduce.client import DEFAULT_MASTER, Target
    from frameworks.mapreduce.client.base import has_ended
    from frameworks.mapreduce.client.own import OwnClient, check_master
    from frameworks.mapreduce.tracker.place import is_beside
    from frameworks.mapreduce.watch import interrupts, watch
    from mesos_py import logs
    from mesos_py.cli.options import naming_the_default
    from mesos_py.errors import NotFound

    logs.setup("error")
    target = Target(master=master or DEFAULT_MASTER, state=state, role=role)
    with naming_the_default(master):
        check_master(master or DEFAULT_MASTER)
    with interrupts() as asked, OwnClient(target, state, temporary=is_beside(state)) as client:
        views = [client.view(job)] if job else [v for v in client.views() if not has_ended(v)]
        if not views:
            raise NotFound("job", job or "", "the state has none that has not ended")
        ends = []
        for view in views:
            end = watch(api.Known(client, view.job_id), chosen(quiet=quiet, now_s=time.time), asked)
            ends.append(end)
            if asked.numbers:
                return 128 + asked.numbers[0]
    return 0 if all(end is not None and end.state == "succeeded" for end in ends) else 1
