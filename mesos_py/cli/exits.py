"""The exit codes of `mesos-py`: this table is the only one."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from mesos_py.errors import (
    InternalError,
    InvalidValue,
    MasterUnreachable,
    MesosPyError,
    NotLeader,
    TooLarge,
)


class Exit(IntEnum):
    """How a command ended.  `run`, `exec` and `local -- COMMAND` pass the command's own code on."""

    OK = 0
    NEGATIVE = 1
    USAGE = 2
    UNREACHABLE = 3
    NOT_RUN = 4
    INTERNAL = 70
    TIMED_OUT = 124
    INTERRUPTED = 130
    NO_READER = 141


MEANING: Final = {
    Exit.OK: "done; the answer is positive",
    Exit.NEGATIVE: "the answer is negative: not found, refused, nothing there, a daemon failed",
    Exit.USAGE: "wrong usage or bad input",
    Exit.UNREACHABLE: "no master could be reached",
    Exit.NOT_RUN: "run: a task never ran, or was lost",
    Exit.INTERNAL: "a bug in mesos-py (MESOS_PY_DEBUG=1 shows where)",
    Exit.TIMED_OUT: "run: not done within --timeout",
    Exit.INTERRUPTED: "interrupted (Ctrl-C)",
    Exit.NO_READER: "whoever read our output has gone",
}


def of_error(error: MesosPyError) -> Exit:
    """The exit code of a command that ends with `error`."""
    match error:
        case MasterUnreachable() | NotLeader():
            return Exit.UNREACHABLE
        case InvalidValue() | TooLarge():
            return Exit.USAGE
        case InternalError():
            return Exit.INTERNAL
        case _:
            return Exit.NEGATIVE


def of_signal(number: int) -> int:
    """The exit code for a process that a signal ended, as shells have it."""
    return 128 + number
