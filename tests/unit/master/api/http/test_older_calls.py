"""/weights, /quota, /teardown, /maintenance and /machine: as tools for Mesos use them."""

import json
import re
import urllib.parse

import pytest

from tests.kit.master_http import http_master

WINDOW = {
    "machine_ids": [{"hostname": "host1"}],
    "unavailability": {"start": {"nanoseconds": 1}},
}
MACHINES = [{"hostname": "host1"}]


@pytest.fixture
async def master():
    async with http_master() as made:
        yield made


async def say(master, path, content, method="POST"):
    """The status of sending JSON, or text as it is."""
    body = content.encode() if isinstance(content, str) else json.dumps(content).encode()
    head, answer = await master.ask(path, body, method=method)
    assert bool(answer) == (head.status != 200)
    return head.status


async def test_weights_are_put_and_got(master):
    assert await master.page("/weights") == []
    assert await say(master, "/weights", [{"role": "eng", "weight": 2.5}], "PUT") == 200
    assert await master.page("/weights") == [{"role": "eng", "weight": 2.5}]
    assert await master.page("/master/weights/") == [{"role": "eng", "weight": 2.5}]
    _head, body = await master.ask("/weights?jsonp=f")
    assert body == b'f([{"weight":2.5,"role":"eng"}])'


@pytest.mark.parametrize(
    "given", ["", "x", "{}", '[{"role":"a","weight":-1}]', '[{"role":"a"}]', "[1]"]
)
async def test_weights_that_are_none_are_bad_requests(master, given):
    assert await say(master, "/weights", given, "PUT") == 400


async def test_quota_in_its_older_form(master):
    master.world.agent(resources="cpus:4;mem:4096")
    cpus = {"name": "cpus", "type": "SCALAR", "scalar": {"value": 1}}
    asked = {"role": "eng", "guarantee": [cpus]}
    assert await master.page("/quota") == {}
    assert await say(master, "/quota", asked) == 200
    assert await say(master, "/quota", asked) == 400
    [config] = (await master.page("/quota"))["configs"]
    amount = {"cpus": {"value": 1.0}}
    assert config == {"role": "eng", "guarantees": amount, "limits": amount}
    assert await say(master, "/quota/eng", "", "DELETE") == 200
    assert await say(master, "/master/quota/eng", "", "DELETE") == 400
    assert await master.page("/quota") == {}
    much = {"role": "eng", "guarantee": [cpus | {"scalar": {"value": 100}}]}
    assert await say(master, "/quota", much) == 409
    assert await say(master, "/quota", much | {"force": True}) == 200


@pytest.mark.parametrize(
    "given",
    [
        "x",
        {"role": "eng"},
        {"guarantee": [{"name": "cpus", "type": "SCALAR", "scalar": {"value": 1}}]},
        {"role": "eng", "guarantee": [{"name": "ports", "type": "RANGES", "ranges": {}}]},
        {"role": "a/b", "guarantee": [{"name": "cpus", "type": "SCALAR", "scalar": {"value": 1}}]},
    ],
)
async def test_quota_that_is_none_is_a_bad_request(master, given):
    assert await say(master, "/quota", given) == 400


async def test_a_framework_is_torn_down_by_a_form(master):
    framework = master.world.framework("it")
    assert await say(master, "/teardown", "x=y") == 400
    assert await say(master, "/teardown", "frameworkId=nobody") == 400
    assert await say(master, "/teardown", "\udcff".encode("utf-8", "replace").decode()) == 400
    assert await say(master, "/master/teardown", f"frameworkId={framework.id}") == 200
    assert not master.world.cluster.frameworks


async def test_machines_go_down_and_up(master):
    master.world.agent("host1")
    assert await say(master, "/machine/down", MACHINES) == 400
    assert await say(master, "/maintenance/schedule", {"windows": [WINDOW]}) == 200
    assert await master.page("/maintenance/schedule") == {"windows": [WINDOW]}
    status = await master.page("/maintenance/status")
    assert status == {"draining_machines": [{"id": {"hostname": "host1"}}]}
    assert await say(master, "/machine/up", MACHINES) == 400
    assert await say(master, "/machine/down", MACHINES) == 200
    assert (await master.page("/maintenance/status")) == {"down_machines": MACHINES}
    assert await say(master, "/machine/up", MACHINES) == 200
    assert await master.page("/maintenance/status") == {}
    assert await say(master, "/machine/up", "x") == 400
    assert await say(master, "/maintenance/schedule", "[]") == 400


def mine(cpus, **fields):
    made = {"name": "cpus", "type": "SCALAR", "scalar": {"value": cpus}}
    return {**made, "role": "ads", "reservation": {"principal": "olga"}, **fields}


async def change(master, path, **form):
    """The status of a form, and the text that comes with it."""
    head, answer = await master.ask(path, urllib.parse.urlencode(form).encode(), method="POST")
    return head.status, answer.decode()


async def test_reservations_come_and_go_by_forms(master):
    agent = master.world.agent(resources="cpus:4;mem:4096")
    form = {"slaveId": agent.id, "resources": json.dumps([mine(3)])}
    assert await change(master, "/reserve", **form) == (202, "")
    (row,) = (await master.page("/slaves"))["slaves"]
    assert row["reserved_resources"]["ads"]["cpus"] == 3.0
    assert row["unreserved_resources"]["cpus"] == 1.0
    (full,) = row["reserved_resources_full"]["ads"]
    assert (full["role"], full["reservation"]) == ("ads", {"principal": "olga"})
    assert (await change(master, "/reserve", **form))[0] == 409
    assert await change(master, "/master/unreserve", **form) == (202, "")
    assert (await change(master, "/unreserve", **form))[0] == 409


@pytest.mark.parametrize("path", ["/reserve", "/unreserve"])
@pytest.mark.parametrize(
    ("form", "why"),
    [
        ({"resources": "[]"}, "slaveId: '': is missing"),
        ({"slaveId": "{agent}"}, "resources: '': is missing"),
        ({"slaveId": "{agent}", "resources": "x"}, "resources.*is no JSON"),
        ({"slaveId": "{agent}", "resources": "{}"}, "resources.*must be a JSON array"),
        ({"slaveId": "{agent}", "resources": '[{"name":[]}]'}, "name"),
        ({"slaveId": "{agent}", "resources": "[]"}, "must not be empty"),
        ({"slaveId": "{agent}", "resources": json.dumps([mine(1, role="*")])}, "role"),
        ({"slaveId": "nobody", "resources": json.dumps([mine(1)])}, "agent 'nobody'"),
    ],
)
async def test_a_form_that_says_something_else_is_a_bad_request(master, path, form, why):
    agent = master.world.agent(resources="cpus:4;mem:4096")
    told = {name: value.replace("{agent}", agent.id) for name, value in form.items()}
    status, answer = await change(master, path, **told)
    assert status == 400
    assert re.search(why, answer), answer


def a_volume(mb=10, volume_id="v1", **fields):
    disk = mine(mb, name="disk")
    where = {"container_path": "data", "mode": "RW"}
    return {**disk, "disk": {"persistence": {"id": volume_id}, "volume": where}, **fields}


async def test_volumes_come_and_go_by_forms(master):
    agent = master.world.agent(resources="cpus:4;mem:4096;disk:100")
    disk = {"slaveId": agent.id, "resources": json.dumps([mine(30, name="disk")])}
    assert await change(master, "/reserve", **disk) == (202, "")
    form = {"slaveId": agent.id, "volumes": json.dumps([a_volume()])}
    assert await change(master, "/create-volumes", **form) == (202, "")
    (row,) = (await master.page("/slaves"))["slaves"]
    (made,) = [each for each in row["reserved_resources_full"]["ads"] if "disk" in each]
    assert (made["scalar"]["value"], made["disk"]) == (10.0, a_volume()["disk"])
    assert row["reserved_resources"]["ads"]["disk"] == 30.0
    status, why = await change(master, "/create-volumes", **form)
    assert (status, "has a volume of that id there already" in why) == (400, True)
    much = {**form, "volumes": json.dumps([a_volume(50, "v2")])}
    assert (await change(master, "/create-volumes", **much))[0] == 409
    assert await change(master, "/master/destroy-volumes", **form) == (202, "")
    status, why = await change(master, "/destroy-volumes", **form)
    assert (status, "has no such volume" in why) == (400, True)


@pytest.mark.parametrize("path", ["/create-volumes", "/destroy-volumes"])
@pytest.mark.parametrize(
    ("form", "why"),
    [
        ({"volumes": "[]"}, "slaveId: '': is missing"),
        ({"slaveId": "{agent}", "resources": "[]"}, "volumes: '': is missing"),
        ({"slaveId": "{agent}", "volumes": "x"}, "volumes.*is no JSON"),
        ({"slaveId": "{agent}", "volumes": "[]"}, "volumes: '': must not be empty"),
        ({"slaveId": "{agent}", "volumes": json.dumps([mine(1)])}, "is no persistent volume"),
        ({"slaveId": "nobody", "volumes": json.dumps([a_volume()])}, "agent 'nobody'"),
    ],
)
async def test_a_form_without_volumes_is_a_bad_request(master, path, form, why):
    agent = master.world.agent(resources="cpus:4;mem:4096;disk:100")
    told = {name: value.replace("{agent}", agent.id) for name, value in form.items()}
    status, answer = await change(master, path, **told)
    assert (status, bool(re.search(why, answer))) == (400, True), answer


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/weights", "GET, PUT"),
        ("PUT", "/quota", "GET, POST, DELETE"),
        ("GET", "/teardown", "POST"),
        ("DELETE", "/maintenance/schedule", "GET, POST"),
        ("POST", "/maintenance/status", "GET"),
        ("GET", "/machine/up", "POST"),
        ("GET", "/machine/down", "POST"),
    ],
)
async def test_other_methods_are_refused(master, method, path, allowed):
    head, _ = await master.ask(path, method=method)
    assert (head.status, head.headers["allow"]) == (405, allowed)


async def test_who_does_not_lead_sends_everybody_on(master):
    master.leading.operator = None
    master.elsewhere()
    for path in ("/weights", "/quota", "/teardown", "/maintenance/status", "/machine/up"):
        head, _ = await master.ask(path, b"x")
        assert (head.status, head.headers["location"]) == (307, f"//head:5050{path}")
