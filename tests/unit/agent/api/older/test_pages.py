"""/state and its siblings of an agent: what is in them.  Keys: those that an agent of Apache
Mesos 1.11 was seen to answer, but for what only it can know (git_sha, git_tag)."""

import asyncio
import json
from dataclasses import replace

import pytest

from agent.api.older.pages import About, Pages
from agent.core import listing
from agent.usage.statistics import note_asked, statistics
from mesos_py.http.jsonpb import as_object
from mesos_py.resources import Resources
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import AgentWorld, command, executor_info, for_executor, status
from tests.kit.reserving import amount, by, volume

ABOUT = About(version="1.2.3", started_wall_s=100.0, flags={"work_dir": "/srv/agent"})
STATE_KEYS = (
    "version build_date build_time build_user start_time id pid hostname capabilities resources "
    "reserved_resources unreserved_resources reserved_resources_full unreserved_resources_full "
    "reserved_resources_allocated unreserved_resources_allocated resource_providers attributes "
    "master_hostname flags frameworks completed_frameworks"
)
FRAMEWORK_KEYS = (
    "id name user failover_timeout checkpoint hostname role executors completed_executors"
)
EXECUTOR_KEYS = (
    "id name source container directory resources role tasks queued_tasks completed_tasks"
)
TASK_KEYS = "id name framework_id executor_id slave_id state resources role statuses user"
CONTAINER_KEYS = [
    "container_id",
    "executor_id",
    "executor_name",
    "framework_id",
    "source",
    "statistics",
    "status",
]


def keys(text):
    return set(text.split())


@pytest.fixture
def world():
    return AgentWorld()


@pytest.fixture
def pages(world):
    """Each entry is a slice of its own."""

    async def containers():
        found = listing.containers(world.core.state)
        for each in found:
            used = statistics({"memory_rss_bytes": 4096, "cpu_user_seconds": 1.5}, 12.0)
            note_asked(used, each.resources)
            each.resource_statistics.CopyFrom(used)
        return found

    return Pages(world.core.state, ABOUT, containers, as_object, slice_s=0.0)


async def state(pages):
    return json.loads(await pages.state())


async def test_an_agent_that_has_nothing_has_all_that_is_always_there(world, pages):
    found = await state(pages)
    assert set(found) == keys(STATE_KEYS)
    amounts = {"cpus": 8.0, "gpus": 0.0, "mem": 1024.0, "disk": 0.0}
    assert found["resources"] == found["unreserved_resources"] == amounts
    assert found["unreserved_resources_allocated"] == dict.fromkeys(amounts, 0.0)
    assert found["frameworks"] == found["completed_frameworks"] == []
    assert (found["version"], found["flags"]) == ("1.2.3", {"work_dir": "/srv/agent"})
    assert found["unreserved_resources_full"][0]["role"] == "*"


async def test_who_it_is(world, pages):
    info = world.core.state.info
    info.ip, info.port, info.http_port = "10.0.0.7", 5061, 5051
    info.attributes.add(name="rack", type=pb.Value.TEXT, text=pb.Value.Text(value="r1"))
    info.attributes.add(name="speed", type=pb.Value.SCALAR, scalar=pb.Value.Scalar(value=3))
    found = await state(pages)
    assert (found["id"], found["pid"]) == ("A1", "slave(1)@10.0.0.7:5051")
    assert found["hostname"] == "host"
    assert found["attributes"] == {"rack": "r1", "speed": 3.0}
    assert found["capabilities"] == [
        "RESERVATION_REFINEMENT",
        "AGENT_OPERATION_FEEDBACK",
        "AGENT_DRAINING",
        "RESIZE_VOLUME",
    ]


async def test_the_master_is_named_while_there_is_one():
    world = AgentWorld(registered=False)
    pages = Pages(world.core.state, ABOUT, lambda: pytest.fail("not asked"), as_object)
    assert "master_hostname" not in await state(pages)
    registered = agent_pb2.Event.Registered(
        agent_id=pb.AgentID(value="A1"), master_info=pb.MasterInfo(hostname="head")
    )
    world.master(agent_pb2.Event(type=agent_pb2.Event.REGISTERED, registered=registered))
    assert (await state(pages))["master_hostname"] == "head"
    world.core.on_disconnected()
    assert "master_hostname" not in await state(pages)


async def test_the_file_that_it_logs_to_is_named_if_there_is_one(world):
    about = replace(ABOUT, log_file="/var/log/agent")
    found = await state(Pages(world.core.state, about, lambda: pytest.fail("asked"), as_object))
    assert found["external_log_file"] == "/var/log/agent"


async def test_a_drain_is_shown(world, pages):
    drain = agent_pb2.Event.Drain(config=pb.DrainConfig(mark_gone=True))
    world.master(agent_pb2.Event(type=agent_pb2.Event.DRAIN, drain=drain))
    assert (await state(pages))["drain_config"] == {"mark_gone": True}


async def test_a_command_is_a_task_of_an_executor_of_its_own(world, pages):
    world.run(command("t1", "sleep 9", cpus=2, labels=pb.Labels(labels=[pb.Label(key="x")])))
    world.started("t1", pid=7)
    found = await state(pages)
    assert found["unreserved_resources_allocated"]["cpus"] == 2.0
    (framework,) = found["frameworks"]
    assert set(framework) == keys(FRAMEWORK_KEYS)
    assert (framework["id"], framework["role"]) == ("F1", "*")
    (executor,) = framework["executors"]
    assert set(executor) == keys(EXECUTOR_KEYS) | {"labels"}
    assert (executor["id"], executor["source"], executor["name"]) == ("t1", "t1", "t1")
    place = "/srv/agent/agents/A1/frameworks/F1/executors/t1/runs/"
    assert executor["directory"] == place + executor["container"]
    assert executor["resources"] == {"cpus": 2.0, "gpus": 0.0, "mem": 0.0, "disk": 0.0}
    (task,) = executor["tasks"]
    assert set(task) == keys(TASK_KEYS) | {"labels"}
    assert (task["executor_id"], task["state"], task["user"]) == ("", "TASK_RUNNING", "root")
    assert task["labels"] == [{"key": "x"}]
    assert [each["state"] for each in task["statuses"]] == ["TASK_STARTING", "TASK_RUNNING"]
    assert task["statuses"][1]["container_status"] == {
        "container_id": {"value": executor["container"]}
    }


async def test_what_has_ended_is_completed(world, pages):
    world.run(command("t1"), command("t2"))
    world.started("t1")
    world.ended("t1")
    (framework,) = (await state(pages))["frameworks"]
    assert [each["id"] for each in framework["executors"]] == ["t2"]
    (executor,) = framework["completed_executors"]
    assert executor["tasks"] == []
    assert executor["resources"]["cpus"] == 0.0
    (task,) = executor["completed_tasks"]
    assert (task["state"], task["resources"]["cpus"]) == ("TASK_FINISHED", 1.0)
    world.started("t2")
    world.ended("t2")
    found = await state(pages)
    assert found["frameworks"] == []
    (framework,) = found["completed_frameworks"]
    assert [each["id"] for each in framework["completed_executors"]] == ["t1", "t2"]


async def test_tasks_of_an_executor_that_is_not_there_yet_are_queued(world, pages):
    custom = executor_info(name="mine", source="src", type=pb.ExecutorInfo.CUSTOM)
    world.run(for_executor("a", custom), for_executor("b", custom))
    ((executor,),) = [each["executors"] for each in (await state(pages))["frameworks"]]
    assert set(executor) == keys(EXECUTOR_KEYS) | {"type"}
    named = executor["id"], executor["name"], executor["source"], executor["type"]
    assert named == ("ex", "mine", "src", "CUSTOM")
    assert executor["resources"]["cpus"] == 2.5
    assert [each["id"] for each in executor["queued_tasks"]] == ["a", "b"]
    assert set(executor["queued_tasks"][0]) == keys("id name slave_id resources role executor_id")
    world.started("ex")
    world.subscribe("ex")
    world.report("ex", status("a", pb.TASK_FINISHED))
    ((executor,),) = [each["executors"] for each in (await state(pages))["frameworks"]]
    assert [each["id"] for each in executor["tasks"]] == ["b"]
    assert [each["executor_id"] for each in executor["completed_tasks"]] == ["ex"]
    assert executor["queued_tasks"] == []


async def test_a_framework_of_several_roles_has_a_list(world, pages):
    capability = pb.FrameworkInfo.Capability(type=pb.FrameworkInfo.Capability.MULTI_ROLE)
    world.framework.capabilities.append(capability)
    world.framework.roles.extend(["a", "b"])
    world.framework.principal = "p"
    task = command("t1")
    task.resources[0].allocation_info.role = "b"
    world.run(task)
    (framework,) = (await state(pages))["frameworks"]
    assert (framework["roles"], framework["principal"]) == (["a", "b"], "p")
    assert "role" not in framework
    assert framework["executors"][0]["role"] == framework["executors"][0]["tasks"][0]["role"] == "b"


async def test_containers_and_what_they_use(world, pages):
    task = command("t1", cpus=2)
    task.resources.extend(Resources.of(mem=32).to_proto())
    world.run(task, command("t2"))
    world.started("t1", pid=7)
    found = json.loads(await pages.containers())
    assert [list(each) for each in found] == [CONTAINER_KEYS] * 2
    assert found[0]["status"]["executor_pid"] == 7
    assert (found[0]["source"], found[0]["executor_name"]) == ("t1", "t1")
    used = found[0]["statistics"]
    assert used == {
        "timestamp": 12.0,
        "cpus_user_time_secs": 1.5,
        "cpus_soft_limit": 2.0,
        "mem_rss_bytes": 4096,
        "mem_anon_bytes": 4096,
        "mem_limit_bytes": 32 << 20,
        "mem_soft_limit_bytes": 32 << 20,
    }
    statistics_page = json.loads(await pages.statistics())
    assert [each["executor_id"] for each in statistics_page] == ["t1", "t2"]
    assert statistics_page[0]["statistics"] == used
    one = json.loads(await pages.containers(world.container("t2")))
    assert [each["executor_id"] for each in one] == ["t2"]
    assert json.loads(await pages.containers("no such")) == []


async def test_a_container_of_which_nothing_is_known_is_not_in_the_statistics(world):
    async def containers():
        return listing.containers(world.core.state)

    pages = Pages(world.core.state, ABOUT, containers, as_object)
    world.run(command("t1"))
    assert json.loads(await pages.statistics()) == []
    (container,) = json.loads(await pages.containers())
    assert "statistics" not in container


async def test_others_have_their_turn_between_executors(world, pages):
    """Each of a command has one task: a slice must not be a list's."""
    world.run(*(command(f"t{number}") for number in range(5)))
    turns = 0

    async def other():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    running = asyncio.create_task(other())
    await pages.state()
    running.cancel()
    assert turns >= 5


async def test_a_volume_is_reserved_disk_that_says_what_it_is(world, pages):
    kept = volume(by("ads"), 10)
    world.core.state.total = amount(cpus=8, mem=1024) + kept
    task = command("t")
    task.resources.extend(volume(by("ads"), 10, path="mine").to_proto())
    world.run(task)
    found = await state(pages)
    (shown,) = found["reserved_resources_full"]["ads"]
    assert shown["disk"]["persistence"] == {"id": "v1"}
    assert found["reserved_resources"]["ads"]["disk"] == 10.0
    assert found["reserved_resources_allocated"]["ads"]["disk"] == 10.0
    (container,) = json.loads(await pages.containers())
    assert container["executor_id"] == "t"
