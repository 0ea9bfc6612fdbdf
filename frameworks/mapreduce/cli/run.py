"""`mesos-py mapreduce run`."""

from __future__ import annotations

import os
import time
from typing import Any, Final

import click

from frameworks.mapreduce import streaming
from frameworks.mapreduce.cli.options import target_of, where_options
from frameworks.mapreduce.client import MASTER_VARIABLE
from frameworks.mapreduce.streaming import HelpWanted
from mesos_py.errors import InvalidValue

# Options of ours that take a value; what else begins with "--" may be one of Hadoop's.
_OURS: Final = ("--local", "--master", "--tracker", "--state", "--role")
_FLAGS: Final = ("--quiet", "--help")


class _Command(click.Command):
    """Leaves options with one dash to `streaming`: click would read -help as -h -e -l -p."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ours, hadoops = parted(args)
        ctx.meta["hadoop"] = hadoops
        return super().parse_args(ctx, ours)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write("\n" + streaming.usage() + "\n")
        formatter.write("\nProperties for -D: see -info.\n")


def parted(args: list[str]) -> tuple[list[str], list[str]]:
    """Our options and Hadoop's, in any order."""
    ours: list[str] = []
    hadoops: list[str] = []
    rest = list(args)
    while rest:
        word = rest.pop(0)
        name, equals, _ = word.partition("=")
        if name in _FLAGS or word == "-h":
            ours.append(word)
        elif name in _OURS:
            ours.append(word)
            if not equals and rest:
                ours.append(rest.pop(0))
        else:
            hadoops.append(word)
            option = streaming.OPTIONS.get(word) or streaming.OPTIONS.get(word[1:])
            if option is not None and option.value and rest:
                hadoops.append(rest.pop(0))
    return ours, hadoops


@click.command(
    cls=_Command,
    short_help="Run a job and wait for it.",
    options_metavar="[OPTIONS] -input PATH -output PATH -mapper COMMAND [-reducer COMMAND] ...",
)
@where_options
@click.option("--quiet", is_flag=True, help="Say nothing unless the job fails.")
@click.pass_context
def command(ctx: click.Context, /, quiet: bool, **where: Any) -> int:
    """Run a job, show how far it is, and wait for its end.

    The exit code is 0 if it has succeeded, 1 if not, 2 if something of it is wrong.  Ctrl-C
    kills the job (exit code 130); a second one does not wait for its end.
    """
    try:
        options = streaming.parse(ctx.meta["hadoop"])
    except HelpWanted as wanted:
        click.echo(str(wanted))
        return 0
    from frameworks.mapreduce import api, submission
    from frameworks.mapreduce.cli.display import chosen
    from frameworks.mapreduce.watch import interrupts, watch
    from mesos_py import logs
    from mesos_py.cli.options import naming_the_default

    logs.setup("info" if options.verbose else "error")
    given = where["master"] or os.environ.get(MASTER_VARIABLE)
    target = target_of(where)
    if options.background and target.tracker is None:
        raise InvalidValue("-background", "", "needs --tracker: this process would end the job")
    programs = submission.commands(options)
    display = chosen(quiet=quiet, now_s=time.time)
    with interrupts() as asked:
        with naming_the_default(given), api.start(options, programs, target) as job:
            if options.background:
                click.echo(job.job_id)
                return 0
            if job.resumed_by and not quiet:
                display.note(f"if this process dies, go on with: {job.resumed_by}")
            view = watch(job, display, asked)
    if asked.numbers and (view is None or view.state != "succeeded"):
        return 128 + asked.numbers[0]
    return 0 if view is not None and view.state == "succeeded" else 1
