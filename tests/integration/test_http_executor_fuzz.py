"""Whatever an executor sends by HTTP: a status and a reason, and the agent is as before."""

from __future__ import annotations

import random
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from mesos_py.http.media import Media
from mesos_py.v1 import executor_pb2
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import FRAMEWORK, executor_info, for_executor
from tests.kit.agent_master import AgentProcess, FakeMaster, eventually, running_agent
from tests.kit.fuzz import Fuzz
from tests.kit.http_executor import HttpExecutor

Call = executor_pb2.Call
IDS: dict[str, Any] = {
    "framework_id": pb.FrameworkID(value=FRAMEWORK),
    "executor_id": pb.ExecutorID(value="ex"),
}
ROUNDS = 150
# Members that no message of ours has, values that no field takes.
ODD = (
    b'{"type":"UPDATE","update":' + b'{"status":' * 200 + b"1" + b"}" * 202,
    b"[" * 100_000,
    b'{"type":"HEARTBEAT","executor_id":{"value":"\\ud800"},"framework_id":{"value":"F1"}}',
    b'{"type":"HEARTBEAT","executor_id":{"value":"ex\\u0000"},"framework_id":{"value":"F1"}}',
    b'{"type":"HEARTBEAT","executor_id":"ex","framework_id":{"value":"F1"}}',
    b'{"type":["HEARTBEAT"],"executor_id":{"value":"ex"},"framework_id":{"value":"F1"}}',
    b'{"type":"HEARTBEAT","type":"UPDATE","executor_id":{"value":"ex"}}',
    b"\xef\xbb\xbf{}",
    b"NaN",
    b'"text"',
    b"1" * 5000,
)


@pytest.fixture
async def master() -> AsyncIterator[FakeMaster]:
    async with FakeMaster() as made:
        yield made


@pytest.fixture
async def agent(master: FakeMaster, tmp_path: Path) -> AsyncIterator[AgentProcess]:
    async with running_agent(master, tmp_path / "agent") as made:
        yield made


def valid() -> list[Call]:
    status = pb.TaskStatus(
        task_id=pb.TaskID(value="a"),
        state=pb.TASK_RUNNING,
        source=pb.TaskStatus.SOURCE_EXECUTOR,
        uuid=uuid.UUID(int=7, version=4).bytes,
        healthy=True,
        labels=pb.Labels(labels=[pb.Label(key="k", value="v")]),
    )
    return [
        Call(type=Call.UPDATE, update=Call.Update(status=status), **IDS),
        Call(type=Call.MESSAGE, message=Call.Message(data=b"x"), **IDS),
        Call(type=Call.HEARTBEAT, **IDS),
    ]


def bodies(dice: random.Random) -> Iterator[tuple[Media, bytes]]:
    """Calls with a few things altered, then with a few bytes altered; and oddities."""
    fuzz = Fuzz(dice, ids=[FRAMEWORK, "ex", "a"])
    for _ in range(ROUNDS):
        for call in valid():
            altered = fuzz.altered(call)
            media = dice.choice(list(Media))
            body = media.dumps(altered)
            yield media, body
            broken = bytearray(body)
            for _ in range(dice.randint(1, 3)):
                broken[dice.randrange(len(broken))] = dice.randrange(256)
            yield media, bytes(broken)
            yield media, body[: dice.randrange(len(body))]
    for body in ODD:
        yield from ((media, body) for media in Media)


@pytest.mark.parametrize("seed", [1, 2])
async def test_anything_is_answered_and_nothing_breaks(master, agent, seed):
    silent = executor_info(command=pb.CommandInfo(value="echo here; exec sleep 1000"))
    master.run(for_executor("a", silent), for_executor("b", silent))
    await eventually(lambda: agent.output("ex"))
    seen = set()
    async with HttpExecutor(agent_port(master)) as executor:
        await executor.subscribe()
        for _ in ("SUBSCRIBED", "LAUNCH", "LAUNCH"):
            await executor.record()
        for media, body in bodies(random.Random(seed)):
            if b"SUBSCRIBE" in body or b"\x18\x01" in body:
                continue  # its answer might be a stream
            reply = await executor.ask(body, media=media.value)
            seen.add(reply.status)
            assert reply.status in (202, 400, 403, 501), (media, body, reply)
            assert bool(reply.body) == (reply.status != 202), (media, body, reply)
        assert {202, 400} <= seen
        assert (await executor.update("b", "TASK_FINISHED")).status == 202
        await master.status("b", pb.TASK_FINISHED)
    assert "request failed" not in agent.log.read_text()
    assert "input failed" not in agent.log.read_text()


def agent_port(master: FakeMaster) -> int:
    return master.registrations[-1].agent_info.http_port
