"""Who asks at once shares an answer that is made after that, and never one made before."""

import asyncio

import pytest

from master.api.http.batches import Batches


class Work:
    """Answers with how often it has begun, when it is let."""

    def __init__(self):
        self.begun = self.at_once = self.most_at_once = 0
        self.let = asyncio.Event()

    async def make(self):
        self.begun += 1
        number = self.begun
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await self.let.wait()
        self.at_once -= 1
        return b"%d" % number


async def asked(batches, key, make):
    """One who asks, and has got as far as possible."""
    task = asyncio.create_task(batches.get(key, make))
    for _ in range(3):
        await asyncio.sleep(0)
    return task


async def test_who_comes_when_it_has_begun_gets_the_next_with_all_others():
    batches, work = Batches(), Work()
    first = await asked(batches, "state", work.make)
    others = [await asked(batches, "state", work.make) for _ in range(10)]
    another = await asked(batches, "tasks", work.make)
    assert work.begun == 1
    work.let.set()
    assert await first == b"1"
    assert {await each for each in others} == {b"2"}
    assert await another == b"3"
    assert work.most_at_once == 1


async def test_who_goes_takes_nothing_from_the_others():
    batches, work = Batches(), Work()
    first = await asked(batches, "state", work.make)
    second = await asked(batches, "state", work.make)
    third = await asked(batches, "state", work.make)
    first.cancel()
    second.cancel()
    work.let.set()
    assert await third == b"2"


async def test_what_fails_fails_for_those_who_waited_for_it_only():
    batches, work = Batches(), Work()

    async def fail():
        await work.let.wait()
        raise ValueError("no")

    failing = [await asked(batches, "state", fail)]
    fine = await asked(batches, "state", work.make)
    work.let.set()
    for each in failing:
        with pytest.raises(ValueError, match="no"):
            await each
    assert await fine == b"1"
