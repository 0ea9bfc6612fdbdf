"""Whatever is asked of whichever endpoint of an agent: a status, a reason, nothing half done."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agent.api.executor_streams import ExecutorStreams
from agent.core.effects import ExecutorKey
from agent.core.executors import Standing
from mesos_py.http.media import Media
from mesos_py.v1 import executor_pb2
from mesos_py.v1 import types_pb2 as pb
from mesos_py.v1.agent_operator_pb2 import Call
from tests.kit.agent_core import FRAMEWORK, command
from tests.kit.agent_http import SANDBOX, ServedAgent, served
from tests.kit.fuzz import Fuzz
from tests.kit.http_fuzz import Client, Endpoint, check, requests

ExecutorCall = executor_pb2.Call
ROUNDS = 1
# All that is running there.
EXECUTOR = (FRAMEWORK, "ex")
# What says all that a refused request could have changed.
SHOWN = (Call.GET_STATE, Call.GET_AGENT, Call.GET_OPERATIONS, Call.GET_TASKS)


class Executors:
    """What an agent hears of its executors: there is one."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []

    def executor_standing(self, key: ExecutorKey) -> Standing:
        return Standing.SUBSCRIBED if key == EXECUTOR else Standing.UNKNOWN

    def executor_subscribed(self, key: ExecutorKey, call: ExecutorCall.Subscribe) -> str | None:
        self.heard.append(call.SerializeToString())
        return None

    def executor_update(self, key: ExecutorKey, status: pb.TaskStatus) -> str | None:
        self.heard.append(status.SerializeToString())
        return None

    def executor_message(self, key: ExecutorKey, data: bytes) -> None:
        self.heard.append(data)

    def executor_disconnected(self, key: ExecutorKey) -> None: ...

    def executors_told(self) -> None: ...


@pytest.fixture
async def agent(tmp_path: Path) -> AsyncIterator[ServedAgent]:
    async with served(tmp_path) as made:
        (made.sandbox / "link").symlink_to("/etc/passwd")
        made.world.run(command("t1"), command("t2"))
        # None runs: who waits for the end of a container has an answer at once.
        for task_id in ("t1", "t2"):
            made.world.started(task_id, pid=7)
            made.world.ended(task_id)
        made.open()
        yield made
        # The level of logging is the whole process's.
        await made.get("/logging/toggle?level=0&duration=1secs")


def operator_calls() -> list[Call]:
    """One of each type, with what it has a member for."""
    container = pb.ContainerID(value="c9", parent=pb.ContainerID(value="c1"))
    calls = [Call(type=number) for number in Call.Type.values()]
    for call in calls:
        name = Call.Type.Name(call.type).lower()
        if name not in Call.DESCRIPTOR.fields_by_name:
            continue
        member: Any = getattr(call, name)
        member.SetInParent()
        if "container_id" in member.DESCRIPTOR.fields_by_name:
            member.container_id.CopyFrom(container)
        elif "path" in member.DESCRIPTOR.fields_by_name:
            member.path = f"{SANDBOX}/stdout"
    return calls


def executor_calls() -> list[ExecutorCall]:
    ids: dict[str, Any] = {"framework_id": {"value": EXECUTOR[0]}, "executor_id": {"value": "ex"}}
    status = pb.TaskStatus(task_id=pb.TaskID(value="t1"), state=pb.TASK_RUNNING)
    update = ExecutorCall.Update(status=status)
    message = ExecutorCall.Message(data=b"x")
    return [
        ExecutorCall(type=ExecutorCall.SUBSCRIBE, subscribe=ExecutorCall.Subscribe(), **ids),
        ExecutorCall(type=ExecutorCall.UPDATE, update=update, **ids),
        ExecutorCall(type=ExecutorCall.MESSAGE, message=message, **ids),
        ExecutorCall(type=ExecutorCall.HEARTBEAT, **ids),
    ]


def endpoints(dice: random.Random) -> dict[str, Endpoint]:
    """For each path of an agent what comes near to what it takes."""
    fuzz = Fuzz(dice, [*EXECUTOR, "t1", "c1", SANDBOX])
    to_agent, to_executors = operator_calls(), executor_calls()

    def call(dice: random.Random) -> bytes:
        return Media.JSON.dumps(fuzz.altered(dice.choice(to_agent), dice.choice((0, 1, 3))))

    def executor_call(dice: random.Random) -> bytes:
        return Media.JSON.dumps(fuzz.altered(dice.choice(to_executors), dice.choice((0, 1, 3))))

    def binary_call(dice: random.Random) -> bytes:
        return Media.PROTOBUF.dumps(fuzz.altered(dice.choice(to_agent), dice.choice((0, 1, 3))))

    places = (SANDBOX, f"{SANDBOX}/stdout", f"{SANDBOX}/link", f"{SANDBOX}/../x", "/slave/log")
    files = Endpoint(values=places)
    read = Endpoint(values=("c1", "5secs"))
    return {
        "/api/v1": Endpoint(("POST",), call, often=60),
        "/api/v1/executor": Endpoint(("POST",), executor_call, often=40),
        "/containers": read,
        "/files": files,
        "/files/browse": files,
        "/files/debug": files,
        "/files/download": files,
        "/files/read": files,
        "/flags": read,
        "/health": Endpoint(("GET",), binary_call, Media.PROTOBUF.value),
        "/help": Endpoint(values=("json",)),
        "/logging/toggle": Endpoint(values=("0", "1", "5secs")),
        "/metrics": read,
        "/metrics/snapshot": read,
        "/monitor/statistics": read,
        "/state": read,
        "/system/stats.json": read,
        "/version": read,
    }


async def standing(agent: ServedAgent, executors: Executors) -> object:
    """All that a request may not have changed that was refused."""
    answers = [await agent.operator.answer(Call(type=kind)) for kind in SHOWN]
    shown = [answer.SerializeToString(deterministic=True) for answer in answers]
    kept = sorted(str(path) for path in agent.sandbox.parent.rglob("*"))
    return shown, kept, len(agent.host.sent), len(executors.heard)


@pytest.mark.parametrize("seed", [1, 2])
async def test_requests_of_every_kind(agent: ServedAgent, seed: int) -> None:
    dice = random.Random(seed)
    known = endpoints(dice)
    executors = Executors()
    agent.http.executors.open(ExecutorStreams(executors))
    server = agent.http._server
    assert sorted(known) == server._routes.paths()
    seen = set()
    async with Client(agent.http.port) as client:
        for path, endpoint in known.items():
            before = await standing(agent, executors)
            for asked in requests(dice, path, endpoint, ROUNDS, list(known.values())):
                head, body = await client.ask(asked)
                check(asked, head, body)
                seen.add(head.status)
                assert server.failures == 0, asked
                now = await standing(agent, executors)
                assert head.status < 400 or now == before, asked
                before = now
    assert {200, 202, 400, 404, 405} <= seen
