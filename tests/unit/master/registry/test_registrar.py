"""The registrar: order, folding, one write at a time, and the end at the first error."""

import asyncio
from collections import deque

import pytest

from master.registry import registrar
from master.registry.base import Claimed, Storage
from master.registry.memory import MemoryStorage, Shelf
from master.registry.registrar import Registrar
from mesos_py.clock import ManualClock
from mesos_py.errors import InternalError, MesosPyError, Superseded, TooLarge, Unavailable


class Gated(Storage):
    """A storage in memory whose writes wait to be let through, or to fail."""

    def __init__(self, shelf: Shelf, clock: ManualClock) -> None:
        self.inner = MemoryStorage(shelf)
        self.clock = clock
        self.begun: asyncio.Queue[list] = asyncio.Queue()
        self.gates: asyncio.Queue[Exception | None] = asyncio.Queue()
        self.under_way = 0

    async def claim(self, at_least: int = 0) -> Claimed:
        return await self.inner.claim(at_least)

    async def write(self, operations) -> None:
        self.under_way += 1
        assert self.under_way == 1
        try:
            self.begun.put_nowait(list(operations))
            error = await self.gates.get()
            self.clock.advance(0.25)
            if error is not None:
                raise error
            await self.inner.write(operations)
        finally:
            self.under_way -= 1

    async def raise_epoch(self, at_least: int) -> int:
        return await self.inner.raise_epoch(at_least)

    async def close(self) -> None:
        pass


class Desk:
    """A registrar with its queue, and what it has told its owner."""

    def __init__(self) -> None:
        self.shelf = Shelf()
        self.clock = ManualClock()
        self.storage = Gated(self.shelf, self.clock)
        self.writes: deque = deque()
        self.stored: list[int] = []
        self.lost: list[MesosPyError] = []
        self.registrar = Registrar(
            self.storage, self.writes, self._stored, self.lost.append, self.clock
        )
        self.number = 0
        # What must hold whenever something is told to be stored.
        self.records_then: list[dict[str, bytes]] = []

    def _stored(self, number: int) -> None:
        self.stored.append(number)
        self.records_then.append(dict(self.shelf.records))

    def ask(self, *operations) -> None:
        for operation in operations:
            self.number += 1
            self.writes.append((self.number, operation))
        self.registrar.wake()

    async def begun(self) -> list:
        return await self.storage.begun.get()

    def let(self, error: Exception | None = None) -> None:
        self.storage.gates.put_nowait(error)

    async def settle(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)


@pytest.fixture
async def desk():
    made = Desk()
    await made.storage.claim()
    made.registrar.start()
    yield made
    await made.registrar.stop()


async def test_what_queues_up_during_a_write_becomes_the_next_one(desk):
    desk.ask({"a": b"1"})
    assert await desk.begun() == [{"a": b"1"}]
    desk.ask({"b": b"1"}, {"a": None})
    desk.ask({"c": b"1"})
    assert desk.registrar.waiting == 3
    desk.let()
    assert await desk.begun() == [{"b": b"1"}, {"a": None}, {"c": b"1"}]
    assert desk.stored == [1]
    desk.let()
    await desk.settle()
    assert desk.stored == [1, 4]
    assert desk.records_then == [{"a": b"1"}, {"b": b"1", "c": b"1"}]
    assert desk.lost == []


async def test_what_was_asked_for_before_the_start_is_written():
    desk = Desk()
    await desk.storage.claim()
    desk.ask({"a": b"1"})
    desk.registrar.start()
    assert await desk.begun() == [{"a": b"1"}]
    await desk.registrar.stop()


async def test_a_write_of_nothing_waits_for_those_before_it(desk):
    desk.ask({"a": b"1"})
    await desk.begun()
    desk.ask({})
    await desk.settle()
    assert desk.stored == []
    desk.let()
    await desk.settle()
    assert desk.stored == [1, 2]
    assert desk.storage.begun.empty()


async def test_a_write_of_nothing_rides_with_others(desk):
    desk.ask({}, {"a": b"1"}, {})
    assert await desk.begun() == [{"a": b"1"}]
    desk.let()
    await desk.settle()
    assert desk.stored == [3]


async def test_a_flood_is_taken_in_parts(desk, monkeypatch):
    monkeypatch.setattr(registrar, "MAX_OPERATIONS", 3)
    monkeypatch.setattr(registrar, "MAX_BYTES", 100)
    desk.ask(
        *({str(n): b""} for n in range(4)), {"large": b"x" * 200}, {"y": b"x" * 98}, {"z": b""}
    )
    sizes = []
    for _ in range(4):
        sizes.append(len(await desk.begun()))
        desk.let()
    await desk.settle()
    assert sizes == [3, 1, 1, 2]
    assert desk.stored == [3, 4, 5, 7]


@pytest.mark.parametrize(
    "error",
    [Superseded(1, 2), Unavailable("gone"), TooLarge("big"), InternalError("bug")],
    ids=lambda error: error.code,
)
async def test_the_first_error_ends_everything_and_is_told_once(desk, error):
    desk.ask({"a": b"1"})
    await desk.begun()
    desk.let()
    desk.ask({"b": b"1"})
    await desk.begun()
    desk.ask({"c": b"1"})
    desk.let(error)
    await desk.settle()
    desk.ask({"d": b"1"})
    await desk.settle()
    assert desk.lost == [error]
    assert desk.stored == [1]
    assert desk.storage.begun.empty()
    assert desk.shelf.records == {"a": b"1"}


async def test_an_exception_that_is_none_of_ours_is_told_as_a_bug(desk):
    desk.ask({"a": b"1"})
    await desk.begun()
    desk.let(ZeroDivisionError("oops"))
    await desk.settle()
    assert [type(each) for each in desk.lost] == [InternalError]
    assert "oops" in str(desk.lost[0])
    assert desk.stored == []


async def test_a_leadership_that_is_over_is_told(desk):
    await MemoryStorage(desk.shelf).claim()
    desk.ask({"a": b"1"})
    desk.let()
    await desk.settle()
    assert [type(each) for each in desk.lost] == [Superseded]
    assert desk.shelf.records == {}


async def test_nothing_is_told_after_stop(desk):
    desk.ask({"a": b"1"})
    await desk.begun()
    await desk.registrar.stop()
    await desk.registrar.stop()
    desk.let()
    desk.ask({"b": b"1"})
    await desk.settle()
    assert (desk.stored, desk.lost) == ([], [])


async def test_figures(desk):
    desk.ask({"a": b"123", "b": None}, {"c": b""})
    desk.let()
    await desk.settle()
    desk.ask({})
    await desk.settle()
    figures = desk.registrar.figures
    assert (figures.batches, figures.operations, figures.bytes) == (1, 2, 6)
    assert (figures.seconds, figures.last_seconds) == (0.25, 0.25)


async def test_an_epoch_is_passed_between_two_writes_and_the_highest_that_is_asked_for_counts():
    desk = Desk()
    await desk.storage.claim()
    desk.registrar.start()
    raised: list[int] = []
    desk.ask({"a": b"1"})
    await desk.begun()
    for seen in (3, 40, 7):
        desk.registrar.raise_epoch(seen, raised.append)
    desk.ask({"a": b"2"})
    await asyncio.sleep(0)
    assert raised == []
    desk.let()
    desk.let()
    await desk.begun()
    await desk.registrar.stop()
    assert (raised, desk.shelf.epoch) == ([41], 41)


async def test_a_leadership_that_was_superseded_cannot_pass_an_epoch_and_is_lost():
    desk = Desk()
    await desk.storage.claim()
    desk.registrar.start()
    await MemoryStorage(desk.shelf).claim()
    desk.registrar.raise_epoch(5, desk.stored.append)
    async with asyncio.timeout(5):
        while not desk.lost:  # noqa: ASYNC110
            await asyncio.sleep(0)
    assert (desk.stored, [type(each) for each in desk.lost]) == ([], [Superseded])
    await desk.registrar.stop()
