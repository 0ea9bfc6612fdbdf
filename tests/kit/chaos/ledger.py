"""What the workload's scheduler did and was told, written down before it acts on it.

A line is a JSON object with the moment (`at`, seconds since the machine was booted, a
clock that all hosts here share) and a `kind`; see `workload.py` for the kinds.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

Entry: TypeAlias = dict[str, Any]


def boottime_s() -> float:
    """The clock of the ledger and of the marks that tasks make."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class LedgerFile:
    """Where one scheduler after the other writes."""

    def __init__(self, path: Path) -> None:
        whole = path.read_bytes().rpartition(b"\n") if path.exists() else (b"", b"", b"")
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        # A line that its writer did not live to end was never acted on.
        os.ftruncate(self._fd, len(whole[0]) + len(whole[1]))

    def write(self, entries: Iterable[Entry]) -> None:
        """On the disk when this returns."""
        now = round(boottime_s(), 3)
        lines = [json.dumps({"at": now, **entry}) + "\n" for entry in entries]
        if lines:
            os.write(self._fd, "".join(lines).encode())
            os.fsync(self._fd)

    def close(self) -> None:
        os.close(self._fd)


def read(path: Path) -> list[Entry]:
    """All whole lines; none if there is no such file yet."""
    if not path.exists():
        return []
    whole = path.read_bytes().rpartition(b"\n")[0]
    return [json.loads(line) for line in whole.splitlines()]
