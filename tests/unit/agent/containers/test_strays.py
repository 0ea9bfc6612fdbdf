"""What a lost warden has left is ended by the agent, whatever it shows of itself."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import AsyncIterator

import pytest

from agent.containers.processes import container_of
from agent.containers.strays import Strays
from agent.core.records import Exit
from tests.kit.waiting import until

WITHIN_S = 60


class Scene:
    def __init__(self) -> None:
        self.ended: dict[str, Exit] = {}
        self.strays = Strays(self.ended.__setitem__, lambda: None)
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, mark: str = "") -> int:
        """A process that leads a session, as the first one of a container does."""
        given = {"MESOS_CONTAINER_ID": mark} if mark else {"A": "1"}
        process = subprocess.Popen(["/bin/sleep", "600"], env=given, start_new_session=True)
        self.started.append(process)
        # Popen returns in the middle of the exec, when nothing can be told yet.
        until(lambda: container_of(process.pid) == mark)
        return process.pid

    async def gone(self) -> None:
        self.strays.reap()
        async with asyncio.timeout(WITHIN_S):
            await self.strays.all_gone()


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    made = Scene()
    yield made
    asyncio.get_running_loop().remove_signal_handler(signal.SIGCHLD)
    for process in made.started:
        process.kill()
        process.wait()


async def test_one_that_has_cleared_its_environment_is_killed_all_the_same(scene):
    scene.strays.end_child("c1..a", scene.start())
    await scene.gone()
    assert scene.ended == {"c1..a": Exit(9)}


async def test_its_number_may_be_that_of_another_container_by_now(scene):
    pid = scene.start("c2")
    scene.strays.end_child("c1..a", pid)
    scene.strays.signal("c1..a", signal.SIGTERM)
    await scene.gone()
    assert scene.ended == {"c1..a": Exit(15)}


async def test_at_the_end_all_are_killed_also_those_that_nobody_knows(scene):
    for mark in ("c1", "c1..a"):
        scene.strays.add_child(mark, scene.start(mark))
    scene.strays.kill_all()
    await scene.gone()
    assert scene.ended == {"c1": Exit(9), "c1..a": Exit(9)}
