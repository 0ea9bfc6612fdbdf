"""Where the partitions of persisted data sets are kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from frameworks.rdd.messages import BlockId


@dataclass(frozen=True, slots=True)
class Amount:
    """What is kept of one data set: how many partitions, and the bytes of all copies."""

    partitions: int = 0
    memory_bytes: int = 0
    disk_bytes: int = 0


_NOWHERE: Final[Mapping[str, tuple[int, bool]]] = {}


class Kept:
    """Told of what executors have and no longer have; only of data sets that are persisted
    (`persist`) is anything remembered."""

    def __init__(self) -> None:
        # rdd id -> split -> executor id -> (bytes, whether in memory)
        self._places: dict[int, dict[int, dict[str, tuple[int, bool]]]] = {}
        self._of_executor: dict[str, set[tuple[int, int]]] = {}

    def persist(self, rdd_ids: Iterable[int]) -> None:
        """Those are to be kept."""
        for rdd_id in rdd_ids:
            self._places.setdefault(rdd_id, {})

    def unpersist(self, rdd_id: int) -> list[str]:
        """It is not to be kept any more.  Returns the executors that had some of it."""
        places = self._places.pop(rdd_id, {})
        executors: dict[str, None] = {}
        for split, by_executor in places.items():
            for executor_id in by_executor:
                executors[executor_id] = None
                self._let_go(executor_id, rdd_id, split)
        return list(executors)

    def update(
        self, executor_id: str, blocks: Mapping[BlockId, tuple[int, bool] | None]
    ) -> set[int]:
        """What an executor says.  Returns the data sets that it keeps and need not."""
        needless: set[int] = set()
        for (kind, rdd_id, split), size in blocks.items():
            if kind != "rdd":
                continue
            places = self._places.get(rdd_id)
            if places is None:
                if size is not None:
                    needless.add(rdd_id)
            elif size is not None:
                places.setdefault(split, {})[executor_id] = size
                self._of_executor.setdefault(executor_id, set()).add((rdd_id, split))
            else:
                self._lose(executor_id, rdd_id, split)
                self._let_go(executor_id, rdd_id, split)
        return needless

    def lost(self, executor_id: str) -> None:
        """With all that it kept."""
        for rdd_id, split in self._of_executor.pop(executor_id, ()):
            self._lose(executor_id, rdd_id, split)

    def complete(self, rdd_id: int, partitions: int) -> bool:
        """Whether each of its partitions is kept somewhere."""
        return len(self._places.get(rdd_id, ())) >= partitions

    def places(self, rdd_id: int, split: int) -> Mapping[str, tuple[int, bool]]:
        """Executor -> (bytes, whether in memory)."""
        places = self._places.get(rdd_id)
        return places.get(split, _NOWHERE) if places else _NOWHERE

    def any_on(self, executor_id: str) -> bool:
        return executor_id in self._of_executor

    def persisted(self, rdd_id: int) -> bool:
        return rdd_id in self._places

    def amounts(self) -> dict[int, Amount]:
        """Of each persisted data set."""
        found: dict[int, Amount] = {}
        for rdd_id, places in self._places.items():
            sizes = [size for by_executor in places.values() for size in by_executor.values()]
            found[rdd_id] = Amount(
                len(places),
                sum(size for size, in_memory in sizes if in_memory),
                sum(size for size, in_memory in sizes if not in_memory),
            )
        return found

    # ---- Its own -------------------------------------------------------------------------

    def _lose(self, executor_id: str, rdd_id: int, split: int) -> None:
        places = self._places[rdd_id]
        by_executor = places.get(split)
        if by_executor is not None:
            by_executor.pop(executor_id, None)
            if not by_executor:
                del places[split]

    def _let_go(self, executor_id: str, rdd_id: int, split: int) -> None:
        blocks = self._of_executor.get(executor_id)
        if blocks is not None:
            blocks.discard((rdd_id, split))
            if not blocks:
                del self._of_executor[executor_id]


__all__ = ["Amount", "Kept"]
