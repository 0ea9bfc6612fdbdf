"""Whatever is asked of whichever endpoint of a master: a status, a reason, nothing half done."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import urlencode

import pytest

from mesos_py.address import Address, MasterAddress
from mesos_py.http.jsonpb import as_object, from_object
from mesos_py.http.media import Media
from mesos_py.v1 import maintenance_pb2 as mt
from mesos_py.v1 import operator_pb2 as op
from mesos_py.v1 import quota_pb2 as qt
from mesos_py.v1 import types_pb2 as pb
from tests.kit.fuzz import Fuzz
from tests.kit.http_fuzz import FORM, Bodies, Client, Endpoint, check, requests
from tests.kit.master_http import HttpMaster, http_master

Call = op.Call
ROUNDS = 1
# Is asked for in tests/integration/test_http_fuzz.py, where there are streams.
SCHEDULER = "/api/v1/scheduler"
# What only is read.
PAGES = (
    *("/flags", "/frameworks", "/health", "/maintenance/status", "/metrics", "/metrics/snapshot"),
    *("/roles", "/slaves", "/state", "/state-summary", "/system/stats.json", "/tasks", "/version"),
)
FILES = ("/files/browse", "/files/debug", "/files/download", "/files/read")
CPU = {"name": "cpus", "type": "SCALAR", "scalar": {"value": 1}}
RESERVED = from_object(pb.Resource, {**CPU, "reservations": [{"type": "DYNAMIC", "role": "web"}]})
DISK = from_object(
    pb.Resource,
    {
        "name": "disk",
        "type": "SCALAR",
        "scalar": {"value": 10},
        "reservations": [{"type": "STATIC", "role": "web"}],
    },
)
VOLUME = from_object(
    pb.Resource,
    {
        **as_object(DISK),
        "disk": {
            "persistence": {"id": "v1", "principal": "p"},
            "volume": {"mode": "RW", "container_path": "data"},
        },
    },
)
PERIOD = {"start": {"nanoseconds": 1}, "duration": {"nanoseconds": 10**9}}
MACHINES = [pb.MachineID(hostname="host"), pb.MachineID(hostname="other", ip="10.0.0.1")]
WINDOW = from_object(mt.Window, {"machine_ids": [{"hostname": "host"}], "unavailability": PERIOD})
SCHEDULE = mt.Schedule(windows=[WINDOW])
WEIGHTS = [pb.WeightInfo(role="web", weight=2.0), pb.WeightInfo(role="a/b", weight=0.5)]
QUOTA = from_object(
    qt.QuotaConfig,
    {"role": "web", "guarantees": {"cpus": {"value": 1}}, "limits": {"cpus": {"value": 2}}},
)
ASKED_QUOTA = from_object(qt.QuotaRequest, {"role": "web", "guarantee": [CPU]})
# What does not change what there is, and says all that a refused request could have changed.
SHOWN = (
    *(Call.GET_STATE, Call.GET_ROLES, Call.GET_WEIGHTS, Call.GET_QUOTA, Call.GET_OPERATIONS),
    *(Call.GET_MAINTENANCE_SCHEDULE, Call.GET_MAINTENANCE_STATUS, Call.GET_AGENTS),
)


@pytest.fixture
async def master() -> AsyncIterator[HttpMaster]:
    async with http_master() as made:
        made.world.agent("host")
        made.world.agent("other", "cpus:4;cpus(web):2;mem:4096;disk(web):100")
        framework = made.world.framework("f")
        framework.launch(framework.offers()[0], made.world.task("t1"))
        # Where /redirect leads.
        made.leading.detected = MasterAddress("10.0.0.2", 5060)
        made.leading.detected.http = Address("head", 5050)
        yield made
        # The level of logging is the whole process's.
        await made.ask("/logging/toggle?level=0&duration=1secs")


def valid(ids: list[str]) -> list[op.Call]:
    """A call of each type, with what it has a member for."""
    framework_id, agent_id = pb.FrameworkID(value=ids[0]), pb.AgentID(value=ids[1])
    calls = [Call(type=number) for number in Call.Type.values() if number != Call.SUBSCRIBE]
    for call in calls:
        name = Call.Type.Name(call.type).lower()
        if name not in Call.DESCRIPTOR.fields_by_name:
            continue
        member: Any = getattr(call, name)
        member.SetInParent()
        fields = member.DESCRIPTOR.fields_by_name
        for key, value in (
            *(("framework_id", framework_id), ("agent_id", agent_id), ("schedule", SCHEDULE)),
            *(("task_id", pb.TaskID(value="t1")), ("volume", VOLUME), ("addition", DISK)),
        ):
            if key in fields:
                getattr(member, key).CopyFrom(value)
        for key, values in (
            *(("machines", MACHINES), ("resources", [RESERVED]), ("weight_infos", WEIGHTS)),
            *(("quota_configs", [QUOTA]), ("volumes", [VOLUME])),
        ):
            if key in fields:
                getattr(member, key).extend(values)
        if "role" in fields:
            member.role = "web"
    return calls


def endpoints(master: HttpMaster, dice: random.Random) -> dict[str, Endpoint]:
    """For each path of a master what comes near to what it takes."""
    cluster = master.world.cluster
    ids = [*cluster.frameworks, *cluster.agents]
    fuzz, calls = Fuzz(dice, [*ids, "web", "t1", "host"]), valid(ids)

    def listed(items: Any) -> Bodies:
        return lambda _: json.dumps([as_object(fuzz.altered(each)) for each in items]).encode()

    def alone(message: Any) -> Bodies:
        return lambda _: Media.JSON.dumps(fuzz.altered(message))

    def form(**values: Callable[[], str]) -> Bodies:
        return lambda _: urlencode({name: value() for name, value in values.items()}).encode()

    def call(dice: random.Random) -> bytes:
        return Media.JSON.dumps(fuzz.altered(dice.choice(calls), dice.choice((0, 1, 3))))

    def binary_call(dice: random.Random) -> bytes:
        return Media.PROTOBUF.dumps(fuzz.altered(dice.choice(calls), dice.choice((0, 1, 3))))

    def about(resource: pb.Resource, field: str) -> Endpoint:
        def text() -> str:
            return json.dumps([as_object(fuzz.altered(resource, dice.choice((0, 1, 3))))])

        return Endpoint(("POST",), form(slaveId=lambda: dice.choice(ids), **{field: text}), FORM)

    posted = ("POST",)
    return {
        **dict.fromkeys(PAGES, Endpoint(values=tuple(ids))),
        **dict.fromkeys(FILES, Endpoint(values=("/master/log", "/master/log/x", "/master", "/"))),
        "/api/v1": Endpoint(posted, call, often=60),
        "/create-volumes": about(VOLUME, "volumes"),
        "/destroy-volumes": about(VOLUME, "volumes"),
        "/help": Endpoint(values=("json",)),
        "/logging/toggle": Endpoint(values=("0", "1", "5secs")),
        "/machine/down": Endpoint(posted, listed(MACHINES)),
        "/machine/up": Endpoint(posted, listed(MACHINES)),
        "/maintenance/schedule": Endpoint(("GET", "POST"), alone(SCHEDULE)),
        "/quota": Endpoint(("GET", "POST", "DELETE"), alone(ASKED_QUOTA)),
        "/redirect": Endpoint(("GET",), binary_call, Media.PROTOBUF.value),
        "/reserve": about(RESERVED, "resources"),
        "/teardown": Endpoint(posted, form(frameworkId=lambda: dice.choice(ids)), FORM),
        "/unreserve": about(RESERVED, "resources"),
        "/weights": Endpoint(("GET", "PUT"), listed(WEIGHTS)),
    }


async def standing(master: HttpMaster) -> list[bytes]:
    """All that a request may not have changed that was refused."""
    answers = [await master.operator.answer(Call(type=kind)) for kind in SHOWN]
    return [answer.SerializeToString(deterministic=True) for answer in answers]


@pytest.mark.parametrize("seed", [1, 2])
async def test_requests_of_every_kind(master: HttpMaster, seed: int) -> None:
    dice = random.Random(seed)
    known = endpoints(master, dice)
    assert sorted([*known, SCHEDULER]) == master.routes.paths()
    seen = set()
    async with Client(master.server.port) as client:
        for path, endpoint in known.items():
            before = await standing(master)
            for asked in requests(dice, path, endpoint, ROUNDS, list(known.values())):
                head, body = await client.ask(asked)
                check(asked, head, body)
                seen.add(head.status)
                assert master.server.failures == 0, asked
                now = await standing(master)
                assert head.status < 400 or now == before, asked
                before = now
    assert {200, 307, 400, 404, 405, 415} <= seen
