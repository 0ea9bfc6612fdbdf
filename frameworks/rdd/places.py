"""Where in the user's program something was called: for names of jobs and lineages."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_OURS = f"{Path(__file__).parent}{os.sep}"


def caller() -> tuple[str, str]:
    """The method of ours that the user has called, and where: ("count", "script.py:12")."""
    frame = sys._getframe(1)
    name = frame.f_code.co_name
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
        name = frame.f_code.co_name
        frame = frame.f_back
    return name, f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


def place() -> str:
    """As people read it: "map at script.py:12"."""
    name, where = caller()
    return f"{name} at {where}"
