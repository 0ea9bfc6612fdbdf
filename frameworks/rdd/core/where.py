"""Who has which blocks, for executors that need them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from frameworks.rdd.core.kept import Kept
from frameworks.rdd.core.state import Executor
from frameworks.rdd.messages import BlockId

# So many others are named to one that asks: some may be gone, or busy.
MOST_NAMED: Final = 4


class Where:
    """Chunks of broadcasts spread among executors: each that has got one serves it to others.
    The driver, who has all and is known to everybody, is not named."""

    def __init__(self, kept: Kept, executors: Mapping[str, Executor]) -> None:
        self._kept = kept
        self._executors = executors
        # (kind, id) -> chunk -> executor ids, who was named longest ago first.
        self._holders: dict[tuple[str, int], dict[int, dict[str, None]]] = {}

    def add(self, kind: str, number: int) -> None:
        """The driver has it."""
        self._holders.setdefault((kind, number), {})

    def remove(self, kind: str, number: int) -> None:
        """Nobody is to have it any more."""
        self._holders.pop((kind, number), None)

    def known(self, kind: str, number: int) -> bool:
        return (kind, number) in self._holders

    def has(self, executor_id: str, blocks: Iterable[BlockId]) -> None:
        for kind, number, chunk in blocks:
            holders = self._holders.get((kind, number))
            if holders is not None:
                holders.setdefault(chunk, {})[executor_id] = None

    def lost(self, executor_id: str) -> None:
        for chunks in self._holders.values():
            for holders in chunks.values():
                holders.pop(executor_id, None)

    def answer(self, executor_id: str, wanted: Iterable[BlockId]) -> dict[BlockId, tuple[str, ...]]:
        """Addresses for each, the best first; none of what nobody else has, or was removed."""
        return {block: self._addresses(executor_id, block) for block in wanted}

    def _addresses(self, executor_id: str, block: BlockId) -> tuple[str, ...]:
        kind, number, chunk = block
        if kind == "rdd":
            places = self._kept.places(number, chunk)
            return tuple(self._executors[each].address for each in places if each != executor_id)
        chunks = self._holders.get((kind, number))
        if chunks is None:
            return ()
        holders = chunks.get(chunk, {})
        named = [each for each in holders if each != executor_id][:MOST_NAMED]
        for each in named:
            del holders[each]
            holders[each] = None
        return tuple(self._executors[each].address for each in named)


__all__ = ["Where"]
