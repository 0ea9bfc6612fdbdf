"""What an allocator sees of the tasks that it may take something back from."""

import math

import pytest

from mesos_py.states import TASK_ERROR, TASK_RUNNING
from tests.kit.core import World


@pytest.fixture
def world():
    made = World()
    yield made
    made.check()


def tenants(world, agent):
    return {each.task_id: each for each in world.cluster.ledger.tenants(agent.id)}


def costly(world, task_id, cost):
    task = world.task(task_id)
    task.revocation_cost = cost
    return task


def test_the_cost_that_a_framework_says_is_seen_and_none_is_none(world):
    agent, framework = world.agent(), world.framework()
    (offer,) = framework.offers()
    tasks = costly(world, "dear", 50.0), costly(world, "free", 0.0), world.task("plain")
    framework.launch(offer, *tasks)
    seen = tenants(world, agent)
    assert {name: each.cost for name, each in seen.items()} == {
        "dear": 50.0,
        "free": 0.0,
        "plain": None,
    }


@pytest.mark.parametrize("cost", [-1.0, math.nan])
def test_a_cost_that_is_none_is_refused(world, cost):
    agent, framework = world.agent(), world.framework()
    (offer,) = framework.offers()
    framework.launch(offer, costly(world, "t", cost))
    (update,) = framework.updates()
    assert (update.state, update.message) == (
        TASK_ERROR,
        f"revocation_cost: {cost}: must be 0 or more",
    )
    assert tenants(world, agent) == {}


def returned(world, **fields):
    """What is seen of a task with which an agent comes to a new master."""
    agent, framework = world.agent(), world.framework()
    task = agent.task("t", framework, TASK_RUNNING, **fields)
    agent.register(tasks=[task], frameworks=[framework.info])
    return tenants(world, agent)["t"]


@pytest.mark.parametrize(
    ("said", "cost"),
    [({"revocation_cost": 7.0}, 7.0), ({}, None), ({"revocation_cost": -1.0}, None)],
)
def test_a_new_master_hears_the_cost_from_the_agent(world, said, cost):
    assert returned(world, **said).cost == cost


@pytest.mark.parametrize(
    ("launched", "ran_s"),
    [
        ({"launched_time": -30.0}, 30.0),
        ({"launched_time": 30.0}, 0.0),
        ({"launched_time": math.inf}, 0.0),
        ({"launched_time": -math.inf}, math.inf),
        ({"launched_time": math.nan}, math.inf),
        ({}, math.inf),
    ],
    ids=["before", "in the future", "never", "always", "none", "not said"],
)
def test_a_new_master_knows_how_long_a_task_has_run(world, launched, ran_s):
    """Of two that ran before it led, too, the youngest goes first."""
    now = world.clock.now()
    said = {name: now.wall_s + by_s for name, by_s in launched.items()}
    since_s = returned(world, **said).since_s
    assert world.clock.now().monotonic_s - since_s == pytest.approx(ran_s)
