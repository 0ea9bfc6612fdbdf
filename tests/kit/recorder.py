"""What happened, noted on one thread and waited for on another."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

# On a busy machine all takes longer; nothing waits this long for what is in order.
PATIENCE_S: Final = 60.0
_SHOWN: Final = 5


class Recorder(Generic[T]):
    """A list of things that grows, with a wait for any condition on it."""

    def __init__(self) -> None:
        self._things: list[T] = []
        self._changed = threading.Condition()

    def note(self, thing: T) -> None:
        with self._changed:
            self._things.append(thing)
            self._changed.notify_all()

    def all(self) -> list[T]:
        with self._changed:
            return list(self._things)

    def wait(
        self, look: Callable[[list[T]], R | None], what: str, limit_s: float = PATIENCE_S
    ) -> R:
        """What `look` finds in the list, once it is not None; asked after each change."""
        end = time.monotonic() + limit_s
        with self._changed:
            while (found := look(self._things)) is None:
                left = end - time.monotonic()
                if left <= 0:
                    last = "\n".join(str(thing) for thing in self._things[-_SHOWN:])
                    raise AssertionError(f"not within {limit_s:g} s: {what}; the last:\n{last}")
                self._changed.wait(left)
            return found
