"""Certainty: the word of the election, and until when it is good."""

import asyncio

from master.api.certainty import Certainty


class Watch:
    """A clock and a lease, both moved by hand."""

    def __init__(self, now_s=0.0, until_s=10.0):
        self.now_s = now_s
        self.until_s = until_s
        self.certainty = Certainty(lambda: self.until_s, lambda: self.now_s)


async def test_a_master_without_rivals_is_always_certain():
    assert Certainty().certain()


async def test_it_ends_with_the_moment_until_which_it_is_good_though_nobody_says_so():
    watch = Watch()
    watch.now_s = 9.99
    assert watch.certainty.certain()
    watch.now_s = 10.0
    assert not watch.certainty.certain()
    watch.until_s = 20.0
    assert watch.certainty.certain()


async def test_a_word_of_doubt_counts_at_once_until_the_election_is_sure_again():
    watch = Watch()
    watch.certainty.doubt()
    assert (watch.certainty.certain(), watch.certainty.doubtful) == (False, True)
    watch.certainty.trust()
    assert (watch.certainty.certain(), watch.certainty.doubtful) == (True, False)


async def test_who_waits_goes_on_when_it_is_certain_again():
    watch = Watch(now_s=11.0)
    waiting = asyncio.create_task(watch.certainty.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    watch.until_s = 30.0
    async with asyncio.timeout(5):
        assert await waiting
    assert watch.certainty.held == 1


async def test_who_waits_is_told_when_the_leadership_is_over_and_it_is_never_certain_again():
    watch = Watch()
    watch.certainty.doubt()
    waiting = asyncio.create_task(watch.certainty.wait())
    await asyncio.sleep(0)
    watch.certainty.end()
    watch.certainty.end()
    assert not await waiting
    watch.certainty.trust()
    assert not watch.certainty.certain()
    assert not await watch.certainty.wait()


async def test_nobody_waits_while_it_is_certain():
    watch = Watch()
    assert await watch.certainty.wait()
    assert watch.certainty.held == 0
