"""How attempts fail, in words and with who is to blame."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal

from frameworks.mapreduce.job import Split
from frameworks.mapreduce.work import Counters, Failure
from frameworks.runtime.exits import exit_worded
from mesos_py.errors import InvalidValue, MesosPyError, shortened

Blame = Literal["program", "data", "fetch", "place", "job"]

MAX_MESSAGE: Final = 1000
MAX_DETAILS: Final = 16 * 1024

# What the machine lacks or has lost; the same attempt may do well elsewhere.
_OF_THE_PLACE: Final = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EROFS,
    errno.EIO,
    errno.ENOMEM,
    errno.EMFILE,
    errno.ENFILE,
    errno.EAGAIN,
}
_TRACEBACK: Final = "Traceback (most recent call last):"
_CHAINED: Final = (
    "was the direct cause of the following exception:",
    "another exception occurred:",
)
_NOT_PYTHON: Final = re.compile(r"^(SyntaxError|IndentationError|TabError): ", re.MULTILINE)
_FILE: Final = re.compile(r'^ *File "([^"\n]+)", line \d+', re.MULTILINE)


class AttemptFailed(Exception):
    """Ends an attempt; whoever runs it adds counters, split and log."""

    def __init__(self, blame: Blame, message: str, details: str = "", missing: str = "") -> None:
        super().__init__(message)
        self.missing = missing
        self.blame: Blame = blame
        self.message = message
        self.details = details


def of(error: BaseException, blame: Blame, doing: str) -> AttemptFailed:
    """`error`, which came up in `doing` ("reading /data/a.txt").  blame: who it is, unless it
    is of a kind that the machine is to blame for."""
    if isinstance(error, AttemptFailed):
        return error
    if isinstance(error, MemoryError) or is_of_the_place(error):
        blame = "place"
    elif isinstance(error, InvalidValue) and blame == "place":
        # Of the job's own properties: they are as wrong elsewhere.
        blame = "job"
    return AttemptFailed(blame, shortened(f"{doing}: {worded(error)}", MAX_MESSAGE))


@contextmanager
def doing(blame: Blame, what: str) -> Iterator[None]:
    """Whatever is raised inside becomes AttemptFailed; see `of`."""
    try:
        yield
    except Exception as error:
        raise of(error, blame, what) from error


def is_of_the_place(error: BaseException) -> bool:
    """Also if it is only the cause of `error`."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError) and seen.errno in _OF_THE_PLACE:
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def worded(error: BaseException) -> str:
    if isinstance(error, MesosPyError):
        return error.message
    if isinstance(error, OSError) and error.strerror:
        return error.strerror + (f": {error.filename}" if error.filename else "")
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def program_failed(what: str, code: int, tail: str, own_files: set[str]) -> AttemptFailed:
    """`what` names the program ("mapper: words.py"); tail: the last of its stderr; own_files:
    names of files that were shipped.  A script that is no Python fails the job: it will not
    become any."""
    details, last = told(tail)
    message = f"{what} {exit_worded(code)}"
    if last:
        message += f": {last}"
    blame: Blame = "program"
    if code > 0 and _does_not_compile(tail, own_files):
        blame = "job"
    return AttemptFailed(
        blame, shortened(message.replace("\n", " "), MAX_MESSAGE), shortened(details, MAX_DETAILS)
    )


def told(tail: str) -> tuple[str, str]:
    """What to show of the last lines of stderr: a traceback first, if there is one, and
    the line that says most."""
    text = tail.strip("\n")
    last = text.rfind(_TRACEBACK)
    if last < 0:
        return text, text.rpartition("\n")[2].strip()
    start = last
    while start > 0 and text[:start].rstrip().endswith(_CHAINED):
        start = text.rfind(_TRACEBACK, 0, start)
    start = max(start, 0)
    lines = text[last:].split("\n")
    # What belongs to a traceback is indented, but for its first line and the error.
    end = next((i for i, line in enumerate(lines) if i and line[:1].strip()), len(lines) - 1)
    traceback = text[start:last] + "\n".join(lines[: end + 1])
    others = (text[:start].strip("\n"), "\n".join(lines[end + 1 :]).strip("\n"))
    details = "\n\n".join(part for part in (traceback, others[1], others[0]) if part)
    return details, lines[end].strip()


def _does_not_compile(tail: str, own_files: set[str]) -> bool:
    errors = list(_NOT_PYTHON.finditer(tail))
    if not errors:
        return False
    before = tail[: errors[-1].start()]
    files = _FILE.findall(before)
    if not files:
        return False
    if _TRACEBACK not in before:
        return True
    return files[-1].rpartition("/")[2] in own_files


def split_worded(split: Split | None) -> str:
    """ "/data/a.txt bytes 0 to 1000 and 3 others"."""
    if split is None or not split.pieces:
        return ""
    first = split.pieces[0]
    text = first.url
    if first.length >= 0:
        text += f" bytes {first.start} to {first.start + first.length}"
    others = len(split.pieces) - 1
    return f"{text} and {others} others" if others else text


def finished(error: AttemptFailed, *, where: str, log: str, counters: Counters) -> Failure:
    return Failure(
        blame=error.blame,
        message=error.message,
        details=error.details,
        missing=error.missing,
        where=where,
        log=log,
        counters=counters,
    )


__all__ = [
    "AttemptFailed",
    "doing",
    "finished",
    "is_of_the_place",
    "of",
    "program_failed",
    "split_worded",
    "told",
    "worded",
]
