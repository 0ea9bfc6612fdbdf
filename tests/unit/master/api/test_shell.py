"""The shell: the core is woken when it is due, and no exception ends that."""

import asyncio
from typing import Any, cast

import pytest

from master.api.certainty import Certainty
from master.api.shell import Shell
from mesos_py.clock import Now


class Core:
    """As much of a core as the shell uses; its deadlines are the loop's seconds."""

    def __init__(self):
        self.deadlines = []
        self.ticks = []
        self.woken = asyncio.Event()
        self.error = None
        self.deadline_error = None

    def next_deadline_s(self):
        if self.deadline_error is not None:
            raise self.deadline_error
        return min(self.deadlines, default=None)

    def tick(self, now, seconds_of, behind=False):
        self.ticks.append(now.monotonic_s)
        self.woken.set()
        assert seconds_of() <= seconds_of()
        self.deadlines = [at for at in self.deadlines if at > now.monotonic_s]
        if self.error is not None:
            raise self.error


class LoopClock:
    def now(self):
        return Now(asyncio.get_running_loop().time(), 0.0)


@pytest.fixture
async def shell():
    made = Shell(cast("Any", Core()), LoopClock())
    yield made
    made.stop()


def armed_s(shell):
    """When the shell will wake the core, None: never."""
    return shell._timer.when() if shell._timer is not None else None


async def woken(shell):
    """Let the loop run until the core was woken."""
    async with asyncio.timeout(5):
        await shell.core.woken.wait()


async def rounds_until(done):
    """Let the loop go round, without a pause, until it has come to that."""
    async with asyncio.timeout(5):
        while not done():  # noqa: ASYNC110
            await asyncio.sleep(0)


async def test_a_core_without_deadlines_is_not_woken(shell):
    shell.rearm()
    assert armed_s(shell) is None


async def test_the_core_is_woken_at_its_deadline_and_armed_for_the_next(shell):
    now_s = shell.now().monotonic_s
    shell.core.deadlines = [now_s, now_s + 50]
    shell.rearm()
    await woken(shell)
    assert armed_s(shell) == now_s + 50


async def test_an_earlier_deadline_moves_the_timer_and_a_later_one_does_not(shell):
    now_s = shell.now().monotonic_s
    for deadline_s, expected in [(50, 50), (70, 50), (30, 30)]:
        shell.core.deadlines = [now_s + deadline_s]
        shell.rearm()
        assert armed_s(shell) == now_s + expected


async def test_a_tick_that_raises_is_counted_and_the_next_deadline_armed(shell):
    now_s = shell.now().monotonic_s
    shell.core.deadlines = [now_s, now_s + 50]
    shell.core.error = RuntimeError("a bad record")
    shell.rearm()
    await woken(shell)
    assert shell.failures == 1
    assert armed_s(shell) == now_s + 50


async def test_a_deadline_that_cannot_be_told_is_asked_for_again_soon(shell):
    shell.core.deadline_error = RuntimeError("an allocator's fault")
    before_s = shell.now().monotonic_s
    shell.rearm()
    assert shell.failures == 1
    assert before_s + 1 <= armed_s(shell) <= shell.now().monotonic_s + 1


async def test_a_step_that_raises_ends_there(shell):
    def step(number, *, name):
        assert (number, name) == (1, "a")
        raise RuntimeError("one bad message")

    assert not shell.guarded("step", step, 1, name="a")
    assert shell.failures == 1
    assert shell.guarded("step", lambda: None)
    assert shell.failures == 1


async def test_cancellation_is_no_failure_of_a_step(shell):
    def step():
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        shell.guarded("step", step)
    assert shell.failures == 0


async def test_a_stopped_shell_wakes_nobody(shell):
    shell.core.deadlines = [shell.now().monotonic_s + 50]
    shell.rearm()
    shell.stop()
    shell.stop()
    assert armed_s(shell) is None
    assert shell.core.ticks == []


async def test_while_the_leadership_is_in_doubt_the_core_is_not_woken_and_what_is_due_stays_due():
    certainty = Certainty()
    shell: Any = Shell(cast("Any", Core()), LoopClock(), certainty)
    due_s = shell.now().monotonic_s
    certainty.doubt()
    shell.core.deadlines = [due_s]
    shell.rearm()
    await rounds_until(lambda: armed_s(shell) > due_s)  # it has come, and looks again later
    assert shell.core.ticks == []
    certainty.trust()
    await woken(shell)
    assert shell.core.ticks[0] >= due_s
    shell.stop()


async def test_after_the_leadership_the_core_is_never_woken_again():
    certainty = Certainty()
    shell: Any = Shell(cast("Any", Core()), LoopClock(), certainty)
    certainty.end()
    shell.core.deadlines = [shell.now().monotonic_s]
    shell.rearm()
    await rounds_until(lambda: armed_s(shell) is None)  # it has come, and is not armed again
    assert shell.core.ticks == []


async def test_all_inputs_of_a_round_arm_the_core_once(shell):
    asked = []
    shell.core.next_deadline_s = lambda: asked.append(1)
    for _ in range(5):
        shell.rearm_soon()
    assert asked == []
    await asyncio.sleep(0)
    assert asked == [1]
    shell.rearm_soon()
    shell.stop()
    await asyncio.sleep(0)
    assert asked == [1]
