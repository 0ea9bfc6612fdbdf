"""A page that many ask for is made once."""

import asyncio
import gzip
import hashlib
from functools import partial

import pytest

from mesos_py.http import cache as cache_module
from mesos_py.http.cache import LARGE_BYTES, MAX_PAGES, OLDEST_S, TIMES, Page, PageCache


class Maker:
    """Gives a new body each time, when it is told to."""

    def __init__(self) -> None:
        self.made = 0
        self.begun, self.go = asyncio.Event(), asyncio.Event()

    async def __call__(self) -> bytes:
        self.made += 1
        self.begun.set()
        body = str(self.made).encode()
        await self.go.wait()
        return body


class Clock:
    """It stands still until it is moved."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
async def make():
    return Maker()


async def asked(cache, make):
    """Somebody who waits for the page."""
    waiting = asyncio.ensure_future(cache.get("page", make))
    await make.begun.wait()
    await asyncio.sleep(0)
    return waiting


async def test_all_who_ask_at_once_get_one_page(make):
    cache = PageCache()
    waiting = [await asked(cache, make) for _ in range(5)]
    make.go.set()
    pages = [await each for each in waiting]
    assert make.made == 1
    assert {id(each) for each in pages} == {id(pages[0])}


async def test_who_goes_away_takes_the_page_from_nobody(make):
    cache = PageCache()
    first, second = await asked(cache, make), await asked(cache, make)
    first.cancel()
    await asyncio.sleep(0)
    make.go.set()
    assert (await second).body == b"1"


async def test_what_cannot_be_made_is_told_to_all_and_kept_for_nobody(make):
    async def fail() -> bytes:
        raise LookupError("no such page")

    cache = PageCache()
    for _ in range(2):
        with pytest.raises(LookupError):
            await cache.get("page", fail)
    make.go.set()
    assert (await cache.get("page", make)).body == b"1"


@pytest.mark.parametrize(("cost_s", "kept_s"), [(0.0, 0.0), (0.01, TIMES * 0.01), (60.0, OLDEST_S)])
async def test_a_page_is_kept_for_ten_times_what_it_cost(clock, make, cost_s, kept_s):
    cache = PageCache(clock)
    waiting = await asked(cache, make)
    clock.now_s += cost_s
    make.go.set()
    assert (await waiting).body == b"1"
    clock.now_s += kept_s - 0.001
    if kept_s:
        assert (await cache.get("page", make)).body == b"1"
    clock.now_s += 0.002
    assert (await cache.get("page", make)).body == b"2"


async def test_after_a_change_of_leader_nothing_old_is_given_out(clock, make):
    cache = PageCache(clock)
    waiting = await asked(cache, make)
    clock.now_s += 1.0
    make.go.set()
    await waiting
    cache.clear()
    assert (await cache.get("page", make)).body == b"2"


async def test_no_more_than_so_many_pages_are_kept(clock, make):
    make.go.set()
    cache = PageCache(clock)
    for number in range(MAX_PAGES + 10):
        await cache.get(number, make)
    assert len(cache._pages) == MAX_PAGES


async def test_equal_bodies_have_one_name_and_others_another(make):
    cache = PageCache()

    async def body(text: bytes) -> bytes:
        return text

    bodies = (b"a", b"a", b"b")
    pages = [await cache.get(key, partial(body, text)) for key, text in enumerate(bodies)]
    assert pages[0].etag == pages[1].etag != pages[2].etag


async def test_the_body_is_packed_once(make):
    make.go.set()
    page = await PageCache().get("page", make)
    packed = await page.packed()
    assert gzip.decompress(packed) == page.body
    assert await page.packed() is packed


async def test_all_who_want_it_compressed_get_one_compression(monkeypatch):
    packed = []

    def pack(body: bytes) -> bytes:
        packed.append(body)
        return b"packed " + body

    monkeypatch.setattr(cache_module, "_gzip", pack)
    page = Page(b"body", '"e"', 0.0)
    first, *others = [asyncio.ensure_future(page.packed()) for _ in range(5)]
    await asyncio.sleep(0)
    first.cancel()
    assert await asyncio.gather(*others) == [b"packed body"] * 4
    assert await page.packed() == b"packed body"
    assert packed == [b"body"]


async def test_a_page_has_the_same_name_however_large_it_is():
    async def small() -> bytes:
        return b"x"

    async def large() -> bytes:
        return b"x" * LARGE_BYTES

    cache = PageCache()
    assert (await cache.get("small", small)).etag == '"' + named(b"x") + '"'
    assert (await cache.get("large", large)).etag == '"' + named(b"x" * LARGE_BYTES) + '"'


def named(body: bytes) -> str:
    return hashlib.blake2b(body, digest_size=12).hexdigest()
