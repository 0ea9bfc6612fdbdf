"""The older endpoints: what may be asked, what is not sent twice, and who answers."""

import gzip
import json

import pytest

from mesos_py.v1 import types_pb2 as pb
from mesos_py.version import MESOS_VERSION
from tests.kit.master_http import http_master

LED = ("state", "state-summary", "slaves", "frameworks", "tasks", "roles")
LOCAL = ("flags", "metrics/snapshot")


@pytest.fixture
async def master():
    async with http_master() as made:
        yield made


async def test_each_has_its_members_by_all_its_names(master):
    world = master.world
    world.agent("host1", "cpus:4;mem:4096;ports:[31000-31009]", rack="r1")
    framework = world.framework("it")
    framework.start("t1")
    world.cluster.info.capabilities.add(type=pb.MasterInfo.Capability.QUOTA_V2)
    members = {
        "state": "version id pid slaves recovered_slaves frameworks completed_frameworks flags",
        "state-summary": "hostname slaves frameworks",
        "slaves": "slaves recovered_slaves",
        "frameworks": "frameworks completed_frameworks unregistered_frameworks",
        "tasks": "tasks",
        "roles": "roles",
        "flags": "flags",
        "metrics/snapshot": "master/elected system/cpus_total master/cpus_total",
    }
    assert set(members) == {*LED, *LOCAL}
    for name, wanted in members.items():
        found = [await master.page(path) for path in (f"/{name}", f"/master/{name}", f"/{name}/")]
        assert set(wanted.split()) <= set(found[0])
        assert found[0].keys() == found[1].keys() == found[2].keys()
    state = await master.page("/state")
    assert state["version"] == MESOS_VERSION
    assert state["capabilities"] == ["QUOTA_V2"]
    assert state["flags"] == {"port": "5050"}
    [task] = state["frameworks"][0]["tasks"]
    assert (task["id"], task["executor_id"]) == ("t1", "")


async def test_any_method_will_do_as_in_mesos(master):
    for method in ("POST", "OPTIONS"):
        head, body = await master.ask("/state", method=method)
        assert head.status == 200
        assert "slaves" in json.loads(body)


# ---- Questions ---------------------------------------------------------------------------


async def task_ids(master, query):
    return [task["id"] for task in (await master.page(f"/tasks?{query}"))["tasks"]]


async def test_tasks_are_paged_and_what_is_no_number_counts_as_absent(master):
    world = master.world
    agent = world.agent(resources="cpus:4;mem:4096")
    framework = world.framework()
    framework.launch(framework.offers()[0], *(world.task(name) for name in ("t1", "t2", "t3")))
    for name in ("t1", "t2", "t3"):
        world.advance(1)
        agent.report(name, pb.TASK_RUNNING, framework)
    everything = ["t3", "t2", "t1"]
    assert await task_ids(master, "order=asc") == everything[::-1]
    for query in ("", "order=desc", "order=up", "limit=abc", "limit=-1", "limit=1.5", "limit="):
        assert await task_ids(master, query) == everything, query
    for query in ("offset=-3", "offset=x", "limit=" + "9" * 40, "limit=%201", "limit=%FF"):
        assert await task_ids(master, query) == everything, query
    assert await task_ids(master, "limit=1&offset=1") == ["t2"]
    assert await task_ids(master, "limit=0x1") == ["t3"]
    assert await task_ids(master, "limit=0") == []
    assert await task_ids(master, "offset=99999999") == []
    assert await task_ids(master, "task_id=t2") == ["t2"]
    assert await task_ids(master, "framework_id=nobody") == []


async def test_one_agent_or_framework_is_found_by_its_id(master):
    world = master.world
    agents = [world.agent() for _ in range(2)]
    frameworks = [world.framework(name) for name in ("a", "b")]
    found = await master.page(f"/slaves?slave_id={agents[1].id}")
    assert [each["id"] for each in found["slaves"]] == [agents[1].id]
    assert (await master.page("/slaves?slave_id=nobody"))["slaves"] == []
    found = await master.page(f"/frameworks?framework_id={frameworks[0].id}")
    assert [each["name"] for each in found["frameworks"]] == ["a"]


async def test_a_callback_is_handed_the_page(master):
    head, body = await master.ask("/flags?jsonp=a.b_$1[0]")
    assert (head.status, head.headers["content-type"]) == (200, "text/javascript")
    assert body == b'a.b_$1[0]({"flags":{"port":"5050"}})'
    head, body = await master.ask("/flags?jsonp=")
    assert (head.status, body[:2]) == (200, b"({")


@pytest.mark.parametrize("name", ["a%3Cscript%3E", "alert(1)//", "x" * 300, "a%20b", "%C3%A9"])
async def test_what_is_no_callback_is_not_sent_back_as_a_script(master, name):
    head, _ = await master.ask(f"/state?jsonp={name}")
    assert (head.status, head.headers["content-type"][:10]) == (400, "text/plain")


@pytest.mark.parametrize(
    ("given", "status"), [("5secs", 200), ("0.5mins", 200), ("abc", 400), ("", 400), ("5", 400)]
)
async def test_the_timeout_of_metrics_must_be_one(master, given, status):
    head, _ = await master.ask(f"/metrics/snapshot?timeout={given}")
    assert head.status == status


async def test_the_machine_has_numbers_of_its_own(master):
    found = await master.page("/system/stats.json")
    assert found["cpus_total"] >= 1.0
    assert set(found) >= {"avg_load_1min", "mem_total_bytes", "mem_free_bytes"}


async def test_prometheus_has_our_own_numbers(master):
    head, body = await master.ask("/metrics")
    assert (head.status, body) == (200, b"metrics 1\n")
    assert head.headers["content-type"].startswith("text/plain; version=")


# ---- What is not sent twice --------------------------------------------------------------


async def test_a_page_that_the_client_has_is_not_sent(master):
    head, body = await master.ask("/flags")
    etag = head.headers["etag"]
    for given in (etag, f"W/{etag}", f'"x", {etag}', "*"):
        head = await master.head("/flags", {"If-None-Match": given})
        assert (head.status, head.headers["etag"]) == (304, etag)
    head, again = await master.ask("/flags", headers={"If-None-Match": '"x"'})
    assert (head.status, again) == (200, body)


async def test_pages_are_packed_for_who_takes_that(master):
    for number in range(5):
        master.world.agent(f"host{number}")
    plain_head, plain = await master.ask("/slaves")
    assert "content-encoding" not in plain_head.headers
    headers = {"Accept-Encoding": "deflate, gzip;q=0.5"}
    head, packed = await master.ask("/slaves", headers=headers)
    assert head.headers["content-encoding"] == "gzip"
    assert head.headers["vary"] == "Accept-Encoding"
    assert head.headers["etag"] != plain_head.headers["etag"]
    assert json.loads(gzip.decompress(packed)).keys() == json.loads(plain).keys()
    headers["If-None-Match"] = head.headers["etag"]
    again = await master.head("/slaves", headers)
    assert (again.status, again.headers["etag"]) == (304, headers["If-None-Match"])
    # What is small is sent as it is.
    head, _ = await master.ask("/flags", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in head.headers


# ---- Who answers -------------------------------------------------------------------------


async def test_who_does_not_lead_answers_for_itself_only(master):
    master.leading.operator = None
    for name in LED:
        head, _ = await master.ask(f"/{name}")
        assert head.status == 503
    master.elsewhere()
    for name in LED:
        head, _ = await master.ask(f"/master/{name}?jsonp=x")
        assert head.status == 307
        assert head.headers["location"] == f"//head:5050/master/{name}?jsonp=x"
    assert (await master.page("/flags"))["flags"] == {"port": "5050"}
    numbers = await master.page("/metrics/snapshot")
    assert numbers["master/elected"] == 0.0


async def test_a_new_leadership_has_pages_of_its_own(master):
    master.world.agent("host1")
    first = await master.page("/slaves")
    assert len(first["slaves"]) == 1
    async with http_master() as other:
        other.world.framework("new")
        master.leading.operator = other.operator
        assert (await master.page("/slaves"))["slaves"] == []
        master.leading.operator = master.operator
        assert len((await master.page("/slaves"))["slaves"]) == 1


async def test_paths_that_are_not_there(master):
    for path in ("/state.json", "/master/state.json", "/slave(1)/state", "/metrics/x", "/nothing"):
        head, body = await master.ask(path)
        assert (head.status, bool(body)) == (404, True)
