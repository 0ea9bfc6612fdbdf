"""Long work goes on a little at a time, in proportion to what others do meanwhile."""

import asyncio
from typing import Any

import pytest

from mesos_py.slices import LEAST_S, SHARE, SLICE_S, Pace, sliced

STEP_S = LEAST_S / 4


class Clock:
    """The loop's time; it moves only when somebody works."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.now_s = loop.time()

    def work(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    loop = asyncio.get_running_loop()
    made = Clock(loop)
    monkeypatch.setattr(loop, "time", lambda: made.now_s)
    return made


class Others:
    """They work for so long in each of their turns."""

    def __init__(self, clock: Clock, each_s: float) -> None:
        self._clock = clock
        self._each_s = each_s
        # When their turns began.
        self.turns_s: list[float] = []
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        while True:
            self.turns_s.append(self._clock.now_s)
            self._clock.work(self._each_s)
            await asyncio.sleep(0)

    def waits_s(self) -> list[float]:
        """How long they waited between their turns."""
        ends = [begun_s + self._each_s for begun_s in self.turns_s]
        return [begun_s - end_s for end_s, begun_s in zip(ends, self.turns_s[1:], strict=False)]

    async def end(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


async def waits_s(clock: Clock, others_s: float, steps: int = 800) -> list[float]:
    """How long others waited, once the pace knew them."""
    others, pace = Others(clock, others_s), Pace()
    for _ in range(steps):
        clock.work(STEP_S)
        await pace.step()
    await others.end()
    return others.waits_s()[1:]


@pytest.mark.parametrize(
    ("others_s", "slice_s"),
    [
        (0.0, LEAST_S),
        (LEAST_S, LEAST_S),
        (0.003 / SHARE, 0.003),
        (SLICE_S / SHARE, SLICE_S),
        (1.0, SLICE_S),
    ],
)
async def test_others_wait_for_a_part_of_what_they_work(
    clock: Clock, others_s: float, slice_s: float
) -> None:
    waits = await waits_s(clock, others_s)
    assert len(waits) > 10
    assert all(slice_s - STEP_S <= each <= slice_s + STEP_S for each in waits)


async def test_many_short_parts_share_the_pace_of_the_whole(clock: Clock) -> None:
    others, pace = Others(clock, 0.0), Pace()

    def convert(item: int) -> int | None:
        clock.work(STEP_S)
        return item if item % 2 else None

    found: list[Any] = []
    for _ in range(100):
        found += await sliced(convert, range(2), pace)
    await others.end()
    assert found == [1] * 100
    assert max(others.waits_s()) <= LEAST_S + STEP_S


async def test_a_slice_may_be_shorter_than_the_least(clock: Clock) -> None:
    others = Others(clock, 0.0)
    await sliced(lambda _: clock.work(STEP_S), range(10), 0.0)
    await others.end()
    assert len(others.turns_s) >= 10
