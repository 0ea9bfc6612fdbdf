"""Whose records raised something, and when to try them again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from master.allocator.roles import Contender
from mesos_py.allocation import Failure
from mesos_py.errors import shown

# A fault may pass (a view that could not answer), and nobody would tell us.
RETRY_S: Final = 5.0


class Failures:
    """By framework or agent id.  Bounded by the ids that are known."""

    def __init__(self) -> None:
        self._by_id: dict[str, Failure] = {}
        self._retry: dict[Contender, None] = {}
        self._retry_s: float | None = None

    def note(self, an_id: str, error: Exception) -> None:
        known = self._by_id.get(an_id)
        text = f"{type(error).__name__}: {shown(_text(error), limit=200)}"
        self._by_id[an_id] = Failure(known.count + 1 if known is not None else 1, text)

    def all(self) -> dict[str, Failure]:
        return dict(self._by_id)

    def of(self, an_id: str) -> Failure | None:
        return self._by_id.get(an_id)

    def forget(self, an_id: str) -> None:
        self._by_id.pop(an_id, None)

    def retry_later(self, contenders: Iterable[Contender], now_s: float) -> None:
        self._retry.update(dict.fromkeys(contenders))
        if self._retry_s is None:
            self._retry_s = now_s + RETRY_S

    def due(self, now_s: float) -> list[Contender]:
        """Who is to be tried again; each is returned once."""
        if self._retry_s is None or now_s < self._retry_s:
            return []
        again = list(self._retry)
        self._retry = {}
        self._retry_s = None
        return again

    def retry_s(self) -> float | None:
        return self._retry_s


def _text(error: Exception) -> str:
    try:
        return str(error)
    except Exception:
        return "an error that cannot be shown"
