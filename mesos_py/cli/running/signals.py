"""What a person or a system sends to a command that runs: to end what it has started."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator
from typing import Final

ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def on_ending_signals(handle: Callable[[signal.Signals], None]) -> Iterator[None]:
    """In the block such a signal calls `handle`, in the event loop that runs, and does nothing
    else."""
    loop = asyncio.get_running_loop()
    for number in ENDING:
        loop.add_signal_handler(number, handle, number)
    try:
        yield
    finally:
        for number in ENDING:
            loop.remove_signal_handler(number)
