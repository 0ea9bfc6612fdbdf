"""A start that takes too long: whoever asked hears so, and nothing is left behind."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from agent.core.records import Exit
from mesos_py.errors import Conflict, InvalidValue, NotFound, Unavailable
from tests.kit.nested import WANTED, NestedScene

WITHIN_S = 60
KILL = int(signal.SIGKILL)
TOO_LONG = r"container_id: 'c1\.a': cannot be launched: it has not started within 0 s"


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[NestedScene]:
    """Nobody has any time, and the warden does not answer."""
    made = NestedScene(tmp_path, start_limit_s=0.0)
    made.host.silent = True
    yield made
    made.host.close()


@pytest.fixture
def at_once(monkeypatch) -> None:
    """All that would be done in threads: the warden is asked before anybody's time is up."""

    async def here(do: Callable[..., Any], *args: Any) -> Any:
        return do(*args)

    monkeypatch.setattr(asyncio, "to_thread", here)


def directory_of(scene: NestedScene, tmp_path: Path) -> Path:
    """As the warden makes it."""
    made = tmp_path.joinpath(*scene.world.specs()[-1].sandbox, "containers", "a")
    made.mkdir(parents=True)
    (made / "stdout").write_text("hello")
    return made


async def settled(scene: NestedScene) -> None:
    async with asyncio.timeout(WITHIN_S):
        while scene.nested._starting:
            await asyncio.wait(scene.nested._starting)


async def started(scene: NestedScene, name: str = "a") -> None:
    """Later than anybody wants it."""
    scene.host.answer(scene.mark(name))
    async with asyncio.timeout(WITHIN_S):
        await scene.host.signalled.wait()
    assert scene.host.signals() == [(scene.mark(name), KILL)]


async def forgotten(scene: NestedScene) -> None:
    await settled(scene)
    with pytest.raises(NotFound):
        await scene.nested.wait(scene.id("a"))
    scene.nested._start_limit_s = WITHIN_S
    scene.host.silent = False
    assert await scene.launch("a")


async def test_what_starts_later_is_ended_at_once_and_forgotten(scene, at_once, tmp_path):
    with pytest.raises(Unavailable, match=TOO_LONG):
        await scene.launch("a")
    directory = directory_of(scene, tmp_path)
    await started(scene)
    assert scene.shown() == ["a"]
    scene.ended("a", status=9)
    assert scene.shown() == []
    await settled(scene)
    assert not directory.exists()
    await forgotten(scene)


async def test_what_could_not_be_started_in_the_end_is_forgotten(scene, at_once, tmp_path):
    with pytest.raises(Unavailable, match=TOO_LONG):
        await scene.launch("a")
    directory = directory_of(scene, tmp_path)
    scene.host.refusal = "cannot run '/no'"
    scene.host.answer(scene.mark("a"))
    await settled(scene)
    assert not directory.exists()
    assert scene.host.signals() == []
    scene.host.refusal = None
    await forgotten(scene)


async def test_what_is_given_up_before_the_warden_was_asked_is_not_asked_for(scene, monkeypatch):
    goes_on = threading.Event()
    find = scene.host.users.find

    def slow(name: str) -> Any:
        assert goes_on.wait(WITHIN_S)
        return find(name)

    monkeypatch.setattr(scene.host.users, "find", slow)
    try:
        with pytest.raises(Unavailable, match=TOO_LONG):
            await scene.launch("a")
    finally:
        goes_on.set()
    await settled(scene)
    assert scene.host.sent == []
    await forgotten(scene)


async def test_as_long_as_something_may_come_of_it_its_id_is_taken(scene, at_once):
    with pytest.raises(Unavailable):
        await scene.launch("a")
    with pytest.raises(Conflict, match=r"c1\.a': the last one of this id is still being given up"):
        await scene.launch("a")
    with pytest.raises(InvalidValue, match="has not started yet"):
        await scene.launch("a", "b")
    waiting = asyncio.create_task(scene.nested.wait(scene.id("a")))
    await started(scene)
    scene.ended("a", status=9)
    async with asyncio.timeout(WITHIN_S):
        assert await waiting == Exit(9)


async def test_a_session_that_starts_later_is_ended_and_closed(scene, at_once, tmp_path):
    directory = directory_of(scene, tmp_path).parent.parent
    with pytest.raises(Unavailable, match=r"c1\.s': cannot be launched"):
        await scene.nested.open_session(scene.id("s"), WANTED)
    session = scene.nested.session(scene.id("s"))
    await started(scene, "s")
    scene.ended("s", status=9)
    assert session.closed.done()
    await settled(scene)
    # Which is that of the container that it looked into.
    assert (directory / "containers" / "a" / "stdout").exists()


async def test_what_an_earlier_one_of_its_id_has_left_stays(scene, at_once, tmp_path):
    scene.nested._start_limit_s = WITHIN_S
    scene.host.silent = False
    assert await scene.launch("a")
    directory = directory_of(scene, tmp_path)
    scene.ended("a")
    scene.nested._start_limit_s = 0.0
    scene.host.silent = True
    with pytest.raises(Unavailable, match=TOO_LONG):
        await scene.launch("a")
    await started(scene)
    scene.ended("a", status=9)
    await settled(scene)
    assert (directory / "stdout").read_text() == "hello"


async def test_what_one_has_left_that_is_not_known_any_more_stays(scene, at_once, tmp_path):
    # The agent was started anew since, or has forgotten the oldest of many.
    directory = directory_of(scene, tmp_path)
    with pytest.raises(Unavailable, match=TOO_LONG):
        await scene.launch("a")
    await started(scene)
    scene.ended("a", status=9)
    await settled(scene)
    assert (directory / "stdout").read_text() == "hello"


async def test_the_end_of_the_outermost_is_that_of_one_that_is_given_up(scene, at_once):
    with pytest.raises(Unavailable):
        await scene.launch("a")
    scene.outermost_ended()
    await started(scene)
    scene.ended("a", status=9)
    await settled(scene)
    assert scene.shown() == []
