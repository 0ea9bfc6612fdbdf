"""POST /api/v1 of an agent: which request gets which status, and what answers look like."""

import json
from typing import Any

import pytest

from mesos_py import logs
from mesos_py.http.binary import dumps as binary
from mesos_py.http.recordio import framed
from mesos_py.v1.agent_operator_pb2 import Call, Response
from tests.kit.agent_core import command
from tests.kit.agent_http import JSON, SANDBOX, served

PROTOBUF = {"Content-Type": "application/x-protobuf"}
RECORDS = {"Content-Type": "application/recordio", "Message-Content-Type": "application/json"}
NAMES = [name for name, _ in Call.Type.items() if name != "UNKNOWN"]
PROVIDERS = [each for each in NAMES if each.endswith(("PROVIDER_CONFIG", "PROVIDER_GONE"))]
LAUNCHED = [each for each in NAMES if "CONTAINER" in each and each != "GET_CONTAINERS"]
BODIES: dict[str, Any] = {
    "GET_METRICS": {"get_metrics": {}},
    "SET_LOGGING_LEVEL": {"set_logging_level": {"level": 0, "duration": {"nanoseconds": 0}}},
    "LIST_FILES": {"list_files": {"path": SANDBOX}},
    "READ_FILE": {"read_file": {"path": f"{SANDBOX}/stdout", "offset": 1}},
}


@pytest.fixture
async def recovering(tmp_path):
    async with served(tmp_path) as made:
        yield made


@pytest.fixture
def scene(recovering):
    recovering.open()
    return recovering


async def call(scene, name, **headers):
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    body = {"type": name, **BODIES.get(name, {})}
    return await scene.ask(body, {**JSON, **named})


async def answered(scene, name):
    status, body = await call(scene, name)
    assert status == 200, body
    return json.loads(body)


async def test_an_agent_that_recovers_asks_for_patience(recovering):
    assert (await recovering.ask(b"", {}, "GET"))[0] == 503
    for path in (
        *("/state", "/containers", "/monitor/statistics", "/metrics/snapshot"),
        *("/files/browse?path=x", "/files/read?path=x", "/files/download?path=x", "/files/debug"),
    ):
        assert (await recovering.ask(b"", {}, "GET", path))[0] == 503, path
    for path in ("/health", "/version", "/flags", "/system/stats.json", "/logging/toggle", "/help"):
        assert (await recovering.ask(b"", {}, "GET", path))[0] == 200, path


async def test_the_order_in_which_a_request_is_looked_at(scene):
    async def status(body=b"{", headers=JSON, method="POST", **more):
        got, text = await scene.ask(body, {**headers, **more}, method)
        assert text.endswith(b"\n")
        return got

    assert await status(method="GET", headers={}) == 405
    assert await status(headers={}) == 400
    assert await status(headers={"Content-Type": "application/json; charset=utf-8"}) == 415
    assert await status(Accept="text/html") == 400
    assert await status(b"[]", Accept="text/html") == 400
    assert await status(b"{}", Accept="text/html") == 400
    assert await status({"type": "NO_SUCH"}, Accept="text/html") == 400
    assert await status({"type": "LIST_FILES"}, Accept="text/html") == 400
    assert await status({"type": "LIST_FILES", "list_files": {}}, Accept="text/html") == 400
    assert await status({"type": "UNKNOWN"}, Accept="text/html") == 406
    assert await status({"type": "UNKNOWN"}) == 501
    assert await status(b" " * 3000) == 413


async def test_what_a_client_may_accept(scene):
    assert (await call(scene, "GET_HEALTH", Accept="application/recordio"))[0] == 406
    assert (await call(scene, "GET_HEALTH", Message_Accept="application/json"))[0] == 406
    assert (await call(scene, "GET_HEALTH", Message_Content_Type="application/json"))[0] == 415
    both = "application/x-protobuf, application/json;q=0.1"
    assert (await call(scene, "GET_HEALTH", Accept=both))[1].startswith(b"{")
    _, body = await call(scene, "GET_HEALTH", Accept="application/x-protobuf")
    assert Response.FromString(body).get_health.healthy


async def test_a_call_in_protobuf(scene):
    status, body = await scene.ask(binary(Call(type=Call.GET_VERSION)), PROTOBUF)
    assert status == 200
    assert json.loads(body)["get_version"]["version_info"]["version"] == "1.11.0"
    assert (await scene.ask(b"\xff", PROTOBUF))[0] == 400
    assert (await scene.ask(b"", PROTOBUF))[0] == 400


@pytest.mark.parametrize("path", ["/api/v1/", "/api/v1/more", "/slave(1)/api/v1"])
async def test_where_it_is_found(scene, path):
    assert (await scene.ask({"type": "GET_HEALTH"}, path=path))[0] == 200
    assert (await scene.ask({"type": "GET_HEALTH"}, path="/api"))[0] == 404


async def test_streams_of_calls(scene):
    async def status(body, headers=RECORDS):
        return (await scene.ask(body, headers))[0]

    which = {"type": "CONTAINER_ID", "container_id": {"value": "c9"}}
    attach = {"type": "ATTACH_CONTAINER_INPUT", "attach_container_input": which}
    assert await status(b"", {"Content-Type": "application/recordio"}) == 400
    assert await status(b"", {**RECORDS, "Message-Content-Type": "text/plain"}) == 415
    assert await status(b"") == 400
    assert await status(b"x") == 400
    assert await status(framed(b"{}")) == 400
    assert await status(framed(b'{"type":"GET_HEALTH"}')) == 415
    assert await status(framed(json.dumps(attach).encode())) == 404
    del which["type"]
    assert await status(framed(json.dumps(attach).encode())) == 400


@pytest.mark.parametrize("name", [*BODIES, *PROVIDERS, *LAUNCHED])
async def test_a_call_must_have_its_member(scene, name):
    status, body = await scene.ask({"type": name})
    assert status == 400
    assert name.lower().encode() in body


@pytest.mark.parametrize("name", LAUNCHED)
async def test_the_id_of_a_container_must_be_one(scene, name):
    async def status(container_id):
        member = {"container_id": container_id}
        if name == "ATTACH_CONTAINER_INPUT":
            member["type"] = "CONTAINER_ID"
        return (await scene.ask({"type": name, name.lower(): member}))[0]

    parent = {"value": "c1"}
    for value in ("", "a/b", "a.b", "é", "x" * 243):
        assert await status({"value": value, "parent": parent}) == 400, value
    assert await status({"value": "c9", "parent": {"value": "a b"}}) == 400
    assert (await status({"value": "c9"}) == 400) is ("NESTED" in name)
    if name != "ATTACH_CONTAINER_INPUT":
        assert (await scene.ask({"type": name, name.lower(): {}}))[0] == 400


@pytest.mark.parametrize("name", PROVIDERS)
async def test_what_is_not_there(scene, name):
    status, body = await scene.ask({"type": name, name.lower(): {}})
    assert status == 501
    assert b"this agent" in body


async def test_containers_of_their_own_are_not_launched(scene):
    member = {"container_id": {"value": "c9"}, "command": {"value": "true"}}
    status, body = await scene.ask({"type": "LAUNCH_CONTAINER", "launch_container": member})
    assert status == 501
    assert b"give a parent" in body


def within(name, *above, outermost="c1", **more):
    """The member of a call about a container within another."""
    found = {"value": outermost}
    for each in (*above, name):
        found = {"value": each, "parent": found}
    return {"container_id": found, **more}


@pytest.mark.parametrize("kind", ["CONTAINER", "NESTED_CONTAINER"])
async def test_containers_within_others_by_both_names_of_the_calls(scene, kind):
    async def ask(verb, member):
        name = f"{verb}_{kind}"
        return await scene.ask({"type": name, name.lower(): member})

    scene.world.framework.user = ""
    scene.world.run(command("t1"))
    scene.world.started("t1")
    run = {"command": {"value": "sleep 9"}}
    assert await ask("LAUNCH", within("a", **run)) == (200, b"")
    assert await ask("LAUNCH", within("a", **run)) == (202, b"")
    assert await ask("KILL", within("a", signal=15)) == (200, b"")
    assert await ask("KILL", within("a")) == (200, b"")
    assert scene.host.signals() == [("c1..a", 15), ("c1..a", 9)]
    assert (await ask("REMOVE", within("a")))[0] == 409
    for asked, expected in ((False, ["c1"]), (True, ["c1", "a"])):
        member = {"show_nested": asked}
        _, body = await scene.ask({"type": "GET_CONTAINERS", "get_containers": member})
        shown = json.loads(body)["get_containers"]["containers"]
        assert [each["container_id"]["value"] for each in shown] == expected
    assert shown[1]["container_status"]["container_id"] == within("a")["container_id"]
    scene.host.within.heard("probed", "c1..a", [9, "", ""])
    _, body = await ask("WAIT", within("a"))
    name = f"WAIT_{kind}"
    assert json.loads(body) == {"type": name, name.lower(): {"exit_status": 9}}
    assert (await ask("KILL", within("a")))[0] == 404
    assert (await ask("KILL", within("a", signal=-1)))[0] == 400
    assert (await ask("LAUNCH", within("b", "no", **run)))[0] == 400
    assert (await ask("LAUNCH", within("b")))[0] == 400
    for verb in ("WAIT", "KILL", "REMOVE"):
        assert (await ask(verb, within("a", outermost="c9")))[0] == 404, verb


async def test_what_is_in_a_container_has_nothing_of_its_own(scene):
    resources = [{"name": "cpus", "type": "SCALAR", "scalar": {"value": 1}}]
    limits = {"mem": {"value": 1}}
    for more in ({"resources": resources}, {"limits": limits}):
        member = within("a", command={"value": "true"}, **more)
        status, body = await scene.ask({"type": "LAUNCH_CONTAINER", "launch_container": member})
        assert status == 400
        assert next(iter(more)).encode() in body


async def test_every_other_call_is_answered_under_its_own_name(scene):
    for name in NAMES:
        if name in (*PROVIDERS, *LAUNCHED):
            continue
        status, body = await call(scene, name)
        assert status == 200, (name, body)
        if name in ("SET_LOGGING_LEVEL", "PRUNE_IMAGES"):
            assert body == b""
        else:
            answer = json.loads(body)
            assert set(answer) == {"type", name.lower()}
            assert answer["type"] == name


async def test_what_is_answered(scene):
    scene.world.run(command("t1"), command("t2"))
    scene.world.started("t2", pid=7)
    scene.world.ended("t2")
    assert (await answered(scene, "GET_FLAGS"))["get_flags"] == {
        "flags": [{"name": "work_dir", "value": "/w"}]
    }
    assert (await answered(scene, "GET_METRICS"))["get_metrics"] == {
        "metrics": [{"name": "a", "value": 1.0}, {"name": "slave/b", "value": 2.0}]
    }
    assert (await answered(scene, "GET_OPERATIONS"))["get_operations"] == {}
    assert (await answered(scene, "GET_AGENT"))["get_agent"]["agent_info"]["id"] == {"value": "A1"}
    (framework,) = (await answered(scene, "GET_FRAMEWORKS"))["get_frameworks"]["frameworks"]
    assert framework["framework_info"]["name"] == "f"
    found = (await answered(scene, "GET_EXECUTORS"))["get_executors"]
    assert [each["executor_info"]["source"] for each in found["executors"]] == ["t1"]
    assert [each["executor_info"]["source"] for each in found["completed_executors"]] == ["t2"]
    (container,) = (await answered(scene, "GET_CONTAINERS"))["get_containers"]["containers"]
    used = container["resource_statistics"]
    assert (used["mem_anon_bytes"], used["mem_file_bytes"], used["cpus_soft_limit"]) == (1, 2, 1.0)
    assert "task_ids" not in container
    found = (await answered(scene, "READ_FILE"))["read_file"]
    assert found == {"size": 5, "data": "ZWxsbw=="}
    (file,) = (await answered(scene, "LIST_FILES"))["list_files"]["file_infos"]
    assert (file["path"].rpartition("/")[2], file["size"]) == ("stdout", 5)


async def test_lists_are_there_when_they_are_empty(scene):
    lists: dict[str, Any] = {
        "get_tasks": {
            key: []
            for key in ("pending_tasks", "queued_tasks", "launched_tasks", "terminated_tasks")
        }
        | {"completed_tasks": []},
        "get_executors": {"executors": [], "completed_executors": []},
        "get_frameworks": {"frameworks": [], "completed_frameworks": []},
    }
    assert (await answered(scene, "GET_STATE"))["get_state"] == lists
    for name, member in lists.items():
        assert (await answered(scene, name.upper()))[name] == member


def more_for(seconds):
    asked = {"level": 3, "duration": {"nanoseconds": seconds * 10**9}}
    return {"type": "SET_LOGGING_LEVEL", "set_logging_level": asked}


async def test_the_log_says_more_for_a_time(scene):
    usual = logs.level()
    try:
        logs.set_level("warning")
        assert (await scene.ask(more_for(3600)))[0] == 200
        assert logs.level() == "debug"
        assert (await answered(scene, "GET_LOGGING_LEVEL"))["get_logging_level"] == {"level": 3}
        assert (await call(scene, "SET_LOGGING_LEVEL"))[0] == 200
        assert logs.level() == "warning"
        assert (await answered(scene, "GET_LOGGING_LEVEL"))["get_logging_level"] == {"level": 0}
        assert (await scene.ask(more_for(-1)))[0] == 400
    finally:
        logs.set_level(usual)


async def test_what_a_path_leads_to(scene):
    for name, status in (("nope", 404), ("..", 400), ("", 404)):
        path = f"{SANDBOX}/{name}" if name else ""
        for kind in ("LIST_FILES", "READ_FILE"):
            body = {"type": kind, kind.lower(): {"path": path, "offset": 0}}
            assert (await scene.ask(body))[0] == status, (kind, path)
    too_far = {"path": BODIES["READ_FILE"]["read_file"]["path"], "offset": 300}
    _, body = await scene.ask({"type": "READ_FILE", "read_file": too_far})
    assert json.loads(body)["read_file"] == {"size": 5, "data": ""}
