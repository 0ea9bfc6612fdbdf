"""How the end of a command probe is put into words."""

from __future__ import annotations

from typing import Final

from agent.core.records import Exit
from mesos_py.errors import shortened

_MAX_OUTPUT: Final = 200


def ending(exit: Exit, output: str, why: str = "") -> str:
    """How it ended, `why` it was killed, and, if it has failed, the last line of its output."""
    text = exit.text("the command")
    if why:
        text = f"{text}, since {why}"
    last = next((line for line in reversed(output.splitlines()) if line.strip()), "")
    if not last or exit.code == 0:
        return text
    shown = "".join(char if char.isprintable() else " " for char in last.strip())
    return f"{text}: {shortened(shown, _MAX_OUTPUT)}"
