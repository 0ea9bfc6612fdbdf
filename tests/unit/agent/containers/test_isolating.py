"""Isolators at work: what is asked for again, what harms nobody, the order at the end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from agent.containers.isolating import Isolating
from agent.isolation.base import NOTHING, AgentFacts, Isolator, Limitation, Preparation
from mesos_py.errors import Unavailable
from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb

WITHIN_S = 10
LIMITATION = Limitation(
    pb.TaskStatus.REASON_CONTAINER_LIMITATION_MEMORY, "too much", Resources.of(mem=1)
)


class Scripted(Isolator):
    """Answers what it is told to, in order; the last answer stays."""

    def __init__(self, name: str = "i", calls: list[tuple[str, str]] | None = None) -> None:
        super().__init__(AgentFacts("A1", "/", Resources()))
        self.name = name
        self.calls: list[tuple[str, str]] = calls if calls is not None else []
        self.ends: list[Limitation | Exception | None] = [None]
        self.cleanups: list[Exception | None] = [None]
        self.cleaned = threading.Event()
        self.needs = NOTHING

    def join(self, container_id: str, pid: int) -> Preparation:
        self.calls.append((self.name, f"join {container_id} {pid}"))
        return self.needs

    def end(self, container_id: str) -> Limitation | None:
        self.calls.append((self.name, "end"))
        answer = self.ends.pop(0) if len(self.ends) > 1 else self.ends[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def cleanup(self, container_id: str) -> None:
        self.calls.append((self.name, "cleanup"))
        answer = self.cleanups.pop(0) if len(self.cleanups) > 1 else self.cleanups[0]
        if answer is not None:
            raise answer
        self.cleaned.set()

    def close(self) -> None:
        self.calls.append((self.name, "close"))


@pytest.fixture
async def closing() -> AsyncIterator[list[Isolating]]:
    made: list[Isolating] = []
    yield made
    for each in made:
        await each.close()


async def test_what_a_further_process_needs_is_the_sum_of_all(closing):
    first, second = Scripted(), Scripted()
    first.needs = Preparation({"A": "1", "B": "1"}, ("g1",), (), ((7, 1, 2),))
    second.needs = Preparation({"B": "2"}, ("g2",), ("n",), ())
    closing.append(isolating := Isolating([first, second]))
    found = await isolating.join("c1", 7)
    assert found == Preparation({"A": "1", "B": "2"}, ("g1", "g2"), ("n",), ((7, 1, 2),))
    assert first.calls == [("i", "join c1 7")]
    closing.append(none := Isolating([]))
    assert await none.join("c1", 7) == NOTHING


async def ended(isolating: Isolating) -> Limitation | None:
    told: asyncio.Future[Limitation | None] = asyncio.get_running_loop().create_future()
    isolating.end("c1", told.set_result, again_s=0.001)
    async with asyncio.timeout(WITHIN_S):
        return await told


async def test_the_first_limitation_is_told_with_the_end(closing):
    one, two = Scripted(), Scripted()
    two.ends = [LIMITATION]
    closing.append(Isolating([one, two]))
    assert await ended(closing[0]) == LIMITATION


async def test_what_does_not_end_yet_is_asked_again_until_it_has(closing):
    one = Scripted()
    one.ends = [Unavailable("hangs"), Unavailable("hangs"), None]
    closing.append(Isolating([one]))
    assert await ended(closing[0]) is None
    assert one.calls == [("i", "end")] * 3


async def test_an_isolator_that_fails_does_not_keep_the_task_for_ever(closing):
    one, two = Scripted(), Scripted()
    one.ends = [RuntimeError("odd")]
    two.ends = [LIMITATION]
    closing.append(Isolating([one, two]))
    assert await ended(closing[0]) == LIMITATION


async def test_a_cleanup_is_repeated_until_it_succeeds(closing):
    one = Scripted()
    one.cleanups = [OSError("in use"), OSError("in use"), None]
    closing.append(Isolating([one]))
    closing[0].cleanup("c1", again_s=0.001)
    assert await asyncio.to_thread(one.cleaned.wait, WITHIN_S)
    assert len(one.calls) == 3


async def test_a_kill_asks_all_isolators_to_end_it(closing):
    one, two = Scripted("one"), Scripted("two")
    one.calls = two.calls
    closing.append(Isolating([one, two]))
    closing[0].kill("c1")
    assert await ended(closing[0]) is None
    assert one.calls == [("one", "end"), ("two", "end")] * 2


async def test_at_the_end_isolators_are_closed_last_made_first_and_nothing_is_repeated():
    calls: list[tuple[str, str]] = []
    one, two = Scripted("one", calls), Scripted("two", calls)
    one.cleanups = [OSError("in use")]
    isolating = Isolating([one, two])
    isolating.cleanup("c1", again_s=0.001)
    await isolating.close()
    await asyncio.sleep(0)
    assert calls == [("two", "cleanup"), ("one", "cleanup"), ("two", "close"), ("one", "close")]
