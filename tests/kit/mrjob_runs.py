"""Runs programs written with mrjob: on our `hadoop` command, and without it to compare."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from tests.kit.local import END_WITH_THE_TESTS, environment

PROGRAMS: Final = Path(__file__).parent / "mrjobs"
LIMIT_S: Final = 600.0


def run(
    program: str,
    runner: str,
    *args: Any,
    directory: Path,
    home: Path | None = None,
    env: dict[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """`python program.py -r runner args`; its output, and what it says on stderr."""
    full = {**environment(), "PYTHONWARNINGS": "ignore", **(env or {})}
    if home is not None:
        full["HADOOP_HOME"] = str(home)
    # Logs of local jobs that have failed stay.
    full["TMPDIR"] = str(directory / "tmp")
    (directory / "tmp").mkdir(exist_ok=True)
    # Who runs the tests may have a configuration of mrjob's.
    full["MRJOB_CONF"] = os.devnull
    return subprocess.run(
        [
            *END_WITH_THE_TESTS,
            sys.executable,
            str(PROGRAMS / f"{program}.py"),
            "-r",
            runner,
            "--no-conf",
            *map(str, args),
        ],
        cwd=directory,
        env=full,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )


def lines(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Of a run that has succeeded, in the order of their bytes."""
    assert done.returncode == 0, done.stderr
    return sorted(done.stdout.splitlines())
