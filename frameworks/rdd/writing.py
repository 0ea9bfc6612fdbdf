"""Data sets into files: each is there once and whole, or nothing is.

Tasks write into `DIRECTORY/_temporary/JOB`, each attempt a file of its own, and return its
name.  Of several attempts at a partition the engine takes one result; the driver moves the
file of that one to its place, and when all are there puts `_SUCCESS` beside them.  So two
attempts never write one file, and what an attempt leaves that does not count is removed with
the temporary directory.
"""

from __future__ import annotations

import contextlib
import itertools
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from typing import IO, TYPE_CHECKING, Any, Final

import cloudpickle

from frameworks.rdd.paths import opened, wrapped
from frameworks.rdd.taskcontext import TaskContext
from mesos_py.errors import AlreadyExists

if TYPE_CHECKING:
    from frameworks.rdd.jobs import Jobs
    from frameworks.rdd.nodes import Node

SUCCESS: Final = "_SUCCESS"
TEMPORARY: Final = "_temporary"
_BATCH: Final = 256

# (file, elements): writes all of a partition.
Writer = Callable[[IO[bytes], Iterator[Any]], None]


def save(ctx: Jobs, node: Node, directory: str, writer: Writer, extension: str) -> None:
    """Each partition as a file `part-NNNNN`.

    Raises AlreadyExists if something is at `directory`; what the job raises, with nothing
    left then.
    """
    fs, root = opened(directory)
    try:
        if fs.exists(root):
            raise FileExistsError
        fs.makedirs(root, exist_ok=False)
    except FileExistsError:
        raise AlreadyExists(
            f"Output directory {directory} already exists", path=directory
        ) from None
    attempts = f"{root}/{TEMPORARY}/{uuid.uuid4().hex}"
    try:
        fs.makedirs(attempts, exist_ok=True)
        function = partial(_write, directory, attempts, writer, extension)
        for split, written in enumerate(ctx.run(node, function)):
            fs.mv(written, f"{root}/{part_name(split)}{extension}")
        with contextlib.suppress(FileNotFoundError):  # there are no directories in object stores
            fs.rm(f"{root}/{TEMPORARY}", recursive=True)
        fs.makedirs(root, exist_ok=True)
        with fs.open(f"{root}/{SUCCESS}", "wb"):
            pass
    except BaseException:
        with contextlib.suppress(OSError):
            fs.rm(root, recursive=True)
        raise


def part_name(split: int) -> str:
    return f"part-{split:05}"


# ---- What runs in tasks ----------------------------------------------------------------------


def _write(
    directory: str,
    attempts: str,
    writer: Writer,
    extension: str,
    split: int,
    elements: Iterator[Any],
) -> str:
    """The path of the file that has them."""
    fs, _ = opened(directory)
    context = TaskContext.get()
    assert context is not None, "no task runs here"
    path = f"{attempts}/{part_name(split)}-{context.taskAttemptId()}{extension}"
    with fs.open(path, "wb") as file:
        with wrapped(file, extension, "wb") as packed:
            writer(packed, elements)
    return path


def text(file: IO[bytes], elements: Iterator[Any]) -> None:
    """A line for each: a text, bytes as they are, or what str makes of it."""
    for each in elements:
        line = each if isinstance(each, bytes) else str(each).encode()
        file.write(line + b"\n")


def pickles(batch: int, file: IO[bytes], elements: Iterator[Any]) -> None:
    """Lists of `batch` elements (0: of 256), pickled one after the other."""
    size = batch if batch > 0 else _BATCH
    while items := list(itertools.islice(elements, size)):
        file.write(cloudpickle.dumps(items, protocol=5))
