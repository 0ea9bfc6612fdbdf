"""Wall and CPU time of whatever processes do, however many there are."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import psutil

_PR_SET_CHILD_SUBREAPER: Final = 36
_libc: Final = ctypes.CDLL(None)


@dataclass
class Took:
    """In seconds; `cpu_s` of this process's descendants, user and system."""

    wall_s: float = 0.0
    cpu_s: float = 0.0


@contextlib.contextmanager
def metered() -> Iterator[Took]:
    """What passes until the block ends."""
    took = Took()
    before, began = descendants_cpu_s(), time.perf_counter()
    yield took
    took.wall_s = time.perf_counter() - began
    took.cpu_s = descendants_cpu_s() - before


@contextlib.contextmanager
def adopting() -> Iterator[None]:
    """Descendants whose parents end become children of this process, so that their time is
    not lost; those that have ended are forgotten when the block ends."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass


def descendants_cpu_s() -> float:
    """Of all that there were: those that have been waited for are in the times of who has
    waited, the others (also ended ones) in their own."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = ended.ru_utime + ended.ru_stime
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            used += sum(process.cpu_times()[:4])
    return used
