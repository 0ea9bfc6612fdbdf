"""Command probes of tasks of groups: started as the agent's own executor started the task."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from agent.checks.command import CommandProbes
from agent.checks.groups import MAX_LOOKUPS, GroupProbes
from agent.containers.isolating import Isolating
from agent.containers.users import User
from agent.core.health import Outcome
from agent.isolation.base import AgentFacts, Isolator, Preparation
from mesos_py.errors import Refused
from mesos_py.resources import Resources
from mesos_py.tasks import health_command
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import AgentWorld, command, executor_info, for_executor, status

WITHIN_S = 60
LOOK = pb.CommandInfo(value="look")
DEFAULT = executor_info(type=pb.ExecutorInfo.DEFAULT)
DEFAULT.ClearField("command")


class Users:
    """Who asks is kept waiting until the test says so."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.refusal: Refused | None = None

    def find(self, name: str) -> User:
        self.asked.append(name)
        if self.refusal is not None:
            raise self.refusal
        return User(1234, 1235, (1234, 1235, [1235]))


class SlowUsers(Users):
    """Their directory does not answer before it may."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = threading.Event()
        self._lock = threading.Lock()
        self._inside = self.most_inside = 0

    def find(self, name: str) -> User:
        with self._lock:
            self._inside += 1
            self.most_inside = max(self.most_inside, self._inside)
        assert self.answers.wait(WITHIN_S)
        with self._lock:
            self._inside -= 1
        return super().find(name)


class Cgroup(Isolator):
    """What a further process of the container enters."""

    def join(self, container_id: str, pid: int) -> Preparation:
        return Preparation({"OF_ISOLATOR": "1"}, enter=(f"/cg/{container_id}/{pid}",))


class Scene:
    """A group of one task, a, whose probes go to a list."""

    def __init__(self) -> None:
        self.world = AgentWorld(default_executor=("/program",), python_path="/modules")
        self.users: Any = Users()
        self.isolating = Isolating([Cgroup(AgentFacts("A1", "/nowhere", Resources()))])
        self.sent: list[list[Any]] = []
        self.flushed = asyncio.Event()
        self.ended: list[tuple[str, int, Outcome]] = []
        self.told = asyncio.Event()
        self.probes = CommandProbes(self.sent.append, self._ended)
        self.groups = GroupProbes(self.world.core.state, self, self)

    def run(self, **command: Any) -> None:
        variable = pb.Environment.Variable(name="X", value="1")
        given = {"environment": pb.Environment(variables=[variable]), **command}
        info = pb.CommandInfo(value="run", **given)
        health = health_command("true")
        self.world.run_group(for_executor("a", DEFAULT, command=info, health_check=health))
        self.world.started("ex", pid=77)
        self.world.subscribe("ex")
        self.world.report("ex", status("a", pb.TASK_RUNNING))

    @property
    def kind(self) -> str:
        return self.world.core.state.tasks["F1", "a"].checks[0].name

    def probe(self, number: int = 1, kind: str = "", timeout_s: float = 600.0) -> None:
        kind = kind or self.kind
        self.groups.probe(self.world.container("ex"), kind, number, LOOK, timeout_s)

    async def answered(self) -> Outcome:
        """What the next probe comes to."""
        async with asyncio.timeout(WITHIN_S):
            await self.told.wait()
        self.told.clear()
        return self.ended[-1][2]

    async def asked(self) -> list[Any]:
        """What the warden was asked, once it was."""
        async with asyncio.timeout(WITHIN_S):
            await self.flushed.wait()
        return self.sent[-1]

    # ---- Host and ProbeEvents

    def flush(self) -> None:
        self.flushed.set()

    def _ended(self, container_id: str, kind: str, number: int, outcome: Outcome) -> None:
        self.probe_ended(container_id, kind, number, outcome)

    def probe_ended(self, container_id: str, kind: str, number: int, outcome: Outcome) -> None:
        self.ended.append((kind, number, outcome))

    def containers_told(self) -> None:
        self.told.set()


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    made = Scene()
    yield made
    await made.groups.close()
    await made.isolating.close()


async def test_it_runs_as_its_task_does_and_not_as_the_executor(scene):
    scene.run()
    scene.probe()
    what, request, (container_id, limit_s) = await scene.asked()
    assert (what, container_id, limit_s) == ("probe", scene.world.container("ex"), 605.0)
    assert request["id"] == f"{container_id}.{scene.kind}"
    assert request["argv"] == ["sh", "-c", "look"]
    assert scene.users.asked == ["root"]
    assert (request["owner"], request["user"]) == ((1234, 1235), (1234, 1235, [1235]))
    assert request["sandbox"] == [*scene.world.specs()[-1].sandbox, "tasks", "a"]
    assert request["enter"] == [f"/cg/{container_id}/77"]
    env = request["env"]
    assert (env["X"], env["OF_ISOLATOR"], env["MESOS_TASK_ID"]) == ("1", "1", "a")
    assert env["MESOS_SANDBOX"].endswith("/tasks/a")
    assert env["MESOS_CONTAINER_ID"] == request["id"]
    assert not {"PYTHONPATH", "MESOS_PY_EXECUTOR_ENDPOINT"} & env.keys()
    assert scene.ended == []


async def test_the_user_of_the_command_counts(scene):
    scene.run(user="somebody")
    scene.probe()
    await scene.asked()
    assert scene.users.asked == ["somebody"]


async def test_its_answer_comes_as_any_probes_does(scene):
    scene.run()
    scene.probe(number=3)
    _, request, _ = await scene.asked()
    scene.probes.heard("probed", request["id"], [0, "", ""])
    ((kind, number, outcome),) = scene.ended
    assert (kind, number, outcome.good, outcome.value) == (scene.kind, 3, True, 0)


async def test_one_that_cannot_be_started_says_nothing_of_the_task(scene):
    scene.run()
    scene.users.refusal = Refused("user 'x' does not exist")
    scene.probe()
    async with asyncio.timeout(WITHIN_S):
        await scene.told.wait()
    assert scene.ended == [(scene.kind, 1, Outcome(None, None, "user 'x' does not exist"))]
    assert scene.sent == []


@pytest.fixture
def slow(scene) -> Iterator[SlowUsers]:
    scene.users = made = SlowUsers()
    yield made
    made.answers.set()


async def test_a_user_who_cannot_be_looked_up_in_time_says_nothing_of_the_task(scene, slow):
    scene.run()
    for number in range(1, 4):
        scene.probe(number, timeout_s=0.001)
        text = "its user 'root' is being looked up for long already"
        assert await scene.answered() == Outcome(None, None, text)
        scene.groups.stop_probe(scene.world.container("ex"), scene.kind)
    assert scene.sent == []
    scene.probe(4)
    slow.answers.set()
    _, request, _ = await scene.asked()
    assert request["owner"] == (1234, 1235)
    # Whoever had been given up goes nowhere.
    assert slow.most_inside == len(scene.sent) == 1


async def test_lookups_leave_threads_to_others(scene, slow):
    health = health_command("true")
    names = [f"u{number}" for number in range(3 * MAX_LOOKUPS)]
    scene.world.run_group(
        *(
            for_executor(
                name, DEFAULT, command=pb.CommandInfo(value="run", user=name), health_check=health
            )
            for name in names
        )
    )
    scene.world.started("ex", pid=77)
    for name in names:
        (check,) = scene.world.core.state.tasks["F1", name].checks
        scene.probe(kind=check.name, timeout_s=0.001)
        assert (await scene.answered()).good is None
    async with asyncio.timeout(WITHIN_S):
        await asyncio.to_thread(int)
    assert slow.most_inside <= MAX_LOOKUPS


async def test_nothing_is_run_as_the_agents_user_for_want_of_another(scene):
    scene.run()
    scene.world.core.state.frameworks.clear()
    scene.probe()
    async with asyncio.timeout(WITHIN_S):
        await scene.told.wait()
    ((_, _, outcome),) = scene.ended
    assert (outcome.good, outcome.text) == (None, "its user is not known")
    assert scene.users.asked == []


async def test_one_that_is_stopped_before_it_is_started_never_is(scene):
    scene.run()
    scene.probe(number=1)
    kind = scene.kind
    scene.groups.stop_probe(scene.world.container("ex"), kind)
    scene.probe(number=2)
    _, request, _ = await scene.asked()
    scene.probes.heard("probed", request["id"], [0, "", ""])
    assert [each[0] for each in scene.sent] == ["probe"]
    assert [number for _, number, _ in scene.ended] == [2]


async def test_one_that_runs_is_killed(scene):
    scene.run()
    scene.probe()
    _, request, _ = await scene.asked()
    scene.groups.stop_probe(scene.world.container("ex"), scene.kind)
    assert scene.sent[-1] == ["signal", request["id"], 9]


async def test_those_of_command_tasks_are_the_launchers(scene):
    info = command("t", health_check=health_command("true"))
    scene.world.run(info)
    scene.world.started("t")
    container_id = scene.world.container("t")
    base = {
        **{key: [] for key in ("enter", "namespaces", "rlimits", "argv")},
        "id": container_id,
        "env": {"A": "1"},
        "sandbox": ["s"],
        "exe": "",
        "user": None,
        "owner": (os.getuid(), os.getgid()),
    }
    scene.probes.about_to_start(base, [info])
    scene.groups.probe(container_id, "health", 1, LOOK, 0.0)
    ((_, request, _),) = scene.sent
    assert (request["id"], request["env"]["A"]) == (f"{container_id}.health", "1")


async def test_how_the_executor_runs_is_never_kept_for_a_probe(scene):
    """It runs as the agent does."""
    health = health_command("true")
    request: Any = {"id": "c"}
    scene.probes.about_to_start(request, [DEFAULT, for_executor("a", DEFAULT, health_check=health)])
    assert "probed" not in request
