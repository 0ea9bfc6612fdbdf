"""The `mesos-py` command: finds its sub-commands, runs one, turns errors into exit codes.

Sub-commands are entry points of the group `mesos_py.cli`, our own included.  Only
the one that is invoked is imported.
"""

from __future__ import annotations

import difflib
import gc
import os
import sys
from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, NoReturn

import click
from click.shell_completion import CompletionItem

from mesos_py.cli.exits import MEANING, Exit, of_error
from mesos_py.cli.summaries import SECTIONS, SUMMARIES
from mesos_py.errors import InvalidValue, MesosPyError
from mesos_py.version import VERSION

GROUP: Final = "mesos_py.cli"
OWN_DISTRIBUTION: Final = "mesos-py"
DEBUG_VARIABLE: Final = "MESOS_PY_DEBUG"


class Commands(click.Group):
    """Loads a sub-command when it is asked for by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({entry.name for entry in entry_points(group=GROUP)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = [each for each in entry_points(group=GROUP) if each.name == cmd_name]
        if not found:
            return None
        try:
            return _load(cmd_name, found)
        except InvalidValue as error:
            return _broken(cmd_name, error)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            found = super().resolve_command(ctx, args)
            _collect_again()
            return found
        except click.UsageError as error:
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
            if not near or error.message.startswith("No such option"):
                raise
            raise click.UsageError(
                f"no such command {args[0]!r}; did you mean {near[0]!r}?", ctx
            ) from None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        found = [
            CompletionItem(name, help=SUMMARIES.get(name))
            for name in self.list_commands(ctx)
            if name.startswith(incomplete)
        ]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            from mesos_py.cli.output import discard_stdout

            discard_stdout()
            raise click.exceptions.Exit(Exit.NO_READER) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        there = self.list_commands(ctx)
        for title, part in SECTIONS.items():
            ours = [(name, text) for name, text in part.items() if name in there]
            if ours:
                with formatter.section(title):
                    formatter.write_dl(ours)
        plugins = [(name, self._summary(ctx, name)) for name in there if name not in SUMMARIES]
        if plugins:
            with formatter.section("Plug-ins"):
                formatter.write_dl(plugins)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(int(code)), text) for code, text in MEANING.items()])

    def _summary(self, ctx: click.Context, name: str) -> str:
        command = self.get_command(ctx, name)
        return command.get_short_help_str(60) if command is not None else ""


def _collect_again() -> None:
    """What `main` has put off begins when the command is imported.

    Modules are no garbage: they are never looked through, not at the end either.
    """
    if not gc.isenabled():
        gc.freeze()
        gc.enable()


def _load(name: str, found: list[EntryPoint]) -> click.Command:
    from mesos_py import plugins

    # Who owns an entry point is a look into its files: only where there are two.
    own = {
        each.name: each.value
        for each in found
        if len(found) == 1 or (each.dist is not None and each.dist.name == OWN_DISTRIBUTION)
    }
    command: object = plugins.resolve(GROUP, own, name)
    if not isinstance(command, click.Command):
        raise InvalidValue(GROUP, name, "is not a click command")
    return command


def _broken(name: str, error: InvalidValue) -> click.Command:
    def callback(**_: object) -> NoReturn:
        raise MesosPyError(f"the command {name!r} is broken: {error.reason}") from error

    return click.Command(
        name,
        callback=callback,
        params=[click.Argument(["args"], nargs=-1, type=click.UNPROCESSED)],
        add_help_option=False,
        short_help=f"(broken: {error.reason})",
        context_settings={"ignore_unknown_options": True},
    )


@click.command(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, message="mesos-py %(version)s")
def group() -> None:
    """A resource manager for clusters of Linux machines.

    Clients find the master through --master or MESOS_PY_MASTER (host:port, a list of
    them, or zk://host:port,.../path); without either they try 127.0.0.1:5060.
    """


def main(args: Sequence[str] | None = None) -> NoReturn:
    """The entry point of the program: never returns."""
    # gRPC's core writes lines of its own to stderr; what matters comes as an error.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    # Looking for garbage among modules is a tenth of a daemon's start; see _collect_again.
    gc.disable()
    sys.exit(run(args))


def run(args: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; errors are told in one line."""
    _open_closed()
    try:
        result = group.main(args, prog_name="mesos-py", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else Exit.OK
    except (click.Abort, KeyboardInterrupt):
        return Exit.INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return Exit.USAGE
    except click.ClickException as error:
        return _fail(error, error.format_message().rstrip(".") + _hint(error), error.exit_code)
    except MesosPyError as error:
        return _fail(error, error.message, of_error(error))
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _fail(error, f"{where}{error.strerror or error}", Exit.NEGATIVE)
    except Exception as error:
        wrong = _no_text(sys.argv[1:] if args is None else args)
        if wrong is not None and isinstance(error, UnicodeEncodeError):
            return _fail(error, f"argument: {wrong!a}: must be UTF-8", Exit.USAGE)
        text = f"internal error: {type(error).__name__}: {error} ({DEBUG_VARIABLE}=1 shows where)"
        return _fail(error, text, Exit.INTERNAL)


def _open_closed() -> None:
    """A standard stream that is closed (`<&-`) is as one of /dev/null to all commands."""
    for name, mode in {"stdin": "r", "stdout": "w", "stderr": "w"}.items():
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def _no_text(args: Sequence[str]) -> str | None:
    """The first argument that is not UTF-8: a path may be so, no text of a message can."""
    return next((each for each in args if any("\ud800" <= c <= "\udfff" for c in each)), None)


def _fail(error: Exception, text: str, code: int) -> int:
    if os.environ.get(DEBUG_VARIABLE, "") not in ("", "0"):
        import traceback

        traceback.print_exception(error)
    click.echo(f"mesos-py: error: {' '.join(text.split())}", err=True)
    return code


def _hint(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    if not isinstance(context, click.Context):
        return ""
    return f" (see {context.command_path} --help)"
