"""Long lists in slices: nobody waits for them, and each entry is there once."""

import asyncio

import pytest

from master.api.snapshots import Snapshots
from master.core import departures
from mesos_py.errors import NotFound
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import World


@pytest.fixture
def world():
    made = World()
    yield made
    made.check()


@pytest.fixture
def agents(world):
    made = [world.agent(resources="cpus:1;mem:32") for _ in range(4)]
    return {agent.id: agent for agent in made}


@pytest.fixture
def framework(world, agents):
    """With a task on each agent."""
    found = world.framework()
    world.settle()
    for number, offer in enumerate(found.offers()):
        found.launch(offer, world.task(f"t{number}"))
    return found


def snapshots(world):
    """Each entry is a slice of its own."""
    return Snapshots(lambda: world.cluster, slice_s=0.0)


async def test_others_have_their_turn_between_entries(world, framework):
    turns = 0

    async def other():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.ensure_future(other())
    answer = await snapshots(world).tasks()
    beside.cancel()
    assert len(answer.get_tasks.tasks) == 4
    assert turns >= 4


async def test_without_need_there_is_one_slice(world, framework):
    answer = Snapshots(lambda: world.cluster, slice_s=60.0).tasks()
    with pytest.raises(StopIteration):
        answer.send(None)


async def test_a_task_that_ends_meanwhile_is_there_once_as_it_is_then(world, agents, framework):
    answer = snapshots(world).tasks()
    task = world.cluster.frameworks[framework.id].tasks["t3"]
    agents[task.agent_id].report("t3", pb.TASK_FINISHED, framework)
    found = (await answer).get_tasks
    states = {task.task_id.value: task.state for task in found.tasks}
    assert sorted(states) == ["t0", "t1", "t2", "t3"]
    assert states["t3"] == pb.TASK_FINISHED
    assert not found.completed_tasks


async def test_an_agent_that_is_gone_meanwhile_is_left_out(world):
    agents = [world.agent() for _ in range(3)]
    answer = snapshots(world).agents()
    departures.mark_gone(world.cluster, agents[1].id, lambda *_: None, world.clock.now())
    there = [each.agent_info.id.value for each in (await answer).get_agents.agents]
    assert there == [agents[0].id, agents[2].id]


async def test_a_state_that_is_not_waited_for_leaves_nothing(world, framework, recwarn):
    answer = snapshots(world).state()
    answer.send(None)
    answer.close()
    assert not [each for each in recwarn if each.category is RuntimeWarning]


async def test_tasks_of_a_framework_that_nobody_knows(world):
    with pytest.raises(NotFound, match="framework"):
        snapshots(world).tasks("nobody")
