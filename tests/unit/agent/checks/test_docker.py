"""Command probes by `docker exec`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from agent.checks.docker import DockerProbes
from agent.containers.docker.execs import Ran
from agent.core.health import Outcome
from mesos_py.v1 import types_pb2 as pb


class Scene:
    """A container in which commands end when the test says so."""

    def __init__(self) -> None:
        self.probes = DockerProbes(self.run_in, self)
        self.begun: list[tuple[list[str], Mapping[str, str]]] = []
        self.answers: list[asyncio.Future[Ran | None]] = []
        self.killed = 0
        self.ended: list[tuple[int, Outcome]] = []
        self.told = asyncio.Event()

    async def run_in(
        self, container_id: str, argv: list[str], environment: Mapping[str, str]
    ) -> Ran | None:
        self.begun.append((argv, environment))
        answer: asyncio.Future[Ran | None] = asyncio.get_running_loop().create_future()
        self.answers.append(answer)
        try:
            return await answer
        except asyncio.CancelledError:
            self.killed += 1
            raise

    def probe_ended(self, container_id: str, kind: str, number: int, outcome: Outcome) -> None:
        self.ended.append((number, outcome))

    def containers_told(self) -> None:
        self.told.set()

    def probe(self, number: int = 1, **command: object) -> None:
        info = pb.CommandInfo(**(command or {"value": "look"}))  # type: ignore[arg-type]
        self.probes.probe("c", "health", number, info, 20.0)

    async def settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("ran", "good", "value", "text"),
    [
        (Ran(0, "fine"), True, 0, "the command exited with status 0"),
        (Ran(7, "x\nno disk\n"), False, 7, "the command exited with status 7: no disk"),
        (Ran(None, "no answer"), None, None, "dockerd does not say how it ended: no answer"),
        (None, None, None, "the container does not run"),
    ],
)
async def test_what_came_of_it(ran, good, value, text):
    scene = Scene()
    scene.probe()
    await scene.settle()
    scene.answers[0].set_result(ran)
    await scene.told.wait()
    assert scene.ended == [(1, Outcome(good, value, text))]


@pytest.mark.parametrize(
    ("command", "argv"),
    [
        ({"value": "test -f up"}, ["/bin/sh", "-c", "test -f up"]),
        (
            {"shell": False, "value": "curl", "arguments": ["curl", "-f", "x"]},
            ["curl", "-f", "x"],
        ),
        ({"shell": False, "value": "/bin/look"}, ["/bin/look"]),
    ],
)
async def test_what_is_run(command, argv):
    scene = Scene()
    given = pb.Environment.Variable(name="A", value="1")
    scene.probe(**command, environment=pb.Environment(variables=[given]))
    await scene.settle()
    assert scene.begun == [(argv, {"A": "1"})]
    scene.answers[0].set_result(None)
    await scene.told.wait()


async def test_what_is_stopped_is_killed_and_not_told_and_the_next_one_comes_after():
    scene = Scene()
    scene.probe(1)
    await scene.settle()
    scene.probes.stop_probe("c", "health")
    scene.probe(2)
    await scene.settle()
    assert scene.killed == 1
    assert len(scene.begun) == 2
    scene.answers[1].set_result(Ran(0, ""))
    await scene.told.wait()
    assert [number for number, _ in scene.ended] == [2]
    scene.probes.stop_probe("c", "health")


async def test_at_the_agents_end_nothing_is_left_running():
    scene = Scene()
    scene.probe()
    await scene.settle()
    await scene.probes.close()
    await scene.probes.close()
    assert scene.killed == 1
    assert scene.ended == []
