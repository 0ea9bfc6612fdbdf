"""`mesos-py exec`: a command within the container of a running task."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import uuid
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import click

from mesos_py.cli import completing
from mesos_py.cli.exits import of_signal
from mesos_py.cli.options import with_master
from mesos_py.cli.summaries import SUMMARIES
from mesos_py.cli.variables import HELP as VARIABLES_HELP
from mesos_py.cli.variables import require_text, variables_of
from mesos_py.errors import Conflict, InvalidValue, Refused, Unavailable

if TYPE_CHECKING:
    from mesos_py.address import Address
    from mesos_py.cli.session import Asked, Input
    from mesos_py.operator import OperatorClient
    from mesos_py.v1.operator_pb2 import Response
    from mesos_py.v1.types_pb2 import CommandInfo, ContainerID, Task, TTYInfo

_STDIN: Final = 0
_STDOUT: Final = 1
# The directory, then the command.  No directory is no command that could not be found.
_WITHIN: Final = 'cd -- "$1" || exit 126; shift; exec "$@"'


@click.command(
    short_help=SUMMARIES["exec"],
    context_settings={"allow_interspersed_args": False},
)
@click.option("-i", "--interactive", is_flag=True, help="Pass our stdin on, until it ends.")
@click.option("-t", "--tty", "terminal", is_flag=True, help="Give the command a terminal.")
@click.option(
    "--user",
    metavar="NAME",
    help="Run it as this user, where the agent allows any.  [default: the task's]",
)
@click.option(
    "-e",
    "--env",
    multiple=True,
    metavar="NAME[=VALUE]",
    help=VARIABLES_HELP,
)
@click.option(
    "-w",
    "--workdir",
    metavar="DIR",
    help="Run it in this directory, seen from that of the task.  [default: the task's]",
)
@click.option(
    "--framework",
    metavar="NAME|ID",
    help="Whose task it is, where several have one with this id.",
    shell_complete=completing.frameworks,
)
@click.argument("task", shell_complete=completing.live_tasks)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@with_master
def command(
    client: OperatorClient,
    *,
    interactive: bool,
    terminal: bool,
    user: str | None,
    env: tuple[str, ...],
    workdir: str | None,
    framework: str | None,
    task: str,
    command: tuple[str, ...],
) -> int:
    """Run COMMAND in the container of TASK (an id, a name, or the beginning of an id).

    It has the task's environment (with what -e adds), directory and limits, and we its
    output and its exit code (128 and the signal's number if one has ended it).  A single
    word is a shell's command line; several words are a program and its arguments.  Options
    come before TASK:

        mesos-py exec -it web -- sh

    Ctrl-C ends the command; with -it it is typed to it, as every other key.
    """
    from mesos_py.cli import find
    from mesos_py.cli.session import Asked
    from mesos_py.v1.types_pb2 import ContainerID

    words = words_of(command)
    if terminal and interactive and not os.isatty(_STDIN):
        raise InvalidValue("--tty", True, "cannot go with -i: stdin is no terminal")
    made = command_of(
        words,
        user=user,
        term=os.environ.get("TERM") if terminal else None,
        env=env,
        directory=workdir,
    )
    found = find.task(client, task, framework, prefer_live=True)
    container_id = ContainerID(value=str(uuid.uuid4()), parent=container_of(found))
    where = address_of(client.agents(), found)
    # The rest, however long it takes, is the agent's.
    client.close()
    asked = Asked(container_id, made, terminal_now() if terminal else None)
    with _keys_passed_on(terminal and interactive):
        status = asyncio.run(_run(where, asked, _STDIN if interactive else None, client.timeout_s))
    if status is None:
        text = f"how the command in task {found.task_id.value!r} ended is not known"
        raise Unavailable(f"{text}: the task has probably ended", task_id=found.task_id.value)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else of_signal(-code)


def words_of(command: Sequence[str]) -> list[str]:
    """The command without what stands before it.  Raises InvalidValue."""
    words = list(command[1:] if command[0] == "--" else command)
    if not words:
        raise InvalidValue("COMMAND", "", "must not be empty")
    if command[0].startswith("-") and command[0] != "--":
        raise InvalidValue("COMMAND", command[0], "is no program; options come before TASK")
    return words


def command_of(
    words: Sequence[str],
    *,
    user: str | None = None,
    term: str | None = None,
    env: Sequence[str] = (),
    directory: str | None = None,
) -> CommandInfo:
    """`term`: what kind of terminal it is to know, if `env` does not say that.

    Raises InvalidValue for a variable that is none, a directory that cannot be, and what is
    no text.
    """
    from mesos_py.v1.types_pb2 import CommandInfo

    for word in words:
        require_text("COMMAND", word)
    if directory is not None:
        line = ["/bin/sh", "-c", words[0]] if len(words) == 1 else words
        arguments = ["sh", "-c", _WITHIN, "sh", _as_path(directory), *line]
        made = CommandInfo(shell=False, value="/bin/sh", arguments=arguments)
    elif len(words) == 1:
        made = CommandInfo(shell=True, value=words[0])
    else:
        made = CommandInfo(shell=False, value=words[0], arguments=words)
    if user is not None:
        require_text("--user", user)
        made.user = user
    if term is not None:
        made.environment.variables.add(name="TERM", value=term)
    made.environment.variables.extend(variables_of(env))
    return made


def _as_path(directory: str) -> str:
    if not directory:
        raise InvalidValue("--workdir", directory, "must not be empty")
    require_text("--workdir", directory)
    # "-" would be the directory before, and others could be looked for along CDPATH.
    return directory if directory.startswith("/") else f"./{directory}"


def container_of(task: Task) -> ContainerID:
    """The container that a task runs in.  Raises Conflict if it does not run, Unavailable if
    nobody knows."""
    from mesos_py.states import is_terminal, short_name
    from mesos_py.v1.types_pb2 import TASK_STAGING, TASK_UNREACHABLE

    name, state = task.task_id.value, short_name(task.state)
    if is_terminal(task.state):
        raise Conflict(f"task {name!r} has ended already: {state}", task_id=name)
    if task.state == TASK_UNREACHABLE:
        text = f"task {name!r} cannot be reached: its agent {task.agent_id.value!r} is away"
        raise Unavailable(text, task_id=name)
    if task.state == TASK_STAGING:
        raise Conflict(f"task {name!r} does not run yet: {state}", task_id=name)
    for status in reversed(task.statuses):
        if status.container_status.HasField("container_id"):
            return status.container_status.container_id
    raise Conflict(f"task {name!r} ({state}): nobody has told its container", task_id=name)


def address_of(agents: Sequence[Response.GetAgents.Agent], task: Task) -> Address:
    """Where the HTTP of the task's agent is.  Raises Unavailable, Refused."""
    from mesos_py.address import Address

    agent_id = task.agent_id.value
    agent = next((each for each in agents if each.agent_info.id.value == agent_id), None)
    if agent is None or agent.state != "connected":
        state = agent.state if agent is not None else "not known"
        text = f"agent {agent_id!r} of task {task.task_id.value!r} is away: {state}"
        raise Unavailable(text, agent_id=agent_id)
    info = agent.agent_info
    if not info.http_port:
        raise Refused(f"agent {agent_id!r} has not told where its HTTP is", agent_id=agent_id)
    return Address(info.ip or info.hostname, info.http_port)


def terminal_now() -> TTYInfo:
    """One of the size of ours, if that has any."""
    from mesos_py.cli.terminal import size
    from mesos_py.v1.types_pb2 import TTYInfo

    made = TTYInfo()
    if (found := size(_STDOUT, _STDIN)) is not None:
        made.window_size.rows = found.lines
        made.window_size.columns = found.columns
    return made


@contextlib.contextmanager
def _keys_passed_on(wanted: bool) -> Iterator[None]:
    if not wanted:
        yield
        return
    from mesos_py.cli.terminal import raw

    with raw(_STDIN):
        yield


async def _run(where: Address, asked: Asked, stdin: int | None, timeout_s: float) -> int | None:
    from mesos_py.cli.session import Input, talking

    given = Input(stdin, terminal=asked.terminal is not None)
    async with talking(where, timeout_s) as agent:
        with _resizing(given, asked.terminal is not None):
            return await agent.run(asked, given, _write)


@contextlib.contextmanager
def _resizing(given: Input, wanted: bool) -> Iterator[None]:
    """While the command's terminal is to have the size of ours."""
    if not wanted:
        yield
        return
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGWINCH, lambda: given.resize(terminal_now()))
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)


def _write(is_stderr: bool, data: bytes) -> None:
    out = (sys.stderr if is_stderr else sys.stdout).buffer
    out.write(data)
    out.flush()
