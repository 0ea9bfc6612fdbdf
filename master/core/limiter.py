"""How fast agents may be taken for lost, and who waits for it."""

from __future__ import annotations


class Limiter:
    """A queue of names with at most `count` ends in `per_s` seconds, evenly spaced.

    A bucket that holds one token: a fault that makes all agents look dead costs one of
    them at once and the others one by one, and whoever is heard of meanwhile is
    discarded.  `count` 0: there is no limit.
    """

    def __init__(self, count: int, per_s: float) -> None:
        self._interval_s = per_s / count if count else 0.0
        self._token_s = float("-inf")
        self._waiting: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def __contains__(self, name: str) -> bool:
        return name in self._waiting

    def add(self, name: str, why: str) -> None:
        """Join the queue; nothing changes for a name that is in it."""
        self._waiting.setdefault(name, why)

    def discard(self, name: str) -> None:
        self._waiting.pop(name, None)

    def postpone(self, until_s: float) -> None:
        """Nobody is taken before that moment."""
        self._token_s = max(self._token_s, until_s)

    def next_s(self) -> float | None:
        """When the next name may be taken, None if none waits."""
        return self._token_s if self._waiting else None

    def take(self, now_s: float) -> tuple[str, str] | None:
        """The first name and its reason, if there is a token for it."""
        if not self._waiting or now_s < self._token_s:
            return None
        name = next(iter(self._waiting))
        self._token_s = now_s + self._interval_s
        return name, self._waiting.pop(name)


__all__ = ["Limiter"]
