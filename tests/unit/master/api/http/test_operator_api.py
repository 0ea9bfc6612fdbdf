"""POST /api/v1: which status for what, and that answers are as Mesos gives them."""

import asyncio
import contextlib
import json
import logging

import pytest

from master.api.http.writing import as_mesos
from mesos_py import logs
from mesos_py.reserved import Reservation
from mesos_py.v1 import operator_pb2 as op
from mesos_py.v1 import types_pb2 as pb
from mesos_py.version import MESOS_VERSION
from tests.kit.master_http import JSON, http_master
from tests.kit.raw_http import connected
from tests.kit.reserving import amount, by, create, destroy, grow, reserve, shrink, volume

GET_HEALTH = b'{"type":"GET_HEALTH"}'
PROTOBUF = "application/x-protobuf"
NOBODY = {"value": "nobody"}


@pytest.fixture
async def master():
    async with http_master() as made:
        yield made


# ---- Requests ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        (JSON, GET_HEALTH, 200),
        ({**JSON, "Accept": "*/*"}, GET_HEALTH, 200),
        ({}, GET_HEALTH, 400),
        ({"Content-Type": "application/json; charset=utf-8"}, GET_HEALTH, 415),
        ({"Content-Type": "text/plain"}, GET_HEALTH, 415),
        ({**JSON, "Accept": "text/html"}, GET_HEALTH, 406),
        ({**JSON, "Accept": "text/html"}, b'{"type":"NO_CALL"}', 400),
        (JSON, b"{}", 400),
        (JSON, b"[]", 400),
        (JSON, b"\xff{", 400),
        (JSON, b'{"type":"NO_CALL"}', 400),
        (JSON, b'{"type":1}', 400),
        (JSON, b'{"type":"UNKNOWN"}', 501),
        (JSON, b'{"type":"RESERVE_RESOURCES"}', 400),
        (JSON, b'{"type":"CREATE_VOLUMES"}', 400),
        (JSON, b'{"type":"TEARDOWN"}', 400),
        (JSON, b'{"type":"LIST_FILES"}', 400),
        (JSON, b'{"type":"LIST_FILES","list_files":{}}', 400),
        (JSON, b'{"type":"LIST_FILES","list_files":{"path":"/nothing"}}', 404),
        (JSON, b'{"type":"READ_FILE"}', 400),
        (JSON, b'{"type":"READ_FILE","read_file":{"path":"/nothing"}}', 400),
        (JSON, b'{"type":"READ_FILE","read_file":{"path":"/nothing","offset":0}}', 404),
        ({**JSON, "Accept": ""}, GET_HEALTH, 406),
        ({"Content-Type": PROTOBUF}, b"", 400),
        ({"Content-Type": PROTOBUF}, b"\x08\x00", 501),
        ({"Content-Type": PROTOBUF}, b"\x08\xe3\x07", 400),
        ({"Content-Type": PROTOBUF}, b"\xff", 400),
    ],
)
async def test_status_of_requests(master, headers, body, status):
    for path in ("/api/v1", "/master/api/v1", "/api/v1/"):
        head, answer = await master.ask(path, body, headers)
        assert head.status == status, answer
        if status >= 400:
            assert head.headers["content-type"].startswith("text/plain")
            assert answer


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_other_methods_are_refused_at_once(master, method):
    head, _ = await master.ask("/api/v1", method=method)
    assert (head.status, head.headers["allow"]) == (405, "POST")


async def test_protobuf_comes_back_as_asked(master):
    call = op.Call(type=op.Call.GET_VERSION).SerializeToString()
    for accept in (PROTOBUF, f"text/html, {PROTOBUF}"):
        headers = {"Content-Type": PROTOBUF, "Accept": accept}
        head, body = await master.ask("/api/v1", call, headers)
        assert (head.status, head.headers["content-type"]) == (200, PROTOBUF)
        found = op.Response.FromString(body)
        assert found.type == op.Response.GET_VERSION
        assert found.get_version.version_info.version == MESOS_VERSION
    # Both allowed: JSON wins.
    headers["Accept"] = f"{PROTOBUF}, application/json"
    head, body = await master.ask("/api/v1", call, headers)
    assert head.headers["content-type"] == "application/json"
    assert json.loads(body)["type"] == "GET_VERSION"


async def test_who_does_not_lead_sends_everybody_on(master):
    master.leading.operator = None
    head, body = await master.ask("/api/v1", GET_HEALTH, JSON)
    assert (head.status, b"No leader elected" in body) == (503, True)
    master.elsewhere()
    for path in ("/api/v1?x=%20y", "/master/api/v1"):
        head, _ = await master.ask(path, GET_HEALTH, JSON)
        assert (head.status, head.headers["location"]) == (307, f"//head:5050{path}")
    head, _ = await master.ask("/api/v1")
    assert head.status == 307


# ---- Answers -----------------------------------------------------------------------------


async def test_every_call_without_arguments_is_answered_under_its_name(master):
    kinds = [name for name, _ in op.Call.Type.items() if name.startswith("GET_")]
    assert len(kinds) > 15
    for kind in kinds:
        status, answer = await master.call(kind)
        assert (status, answer["type"]) == (200, kind)
        extra = set(answer) - {"type"}
        assert extra == (set() if kind == "GET_WEIGHTS" else {kind.lower()})


async def test_state_in_both_forms_is_the_same(master):
    world = master.world
    world.agent("host1", "cpus:4;mem:4096;ports:[31000-31009]")
    framework = world.framework("it")
    framework.start("t1")
    _, state = await master.call("GET_STATE")
    found = state["get_state"]
    assert list(found) == ["get_tasks", "get_executors", "get_frameworks", "get_agents"]
    [task] = found["get_tasks"]["tasks"]
    assert (task["task_id"], task["state"]) == ({"value": "t1"}, "TASK_STAGING")
    [agent] = found["get_agents"]["agents"]
    # What is ours only is not shown to clients of Mesos; of ports it knows that of HTTP.
    assert "state" not in agent
    port = agent["agent_info"]["port"]
    assert agent["pid"] == f"slave(1)@127.0.0.1:{port}"
    assert (agent["active"], agent["deactivated"]) == (True, False)
    # The form of resources that says "unreserved" by the role, and the role of a task's.
    assert {each["role"] for each in agent["total_resources"]} == {"*"}
    assert {each["allocation_info"]["role"] for each in task["resources"]} == {"*"}
    [shown] = found["get_frameworks"]["frameworks"]
    assert shown["reregistered_time"] == shown["registered_time"]
    assert ("unregistered_time" in shown, shown["offer_constraints"]) == (False, {})
    assert {each["allocation_info"]["role"] for each in shown["allocated_resources"]} == {"*"}
    # Lists are there also when they are empty.
    assert found["get_tasks"]["completed_tasks"] == found["get_executors"]["executors"] == []
    assert found["get_agents"]["recovered_agents"] == []
    call = op.Call(type=op.Call.GET_STATE).SerializeToString()
    head, body = await master.ask("/api/v1", call, {"Content-Type": PROTOBUF, "Accept": PROTOBUF})
    assert head.status == 200
    packed = op.Response.FromString(body).get_state
    assert packed.get_tasks.tasks[0].task_id.value == "t1"
    assert packed.get_agents.agents[0].agent_info.hostname == "host1"


async def test_many_who_ask_for_the_same_are_answered_alike_and_afresh(master):
    body = b'{"type":"GET_AGENTS"}'
    async with contextlib.AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(connected(master.server.port)) for _ in range(20)
        ]
        answers = await asyncio.gather(
            *(client.ask("POST", "/api/v1", JSON, body) for client in clients)
        )
    assert {head.status for head, _ in answers} == {200}
    assert len({answer for _, answer in answers}) == 1
    master.world.agent("host9")
    _, answer = await master.call("GET_AGENTS")
    assert len(answer["get_agents"]["agents"]) == 1
    status, answer = await master.call("GET_TASKS", get_tasks={"framework_id": NOBODY})
    assert (status, "nobody" in answer) == (404, True)


async def test_only_registered_agents_are_agents(master):
    world = master.world
    kept, lost, gone = (world.agent(f"host{n}") for n in range(3))
    lost.disconnect()
    world.advance(world.cluster.options.agent_timeout_s + 1)
    status, _ = await master.call(
        "MARK_AGENT_GONE", mark_agent_gone={"agent_id": {"value": gone.id}}
    )
    assert status == 200
    _, answer = await master.call("GET_AGENTS")
    [agent] = answer["get_agents"]["agents"]
    assert agent["agent_info"]["id"] == {"value": kept.id}


async def test_agents_that_are_to_come_back_have_a_list_of_their_own(master):
    agents = op.Response.GetAgents()
    for name, state in (("a", "connected"), ("b", "expected"), ("c", "gone"), ("d", "expected")):
        agents.agents.add(agent_info=pb.AgentInfo(hostname=name), state=state)
    response = op.Response(type=op.Response.GET_AGENTS, get_agents=agents)
    await as_mesos(response)
    assert [each.agent_info.hostname for each in response.get_agents.agents] == ["a"]
    assert [each.hostname for each in response.get_agents.recovered_agents] == ["b", "d"]


async def test_metrics_have_the_names_of_mesos(master):
    _, answer = await master.call("GET_METRICS", get_metrics={"timeout": {"nanoseconds": 1}})
    names = {each["name"]: each["value"] for each in answer["get_metrics"]["metrics"]}
    assert names["master/elected"] == 1.0


async def test_our_own_calls_are_answered_with_what_is_ours(master):
    master.world.framework("it")
    status, answer = await master.call("EXPLAIN")
    assert (status, answer["explain"]["frameworks"][0]["name"]) == (200, "it")


# ---- Changes -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "members", "status"),
    [
        ("TEARDOWN", {"framework_id": NOBODY}, 400),
        ("TEARDOWN", {}, 400),
        ("DRAIN_AGENT", {"agent_id": NOBODY}, 400),
        ("DRAIN_AGENT", {"agent_id": NOBODY, "max_grace_period": "10mins"}, 400),
        ("DEACTIVATE_AGENT", {"agent_id": NOBODY}, 400),
        ("REACTIVATE_AGENT", {"agent_id": NOBODY}, 400),
        ("MARK_AGENT_GONE", {"agent_id": NOBODY}, 404),
        ("UPDATE_WEIGHTS", {"weight_infos": [{"role": "a", "weight": -1}]}, 400),
        ("UPDATE_WEIGHTS", {"weight_infos": [{"role": "a"}]}, 400),
        ("UPDATE_WEIGHTS", {"weight_infos": [{"role": "a", "weight": "2.5"}]}, 200),
        ("UPDATE_WEIGHTS", {}, 200),
        ("START_MAINTENANCE", {"machines": [{"hostname": "a"}]}, 400),
        ("STOP_MAINTENANCE", {"machines": [{"hostname": "a"}]}, 400),
        ("UPDATE_MAINTENANCE_SCHEDULE", {"schedule": {}}, 200),
        ("SET_LOGGING_LEVEL", {"level": 1}, 400),
        ("SET_LOGGING_LEVEL", {"level": 1, "duration": {"nanoseconds": -1}}, 400),
        ("UPDATE_QUOTA", {}, 200),
    ],
)
async def test_status_of_changes(master, kind, members, status):
    given, answer = await master.call(kind, **{kind.lower(): members})
    assert given == status, answer
    assert bool(answer) == (status != 200)


async def test_an_agent_is_taken_out_of_service_and_back(master):
    agent = master.world.agent("host1")
    named = {"agent_id": {"value": agent.id}}
    assert (await master.call("DEACTIVATE_AGENT", deactivate_agent=named)) == (200, "")
    _, answer = await master.call("GET_AGENTS")
    assert answer["get_agents"]["agents"][0]["deactivated"] is True
    assert (await master.call("REACTIVATE_AGENT", reactivate_agent=named)) == (200, "")
    status, _ = await master.call("REACTIVATE_AGENT", reactivate_agent=named)
    assert status == 400
    await master.call("DEACTIVATE_AGENT", deactivate_agent=named)
    agent.disconnect()
    master.world.advance(master.world.cluster.options.agent_timeout_s + 1)
    # Mesos: an agent that is not registered cannot be reactivated now.
    assert (await master.call("REACTIVATE_AGENT", reactivate_agent=named))[0] == 409


# ---- Quota -------------------------------------------------------------------------------


def quota(role="eng", guarantee=None, limit=None, force=False):
    config = {"role": role}
    if guarantee is not None:
        config["guarantees"] = {"cpus": {"value": guarantee}}
    if limit is not None:
        config["limits"] = {"cpus": {"value": limit}}
    return {"update_quota": {"force": force, "quota_configs": [config]}}


async def test_quota_is_set_shown_and_taken_away(master):
    master.world.agent(resources="cpus:4;mem:4096")
    assert (await master.call("UPDATE_QUOTA", **quota(guarantee=1, limit=2)))[0] == 200
    _, answer = await master.call("GET_QUOTA")
    status = answer["get_quota"]["status"]
    assert status["configs"] == [
        {"role": "eng", "guarantees": {"cpus": {"value": 1.0}}, "limits": {"cpus": {"value": 2.0}}}
    ]
    assert status["infos"][0]["guarantee"][0]["scalar"] == {"value": 1.0}
    policy = master.world.cluster.policy("eng")
    assert (policy.guarantee, policy.limit) == ({"cpus": 1000}, {"cpus": 2000})
    assert (await master.call("UPDATE_QUOTA", **quota()))[0] == 200
    assert (await master.call("GET_QUOTA"))[1] == {"type": "GET_QUOTA", "get_quota": {"status": {}}}


@pytest.mark.parametrize(
    "asked",
    [
        quota(role="eng/web", limit=1),
        quota(role="", limit=1),
        quota(guarantee=100),
        quota(guarantee=2, limit=1),
        quota(limit=-1),
        quota(role="*", limit=0.5),
    ],
)
async def test_quota_that_cannot_be_is_a_bad_request(master, asked):
    master.world.agent(resources="cpus:4;mem:4096")
    master.world.framework().start("t1")
    status, answer = await master.call("UPDATE_QUOTA", **asked)
    assert status == 400
    assert "quota_configs" in answer or "role" in answer
    assert not master.world.cluster.policies


async def test_what_can_be_forced_is(master):
    master.world.agent(resources="cpus:4;mem:4096")
    master.world.framework().start("t1")
    for asked in (quota(guarantee=100, force=True), quota(role="*", limit=0.5, force=True)):
        assert (await master.call("UPDATE_QUOTA", **asked))[0] == 200


async def test_quota_in_the_older_form_of_the_calls(master):
    master.world.agent(resources="cpus:4;mem:4096")
    cpus = {"name": "cpus", "type": "SCALAR", "scalar": {"value": 1}}
    asked = {"quota_request": {"role": "eng", "guarantee": [cpus]}}
    assert await master.call("SET_QUOTA", set_quota=asked) == (200, "")
    assert (await master.call("SET_QUOTA", set_quota=asked))[0] == 400
    policy = master.world.cluster.policy("eng")
    assert policy.guarantee == policy.limit == {"cpus": 1000}
    assert await master.call("REMOVE_QUOTA", remove_quota={"role": "eng"}) == (200, "")
    assert (await master.call("REMOVE_QUOTA", remove_quota={"role": "eng"}))[0] == 400
    cpus["scalar"] = {"value": 100}
    assert (await master.call("SET_QUOTA", set_quota=asked))[0] == 409


async def test_offers_do_not_count_against_a_new_limit(master):
    master.world.agent(resources="cpus:4;mem:4096")
    framework = master.world.framework()
    assert framework.offers()
    assert (await master.call("UPDATE_QUOTA", **quota(role="*", limit=0.5)))[0] == 200


# ---- The log -----------------------------------------------------------------------------


async def test_the_log_is_loud_for_as_long_as_it_was_asked_for(master):
    logger = logging.getLogger(logs.ROOT)
    before = logger.level
    logger.setLevel(logging.WARNING)
    try:
        hour = {"nanoseconds": 3600 * 10**9}
        asked = {"level": 2, "duration": hour}
        assert (await master.call("SET_LOGGING_LEVEL", set_logging_level=asked))[0] == 200
        assert logs.level() == "debug"
        _, answer = await master.call("GET_LOGGING_LEVEL")
        assert answer["get_logging_level"] == {"level": 2}
        # Said again, it is still what the flags said that comes back.
        await master.call("SET_LOGGING_LEVEL", set_logging_level={"level": 1, "duration": hour})
        asked = {"level": 0, "duration": {"nanoseconds": 0}}
        assert (await master.call("SET_LOGGING_LEVEL", set_logging_level=asked))[0] == 200
        assert logs.level() == "warning"
        await master.call("SET_LOGGING_LEVEL", set_logging_level={"level": 1, "duration": hour})
        master.operator.end()
        assert logs.level() == "warning"
    finally:
        logger.setLevel(before)


async def test_reservations_come_and_go_and_their_agent_is_told(master):
    agent = master.world.agent(resources="cpus:4;mem:4096")
    info = {"type": "DYNAMIC", "role": "ads", "principal": "olga"}
    cpus = {"name": "cpus", "type": "SCALAR", "scalar": {"value": 3}, "reservations": [info]}
    asked = {"agent_id": {"value": agent.id}, "resources": [cpus]}
    assert await master.call("RESERVE_RESOURCES", reserve_resources=asked) == (202, "")
    assert agent.orders() == ["APPLY_OPERATION"]
    _status, found = await master.call("GET_AGENTS")
    (row,) = found["get_agents"]["agents"]
    (mine,) = [each for each in row["total_resources"] if each["role"] == "ads"]
    assert (mine["scalar"]["value"], mine["reservation"]) == (3.0, {"principal": "olga"})
    assert mine["reservations"] == [info]
    moved = {
        **asked,
        "source": [cpus],
        "resources": [{**cpus, "reservations": [{**info, "role": "web"}]}],
    }
    assert await master.call("RESERVE_RESOURCES", reserve_resources=moved) == (202, "")
    status, why = await master.call("UNRESERVE_RESOURCES", unreserve_resources=asked)
    assert (status, "3 wanted, 0 there" in why) == (409, True)
    asked["agent_id"] = {"value": "nobody"}
    assert (await master.call("RESERVE_RESOURCES", reserve_resources=asked))[0] == 400


async def test_an_operation_says_whose_role_had_what_it_is_about_and_how_it_went(master):
    master.world.agent(resources="cpus:4;mem:4096")
    framework = master.world.framework(role="ads", principal="olga")
    framework.accept(framework.offers(), [reserve(amount(by("ads", "olga"), cpus=1), "op")])
    _status, found = await master.call("GET_OPERATIONS")
    (listed,) = found["get_operations"]["operations"]
    (resource,) = listed["info"]["reserve"]["resources"]
    assert resource["allocation_info"] == {"role": "ads"}
    assert listed["latest_status"]["state"] == "OPERATION_PENDING"
    assert "statuses" not in listed


async def test_operations_on_volumes_say_whose_role_had_them_as_well(master):
    master.world.agent(resources="cpus:4;mem:4096;disk(ads):100")
    framework = master.world.framework(role="ads")
    stack = (Reservation("ads"),)
    operations = [
        create(volume(stack, 20), "1"),
        grow(volume(stack, 20), amount(stack, disk=10), "2"),
        shrink(volume(stack, 30), 5, "3"),
        destroy(volume(stack, 25), "4"),
    ]
    framework.accept(framework.offers(), operations)
    _status, found = await master.call("GET_OPERATIONS")
    listed = {each["info"]["type"]: each["info"] for each in found["get_operations"]["operations"]}
    named = [
        *listed["CREATE"]["create"]["volumes"],
        listed["GROW_VOLUME"]["grow_volume"]["volume"],
        listed["GROW_VOLUME"]["grow_volume"]["addition"],
        listed["SHRINK_VOLUME"]["shrink_volume"]["volume"],
        *listed["DESTROY"]["destroy"]["volumes"],
    ]
    assert [each["allocation_info"] for each in named] == [{"role": "ads"}] * 5


async def test_volumes_come_change_and_go_and_their_agent_is_told(master):
    agent = master.world.agent(resources="cpus:4;mem:4096;disk(ads):100")
    who = {"agent_id": {"value": agent.id}}
    info = {"type": "STATIC", "role": "ads"}
    disk = {"name": "disk", "type": "SCALAR", "scalar": {"value": 40}, "reservations": [info]}
    where = {"container_path": "data", "mode": "RW"}
    volume = {**disk, "disk": {"persistence": {"id": "v1"}, "volume": where}}
    ten = {**disk, "scalar": {"value": 10}}
    made = {**who, "volumes": [volume]}
    assert await master.call("CREATE_VOLUMES", create_volumes=made) == (202, "")
    larger = {**who, "volume": volume, "addition": ten}
    assert await master.call("GROW_VOLUME", grow_volume=larger) == (202, "")
    grown = {**volume, "scalar": {"value": 50}}
    smaller = {**who, "volume": grown, "subtract": {"value": 30}}
    assert await master.call("SHRINK_VOLUME", shrink_volume=smaller) == (202, "")
    assert agent.orders() == ["APPLY_OPERATION"] * 3
    _status, found = await master.call("GET_AGENTS")
    (row,) = found["get_agents"]["agents"]
    (shown,) = [each for each in row["total_resources"] if "disk" in each]
    assert (shown["scalar"]["value"], shown["disk"]) == (20.0, volume["disk"])
    status, why = await master.call("DESTROY_VOLUMES", destroy_volumes=made)
    assert (status, "the volume v1 has 20 and is taken whole" in why) == (400, True)
    made["volumes"] = [{**volume, "scalar": {"value": 20}}]
    assert await master.call("DESTROY_VOLUMES", destroy_volumes=made) == (202, "")
    assert (await master.call("DESTROY_VOLUMES", destroy_volumes=made))[0] == 400
    assert (await master.call("GROW_VOLUME", grow_volume=who))[0] == 400
