"""Where tasks run, and which first; twins of slow ones."""

from __future__ import annotations

import pytest

from frameworks.rdd.core.rules import Pool, Rules
from frameworks.rdd.messages import (
    CancelTask,
    Raised,
    RunTask,
)
from tests.kit.rdd_world import World, raised


@pytest.fixture
def world() -> World:
    world = World()
    world.join("a", "h1", 2)
    world.join("b", "h2", 2)
    return world


def sent(world: World, kind: type) -> list:
    return [each.message for each in world.sent if isinstance(each.message, kind)]


# ---- Placement -----------------------------------------------------------------------------


def test_a_task_waits_for_its_data_but_not_for_ever():
    world = World(Rules(wait_executor_s=3.0, wait_host_s=3.0))
    world.join("a", "h1", 1)
    kept = world.source(1)
    world.persist(kept)
    world.submit(kept)
    world.finish_all()
    world.join("b", "h2", 1)
    blocker = world.submit(world.source(1))
    assert world.running()[0][0] == "a" or world.running()[0][0] == "b"
    while world.running()[0][0] == "b":
        world.finish_all()
        blocker = world.submit(world.source(1))
    job = world.submit(kept)
    assert len(world.running()) == 1
    assert world.wake_s == 3.0
    world.pass_time(3.0)
    world.pass_time(3.0)
    assert {name for name, _ in world.running()} == {"a", "b"}
    world.finish_all()
    world.check(job)
    world.check(blocker)


def test_nobody_waits_for_an_executor_that_is_gone():
    world = World()
    world.join("a", "h1", 1)
    kept = world.source(1)
    world.persist(kept)
    world.submit(kept)
    world.finish_all()
    world.lose("a")
    world.join("b", "h2", 1)
    world.submit(kept)
    assert [name for name, _ in world.running()] == ["b"]


def test_older_jobs_have_precedence_and_fair_ones_share():
    def begun(fair: bool) -> list[int]:
        world = World(Rules(fair=fair))
        first, second = world.source(8), world.source(8)
        world.submit(first)
        world.submit(second)
        world.join("a", "h1", 4)
        stages = [task.stage_id for task in sent(world, RunTask)]
        return sorted(stages)

    assert begun(fair=False) == [1, 1, 1, 1]
    assert begun(fair=True) == [1, 1, 2, 2]


def test_the_turn_of_a_stage_is_that_of_the_oldest_job_which_needs_it():
    world = World()
    world.join("a", "h1", 1)
    made = world.shuffled(world.source(4), 1)
    first = world.submit(made)
    world.submit(world.source(2))
    last = world.submit(made)
    world.cancel(first)
    world.finish(*world.running()[0])
    # The second job's, as nobody older needs the maps any more.
    assert world.running()
    assert not world.maps()
    world.finish_all()
    world.check(last)


def test_pools_share_and_within_one_the_older_goes_first():
    world = World(Rules(fair=True))
    pool = {"spark.scheduler.pool": "p"}
    world.submit(world.source(8), properties=pool)
    world.submit(world.source(8), properties=pool)
    world.submit(world.source(8))
    world.join("a", "h1", 4)
    assert sorted(task.stage_id for task in sent(world, RunTask)) == [1, 1, 3, 3]
    world.finish_all()
    world.check_nothing_left()


def test_each_job_in_the_default_pool_has_a_share_whatever_other_pools_are_called():
    world = World(Rules(fair=True))
    for pool in ({}, {"spark.scheduler.pool": "default"}, {"spark.scheduler.pool": "job 1"}):
        world.submit(world.source(8), properties=pool)
    world.join("a", "h1", 3)
    assert sorted(task.stage_id for task in sent(world, RunTask)) == [1, 2, 3]


@pytest.mark.parametrize(
    ("pools", "begun"),
    [
        ({"p": Pool(weight=3)}, [1, 1, 1, 3]),
        ({"q": Pool(min_share=3)}, [1, 3, 3, 3]),
        ({"p": Pool(min_share=9), "q": Pool(min_share=3)}, [1, 1, 1, 3]),
        ({"p": Pool(fair=True)}, [1, 2, 3, 3]),
        ({"p": Pool(weight=3, fair=True)}, [1, 1, 2, 3]),
    ],
)
def test_pools_have_weights_least_shares_and_an_order_of_their_own(pools, begun):
    world = World(Rules(fair=True, pools=pools))
    for name in "ppq":
        world.submit(world.source(8), properties={"spark.scheduler.pool": name})
    world.join("a", "h1", 4)
    assert sorted(task.stage_id for task in sent(world, RunTask)) == begun
    world.finish_all()
    world.check_nothing_left()


def test_a_default_pool_that_is_declared_is_one_pool():
    world = World(Rules(fair=True, pools={"default": Pool()}))
    for pool in ({}, {"spark.scheduler.pool": "default"}, {"spark.scheduler.pool": "q"}):
        world.submit(world.source(8), properties=pool)
    world.join("a", "h1", 4)
    assert sorted(task.stage_id for task in sent(world, RunTask)) == [1, 1, 3, 3]


def ab() -> World:
    world = World(Rules(max_failures=100, exclude_failures=3, exclude_s=60.0))
    world.join("a", "h1", 1)
    world.join("b", "h2", 1)
    world.submit(world.source(90))
    return world


def end_one(world: World, name: str, outcome: Raised | None = None) -> int:
    """A task of that executor; its partition."""
    (task,) = world.places[name].running.values()
    world.finish(name, task.task_id, outcome)
    return task.split


def test_an_executor_where_fails_what_others_can_gets_nothing_for_a_while():
    world = ab()
    for _ in range(3):
        split = end_one(world, "a", raised())
        while end_one(world, "b") != split:
            pass
        world.pass_time(2.0)
    # What it had begun is no matter.
    end_one(world, "a")
    assert not world.places["a"].running
    assert world.core.view(world.now_s).executors[0].excluded
    world.pass_time(60.0)
    assert world.places["a"].running


def test_an_exclusion_that_would_leave_nobody_is_none():
    world = ab()
    world.core.state.blame._until_s["a"] = 60.0
    end_one(world, "a")
    assert not world.places["a"].running
    world.lose("b")
    assert world.places["a"].running


def test_what_fails_everywhere_is_no_executors_fault():
    world = ab()
    for _ in range(12):
        end_one(world, "a", raised())
        end_one(world, "b", raised())
        world.pass_time(2.0)
    assert not world.core.state.blame


def test_one_that_leaves_gets_no_new_task(world):
    world.core.executor_leaving("a")
    world.submit(world.source(4))
    assert {name for name, _ in world.running()} == {"b"}


# ---- Twins ---------------------------------------------------------------------------------


def test_a_slow_task_gets_a_twin_elsewhere_and_the_first_result_counts():
    world = World(Rules(twins=True, twin_quantile=0.5, twin_after_s=1.0))
    world.join("a", "h1", 2)
    world.join("b", "h2", 2)
    job = world.submit(world.source(4))
    slow = world.running()[0]
    for pair in world.running()[1:]:
        world.pass_time(1.0)
        world.finish(*pair)
    for _ in range(12):
        world.pass_time(1.0)
    twins = world.running()
    assert len(twins) == 2
    assert twins[0] == slow
    assert twins[1][0] != slow[0]
    world.finish(*twins[1])
    world.check(job)
    assert CancelTask(slow[1], "another attempt was first") in sent(world, CancelTask)
    world.finish_all()
    world.check_nothing_left()
