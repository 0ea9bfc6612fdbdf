"""An asyncio loop on a thread of its own, for fakes that plain tests drive."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")

# Nothing in a fake takes long: a test that would hang fails with this instead.
PATIENCE_S: Final = 10.0


class LoopThread:
    """Runs coroutines and functions on its loop, from any other thread."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(PATIENCE_S)

    def do(self, work: Callable[[], T]) -> T:
        """The result of a function, called on the loop's thread."""

        async def call() -> T:
            return work()

        return self.wait(call())

    def close(self) -> None:
        """End the loop; what still runs on it is cancelled."""
        self.wait(self._cancel_all())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(PATIENCE_S)
        self.loop.close()

    async def _cancel_all(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.loop.shutdown_asyncgens()


class Log:
    """What has happened so far, in order; threads can wait for more of it."""

    def __init__(self) -> None:
        self._entries: list[Any] = []
        self._changed = threading.Condition()

    def add(self, entry: Any) -> None:
        with self._changed:
            self._entries.append(entry)
            self._changed.notify_all()

    def all(self) -> list[Any]:
        with self._changed:
            return list(self._entries)

    def clear(self) -> None:
        with self._changed:
            self._entries.clear()

    def wait(
        self, wanted: Callable[[Any], bool], count: int = 1, timeout_s: float = PATIENCE_S
    ) -> list[Any]:
        """The entries that are wanted, once there are `count`; AssertionError if too late."""
        with self._changed:
            found: list[Any] = []

            def enough() -> bool:
                found[:] = [entry for entry in self._entries if wanted(entry)]
                return len(found) >= count

            if not self._changed.wait_for(enough, timeout_s):
                raise AssertionError(
                    f"{len(found)} of {count} wanted entries after {timeout_s} s; "
                    f"there is: {self._entries}"
                )
            return list(found)


__all__ = ["PATIENCE_S", "Log", "LoopThread"]
