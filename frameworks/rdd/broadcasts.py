"""Values that are sent once to each executor instead of with each task.

In the driver a `Broadcast` has its value; pickled it is its id only.  Workers set `source`,
which fetches and keeps values by id.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from frameworks.rdd.runner import Runner

T = TypeVar("T")

_GONE = object()

# In workers: id -> value.  Set once, before the first task.
source: Callable[[int], Any] | None = None


class Broadcast(Generic[T]):
    """Made by SparkContext.broadcast."""

    def __init__(self, id: int, value: Any, runner: Runner | None = None) -> None:
        self.id = id
        self._value = value
        self._runner = runner
        self._lock = threading.Lock()
        if runner is not None:
            # A program that iterates makes one in each step, and destroys none.
            weakref.finalize(self, runner.release, id).atexit = False

    def __reduce__(self) -> tuple[Any, ...]:
        if self._runner is not None and self._value is _GONE:
            raise RuntimeError(f"Broadcast {self.id} was destroyed")
        return _in_task, (self.id,)

    def __repr__(self) -> str:
        return f"Broadcast<id={self.id}>"

    @property
    def value(self) -> T:
        """In a task, the first time, fetched from other executors or the driver."""
        with self._lock:
            if self._value is _GONE:
                if self._runner is not None:
                    raise RuntimeError(f"Broadcast {self.id} was destroyed")
                assert source is not None, "no task runs here"
                self._value = source(self.id)
            value: T = self._value
        return value

    def unpersist(self, blocking: bool = False) -> None:
        """Executors may drop it.  They drop what they need room for by themselves; it stays
        usable, and is sent again when it is needed."""
        self._only_in_driver()

    def destroy(self, blocking: bool = False) -> None:
        """It can be used no more, and all its copies are dropped."""
        runner = self._only_in_driver()
        with self._lock:
            if self._value is _GONE:
                return
            self._value = _GONE
        runner.destroy(self.id)

    def _only_in_driver(self) -> Runner:
        if self._runner is None:
            raise RuntimeError("Broadcast can only be unpersisted or destroyed in the driver")
        return self._runner


def _in_task(id: int) -> Broadcast[Any]:
    return Broadcast(id, _GONE)
