"""Waiting for what has no event: a file that appears, a process that is gone."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

LIMIT_S: Final = 90.0


def until(done: Callable[[], object], limit_s: float = LIMIT_S) -> None:
    """Look often, give up late: on a busy machine all takes longer."""
    end = time.monotonic() + limit_s
    while not done():
        assert time.monotonic() < end, f"not within {limit_s:g} s"
        time.sleep(0.01)


def gone(pid: int) -> bool:
    """Whether no such process runs (one that nobody has reaped yet counts as gone)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"
