from __future__ import annotations

import asyncio
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesos_py.election import (
    Address,
    Backoff,
    Detector,
    Patience,
    StandaloneContender,
    StandaloneDetector,
    Standing,
    parse_contender,
    parse_master,
    rest,
)
from mesos_py.election.zookeeper.detector import ZooKeeperDetector
from mesos_py.errors import InvalidValue
from mesos_py.v1 import types_pb2 as pb

A, B, C = Address("a", 1), Address("b", 2), Address("c", 3)
ELSEWHERE = Address("elsewhere", 9)


# --- detector ---------------------------------------------------------------


async def test_a_single_address_is_the_answer_for_ever() -> None:
    detector = parse_master("a:1")
    assert await detector.leader() == A
    detector.failed(A)
    assert await detector.leader() == A


async def test_failures_rotate_through_the_list() -> None:
    detector = parse_master("a:1,b:2, c:3")
    tried = []
    for _ in range(4):
        address = await detector.leader()
        tried.append(address)
        detector.failed(address)
    assert tried == [A, B, C, A]


async def test_a_success_keeps_the_address() -> None:
    detector = parse_master("a:1,b:2")
    detector.failed(A)
    assert [await detector.leader() for _ in range(3)] == [B, B, B]


@pytest.mark.parametrize("hinted", [C, ELSEWHERE])
async def test_a_hint_comes_first(hinted: Address) -> None:
    detector = parse_master("a:1,b:2,c:3")
    detector.hint(hinted)
    assert await detector.leader() == hinted


async def test_a_hint_that_fails_gives_way_to_the_next_of_the_list() -> None:
    detector = parse_master("a:1,b:2,c:3")
    detector.hint(ELSEWHERE)
    detector.failed(ELSEWHERE)
    # Not A, who gave the hint and would give it again.
    assert await detector.leader() == B


async def test_late_news_of_another_address_changes_nothing() -> None:
    detector = parse_master("a:1,b:2")
    detector.failed(A)
    detector.failed(A)
    detector.failed(ELSEWHERE)
    assert await detector.leader() == B


async def test_watch_gives_the_present_leader_then_changes() -> None:
    detector = parse_master("a:1,b:2,c:3")
    watch = detector.watch()
    assert await anext(watch) == A
    detector.failed(A)
    assert await anext(watch) == B


async def test_watch_folds_changes_and_skips_what_is_none() -> None:
    detector = parse_master("a:1,b:2,c:3")
    watch = detector.watch()
    assert await anext(watch) == A
    following = asyncio.ensure_future(anext(watch))
    await asyncio.sleep(0)
    detector.hint(A)
    await asyncio.sleep(0)
    assert not following.done()
    detector.failed(A)
    detector.failed(B)
    assert await following == C


async def test_each_watcher_sees_each_change() -> None:
    detector = StandaloneDetector([A, B])
    watches = [detector.watch() for _ in range(2)]
    assert [await anext(watch) for watch in watches] == [A, A]
    following = [asyncio.ensure_future(anext(watch)) for watch in watches]
    await asyncio.sleep(0)
    detector.failed(A)
    assert await asyncio.gather(*following) == [B, B]


async def test_close_may_be_called_twice() -> None:
    detector = parse_master("a:1")
    await detector.close()
    await detector.close()


class FixedDetector(Detector):
    """What somebody implements who needs no help from connection attempts."""

    async def leader(self) -> Address:
        return A

    async def watch(self):
        yield A


async def test_hint_and_failed_are_optional() -> None:
    detector = FixedDetector()
    detector.hint(B)
    detector.failed(A)
    assert await detector.leader() == A


def test_a_detector_needs_an_address() -> None:
    with pytest.raises(InvalidValue, match="at least one"):
        StandaloneDetector([])


# --- parse_master -----------------------------------------------------------


@pytest.mark.parametrize("text", ["", "  "])
def test_an_empty_master_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue, match="must not be empty"):
        parse_master(text)


@pytest.mark.parametrize("text", ["a", "a:0", "a:1,", ",a:1", "a:1,,b:2", "a:1,b", "a:99999"])
def test_a_malformed_master_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        parse_master(text, "--master")
    assert caught.value.field == "--master"


def test_an_address_twice_is_refused() -> None:
    with pytest.raises(InvalidValue, match="names a:1 twice"):
        parse_master("a:1,b:2,a:1")


async def test_zookeeper_is_one_of_the_places_to_look() -> None:
    detector = parse_master(" zk://me:hunter2@zk1,zk2:2182/mesos ", session_timeout_s=3.0)
    assert isinstance(detector, ZooKeeperDetector)
    # It starts to look when it is asked; this one never was.
    await detector.close()


def test_a_malformed_zookeeper_address_names_the_field_and_hides_credentials() -> None:
    with pytest.raises(InvalidValue, match="must end with a path") as caught:
        parse_master("zk://me:hunter2@zk1:2181,zk2:2181", "--master")
    assert caught.value.field == "--master"
    assert "hunter2" not in str(caught.value) + repr(caught.value)
    assert "zk1:2181,zk2:2181" in str(caught.value)


# --- contender --------------------------------------------------------------


async def test_the_standalone_contender_leads_at_once_until_it_resigns() -> None:
    contender = parse_contender(None)
    await contender.elected(pb.MasterInfo())
    assert contender.certain_until_s() == math.inf
    watch = contender.watch()
    assert await anext(watch) is Standing.LEADING
    following = asyncio.ensure_future(anext(watch))
    await asyncio.sleep(0)
    assert not following.done()
    await contender.resign()
    await contender.resign()
    assert await following is Standing.LOST
    assert contender.certain_until_s() == -math.inf
    assert [standing async for standing in watch] == []


def test_a_contender_needs_a_zookeeper_address() -> None:
    with pytest.raises(InvalidValue, match=r"^--zk: .*must be zk://"):
        parse_contender("a:1", "--zk")


async def test_a_contender_that_resigned_never_says_that_it_leads() -> None:
    contender = StandaloneContender()
    await contender.resign()
    assert [standing async for standing in contender.watch()] == [Standing.LOST]


# --- backoff ----------------------------------------------------------------


def test_backoff_doubles_up_to_its_cap_and_starts_again() -> None:
    backoff = Backoff(1.0, 5.0, random=lambda: 1.0)
    assert [backoff.next() for _ in range(5)] == [1.0, 2.0, 4.0, 5.0, 5.0]
    backoff.reset()
    assert backoff.next() == 1.0


@given(st.lists(st.floats(0, 1, exclude_max=True), max_size=3000))
def test_a_wait_is_never_less_than_half_nor_more_than_the_cap(draws: list[float]) -> None:
    left = iter(draws)
    backoff = Backoff(0.1, 5.0, random=lambda: next(left))
    for attempt in range(len(draws)):
        ceiling = min(5.0, 0.1 * 2 ** min(attempt, 10))
        assert ceiling / 2 <= backoff.next() <= ceiling


@pytest.mark.parametrize(
    ("first", "cap"), [(0, 1), (-1, 1), (2, 1), (float("nan"), 1), (1, float("inf"))]
)
def test_backoff_refuses_bounds_that_make_no_sense(first: float, cap: float) -> None:
    with pytest.raises(ValueError, match="first_s"):
        Backoff(first, cap, random=lambda: 0.5)


# --- rest -------------------------------------------------------------------


class Told(Detector):
    """Has news when the test says so."""

    def __init__(self) -> None:
        self.left: list[Address] = []
        self.elected = asyncio.Event()

    async def leader(self) -> Address:
        return A

    async def watch(self):
        yield A

    async def news(self, left: Address) -> None:
        self.left.append(left)
        await self.elected.wait()


async def test_news_ends_a_pause_and_lets_the_attempts_begin_anew() -> None:
    backoff = Backoff(100, 1000, lambda: 0.0)
    backoff.next()
    detector = Told()
    resting = asyncio.create_task(rest(detector, A, 1000, backoff))
    await asyncio.sleep(0)
    assert not resting.done()
    detector.elected.set()
    async with asyncio.timeout(10):
        await resting
    assert detector.left == [A]
    assert backoff.next() == 50  # the first wait again: half of its bound


async def test_a_pause_without_news_has_its_length_and_the_next_is_longer() -> None:
    backoff = Backoff(0.01, 1000, lambda: 0.0)
    await rest(Told(), A, backoff.next(), backoff)
    assert backoff.next() == 0.01


async def test_no_pause_is_none() -> None:
    detector = Told()
    await rest(detector, A, 0, Backoff(1000, 1000, lambda: 0.0))
    assert detector.left == []


async def test_another_address_of_a_list_is_a_guess_and_no_news() -> None:
    detector = parse_master("a:1,b:2")
    news = asyncio.create_task(detector.news(A))
    await asyncio.sleep(0)
    detector.failed(A)
    for _ in range(10):  # rounds of the loop: whatever follows from it has happened
        await asyncio.sleep(0)
    assert await detector.leader() == B
    assert not news.done()
    news.cancel()


def test_a_part_is_at_most_the_whole() -> None:
    assert Backoff(1, 2, lambda: 0.5).part_of(0.25) == 0.125


def test_patience_grows_with_each_answer_that_does_not_come_in_time() -> None:
    patience = Patience(10, 75)
    waits = []
    for _ in range(5):
        waits.append(patience.now_s)
        patience.exhausted()
    assert waits == [10, 20, 40, 75, 75]
    patience.answered()
    assert patience.now_s == 10
    assert Patience(10, 0.3).now_s == 10
