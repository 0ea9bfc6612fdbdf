"""What operators and dashboards ask of a master's HTTP port, wired as the daemon wires it."""

from __future__ import annotations

import json

import pytest

from mesos_py.http.recordio import Reader
from mesos_py.version import MESOS_VERSION
from tests.kit.http_scheduler import serving, welcomed
from tests.kit.raw_http import connected, request

JSON = {"Content-Type": "application/json"}
PAGES = [
    *("/state", "/state-summary", "/slaves", "/frameworks", "/tasks", "/roles", "/flags"),
    *("/metrics/snapshot", "/weights", "/quota", "/maintenance/schedule", "/maintenance/status"),
    "/version",
]


@pytest.mark.parametrize("prefix", ["", "/master"])
async def test_all_pages_are_there_on_the_port_of_the_daemon(prefix: str) -> None:
    async with serving(weights=("eng=2.5",)) as master, connected(master.port) as client:
        found = {}
        for path in PAGES:
            head, body = await client.ask("GET", prefix + path)
            assert (head.status, head.headers["content-type"]) == (200, "application/json"), path
            found[path] = json.loads(body)
        head, body = await client.ask("GET", prefix + "/metrics")
        assert (head.status, b"mesos_py_master_agents" in body) == (200, True)
        state = found["/state"]
        assert state["version"] == found["/version"]["version"] == MESOS_VERSION
        assert state["leader_info"]["port"] == master.port
        assert state["pid"].endswith(f":{master.port}")
        assert found["/weights"] == [{"role": "eng", "weight": 2.5}]
        assert found["/flags"]["flags"]["weights"] == "eng=2.5"
        assert found["/metrics/snapshot"]["master/elected"] == 1.0


async def test_an_operator_sees_what_a_scheduler_does_and_ends_it() -> None:
    async with serving() as master, connected(master.port) as watching:
        call = json.dumps({"type": "SUBSCRIBE"}).encode()
        await watching.send(request("POST", "/api/v1", JSON, call))
        assert (await watching.head()).status == 200

        async def event() -> dict[str, object]:
            [record] = Reader().feed(await watching.chunk())
            found: dict[str, object] = json.loads(record)
            return found

        assert (await event())["type"] == "SUBSCRIBED"
        assert await event() == {"type": "HEARTBEAT"}
        async with master.client() as client, client.subscribed() as stream:
            assert (await event())["type"] == "FRAMEWORK_ADDED"
            async with connected(master.port) as operator:
                framework_id = (await welcomed(stream)).framework_id
                form = f"frameworkId={framework_id}".encode()
                head, body = await operator.ask("POST", "/master/teardown", {}, form)
                assert (head.status, body) == (200, b"")
                head, _ = await operator.ask("POST", "/master/teardown", {}, form)
                assert head.status == 400
            removed = await event()
        assert removed["type"] == "FRAMEWORK_REMOVED"


async def test_a_change_is_stored_before_it_is_answered() -> None:
    config = {"role": "eng", "limits": {"cpus": {"value": 2}}}
    calls = [
        {"type": "UPDATE_QUOTA", "update_quota": {"quota_configs": [config]}},
        {"type": "UPDATE_WEIGHTS", "update_weights": {"weight_infos": []}},
    ]
    async with serving() as master, connected(master.port) as client:
        for call in calls:
            head, body = await client.ask("POST", "/api/v1", JSON, json.dumps(call).encode())
            assert (head.status, body) == (200, b"")
        head, body = await client.ask("GET", "/roles")
        [role] = json.loads(body)["roles"]
        assert role["quota"]["limit"] == {"cpus": 2.0}
