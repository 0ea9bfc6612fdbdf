"""Fair turns, in a loop whose time moves only when a step takes some."""

import asyncio
from typing import Any

import pytest

from master.api.turns import HURRY_S, LATE_S, Turns


@pytest.fixture
async def seconds(monkeypatch):
    """The loop's clock: a list with one number, to be added to."""
    now = [100.0]
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now[0])
    return now


@pytest.fixture
async def turns(seconds):
    return Turns(budget_s=0.01)


def step(seconds, taken, name, takes=0.004, result=True):
    def run():
        seconds[0] += takes
        taken.append(name)
        return result

    return run


async def test_what_fits_into_a_round_is_not_held_up(turns, seconds):
    assert turns.free()
    seconds[0] += 0.009
    assert turns.free()
    seconds[0] += 0.002
    assert not turns.free()


async def test_each_round_has_a_budget_of_its_own(turns, seconds):
    for _ in range(3):
        assert turns.free()
        seconds[0] += 1.0
        assert not turns.free()
        await asyncio.sleep(0)


async def test_what_waits_is_taken_in_order_and_only_so_much_per_round(turns, seconds):
    taken: list[Any] = []
    assert turns.free()
    seconds[0] += 1.0
    waiting = [asyncio.ensure_future(turns.take(step(seconds, taken, n))) for n in range(7)]
    await asyncio.sleep(0)  # they wait; the next round is to come
    rounds = []
    while not all(each.done() for each in waiting):
        before = len(taken)
        await asyncio.sleep(0)
        rounds.append(len(taken) - before)
    assert taken == list(range(7))
    # A step that began within the budget is carried out.
    assert max(rounds) == 3
    assert all(each.result() for each in waiting)


async def test_nobody_overtakes_those_who_wait(turns, seconds):
    assert turns.free()
    seconds[0] += 1.0
    waiting = asyncio.ensure_future(turns.take(step(seconds, [], "a")))
    await asyncio.sleep(0)
    assert not turns.free()
    assert await waiting
    assert turns.free()


async def test_the_one_who_waited_learns_what_became_of_its_step(turns, seconds):
    assert turns.free()
    assert not await turns.take(step(seconds, [], "a", result=False))


async def test_who_does_not_wait_any_more_takes_no_step(turns, seconds):
    """A stream that has ended is not to be registered afterwards."""
    taken: list[Any] = []
    assert turns.free()
    seconds[0] += 1.0
    waiting = [asyncio.ensure_future(turns.take(step(seconds, taken, n))) for n in range(3)]
    await asyncio.sleep(0)
    waiting[1].cancel()
    for _ in range(3):
        await asyncio.sleep(0)
    assert taken == [0, 2]
    assert turns.free()


async def test_rounds_are_short_for_a_while_after_a_stream_has_come(turns, seconds):
    turns = Turns(budget_s=0.01, short_s=0.001)
    turns.hurry()
    assert turns.free()
    seconds[0] += 0.002
    assert not turns.free()
    await asyncio.sleep(0)
    seconds[0] += HURRY_S
    assert turns.free()
    seconds[0] += 0.002
    assert turns.free()


async def test_a_step_that_nobody_waits_for_has_its_turn_in_order(turns, seconds):
    taken: list[Any] = []
    assert not turns.spent()
    turns.queue(step(seconds, taken, "a"))
    assert turns.behind
    assert not turns.free()
    waiting = asyncio.ensure_future(turns.take(step(seconds, taken, "b")))
    assert await waiting
    assert taken == ["a", "b"]
    assert not turns.behind


async def test_a_step_that_can_be_parted_asks_whether_the_round_is_over(turns, seconds):
    assert turns.free()
    assert not turns.spent()
    seconds[0] += 0.01
    assert turns.spent()
    await asyncio.sleep(0)
    assert not turns.spent()


async def test_short_steps_come_first_but_leave_half_of_the_round(turns, seconds):
    taken: list[Any] = []
    assert turns.free()
    seconds[0] += 1.0
    for number in range(3):
        turns.queue(step(seconds, taken, f"long {number}", takes=0.01))
    for number in range(5):
        turns.queue(step(seconds, taken, number, takes=0.003), short=True)
    await asyncio.sleep(0)
    assert taken == [0, 1, "long 0"]
    for _ in range(4):
        await asyncio.sleep(0)
    assert not turns.behind
    assert taken == [0, 1, "long 0", 2, 3, "long 1", 4, "long 2"]


async def test_short_steps_have_the_whole_round_if_nobody_else_waits(turns, seconds):
    taken: list[Any] = []
    for number in range(4):
        turns.queue(step(seconds, taken, number, takes=0.003), short=True)
    await asyncio.sleep(0)
    assert taken == [0, 1, 2, 3]


async def test_it_is_late_only_when_something_has_waited_for_several_rounds(turns, seconds):
    assert not turns.late
    for _ in range(3):
        turns.queue(step(seconds, [], "a", takes=0.02))
    assert turns.behind
    assert not turns.late
    seconds[0] += LATE_S + 0.001
    assert turns.late
    # One step per round, so that the second and the third still are the oldest for a while.
    for _ in range(3):
        assert turns.late
        await asyncio.sleep(0)
    assert not turns.late
