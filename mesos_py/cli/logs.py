"""`mesos-py logs`: a task's output, through the master."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from mesos_py.cli import completing
from mesos_py.cli.options import SIZE, with_master
from mesos_py.cli.summaries import SUMMARIES
from mesos_py.errors import InvalidValue

if TYPE_CHECKING:
    from mesos_py.operator import OperatorClient
    from mesos_py.v1.types_pb2 import Task

# How much of the end is looked at first for the last lines; doubled as needed.
FIRST_LOOK_BYTES = 64 * 1024


@click.command(short_help=SUMMARIES["logs"])
@click.argument("task", shell_complete=completing.tasks)
@click.option("-f", "--follow", is_flag=True, help="Go on until the task has ended.")
@click.option("--stderr", "from_stderr", is_flag=True, help="Its stderr in place of its stdout.")
@click.option("--file", "path", metavar="NAME", help="Another file of its sandbox.")
@click.option(
    "--tail", "lines", type=click.IntRange(min=0), metavar="N", help="Only the last N lines."
)
@click.option("--bytes", "size", type=SIZE, help="Only the last so many bytes.")
@click.option(
    "--framework",
    metavar="NAME|ID",
    help="Whose task it is, where several have one with this id.",
    shell_complete=completing.frameworks,
)
@with_master
def command(
    client: OperatorClient,
    *,
    task: str,
    follow: bool,
    from_stderr: bool,
    path: str | None,
    lines: int | None,
    size: int | None,
    framework: str | None,
) -> None:
    """Show what TASK (an id, a name, or the beginning of an id) has written.

    Works for tasks that have ended, too, for as long as their agent keeps the sandbox.
    Bytes are passed on as they are; those of stderr also go to our stdout.
    """
    from mesos_py.cli import find

    if lines is not None and size is not None:
        raise InvalidValue("--tail", lines, "cannot be given together with --bytes")
    if from_stderr and path is not None:
        raise InvalidValue("--file", path, "cannot be given together with --stderr")
    found = find.task(client, task, framework)
    name = path or ("stderr" if from_stderr else "stdout")
    offset = 0
    if lines is not None:
        offset = offset_of_last_lines(client, found, name, lines)
    elif size is not None:
        offset = -size if size else end_of(client, found, name)
    copy(client, found, name, offset=offset, follow=follow)


def copy(client: OperatorClient, task: Task, name: str, *, offset: int, follow: bool) -> None:
    """Write the file to our stdout, flushed as it comes."""
    parts = client.read_log(
        task.framework_id.value, task.task_id.value, name, offset=offset, follow=follow
    )
    out = sys.stdout.buffer
    for part in parts:
        out.write(part.data)
        out.flush()


def end_of(client: OperatorClient, task: Task, name: str) -> int:
    """The size of the file now."""
    parts = list(
        client.read_log(task.framework_id.value, task.task_id.value, name, offset=-1, length=1)
    )
    return parts[-1].offset + len(parts[-1].data) if parts else 0


def offset_of_last_lines(client: OperatorClient, task: Task, name: str, lines: int) -> int:
    """Where the last `lines` lines begin.  A line that has no end yet counts as one."""
    end = end_of(client, task, name)
    look = FIRST_LOOK_BYTES
    while True:
        start = max(0, end - look)
        parts = client.read_log(
            task.framework_id.value,
            task.task_id.value,
            name,
            offset=start,
            length=end - start or 1,
        )
        data = b"".join(part.data for part in parts)[: end - start]
        begin = last_lines_begin(data, lines)
        if begin is not None or start == 0:
            return start + (begin or 0)
        look *= 4


def last_lines_begin(data: bytes, lines: int) -> int | None:
    """Where in `data` its last `lines` lines begin; None if it has no more than those."""
    at = len(data) - data.endswith(b"\n")
    if lines == 0:
        return len(data)
    for _ in range(lines):
        at = data.rfind(b"\n", 0, at)
        if at < 0:
            return None
    return at + 1
