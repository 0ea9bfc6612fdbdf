"""The group of sub-commands; each is loaded when it is used."""

from __future__ import annotations

import difflib
import importlib
from typing import Final

import click

from mesos_py.cli.summaries import SUMMARIES
from mesos_py.errors import MesosPyError

# What the extra of this name brings (pyproject.toml).
_EXTRA: Final = frozenset({"cloudpickle", "msgspec", "numpy"})
# Name, module, what it does.
_COMMANDS: Final = {
    "run": ("run", "Run a job and wait for it."),
    "resume": ("resume", "Go on with a job whose tracker has ended."),
    "jobs": ("jobs", "List jobs of a tracker."),
    "status": ("status", "Show a job and its tasks."),
    "kill": ("kill", "End a job."),
    "history": ("history", "List jobs that have ended, from a tracker's state."),
    "tracker": ("tracker", "Run a tracker that others submit jobs to."),
    "hadoop-home": ("home", "Make a directory with a `hadoop` command for other programs."),
}


class _Group(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        try:
            module = importlib.import_module(f"frameworks.mapreduce.cli.{_COMMANDS[cmd_name][0]}")
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] not in _EXTRA:
                raise
            raise MesosPyError(
                f"{error.name} is not installed: pip install 'mesos-py[mapreduce]'"
            ) from None
        found: click.Command = module.command
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        near = difflib.get_close_matches(args[0], _COMMANDS, n=1)
        if args[0] not in _COMMANDS and not args[0].startswith("-") and near:
            raise click.UsageError(f"no such command {args[0]!r}; did you mean {near[0]!r}?", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


@click.command(cls=_Group, short_help=SUMMARIES["mapreduce"])
def command() -> None:
    """MapReduce for programs that exist: what reads lines and writes key-TAB-value.

    Its options are those of Hadoop Streaming:

    \b
    mesos-py mapreduce run --local 2 -input books -output counts \\
        -mapper words.py -reducer sum.py -file words.py -file sum.py
    """
