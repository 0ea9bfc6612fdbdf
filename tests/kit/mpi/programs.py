"""MPI programs, built for a test."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

PARTS: Final = Path(__file__).with_name("parts.c")
_BUILD_WITHIN_S: Final = 60


def build(directory: Path, compiler: str, source: Path = PARTS) -> Path:
    """The program, made from `source`, where every user may run it."""
    made = directory / source.stem
    argv = [compiler, "-O1", "-o", str(made), str(source)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=_BUILD_WITHIN_S)
    assert done.returncode == 0, done.stderr
    made.chmod(0o755)
    return made
