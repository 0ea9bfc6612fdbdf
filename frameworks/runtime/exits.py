"""How processes end, in words."""

from __future__ import annotations

import signal


def exit_worded(code: int) -> str:
    """As subprocess has it: negative is a signal."""
    if code < 0:
        return f"was killed by {_signal(-code)}"
    if 128 < code <= 128 + signal.SIGRTMAX and (code - 128) in _known_signals():
        return f"ended with exit code {code} (of a shell, for {_signal(code - 128)})"
    words = {126: " (cannot be executed)", 127: " (not found)"}
    return f"ended with exit code {code}{words.get(code, '')}"


def memory_hint(code: int) -> str:
    """What is often the cause when nobody has said that he killed it."""
    killed = code == -signal.SIGKILL
    return "; was the machine or the worker out of memory?" if killed else ""


def _known_signals() -> set[int]:
    return {int(number) for number in signal.valid_signals()}


def _signal(number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    text = signal.strsignal(number)
    return f"{name} ({text.lower()})" if text else name
