"""What one process that fetches says, and what follows from that."""

from __future__ import annotations

from typing import Final, Protocol

from agent.fetcher.cache import Growing
from agent.fetcher.job import Item, Job, Word
from mesos_py import logs

log = logs.get("agent.fetcher")

# How often a long one is mentioned.
MENTION_EVERY_S: Final = 10.0


class Told(Protocol):
    """Who owns the sandbox, and is told what happens."""

    container_id: str

    def say(self, text: str) -> None: ...


class Failed(Exception):
    """One process could not do its job."""

    def __init__(self, item: Item, kind: str, why: str) -> None:
        super().__init__(why)
        self.item = item
        self.kind = kind
        self.why = why


class Watch:
    """What one process says, and what follows from that."""

    def __init__(
        self, job: Job, place: Told, growing: Growing | None, current: list[str], now_s: float
    ) -> None:
        self._items = job["items"]
        self._place = place
        self._growing = growing
        self._current = current
        self._last: Word | None = None
        self._began_s = self._mentioned_s = now_s
        self.item = self._items[0]

    def hear(self, word: Word, now_s: float) -> bool:
        """Whether it shows that things go on.  Raises NoRoom."""
        self._last = word
        self.item = self._items[word["item"]]
        shown = self.item["shown"]
        if word["what"] == "start":
            self._began_s = now_s
            self._current.append(shown)
        elif word["what"] == "bytes":
            if self._growing is not None:
                self._growing.grow(max(word["bytes"], word.get("total", 0)))
            if now_s - self._mentioned_s >= MENTION_EVERY_S:
                self._mentioned_s = now_s
                self._mention(word)
            # The size alone is no progress: it is told before the first byte.
            return word["bytes"] > 0
        elif word["what"] == "got" and self.item["source"] is None:
            took_s = now_s - self._began_s
            self._place.say(f"fetched {shown} ({size_text(word['bytes'])} in {took_s:.1f} s)")
            log.info(
                "fetched",
                container=self._place.container_id,
                uri=shown,
                bytes=word["bytes"],
                seconds=round(took_s, 3),
            )
        elif word["what"] == "unpacked":
            text = f"unpacked {shown} ({word['entries']} entries, {size_text(word['bytes'])})"
            self._place.say(text)
        return True

    def _mention(self, word: Word) -> None:
        total = word.get("total")
        of = f" of {size_text(total)}" if total is not None else ""
        self._place.say(f"fetching {self.item['shown']}: {size_text(word['bytes'])}{of}")
        log.info(
            "fetch goes on",
            container=self._place.container_id,
            uri=self.item["shown"],
            bytes=word["bytes"],
            total=total,
        )

    def settle(self, errors: str, code: int | None) -> None:
        """It has ended.  Raises Failed unless its last word was "done"."""
        last = self._last
        if last is not None and last["what"] == "done":
            return
        if last is not None and last["what"] == "failed":
            raise Failed(self.item, last["kind"], last["why"])
        log.error("fetching process broke", code=code, errors=errors)
        why = f"the process that fetches ended unexpectedly (status {code})"
        raise Failed(self.item, "other", f"{why}: {errors}" if errors else why)


def size_text(count: int) -> str:
    if count < 1024:
        return f"{count} bytes"
    return f"{count / 2**10:.1f} KB" if count < 2**20 else f"{count / 2**20:.1f} MB"
