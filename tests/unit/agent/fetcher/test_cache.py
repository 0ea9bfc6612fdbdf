"""The cache: who fills, who waits, what is evicted."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from agent.fetcher.cache import Cache, Growing, Key, Lease, NoRoom


def key(name: str, user: str = "0") -> Key:
    return (user, name, None)


class Filler:
    """Writes so many bytes, once `gate` is open."""

    def __init__(self, size: int, *, open: bool = True) -> None:
        self.size = size
        self.times = 0
        self.gate = asyncio.Event()
        self.error: Exception | None = None
        if open:
            self.gate.set()

    async def __call__(self, fd: int, growing: Growing) -> None:
        self.times += 1
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        growing.grow(self.size)
        os.write(fd, b"x" * self.size)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    made = Cache(tmp_path / "cache", 100)
    made.clear()
    return made


def files(cache: Cache) -> int:
    return len(list(cache._directory.iterdir()))


async def got(cache: Cache, name: str, size: int) -> None:
    (await cache.get(key(name), Filler(size))).release()


async def test_one_fills_and_the_others_wait(cache):
    filler = Filler(10, open=False)
    waiting = [asyncio.create_task(cache.get(key("a"), filler)) for _ in range(5)]
    await asyncio.sleep(0)
    filler.gate.set()
    leases = await asyncio.gather(*waiting)
    assert filler.times == 1
    for lease in leases:
        assert os.pread(lease.fd, 100, 0) == b"x" * 10
        lease.release()
    assert (cache.hits, cache.misses) == (4, 1)


async def test_another_users_file_is_another_file(cache):
    filler = Filler(10)
    for user in ("1", "2"):
        (await cache.get(key("a", user), filler)).release()
    assert filler.times == 2


async def test_a_failure_is_everybodys_and_is_not_kept(cache):
    filler = Filler(10, open=False)
    filler.error = RuntimeError("404")
    waiting = [asyncio.create_task(cache.get(key("a"), filler)) for _ in range(3)]
    await asyncio.sleep(0)
    filler.gate.set()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [str(each) for each in results] == ["404"] * 3
    assert filler.times == 1
    assert not files(cache)
    filler.error = None
    (await cache.get(key("a"), filler)).release()


async def test_when_the_filler_is_stopped_the_next_one_fills(cache):
    first, second = Filler(10, open=False), Filler(20)
    filling = asyncio.create_task(cache.get(key("a"), first))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(cache.get(key("a"), second))
    await asyncio.sleep(0)
    filling.cancel()
    lease = await waiting
    assert lease.size == 20
    lease.release()
    assert files(cache) == 1


async def test_the_least_recently_used_goes_first(cache):
    for name in ("a", "b", "c"):
        await got(cache, name, 30)
    await got(cache, "a", 30)
    await got(cache, "d", 30)
    again = Filler(30)
    for name in ("a", "c", "d", "b"):
        (await cache.get(key(name), again)).release()
    assert again.times == 1  # for b
    assert cache.used_bytes == 90
    assert files(cache) == 3


async def test_what_is_in_use_is_not_evicted(cache):
    lease: Lease = await cache.get(key("a"), Filler(60))
    with pytest.raises(NoRoom):
        await cache.get(key("b"), Filler(60))
    assert cache.used_bytes == 60
    lease.release()
    await got(cache, "b", 60)
    assert len(cache) == 1


async def test_what_is_larger_than_the_cache_has_no_room(cache):
    await got(cache, "small", 10)
    with pytest.raises(NoRoom):
        await cache.get(key("a"), Filler(101))
    assert files(cache) <= 1


async def test_two_that_are_filled_at_once_do_not_get_the_same_room(cache):
    first, second = Filler(60, open=False), Filler(60, open=False)
    one = asyncio.create_task(cache.get(key("a"), first))
    two = asyncio.create_task(cache.get(key("b"), second))
    await asyncio.sleep(0)
    first.gate.set()
    second.gate.set()
    results = await asyncio.gather(one, two, return_exceptions=True)
    kinds = sorted(type(each).__name__ for each in results)
    assert kinds == ["Lease", "NoRoom"]
    for each in results:
        if isinstance(each, Lease):
            each.release()


@pytest.mark.parametrize("change", ["written", "removed", "longer"])
async def test_a_file_that_has_changed_is_fetched_again(cache, change):
    await got(cache, "a", 10)
    (path,) = cache._directory.iterdir()
    if change == "removed":
        path.unlink()
    else:
        path.write_bytes(b"y" * (10 if change == "written" else 11))
        os.utime(path, (1, 1))
    filler = Filler(10)
    (await cache.get(key("a"), filler)).release()
    assert filler.times == 1


async def test_what_turned_out_to_be_bad_is_not_given_again(cache):
    await got(cache, "a", 10)
    cache.discard(key("a"))
    cache.discard(key("never"))
    assert not files(cache)
    filler = Filler(10)
    (await cache.get(key("a"), filler)).release()
    assert filler.times == 1


async def test_a_directory_that_cannot_be_written_means_no_cache(cache):
    cache._directory.rmdir()
    with pytest.raises(NoRoom, match="cannot be written"):
        await cache.get(key("a"), Filler(1))


async def test_nothing_is_left_from_an_earlier_run(cache, tmp_path):
    await got(cache, "a", 10)
    again = Cache(tmp_path / "cache", 100)
    again.clear()
    assert not files(again)
    assert not len(again)
