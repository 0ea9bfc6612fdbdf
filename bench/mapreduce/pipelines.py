"""What a shell makes of `a | b | c > out`: programs in a row, and what each of them costs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final

from bench.processes import BenchFailed, end_with_parent

# Bytes in their own order, whatever the machine's language.
BYTE_ORDER: Final = {"LC_ALL": "C"}


def run(stages: Sequence[Sequence[str]], out: Path | None, log: Path) -> list[float]:
    """The CPU time in seconds of each stage.  The last one's output goes into `out` (None: into
    the log), complaints go into the log.

    Raises BenchFailed if any of them does not end well.
    """
    running: list[subprocess.Popen[bytes]] = []
    with log.open("ab") as complaints:
        try:
            source: IO[bytes] | None = None
            for stage in stages:
                process = _start(stage, source, complaints, stage is stages[-1], out)
                running.append(process)
                if source is not None:
                    source.close()  # it is the next stage's alone: who reads no more is noticed
                source = process.stdout
            return [_finish(process, log) for process in running]
        finally:
            for process in running:
                if process.returncode is None:
                    process.kill()
                    process.wait()


def _start(
    stage: Sequence[str],
    source: IO[bytes] | None,
    complaints: IO[bytes],
    is_last: bool,
    out: Path | None,
) -> subprocess.Popen[bytes]:
    def start(target: int | IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            stage,
            env={**os.environ, **BYTE_ORDER},
            stdin=subprocess.DEVNULL if source is None else source,
            stdout=target,
            stderr=complaints,
            preexec_fn=end_with_parent,  # noqa: PLW1509 (no threads here)
        )

    if not is_last:
        return start(subprocess.PIPE)
    if out is None:
        return start(complaints)
    with out.open("wb") as file:
        return start(file)


def _finish(process: subprocess.Popen[bytes], log: Path) -> float:
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        said = log.read_text(errors="replace")[-1000:]
        raise BenchFailed(f"{process.args!r} ended with {process.returncode}:\n{said}")
    return used.ru_utime + used.ru_stime
