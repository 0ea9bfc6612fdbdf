from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesos_py.errors import Unavailable
from mesos_py.outbox import Outbox


async def test_all_that_is_queued_is_one_batch() -> None:
    outbox: Outbox[int] = Outbox()
    assert all(outbox.put(n) for n in range(1000))
    batches = outbox.batches()
    assert await anext(batches) == list(range(1000))
    assert (len(outbox), outbox.queued_bytes) == (0, 0)


async def test_a_waiting_reader_is_woken_once_for_many_items() -> None:
    outbox: Outbox[str] = Outbox()
    reader = asyncio.ensure_future(anext(outbox.batches()))
    await asyncio.sleep(0)
    outbox.put("a")
    outbox.put("b")
    assert await reader == ["a", "b"]


async def test_batches_keep_to_their_item_limit() -> None:
    outbox: Outbox[int] = Outbox()
    for n in range(5):
        outbox.put(n)
    outbox.close("done")
    assert [batch async for batch in outbox.batches(max_items=2)] == [[0, 1], [2, 3], [4]]


async def test_batches_keep_to_their_byte_limit_and_a_large_item_goes_alone() -> None:
    outbox: Outbox[str] = Outbox()
    for item, size in [("a", 40), ("b", 60), ("c", 1), ("huge", 500), ("d", 1)]:
        outbox.put(item, size)
    outbox.close("done")
    batches = [batch async for batch in outbox.batches(max_bytes=100)]
    assert batches == [["a", "b"], ["c"], ["huge"], ["d"]]


@given(
    st.lists(st.integers(0, 300)),
    st.integers(1, 10),
    st.integers(1, 400),
)
def test_nothing_is_lost_or_reordered(sizes: list[int], max_items: int, max_bytes: int) -> None:
    async def run() -> None:
        outbox: Outbox[tuple[int, int]] = Outbox()
        sent = list(enumerate(sizes))
        for item in sent:
            outbox.put(item, item[1])
        outbox.close("done")
        got = []
        async for batch in outbox.batches(max_items, max_bytes):
            assert 0 < len(batch) <= max_items
            assert len(batch) == 1 or sum(size for _, size in batch) <= max_bytes
            got += batch
            assert outbox.queued_bytes == sum(sizes[len(got) :])
        assert got == sent

    asyncio.run(run())


async def test_too_many_items_cut_the_peer_off() -> None:
    reasons: list[str] = []
    outbox: Outbox[int] = Outbox(max_items=2, on_overflow=reasons.append)
    assert [outbox.put(n) for n in range(4)] == [True, True, False, False]
    assert outbox.overflow is not None
    assert "too slowly: 3 messages" in outbox.overflow
    assert reasons == [outbox.overflow]
    assert len(outbox) == 0


async def test_too_many_bytes_cut_the_peer_off() -> None:
    outbox: Outbox[str] = Outbox(max_bytes=100)
    assert outbox.put("a", 100)
    assert not outbox.put("b", 1)
    assert outbox.overflow is not None
    assert outbox.closed == outbox.overflow
    assert outbox.queued_bytes == 0


async def test_the_reader_of_an_overflowed_outbox_gets_the_reason_and_no_items() -> None:
    outbox: Outbox[int] = Outbox(max_items=1)
    outbox.put(1)
    outbox.put(2)
    with pytest.raises(Unavailable, match="too slowly"):
        await anext(outbox.batches())


async def test_a_waiting_reader_learns_of_an_overflow() -> None:
    outbox: Outbox[int] = Outbox(max_items=0)
    reader = asyncio.ensure_future(anext(outbox.batches()))
    await asyncio.sleep(0)
    outbox.put(1)
    with pytest.raises(Unavailable):
        await reader


async def test_close_lets_what_is_queued_go_out_first() -> None:
    outbox: Outbox[int] = Outbox()
    outbox.put(1)
    outbox.close("the end")
    outbox.close("not this")
    assert outbox.closed == "the end"
    assert not outbox.put(2)
    assert [batch async for batch in outbox.batches()] == [[1]]


async def test_close_can_drop_what_is_queued() -> None:
    outbox: Outbox[int] = Outbox()
    outbox.put(1)
    outbox.close("the end", drain=False)
    assert [batch async for batch in outbox.batches()] == []


async def test_close_ends_a_waiting_reader() -> None:
    outbox: Outbox[int] = Outbox()
    reader = asyncio.ensure_future(anext(outbox.batches(), None))
    await asyncio.sleep(0)
    outbox.close("the end")
    outbox.close("again, before the reader runs")
    assert await reader is None


async def test_there_is_one_reader_at_a_time() -> None:
    outbox: Outbox[int] = Outbox()
    first = asyncio.ensure_future(anext(outbox.batches()))
    await asyncio.sleep(0)
    with pytest.raises(RuntimeError, match="one reader"):
        await anext(outbox.batches())
    first.cancel()
    await asyncio.wait([first])
    # A reader that was cancelled leaves its place and loses nothing.
    outbox.put(1)
    assert await anext(outbox.batches()) == [1]


def test_who_does_not_wait_is_told_of_each_item_and_of_the_end() -> None:
    outbox: Outbox[int] = Outbox(max_items=3)
    told: list[int] = []
    outbox.on_some = lambda: told.append(len(outbox))
    assert outbox.put(1)
    assert outbox.put(2)
    assert outbox.take() == [1, 2]
    assert outbox.take() == []
    outbox.put(3)
    assert outbox.take(max_items=1) == [3]
    outbox.close("end")
    assert told == [1, 2, 1, 0]
    assert not outbox.put(4)


def test_who_does_not_wait_is_told_of_an_overflow() -> None:
    outbox: Outbox[int] = Outbox(max_items=1)
    told: list[str | None] = []
    outbox.on_some = lambda: told.append(outbox.overflow)
    outbox.put(1)
    assert not outbox.put(2)
    assert told[0] is None
    assert told[-1] is not None
    assert outbox.take() == []
