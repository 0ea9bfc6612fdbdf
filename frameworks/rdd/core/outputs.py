"""What the maps of shuffles have left, and what of it is gone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from frameworks.rdd.messages import MapOutput


@dataclass(slots=True)
class _Made:
    """One output: `at` grows with each that is registered, so that a complaint about one that
    was replaced meanwhile is not taken for one about its successor."""

    output: MapOutput
    agent_id: str
    at: int


class Outputs:
    """Of each shuffle one output per map, or none (any more).

    at: how many were ever registered.  losses: how often some were lost.
    """

    def __init__(self) -> None:
        self._shuffles: dict[int, list[_Made | None]] = {}
        self._missing: dict[int, set[int]] = {}
        self._of_executor: dict[str, set[tuple[int, int]]] = {}
        self.at = 0
        self.losses = 0

    def open(self, shuffle_id: int, maps: int) -> None:
        """There will be so many; nothing if it is known."""
        if shuffle_id not in self._shuffles:
            self._shuffles[shuffle_id] = [None] * maps
            self._missing[shuffle_id] = set(range(maps))

    def put(self, output: MapOutput, agent_id: str) -> None:
        """In place of one that was there."""
        made = self._shuffles[output.shuffle_id]
        self._remove(output.shuffle_id, output.map_index)
        self.at += 1
        made[output.map_index] = _Made(output, agent_id, self.at)
        self._missing[output.shuffle_id].discard(output.map_index)
        where = self._of_executor.setdefault(output.executor_id, set())
        where.add((output.shuffle_id, output.map_index))

    def complete(self, shuffle_id: int) -> bool:
        return shuffle_id in self._missing and not self._missing[shuffle_id]

    def missing(self, shuffle_id: int) -> list[int]:
        """The maps that are to be run, in order."""
        return sorted(self._missing[shuffle_id])

    def there(self, shuffle_id: int) -> tuple[MapOutput, ...]:
        """All that can be read now, in the order of the maps."""
        return tuple(made.output for made in self._shuffles.get(shuffle_id, ()) if made)

    def maps(self, shuffle_id: int) -> int:
        return len(self._shuffles.get(shuffle_id, ()))

    def known(self, shuffle_id: int) -> bool:
        return shuffle_id in self._shuffles

    def hosts(self, shuffle_id: int, split: int, share: float) -> list[str]:
        """Those that have at least this share of what the partition reads."""
        by_host: dict[str, int] = {}
        for made in self._shuffles.get(shuffle_id, ()):
            if made is not None:
                offsets = memoryview(made.output.offsets).cast("Q")
                size = offsets[split + 1] - offsets[split]
                by_host[made.output.host] = by_host.get(made.output.host, 0) + size
        least = share * sum(by_host.values())
        return [host for host, size in by_host.items() if size and size >= least]

    def host(self, executor_id: str) -> str:
        """Where the outputs of that executor are; "" if there are none."""
        for pair in self._of_executor.get(executor_id, ()):
            return self._made(pair).output.host
        return ""

    # ---- What is gone --------------------------------------------------------------------

    def lost(self, shuffle_id: int, map_index: int, executor_id: str, at: int) -> bool:
        """A reader of what was there at `at` could not have it.  Whether that is news."""
        made = self._shuffles.get(shuffle_id)
        if made is None or not 0 <= map_index < len(made):
            return False
        one = made[map_index]
        if one is None or one.at > at or one.output.executor_id != executor_id:
            return False
        self._remove(shuffle_id, map_index)
        self.losses += 1
        return True

    def lost_of_executor(self, executor_id: str, at: int | None = None) -> set[int]:
        """All that it has left, or had by `at`.  Returns the shuffles that lack some now."""
        return self._lose(
            pair
            for pair in self._of_executor.get(executor_id, ())
            if at is None or self._made(pair).at <= at
        )

    def lost_of_host(self, host: str, at: int) -> set[int]:
        """As `lost_of_executor`."""
        return self._lose(
            pair
            for pairs in self._of_executor.values()
            for pair in pairs
            if (made := self._made(pair)).output.host == host and made.at <= at
        )

    def lost_of_agent(self, agent_id: str) -> set[int]:
        """As `lost_of_executor`, of all executors that ever were there."""
        return self._lose(
            pair
            for pairs in self._of_executor.values()
            for pair in pairs
            if self._made(pair).agent_id == agent_id
        )

    def forget(self, shuffle_id: int) -> bool:
        """Nobody will read it any more.  Whether it was known."""
        made = self._shuffles.get(shuffle_id)
        if made is None:
            return False
        for map_index in range(len(made)):
            self._remove(shuffle_id, map_index)
        del self._shuffles[shuffle_id]
        del self._missing[shuffle_id]
        return True

    # ---- Its own -------------------------------------------------------------------------

    def _made(self, pair: tuple[int, int]) -> _Made:
        made = self._shuffles[pair[0]][pair[1]]
        assert made is not None
        return made

    def _lose(self, pairs: Iterable[tuple[int, int]]) -> set[int]:
        gone = list(pairs)
        for shuffle_id, map_index in gone:
            self._remove(shuffle_id, map_index)
        self.losses += bool(gone)
        return {shuffle_id for shuffle_id, _ in gone}

    def _remove(self, shuffle_id: int, map_index: int) -> None:
        made = self._shuffles[shuffle_id]
        one = made[map_index]
        if one is None:
            return
        made[map_index] = None
        self._missing[shuffle_id].add(map_index)
        executor_id = one.output.executor_id
        pairs = self._of_executor[executor_id]
        pairs.discard((shuffle_id, map_index))
        if not pairs:
            del self._of_executor[executor_id]


__all__ = ["Outputs"]
