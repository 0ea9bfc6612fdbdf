"""/state and its siblings: what is in them, and that nobody waits for them."""

import asyncio
import json
from functools import partial

import pytest
from google.protobuf.json_format import MessageToDict

from master.api.older import shapes
from master.api.older.pages import About, Pages, Wanted
from master.core import departures
from mesos_py.reserved import Reservation
from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import World
from tests.kit.reserving import create, volume

AS_JSON = partial(MessageToDict, preserving_proto_field_name=True)
ABOUT = About(
    version="1.2.3",
    id="m",
    hostname="head",
    ip="10.0.0.1",
    port=5050,
    started_wall_s=100.0,
    elected_wall_s=101.5,
    capabilities=("AGENT_DRAINING",),
    flags={"port": "5050"},
)
AMOUNTS = {"cpus": 0.0, "gpus": 0.0, "mem": 0.0, "disk": 0.0}
# What Apache Mesos 1.11 was seen to answer, but for what only it can know (git_sha, git_tag).
MASTER_KEYS = (
    "version build_date build_time build_user start_time elected_time id pid hostname capabilities "
    "activated_slaves deactivated_slaves unreachable_slaves leader leader_info flags slaves "
    "recovered_slaves frameworks completed_frameworks orphan_tasks unregistered_frameworks"
)
AGENT_KEYS = (
    "id hostname port attributes pid registered_time resources used_resources offered_resources "
    "reserved_resources unreserved_resources active deactivated version capabilities"
)
SUMMARY_KEYS = (
    "id name used_resources offered_resources capabilities hostname webui_url active connected "
    "recovered"
)
FRAMEWORK_KEYS = (
    f"{SUMMARY_KEYS} user failover_timeout checkpoint registered_time unregistered_time resources "
    "offer_constraints tasks unreachable_tasks completed_tasks offers executors"
)
TASK_KEYS = "id name framework_id executor_id slave_id state resources role statuses"


@pytest.fixture
def world():
    made = World()
    yield made
    made.check()


@pytest.fixture
def agent(world):
    return world.agent("host1", "cpus:4;mem:4096;ports:[31000-31009]", rack="r1")


@pytest.fixture
def framework(world, agent):
    found = world.framework()
    world.settle()
    return found


@pytest.fixture
def pages(world):
    """Each entry is a slice of its own."""
    return Pages(lambda: world.cluster, lambda: ABOUT, AS_JSON, slice_s=0.0)


def keys(text):
    return set(text.split())


async def test_state_has_what_is_always_there_even_of_an_empty_cluster(world, pages):
    state = json.loads(await pages.state())
    assert set(state) == keys(MASTER_KEYS)
    assert state["pid"] == state["leader"] == "master@10.0.0.1:5050"
    assert (state["start_time"], state["elected_time"]) == (100.0, 101.5)
    assert state["flags"] == {"port": "5050"}
    lists = "slaves recovered_slaves frameworks completed_frameworks orphan_tasks"
    assert {name: state[name] for name in lists.split()} == {key: [] for key in lists.split()}


async def test_an_agent_says_what_it_has_and_who_uses_it(world, agent, framework, pages):
    task = world.task("t1", text="cpus:1;mem:32;ports:[31000-31001]")
    framework.launch(framework.offers()[0], task)
    world.settle()
    state = json.loads(await pages.state())
    [shown] = state["slaves"]
    assert set(shown) == keys(AGENT_KEYS)
    assert shown["attributes"] == {"rack": "r1"}
    assert shown["resources"] == AMOUNTS | {"cpus": 4.0, "mem": 4096.0, "ports": "[31000-31009]"}
    assert shown["used_resources"] == AMOUNTS | {
        "cpus": 1.0,
        "mem": 32.0,
        "ports": "[31000-31001]",
    }
    assert shown["offered_resources"]["ports"] == "[31002-31009]"
    assert state["activated_slaves"] == 1.0
    agent.disconnect()
    state = json.loads(await pages.state())
    assert state["slaves"][0]["active"] is False
    assert (state["activated_slaves"], state["deactivated_slaves"]) == (0.0, 1.0)


async def test_an_unreachable_agent_is_only_counted(world, agent, pages):
    agent.disconnect()
    world.advance(world.cluster.options.agent_timeout_s + 1)
    state = json.loads(await pages.state())
    assert (state["slaves"], state["unreachable_slaves"]) == ([], 1.0)
    assert json.loads(await pages.slaves()) == {"slaves": [], "recovered_slaves": []}


async def test_a_framework_comes_with_its_tasks_and_offers(world, agent, framework, pages):
    framework.launch(framework.offers()[0], world.task("t1"), world.task("t2"))
    agent.report("t1", pb.TASK_RUNNING, framework)
    world.settle()
    [shown] = json.loads(await pages.state())["frameworks"]
    assert set(shown) == keys(FRAMEWORK_KEYS) | {"role"}
    assert [each["id"] for each in shown["tasks"]] == ["t1", "t2"]
    [first, second] = shown["tasks"]
    assert set(first) == keys(TASK_KEYS)
    assert (first["state"], second["state"]) == ("TASK_RUNNING", "TASK_STAGING")
    assert [each["state"] for each in first["statuses"]] == ["TASK_RUNNING"]
    assert set(first["statuses"][0]) <= {"state", "timestamp", "container_status", "healthy"}
    assert first["executor_id"] == ""
    [offer] = shown["offers"]
    assert (offer["slave_id"], offer["resources"]["cpus"]) == (agent.id, 2.0)
    assert shown["used_resources"]["cpus"] == 2.0
    assert shown["resources"]["cpus"] == 4.0


async def test_a_framework_in_several_roles_shows_them_and_no_single_one(world, pages):
    multi = pb.FrameworkInfo.Capability(type=pb.FrameworkInfo.Capability.MULTI_ROLE)
    world.framework(roles=["a", "b"], capabilities=[multi])
    [shown] = json.loads(await pages.frameworks())["frameworks"]
    assert (shown["roles"], "role" in shown) == (["a", "b"], False)
    assert shown["capabilities"] == ["MULTI_ROLE"]


async def test_what_is_not_wanted_is_left_out(world, agent, framework, pages):
    framework.launch(framework.offers()[0], world.task("t1"))
    other = world.framework("other")
    assert len(json.loads(await pages.frameworks())["frameworks"]) == 2
    [shown] = json.loads(await pages.frameworks(other.id))["frameworks"]
    assert shown["name"] == "other"
    assert json.loads(await pages.frameworks("nobody"))["frameworks"] == []
    assert json.loads(await pages.slaves("nobody"))["slaves"] == []
    [shown] = json.loads(await pages.slaves(agent.id))["slaves"]
    assert {each["name"]: each["role"] for each in shown["used_resources_full"]} == {
        "cpus": "*",
        "mem": "*",
    }


async def test_the_summary_counts_states_by_framework_and_agent(world, agent, framework, pages):
    framework.launch(framework.offers()[0], world.task("t1"), world.task("t2"))
    agent.report("t1", pb.TASK_RUNNING, framework)
    summary = json.loads(await pages.state_summary())
    assert summary["hostname"] == "head"
    [of_agent], [of_framework] = summary["slaves"], summary["frameworks"]
    for each in (of_agent, of_framework):
        counted = {name: each[name] for name in shapes.COUNTED}
        assert counted == dict.fromkeys(shapes.COUNTED, 0) | {
            "TASK_RUNNING": 1,
            "TASK_STAGING": 1,
        }
    assert of_agent["framework_ids"] == [framework.id]
    assert of_framework["slave_ids"] == [agent.id]
    assert set(of_framework) == keys(SUMMARY_KEYS) | {*shapes.COUNTED, "slave_ids"}


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (Wanted(), ["t3", "t2", "t1"]),
        (Wanted(newest=False), ["t1", "t2", "t3"]),
        (Wanted(limit=1), ["t3"]),
        (Wanted(limit=0), []),
        (Wanted(offset=1, limit=1), ["t2"]),
        (Wanted(offset=9), []),
        (Wanted(task_id="t2"), ["t2"]),
        (Wanted(framework_id="nobody"), []),
    ],
)
async def test_tasks_come_in_the_order_of_their_first_statuses(
    world, agent, framework, pages, wanted, found
):
    for name in ("t1", "t2", "t3"):
        framework.launch(framework.offers()[0], world.task(name))
        world.settle()
        agent.report(name, pb.TASK_RUNNING, framework)
        world.advance(1.0)
    assert [each["id"] for each in json.loads(await pages.tasks(wanted))["tasks"]] == found


async def test_an_ended_task_is_among_the_completed(world, agent, framework, pages):
    framework.launch(framework.offers()[0], world.task("t1"))
    uuid = agent.report("t1", pb.TASK_FINISHED, framework)
    framework.acknowledge(agent, "t1", uuid)
    [shown] = json.loads(await pages.state())["frameworks"]
    assert shown["tasks"] == []
    [ended] = shown["completed_tasks"]
    assert ended["state"] == "TASK_FINISHED"


async def test_a_role_shows_what_it_and_those_below_it_hold(world, agent, pages):
    multi = pb.FrameworkInfo.Capability(type=pb.FrameworkInfo.Capability.MULTI_ROLE)
    framework = world.framework(roles=["dev/a"], capabilities=[multi])
    world.settle()
    framework.launch(framework.offers()[0], world.task("t1"))
    world.settle()
    shown = {each["name"]: each for each in json.loads(await pages.roles())["roles"]}
    assert set(shown) == {"dev", "dev/a"}
    for each in shown.values():
        assert each["allocated"] == {"cpus": 1.0, "mem": 32.0}
        assert each["offered"] == {"cpus": 3.0, "mem": 4064.0, "ports": 10.0}
        assert each["quota"]["consumed"] == {"cpus": 1.0, "mem": 32.0}
    assert shown["dev/a"]["frameworks"] == [framework.id]
    assert shown["dev"]["frameworks"] == []


async def test_others_have_their_turn_between_the_entries(world, agent, framework, pages):
    for number in range(3):
        framework.launch(framework.offers()[0], world.task(f"t{number}"))
        world.settle()
    turns = 0

    async def other():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.ensure_future(other())
    await pages.state()
    beside.cancel()
    assert turns >= 4


async def test_an_agent_that_goes_away_meanwhile_is_left_out(world, pages):
    agents = [world.agent() for _ in range(3)]
    made = asyncio.ensure_future(pages.state())
    await asyncio.sleep(0)
    departures.mark_gone(world.cluster, agents[2].id, lambda *_: None, world.clock.now())
    world.stored()
    shown = json.loads(await made)["slaves"]
    assert [each["id"] for each in shown] == [each.id for each in agents[:2]]


def test_text_is_escaped_and_ranges_of_several_agents_are_united():
    both = shapes.amounts(
        Resources.parse("cpus:1;ports:[1-3]"), Resources.parse("cpus:0.5;ports:[2-9]")
    )
    assert both == AMOUNTS | {"cpus": 1.5, "ports": "[1-9]"}


def test_an_agent_shows_what_is_reserved_by_role():
    world = World()
    made = world.agent(resources="cpus:1;mem:100;cpus(ads):3;cpus(web/x):2;ports(ads):[1-9]")
    agent = world.cluster.agents[made.id]
    shape = shapes.agent_in_full(world.cluster, agent, AS_JSON)
    assert shape["resources"] == {**AMOUNTS, "cpus": 6.0, "mem": 100.0, "ports": "[1-9]"}
    assert shape["unreserved_resources"] == {**AMOUNTS, "cpus": 1.0, "mem": 100.0}
    assert shape["reserved_resources"] == {
        "ads": {**AMOUNTS, "cpus": 3.0, "ports": "[1-9]"},
        "web/x": {**AMOUNTS, "cpus": 2.0},
    }
    (full,) = shape["reserved_resources_full"]["web/x"]
    assert full == {
        "name": "cpus",
        "scalar": {"value": 2.0},
        "role": "web/x",
        "reservations": [{"role": "web/x", "type": "STATIC"}],
    }
    assert [each["role"] for each in shape["unreserved_resources_full"]] == ["*", "*"]


async def test_a_volume_is_disk_of_its_role_and_says_what_it_is():
    world = World()
    made = world.agent(resources="cpus:1;mem:100;cpus(ads):1;mem(ads):50;disk(ads):60")
    stack = (Reservation("ads"),)
    mine = volume(stack, 40, "v1", "data", principal="olga")
    world.core.operate(made.id, create(mine), world.clock.now())
    framework = world.framework(role="ads")
    (offer,) = framework.offers()
    task = world.task("t1", made.id, text="cpus(ads):1;mem(ads):50")
    task.resources.extend(mine.to_proto())
    framework.launch(offer, task, refuse_s=3600)
    shape = shapes.agent_in_full(world.cluster, world.cluster.agents[made.id], AS_JSON)
    assert shape["resources"]["disk"] == shape["reserved_resources"]["ads"]["disk"] == 60.0
    assert shape["used_resources"]["disk"] == 40.0
    (shown,) = [each for each in shape["used_resources_full"] if each["name"] == "disk"]
    assert shown == {
        "name": "disk",
        "scalar": {"value": 40.0},
        "role": "ads",
        "reservations": [{"role": "ads", "type": "STATIC"}],
        "disk": {
            "persistence": {"id": "v1", "principal": "olga"},
            "volume": {"mode": "RW", "container_path": "data"},
        },
    }
    pages = Pages(lambda: world.cluster, lambda: ABOUT, AS_JSON)
    (role,) = json.loads(await pages.roles())["roles"]
    assert role["reserved"] == {"cpus": 1.0, "mem": 50.0, "disk": 60.0}
    assert role["allocated"] == {"cpus": 1.0, "mem": 50.0, "disk": 40.0}
    (framework_shown,) = json.loads(await pages.state())["frameworks"]
    assert framework_shown["tasks"][0]["resources"]["disk"] == 40.0


async def test_a_role_for_which_something_is_reserved_is_a_role():
    world = World()
    made = world.agent(resources="cpus:1;mem:100;cpus(ads):3;cpus(ads/x):2")
    pages = Pages(lambda: world.cluster, lambda: ABOUT, AS_JSON)
    shown = {each["name"]: each for each in json.loads(await pages.roles())["roles"]}
    assert list(shown) == ["ads", "ads/x"]
    assert shown["ads"]["reserved"] == shown["ads"]["quota"]["consumed"] == {"cpus": 5.0}
    framework = world.framework(role="ads")
    (offer,) = framework.offers()
    framework.launch(offer, world.task("t1", made.id, text="cpus(ads):1;cpus:1"))
    shown = {each["name"]: each for each in json.loads(await pages.roles())["roles"]}
    assert shown["ads"]["allocated"] == {"cpus": 2.0}
    assert shown["ads"]["quota"]["consumed"] == {"cpus": 6.0}
    assert shown["ads/x"]["quota"]["consumed"] == {"cpus": 2.0}


async def test_of_a_roles_ports_and_items_their_number_is_counted():
    """As Mesos 1.11 answers for the same."""
    world = World()
    text = "cpus:4;mem:100;ports:[1-1001];names:{a,b};cpus(ads):2;ports(ads):[2001-2010]"
    made = world.agent(resources=text)
    pages = Pages(lambda: world.cluster, lambda: ABOUT, AS_JSON)

    async def ads():
        (shown,) = json.loads(await pages.roles())["roles"]
        return shown

    reserved = {"cpus": 2.0, "ports": 10.0}
    assert (await ads())["reserved"] == (await ads())["quota"]["consumed"] == reserved
    framework = world.framework(role="ads")
    (offer,) = framework.offers()
    whole = {"cpus": 6.0, "mem": 100.0, "names": 2.0, "ports": 1011.0}
    shown = await ads()
    assert (shown["offered"], shown["resources"]) == (whole, whole)
    assert (shown["allocated"], shown["quota"]["consumed"]) == ({}, reserved)
    task = "cpus(ads):1;mem:32;ports(ads):[2001-2002];ports:[1-5]"
    framework.launch(offer, world.task("t1", made.id, text=task), refuse_s=3600.0)
    used = {"cpus": 1.0, "mem": 32.0, "ports": 7.0}
    shown = await ads()
    assert (shown["allocated"], shown["resources"], shown["offered"]) == (used, used, {})
    assert shown["quota"]["consumed"] == {"cpus": 2.0, "mem": 32.0, "ports": 15.0}
    assert shown["reserved"] == reserved
