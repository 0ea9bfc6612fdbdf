"""Whatever an agent is asked over HTTP: a status (no 500) and a reason, and it goes on."""

import json
import random
from urllib.parse import quote

import pytest

from mesos_py.http.media import Media
from mesos_py.v1 import types_pb2 as pb
from mesos_py.v1.agent_operator_pb2 import Call
from tests.kit.agent_core import command
from tests.kit.agent_http import SANDBOX, served
from tests.kit.fuzz import Fuzz

ROUNDS = 30
# Of letters: a null, a line end, "%", ".", "/" and some that are no ASCII.
ODD = (0, 10, 37, 46, 47, 255, 0xFFFD)
ENDPOINTS = (
    *("/health", "/version", "/flags", "/state", "/containers", "/monitor/statistics"),
    *("/metrics/snapshot", "/files/browse", "/files/read", "/files/download", "/files/debug"),
    *("/logging/toggle", "/help", "/help/files", "/system/stats.json"),
    *("/api/v1", "/api/v1/executor", "/metrics", "/files", "/slave(1)", "/nowhere", "/"),
)
QUERIES = ("path", "offset", "length", "jsonp", "timeout", "container_id", "level", "x")
# As they come, and with a few letters of them changed.
VALUES = (
    *(SANDBOX, f"{SANDBOX}/stdout", f"{SANDBOX}/link", f"{SANDBOX}/pipe", f"{SANDBOX}/../x"),
    *("0", "-1", "1e9", "9" * 30, "NaN", "", "a b", "é", "\0", "%2e%2e", "/" * 300, "x" * 3000),
    *("5secs", "-5secs", "f", "f(", "[", "c1"),
)


@pytest.fixture
async def agent(tmp_path):
    async with served(tmp_path) as made:
        (made.sandbox / "link").symlink_to("/etc/passwd")
        (made.sandbox / "pipe").mkdir()
        made.world.run(command("t1"), command("t2"))
        made.world.started("t2", pid=7)
        made.world.ended("t2")
        made.open()
        yield made


def calls():
    container = pb.ContainerID(value="c9", parent=pb.ContainerID(value="c1"))
    found = [Call(type=number) for _, number in Call.Type.items()]
    for call in found:
        name = Call.Type.Name(call.type).lower()
        if name not in Call.DESCRIPTOR.fields_by_name:
            continue
        member = getattr(call, name)
        member.SetInParent()
        if "container_id" in member.DESCRIPTOR.fields_by_name:
            member.container_id.CopyFrom(container)
        elif "path" in member.DESCRIPTOR.fields_by_name:
            member.path = f"{SANDBOX}/stdout"
    return found


def altered(dice, text):
    letters = list(text)
    for _ in range(dice.randint(0, 2)):
        if letters:
            letters[dice.randrange(len(letters))] = chr(
                dice.choice([0, 10, 37, 46, 47, 255, 0xFFFD])
            )
    return "".join(letters)


@pytest.mark.parametrize("seed", [1, 2])
async def test_calls(agent, seed):
    dice = random.Random(seed)
    fuzz = Fuzz(dice, ids=["F1", "t1", "c1", SANDBOX])
    seen = set()
    for _ in range(ROUNDS):
        for call in calls():
            media = dice.choice(list(Media))
            body = bytearray(media.dumps(fuzz.altered(call)))
            for _ in range(dice.randint(0, 2)):
                if body:
                    body[dice.randrange(len(body))] = dice.randrange(256)
            status, reason = await agent.ask(bytes(body), {"Content-Type": media.value})
            seen.add(status)
            assert status in (200, 400, 404, 413, 501), (media, body, reason)
            assert status == 200 or reason.endswith(b"\n")
    assert {200, 400, 404, 501} <= seen
    assert agent.http._server.failures == 0
    assert (await agent.ask({"type": "GET_STATE"}))[0] == 200


@pytest.mark.parametrize("seed", [1, 2])
async def test_queries(agent, seed):
    dice = random.Random(seed)
    seen = set()
    for _ in range(ROUNDS * 10):
        names = dice.sample(QUERIES, dice.randint(0, 4))
        asked = "&".join(
            f"{name}={quote(altered(dice, dice.choice(VALUES)), errors='replace')}"
            for name in names
        )
        path = f"{dice.choice(ENDPOINTS)}?{asked}"
        status, reason = await agent.get(path)
        seen.add(status)
        allowed = (200, 400, 403, 404, 405)
        # Executors have not been let in.
        assert status in allowed or "executor" in path, (path, status, reason)
    assert {200, 400, 404} <= seen
    assert agent.http._server.failures == 0
    assert json.loads((await agent.get("/state"))[1])["id"] == "A1"
