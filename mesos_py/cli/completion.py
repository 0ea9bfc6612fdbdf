"""`mesos-py completion`: the script that makes a shell complete our commands."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from mesos_py.cli.summaries import SUMMARIES
from mesos_py.errors import MesosPyError

PROGRAM = "mesos-py"
VARIABLE = "_MESOS_PY_COMPLETE"


@click.command(
    short_help=SUMMARIES["completion"],
    epilog='bash: eval "$(mesos-py completion bash)" in ~/.bashrc',
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script for SHELL; ids come from the master, if one answers.

    \b
    bash:  eval "$(mesos-py completion bash)"       in ~/.bashrc
    zsh:   eval "$(mesos-py completion zsh)"        in ~/.zshrc, after compinit
    fish:  mesos-py completion fish | source        in ~/.config/fish/config.fish
    """
    root = ctx.find_root().command
    kind = get_completion_class(shell)
    if kind is None:
        raise MesosPyError(f"click knows no completion for {shell}")
    try:
        click.echo(kind(root, {}, PROGRAM, VARIABLE).source())
    except RuntimeError as error:
        raise MesosPyError(str(error)) from error
