"""Jobs through the core, in virtual time."""

from __future__ import annotations

import pytest

from frameworks.rdd.core.effects import Failure
from frameworks.rdd.core.hearing import MOST_FETCHES
from frameworks.rdd.core.rules import Rules
from frameworks.rdd.messages import (
    AddFiles,
    Beat,
    CancelTask,
    Died,
    FetchLost,
    Forget,
    Locations,
    RunTask,
    WhereIs,
)
from mesos_py.errors import InvalidValue
from tests.kit.rdd_world import LARGE, World, raised


@pytest.fixture
def world() -> World:
    world = World()
    world.join("a", "h1", 2)
    world.join("b", "h2", 2)
    return world


def sent(world: World, kind: type) -> list:
    return [each.message for each in world.sent if isinstance(each.message, kind)]


def text(world: World, job: int) -> str:
    failure = world.ended[job]
    assert failure is not None
    return failure.text


# ---- Stages --------------------------------------------------------------------------------


def test_stages_run_one_after_the_other_and_a_second_job_skips_what_is_made(world):
    shuffled = world.shuffled(world.source(3), 2)
    job = world.submit(shuffled)
    world.finish_all()
    world.check(job)
    assert len(world.ran) == 5
    again = world.submit(world.mapped(shuffled))
    world.finish_all()
    world.check(again)
    assert len(world.ran) == 7
    world.check_nothing_left()


def test_two_jobs_share_a_shuffle_and_one_can_go(world):
    shuffled = world.shuffled(world.source(4), 2)
    first = world.submit(world.mapped(shuffled))
    second = world.submit(world.mapped(shuffled))
    world.cancel(first)
    assert len(world.running()) == 4
    world.finish_all()
    world.check(second)
    assert world.ended[first].cancelled
    assert sum(node_id == 0 for node_id, _ in world.ran) == 4
    world.check_nothing_left()


def test_jobs_of_nothing_end_at_once(world):
    empty = world.source(0)
    assert world.ended[world.submit(empty)] is None
    job = world.submit(world.shuffled(empty, 2))
    world.finish_all()
    world.check(job)
    assert world.ended[world.submit(world.source(3), [])] is None


def test_what_is_kept_is_not_computed_again_and_draws_tasks(world):
    kept = world.mapped(world.shuffled(world.source(2), 4))
    world.persist(kept)
    world.submit(kept)
    world.finish_all()
    had = {(place.name, split) for place in world.places.values() for _, split in place.cache}
    world.core.state.outputs.forget(1)
    job = world.submit(kept)
    assert {(name, world.places[name].running[task].split) for name, task in world.running()} == had
    world.finish_all()
    world.check(job)
    assert [stage.reads for stage in world.core.state.ended_stages][-1] == (1,)


def test_unpersisted_data_are_dropped_even_if_they_come_late(world):
    kept = world.source(2)
    world.persist(kept)
    job = world.submit(kept)
    world.unpersist(kept)
    kept.storage = kept.storage.MEMORY_ONLY
    world.finish_all()
    world.check(job)
    assert Forget(rdds=(kept.id,)) in sent(world, Forget)
    assert not world.core.state.kept.persisted(kept.id)


# ---- Failures ------------------------------------------------------------------------------


def test_a_task_is_tried_four_times_elsewhere_first_and_the_first_cause_is_told(world):
    job = world.submit(world.source(1))
    where = []
    for number in range(4):
        name, task = world.running()[0]
        where.append(name)
        world.finish(name, task, raised("ValueError" if number == 0 else "KeyError"))
    assert where[0] != where[1]
    said = text(world, job)
    assert said.startswith("Traceback of ValueError: bad\n")
    assert "failed 4 times" in said
    assert said.count("KeyError: bad") == 3
    assert world.ended[job].exception
    world.check_nothing_left()


def test_a_fatal_failure_ends_the_job_and_cancels_the_rest(world):
    job = world.submit(world.source(3))
    name, task = world.running()[0]
    world.finish(name, task, raised(fatal=True))
    assert "failed once, and it is of no use to try again" in text(world, job)
    assert len(sent(world, CancelTask)) == 2
    world.finish_all()
    world.check_nothing_left()


def test_a_lost_executor_costs_its_tasks_nothing_unless_they_may_be_to_blame():
    world = World(Rules(max_failures=2))
    job = world.submit(world.source(1))
    for number in range(6):
        world.join(f"e{number}")
        world.lose(f"e{number}")
    assert job not in world.ended
    for number in range(6, 8):
        world.join(f"e{number}")
        world.lose(f"e{number}", blame=True)
    assert "ExecutorLost: executor e6 on h1 was lost: went away" in text(world, job)


def test_a_worker_that_dies_counts(world):
    job = world.submit(world.source(1))
    for _ in range(4):
        world.finish(*world.running()[0], Died("killed by signal 9"))
    assert text(world, job).startswith("WorkerDied: killed by signal 9")


def test_results_beyond_the_limit_end_the_job():
    world = World(Rules(max_result_bytes=5))
    world.join("a", slots=2)
    job = world.submit(world.source(9))
    for _ in range(6):
        if world.running():
            world.finish(*world.running()[0])
    assert "spark.driver.maxResultSize (5 bytes)" in text(world, job)


def test_results_that_have_no_room_are_not_fetched():
    """Of one digit each: what is being fetched counts, and what could not be had does not."""
    world = World(Rules(max_result_bytes=2))
    world.join("a", slots=3)
    world.big_results = True
    job = world.submit(world.source(4))
    first, second, third = (task for _, task in world.running())
    world.finish("a", first)
    world.fetched(first, ok=False)
    world.finish("a", second)
    world.fetched(second)
    world.finish("a", third)
    assert job not in world.ended
    world.finish(*world.running()[0])
    assert text(world, job) == (
        "job 1 (count) failed: the results of 3 of its 4 partitions have 3 bytes, more than "
        "spark.driver.maxResultSize (2 bytes)"
    )
    assert list(world.fetches) == [third]
    world.finish_all()
    world.check_nothing_left()


def test_few_results_are_fetched_at_once_and_none_of_those_who_are_gone():
    world = World()
    world.join("a", slots=MOST_FETCHES + 1)
    world.join("b", "h2", slots=2)
    world.big_results = True
    job = world.submit(world.source(MOST_FETCHES + 3))
    for name, task in sorted(world.running()):
        world.finish(name, task)
    assert len(world.fetches) == MOST_FETCHES
    assert not world.running()
    world.lose("b")
    # Without having tried to fetch what it had.
    assert len(world.running()) == 2
    world.fetched(next(iter(world.fetches)))
    assert len(world.fetches) == MOST_FETCHES
    world.finish_all()
    world.check(job)
    world.check_nothing_left()


def test_a_result_that_is_being_fetched_is_not_fetched_from_its_twin():
    world = World(Rules(twins=True, twin_quantile=0.0, twin_after_s=0.0, twin_share=1.0))
    world.join("a", slots=2)
    world.join("b", "h2", slots=1)
    world.big_results = True
    job = world.submit(world.source(2))
    world.finish(*world.running()[0])
    world.pass_time(100)
    running = world.running()
    assert len(running) == 2, "one is run twice"
    for name, task in running:
        world.finish(name, task)
    assert len(world.fetches) == 2
    world.finish_all()
    world.check(job)
    world.check_nothing_left()


def test_refused_fails_all_jobs_later_ones_too(world):
    first = world.submit(world.source(1))
    world.core.refuse(Failure("no executors: why"), world.now_s)
    second = world.submit(world.source(1))
    world.settle()
    assert text(world, first) == text(world, second) == "no executors: why"


def test_a_node_that_fails_in_the_driver_fails_its_job_only(world):
    source = world.source(1)
    source.slices = ()
    bad = world.submit(source)
    good = world.submit(world.source(1))
    world.finish_all()
    assert "IndexError" in text(world, bad)
    world.check(good)


# ---- Lost outputs --------------------------------------------------------------------------


def test_only_lost_outputs_are_made_again(world):
    shuffled = world.shuffled(world.source(4), 3)
    world.submit(shuffled)
    world.finish_all()
    world.ran.clear()
    lost = world.core.state.outputs.there(1)[2]
    world.delete(lost.path)
    job = world.submit(shuffled)
    world.finish_all()
    world.check(job)
    assert world.ran.count((0, 2)) == 1
    assert not any(node == 0 and split != 2 for node, split in world.ran)


def test_a_lost_agent_loses_what_was_left_by_executors_long_gone(world):
    shuffled = world.shuffled(world.source(4), 2)
    job = world.submit(world.mapped(shuffled))
    for pair in world.maps():
        world.finish(*pair)
    world.lose("a")
    world.join("c", "h3", 2)
    world.lose_agent("h1")
    world.finish_all()
    world.check(job)
    assert len(world.ran) > 4 + 2


def test_after_four_times_a_stage_that_finds_nothing_gives_up(world):
    job = world.submit(world.shuffled(world.source(2), 1))
    for _ in range(200):
        if not world.running():
            break
        world.finish(*world.running()[0])
        if len(world.files) == 2:
            world.delete("")
    assert "4 times stage 1 found that what maps have left was gone" in text(world, job)
    world.check_nothing_left()


def test_when_an_executor_is_at_fault_again_all_its_outputs_are_made_again(world):
    """Its file server answers nothing, though nobody says that it is lost."""
    world.join("c", "h3", 4)
    shuffled = world.shuffled(world.source(8), 1)
    world.submit(shuffled)
    world.finish_all()
    of_c = [each for each in world.core.state.outputs.there(1) if each.executor_id == "c"]
    assert len(of_c) == 4
    world.core.executor_leaving("c")
    job = world.submit(shuffled)
    for output, made_again in zip(of_c[:2], (1, 3), strict=True):
        world.finish(*world.running()[0], FetchLost(1, output.map_index, "c", "no answer"))
        maps = world.maps()
        assert len(maps) == made_again
        for pair in maps:
            world.finish(*pair)
    world.finish_all()
    world.check(job)


def test_kept_data_that_are_gone_when_needed_have_their_shuffle_made_again(world):
    kept = world.mapped(world.shuffled(world.source(2), 2))
    world.persist(kept)
    world.submit(kept)
    world.finish_all()
    world.core.state.outputs.forget(1)
    world.files.clear()
    job = world.submit(kept)
    for place in world.places.values():
        # Nobody has been told yet.
        place.cache.clear()
    world.finish_all()
    world.check(job)


def test_what_is_kept_where_a_task_runs_needs_no_payload_unless_it_is_gone(world):
    kept = world.mapped(world.source(2))
    world.persist(kept)
    world.submit(kept)
    world.finish_all()
    job = world.submit(kept)
    tasks = [each for each in sent(world, RunTask) if each.stage_id == 2]
    assert [len(each.payloads) > LARGE for each in tasks] == [False, False]
    for place in world.places.values():
        # Nobody has been told yet.
        place.cache.clear()
    world.finish_all()
    world.check(job)
    again = [each for each in sent(world, RunTask) if each.stage_id == 2][2:]
    assert [len(each.payloads) > LARGE for each in again] == [True, True]


# ---- Results, sums, blocks -----------------------------------------------------------------


def test_a_big_result_is_fetched_and_made_again_if_it_is_gone(world):
    world.big_results = True
    job = world.submit(world.source(1))
    world.finish(*world.running()[0])
    (task_id,) = world.fetches
    world.fetched(task_id, ok=False)
    world.finish(*world.running()[0])
    (task_id,) = world.fetches
    world.fetched(task_id)
    world.check(job)
    assert len([m for m in sent(world, Forget) if m.results]) == 2
    world.check_nothing_left()


def test_a_job_ends_if_the_driver_cannot_fetch_what_executors_have(world):
    """Behind a firewall, say: it would be computed again and again."""
    world.big_results = True
    job = world.submit(world.source(1))
    for _ in range(4):
        world.pass_time(10.0)
        world.finish(*world.running()[0])
        (task_id,) = world.fetches
        world.fetched(task_id, ok=False)
    assert not world.running()
    assert "4 times the result of partition 0 of stage 1 could not be" in world.ended[job].text
    world.check_nothing_left()


def test_sums_count_once_for_each_partition(world):
    world.big_results = False
    job = world.submit(world.source(3))
    world.finish_all()
    world.check(job)
    for ended in list(world.told):
        for name in world.places:
            world.core.heard(name, ended, world.now_s)
    world.settle()
    assert sorted(world.added) == [b"1/0", b"1/1", b"1/2"]


def test_files_reach_executors_that_come_later(world):
    files = AddFiles({"x.py": (("file", 0, 0),)}, ())
    world.core.add_files(files)
    world.settle()
    world.join("c")
    assert [each.executor_id for each in world.sent if each.message == files] == ["a", "b", "c"]


def test_broadcasts_are_asked_for_and_destroyed(world):
    world.core.add_broadcast(1)
    chunk = ("broadcast", 1, 1)
    world.core.heard("a", WhereIs(1, (), (chunk,)), world.now_s)
    world.core.heard("b", WhereIs(2, (chunk,)), world.now_s)
    world.core.destroy_broadcast(1)
    world.core.destroy_broadcast(1)
    world.settle()
    assert Locations(2, {chunk: ("a:1",)}) in sent(world, Locations)
    assert [each.executor_id for each in world.sent if each.message == Forget(broadcasts=(1,))] == [
        "a",
        "b",
    ]


def test_a_shuffle_is_forgotten_once_nobody_makes_it(world):
    world.submit(world.shuffled(world.source(2), 1))
    world.core.forget_shuffle(1)
    assert world.core.state.outputs.known(1)
    world.finish_all()
    world.core.forget_shuffle(1)
    world.core.forget_shuffle(1)
    world.settle()
    assert len([m for m in sent(world, Forget) if m.shuffles]) == 2


# ---- How many executors --------------------------------------------------------------------


def test_slots_are_wanted_for_what_could_run_and_idle_executors_go():
    world = World(Rules(idle_s=10.0, idle_keeping_s=100.0), elastic=True)
    kept = world.source(2)
    world.persist(kept)
    world.submit(kept)
    assert world.wants == [2]
    world.join("a", "h1", 2)
    world.join("b", "h2", 2)
    world.finish_all()
    assert world.wants[-1] == 0
    bare = [each.name for each in world.places.values() if not each.cache]
    world.pass_time(10.0)
    assert world.drops == bare
    world.pass_time(89.0)
    assert world.drops == bare
    world.pass_time(1.0)
    assert len(world.drops) == 2
    # None of them is given anything, though it is still there.
    world.submit(world.source(1))
    assert not world.running()


def test_beats_show_what_executors_hold(world):
    world.core.heard("a", Beat(10, 20, {}), 0.0)
    view = world.core.view(0.0)
    assert (view.executors[0].memory_bytes, view.executors[0].disk_bytes) == (10, 20)


def test_views_tell_how_jobs_and_stages_stand(world):
    job = world.submit(world.shuffled(world.source(3), 2))
    world.finish(*world.running()[0])
    view = world.core.view(world.now_s)
    assert [(each.number, each.status, each.stages) for each in view.jobs] == [
        (job, "RUNNING", (1, 2))
    ]
    waiting, active = sorted(view.stages, key=lambda each: each.id)
    assert (waiting.status, waiting.reads) == ("WAITING", (1,))
    assert (active.status, active.total, active.done, active.running) == ("ACTIVE", 3, 1, 2)
    world.finish_all()
    view = world.core.view(world.now_s)
    assert view.jobs[0].status == "SUCCEEDED"
    assert {each.status for each in view.stages} == {"COMPLETE"}
    assert all(each.jobs == (job,) for each in view.stages)


@pytest.mark.parametrize(
    ("name", "value"),
    [("max_failures", 0), ("twin_quantile", 2.0), ("idle_s", -1.0), ("max_result_bytes", -1)],
)
def test_rules_that_make_no_sense_are_refused(name, value):
    with pytest.raises(InvalidValue, match=name):
        Rules(**{name: value})
