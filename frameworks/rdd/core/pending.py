"""The tasks of a stage that wait for a slot, by where they would run best."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import Final, Literal

# Where a task runs against where it would run best: on an executor that keeps its input, on a
# host that has it, or somewhere.
Near = Literal["executor", "host", "any"]

_NONE: Final[deque[int]] = deque()


class Pending:
    """Tasks by their index in the stage.  Each is in all the queues in which somebody may look
    for it; who was taken by one way is passed over in the others, so that every step costs the
    same however many wait."""

    def __init__(self) -> None:
        self._waiting: set[int] = set()
        self._on_executor: dict[str, deque[int]] = {}
        self._on_host: dict[str, deque[int]] = {}
        self._nowhere: deque[int] = deque()
        self._all: deque[int] = deque()

    def add(
        self,
        index: int,
        executors: Iterable[str] = (),
        hosts: Iterable[str] = (),
        *,
        first: bool = False,
    ) -> None:
        """Nothing if it waits.  first: before those that were added so far."""
        if index in self._waiting:
            return
        self._waiting.add(index)
        anywhere = True
        for queues, names in ((self._on_executor, executors), (self._on_host, hosts)):
            for name in names:
                anywhere = False
                _put(queues.setdefault(name, deque()), index, first)
        _put(self._nowhere if anywhere else self._all, index, first)

    def remove(self, index: int) -> None:
        """It is not to run any more."""
        self._waiting.discard(index)

    def clear(self) -> None:
        self._waiting.clear()
        self._on_executor.clear()
        self._on_host.clear()
        self._nowhere.clear()
        self._all.clear()

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, index: object) -> bool:
        return index in self._waiting

    def take(
        self, executor_id: str, host: str, within: Near, avoids: Callable[[int], bool]
    ) -> tuple[int, Near] | None:
        """The best one for this executor, which does not wait any more, and how near it is to
        its input; None if there is none within that distance.

        avoids: whether a task had better not run there.  One without a wish is taken before
        one that wishes to be elsewhere, and is near anywhere.
        """
        if not self._waiting:
            return None
        steps: list[tuple[deque[int], Near]] = [
            (self._on_executor.get(executor_id, _NONE), "executor")
        ]
        if within != "executor":
            steps.append((self._on_host.get(host, _NONE), "host"))
        steps.append((self._nowhere, "executor"))
        if within == "any":
            steps.append((self._all, "any"))
        for queue, near in steps:
            if (index := self._first(queue, avoids)) is not None:
                return index, near
        return None

    def wishes(self, executors: Collection[str], hosts: Collection[str]) -> tuple[bool, bool]:
        """Whether one waits that would run best on one of these executors, or hosts."""
        return (
            self._any(self._on_executor, executors),
            self._any(self._on_host, hosts),
        )

    # ---- Its own -------------------------------------------------------------------------

    def _first(self, queue: deque[int], avoids: Callable[[int], bool]) -> int | None:
        passed = []
        found = None
        while queue:
            index = queue.popleft()
            if index not in self._waiting:
                continue
            if avoids(index):
                passed.append(index)
                continue
            self._waiting.discard(index)
            found = index
            break
        queue.extendleft(reversed(passed))
        return found

    def _any(self, queues: dict[str, deque[int]], names: Collection[str]) -> bool:
        for name in list(queues):
            queue = queues[name]
            while queue and queue[0] not in self._waiting:
                queue.popleft()
            if not queue:
                del queues[name]
            elif name in names:
                return True
        return False


def _put(queue: deque[int], index: int, first: bool) -> None:
    if first:
        queue.appendleft(index)
    else:
        queue.append(index)


__all__ = ["Near", "Pending"]
