"""What the process that fetches says, and what users and operators see of it."""

from __future__ import annotations

import pytest

from agent.fetcher.cache import NoRoom
from agent.fetcher.job import Item, Job, Word
from agent.fetcher.watch import MENTION_EVERY_S, Failed, Watch, size_text


class Place:
    container_id = "c1"

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)


class Room:
    def __init__(self, most: int) -> None:
        self.most = most
        self.size = 0

    def grow(self, size: int) -> None:
        if size > self.most:
            raise NoRoom("full")
        self.size = max(size, self.size)


def item(name: str) -> Item:
    return Item(
        uri=f"http://secret@h/{name}",
        shown=f"http://h/{name}",
        target=[name],
        executable=False,
        extract=True,
        checksum=None,
        source=None,
    )


class World:
    def __init__(self, room: Room | None = None) -> None:
        self.place = Place()
        self.current: list[str] = []
        job = Job(items=[item("a"), item("b")], user=None, sandbox=3, sink=None, max_bytes=1)
        self.watch = Watch(job, self.place, room, self.current, 0.0)

    def hear(self, at_s: float, **word: object) -> bool:
        made: Word = {"item": 0, **word}  # type: ignore[typeddict-item]
        return self.watch.hear(made, at_s)


def test_what_was_fetched_is_told_with_amount_and_time():
    world = World()
    world.hear(1.0, what="start")
    assert world.current == ["http://h/a"]
    world.hear(3.5, what="got", bytes=3 << 20)
    world.hear(4.0, what="unpacked", entries=7, bytes=10)
    assert world.place.said == [
        "fetched http://h/a (3.0 MB in 2.5 s)",
        "unpacked http://h/a (7 entries, 10 bytes)",
    ]
    world.hear(4.0, what="start", item=1)
    assert world.current[-1] == "http://h/b"


def test_what_takes_long_is_mentioned_now_and_then():
    world = World()
    world.hear(0.0, what="start")
    for tenth in range(1, 251):
        world.hear(tenth / 10, what="bytes", bytes=tenth << 10, total=1 << 20)
    assert world.place.said == [
        "fetching http://h/a: 100.0 KB of 1.0 MB",
        "fetching http://h/a: 200.0 KB of 1.0 MB",
    ]
    world.hear(100.0, what="bytes", bytes=5)
    assert world.place.said[-1] == "fetching http://h/a: 5 bytes"
    assert MENTION_EVERY_S == 10


def test_a_size_alone_is_no_progress():
    world = World()
    assert world.hear(0.0, what="start")
    assert not world.hear(0.0, what="bytes", bytes=0, total=100)
    assert world.hear(0.0, what="bytes", bytes=1)


def test_the_cache_is_told_what_is_coming():
    room = Room(100)
    world = World(room)
    world.hear(0.0, what="bytes", bytes=0, total=70)
    assert room.size == 70
    world.hear(0.0, what="bytes", bytes=80)
    assert room.size == 80
    with pytest.raises(NoRoom):
        world.hear(0.0, what="bytes", bytes=101)


def test_the_last_word_decides():
    world = World()
    world.hear(0.0, what="done")
    world.watch.settle("", 0)
    world = World()
    world.hear(0.0, what="failed", item=1, kind="source", why="is not there")
    with pytest.raises(Failed, match="is not there") as caught:
        world.watch.settle("", 1)
    assert (caught.value.kind, caught.value.item["shown"]) == ("source", "http://h/b")


def test_a_process_without_a_last_word_broke():
    world = World()
    world.hear(0.0, what="start")
    with pytest.raises(Failed, match=r"ended unexpectedly \(status -9\)"):
        world.watch.settle("", -9)
    with pytest.raises(Failed, match="ImportError: x"):
        World().watch.settle("ImportError: x", 1)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1024, "1.0 KB"), (3 << 29, "1536.0 MB")],
)
def test_sizes(count, text):
    assert size_text(count) == text
