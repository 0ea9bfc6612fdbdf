"""The brain as its shell sees it: whole jobs, from submission to their end."""

import msgspec
import pytest

from frameworks.mapreduce.core.brain import Brain
from frameworks.mapreduce.core.orders import Finished, FinishJob, Killed, Launch, Lost, Preempted
from frameworks.mapreduce.core.views import JobView
from frameworks.mapreduce.work import MapDone
from mesos_py.errors import AlreadyExists, Conflict, InvalidValue, NotFound
from tests.kit.mapreduce_brain import Shell, job_id, options, spec, splits


def shell_with(agents: int = 1, cpus: float = 2.1) -> Shell:
    shell = Shell(options())
    for n in range(agents):
        shell.agent(f"a{n}", cpus=cpus)
    return shell


def test_maps_then_reduces_then_the_parts_are_committed_and_the_job_succeeds():
    shell = shell_with()
    job = shell.submit(spec(reduces=2), splits(3))
    assert shell.asks
    shell.offer()
    assert [name[-10:] for name in shell.launched] == ["m_000000_0", "m_000001_0"]
    shell.finish(*shell.running())
    shell.offer_all()
    # The third map is alone: reduces start when all maps are done.
    assert shell.running() == [f"attempt_{job[4:]}_m_000002_0"]
    shell.finish(*shell.running())
    shell.offer_all()
    assert len(shell.running()) == 2
    reduce = shell.launch_of[shell.running()[0]]
    assert reduce.work.maps == 3
    assert reduce.work.out == f"/out/1/_temporary/{reduce.attempt}/part-00000"
    shell.finish(*shell.running())
    assert [order.part_url for order in shell.commits] == [
        f"/out/1/_temporary/attempt_{job[4:]}_r_00000{n}_0/part-0000{n}" for n in (0, 1)
    ]
    assert not shell.finishes
    shell.commit()
    assert shell.finishes == [FinishJob(job, "succeeded", None)]
    assert shell.brain.view(job).state == "finishing"
    shell.complete()
    view = shell.brain.view(job)
    assert view.state == "succeeded"
    assert view.counters["g"] == {"maps": 3, "reduces": 2}
    assert (view.maps.done, view.reduces.done) == (3, 2)
    assert not shell.asks


def test_maps_without_reduces_are_committed():
    shell = shell_with()
    shell.submit(spec(reduces=0, test__ext=".gz"), splits(1))
    shell.offer()
    [name] = shell.running()
    assert shell.launch_of[name].work.out == f"/out/1/_temporary/{name}/part-00000.gz"
    shell.finish(name)
    assert shell.commits
    shell.commit()
    shell.complete()
    assert shell.brain.view(job_id()).state == "succeeded"


def test_a_job_without_input_has_empty_parts():
    shell = shell_with()
    shell.submit(spec(reduces=1), [])
    shell.run()
    assert shell.launched == ["attempt_1_0001_r_000000_0"]
    assert shell.brain.view(job_id()).state == "succeeded"


def test_a_job_without_anything_to_do_is_done():
    shell = shell_with()
    shell.submit(spec(reduces=0), [])
    shell.complete()
    assert shell.brain.view(job_id()).state == "succeeded"


def test_an_attempt_that_ends_twice_ended_once():
    shell = shell_with()
    shell.submit(spec(reduces=0), splits(1))
    shell.offer()
    [name] = shell.running()
    shell.finish(name)
    shell.finish(name)
    shell.fail(name)
    assert len(shell.commits) == 1
    assert shell.brain.view(job_id()).maps.attempts_failed == 0


def test_a_failed_task_is_tried_again_until_its_limit_and_the_first_cause_is_kept():
    shell = shell_with(agents=2)
    shell.submit(spec(mapreduce__map__maxattempts="2"), splits(3))
    shell.offer()
    first = shell.running()[0]
    shell.fail(first, message="ValueError: line 37")
    assert shell.brain.view(job_id()).state == "running"
    shell.offer_all()
    again = first[:-1] + "1"
    assert again in shell.running()
    siblings = [name for name in shell.running() if name != again]
    shell.fail(again, message="ValueError: line 37 again")
    view = shell.brain.view(job_id())
    assert view.state == "stopping"
    assert view.failure is not None
    assert view.failure.message == "ValueError: line 37 again"
    assert view.failed_attempt == again
    assert sorted(shell.killed) == sorted(siblings)
    # A sibling that fails because it is ended is no cause, and no failure.
    shell.fail(siblings[0], message="Broken pipe")
    assert not shell.finishes
    shell.end_killed()
    assert [(order.outcome, order.failure) for order in shell.finishes] == [
        ("failed", view.failure)
    ]
    shell.complete()
    view = shell.brain.view(job_id())
    assert (view.state, view.failed_attempt) == ("failed", again)
    states = {
        attempt.attempt: (attempt.state, attempt.why)
        for task in shell.brain.tasks(job_id())
        for attempt in task.attempts
    }
    assert states[siblings[0]] == ("killed", f"stopped because {again} has failed")
    assert view.maps.attempts_failed == 2


def test_blame_job_fails_the_job_at_once():
    shell = shell_with()
    shell.submit(spec(), splits(5))
    shell.offer()
    shell.fail(shell.running()[0], blame="job", message="SyntaxError")
    assert shell.brain.view(job_id()).state == "stopping"
    shell.end_killed()
    assert shell.finishes
    assert len(shell.launched) == 2


def test_some_maps_may_fail_for_good():
    shell = shell_with()
    made = spec(mapreduce__map__failures__maxpercent="50", mapreduce__map__maxattempts="1")
    shell.submit(made, splits(2))
    shell.offer()
    shell.fail(shell.running()[0])
    assert shell.brain.view(job_id()).state == "running"
    shell.run()
    view = shell.brain.view(job_id())
    assert (view.state, view.maps.failed, view.maps.done) == ("succeeded", 1, 1)


@pytest.mark.parametrize("end", [Lost("gone"), Preempted("taken"), Killed("by hand")])
def test_what_is_not_its_fault_does_not_count(end):
    shell = shell_with()
    shell.submit(spec(reduces=0, mapreduce__map__maxattempts="1"), splits(1))
    for _ in range(5):
        shell.offer_all()
        [name] = shell.running()
        shell.end(name, end)
    shell.offer_all()
    assert shell.running() == ["attempt_1_0001_m_000000_5"]
    assert shell.brain.tasks(job_id())[0].failures == 0
    shell.run()
    assert shell.brain.view(job_id()).state == "succeeded"


def test_a_killed_job_ends_when_its_attempts_have():
    shell = shell_with()
    shell.submit(spec(), splits(5))
    shell.offer()
    shell.brain.kill(job_id(), "no longer wanted", shell.now_s)
    shell.drain()
    assert len(shell.killed) == 2
    assert not shell.finishes
    shell.brain.kill(job_id(), "once more", shell.now_s)
    shell.end_killed()
    assert shell.finishes == [FinishJob(job_id(), "killed", None)]
    shell.complete()
    assert shell.brain.view(job_id()).why == "no longer wanted"


def test_a_killed_job_ends_when_its_commits_have_been_answered():
    shell = shell_with()
    shell.submit(spec(reduces=0), splits(2))
    shell.offer()
    first, second = shell.running()
    shell.finish(first)
    shell.brain.kill(job_id(), "", shell.now_s)
    shell.drain()
    shell.end(second, Killed("by us"))
    assert not shell.finishes
    shell.commit()
    assert shell.finishes


def test_a_job_does_not_wait_for_ever_for_its_attempts_to_end():
    shell = shell_with()
    shell.submit(spec(), splits(1))
    shell.offer()
    shell.brain.kill(job_id(), "", shell.now_s)
    shell.drain()
    shell.tick(shell.options.stop_s - 1)
    assert not shell.finishes
    shell.tick(1)
    assert shell.finishes


def test_a_part_that_is_not_there_is_made_once_more():
    shell = shell_with()
    shell.submit(spec(reduces=0), splits(1))
    shell.offer()
    shell.finish(*shell.running())
    [order] = shell.commits
    shell.commits.clear()
    shell.brain.commit_failed(job_id(), "map", 0, "no such file", shell.now_s)
    shell.drain()
    view = shell.brain.view(job_id())
    assert (view.maps.waiting, view.maps.attempts_failed) == (1, 1)
    shell.brain.committed(order.job_id, order.kind, order.task, shell.now_s)
    shell.run()
    assert shell.brain.view(job_id()).state == "succeeded"
    assert shell.launched[-1].endswith("_1")


def without_part(shell: Shell, lazy: bool) -> JobView:
    made = msgspec.structs.replace(spec(reduces=0), lazy_output=lazy)
    shell.submit(made, splits(1))
    shell.offer()
    [name] = shell.running()
    shell.end(name, Finished(MapDone(part=-1)))
    assert shell.commits == []
    return shell.brain.view(job_id())


def test_where_output_is_lazy_a_task_without_a_part_is_done():
    shell = shell_with()
    assert without_part(shell, lazy=True).maps.done == 1
    assert shell.finishes
    shell.restart()
    assert shell.commits == []
    assert [order.outcome for order in shell.finishes] == ["succeeded"]


def test_elsewhere_a_task_without_a_part_is_a_failure_of_the_place():
    view = without_part(shell_with(), lazy=False)
    assert (view.maps.done, view.maps.attempts_failed) == (0, 1)


def test_results_that_contradict_the_job_are_failures_of_the_place():
    shell = shell_with()
    shell.submit(spec(reduces=2), splits(1))
    shell.offer()
    [name] = shell.running()
    other = Shell(options())
    other.agent_of[name] = "a0"
    other.brain.submit(spec(reduces=3), splits(1), 0)
    shell.done = other.done  # type: ignore[method-assign]
    shell.finish(name)
    [task] = shell.brain.tasks(job_id(), kind="map")
    failure = task.attempts[0].failure
    assert failure is not None
    assert failure.message == "the worker's output has 3 partitions, not 2"
    assert failure.blame == "place"


def test_each_offer_of_an_agent_is_used_together_and_answered_once():
    shell = shell_with()
    shell.submit(spec(reduces=0), splits(4))
    [room] = shell.rooms()
    half = type(room)("h1", "a0", room.hostname, "", shell.options.worker_needs)
    rest = type(room)("h2", "a0", room.hostname, "", room.resources - half.resources)
    shell.brain.offers([half, rest, half], shell.now_s)
    orders = [order for order in shell.brain.take_orders() if isinstance(order, Launch)]
    assert [order.offer_ids for order in orders] == [("h1", "h2")]
    assert len(orders[0].starts) == 2


def test_few_tasks_spread_over_agents():
    shell = shell_with(agents=3)
    shell.submit(spec(), splits(3))
    shell.offer()
    assert sorted(shell.agent_of.values()) == ["a0", "a1", "a2"]


def test_what_was_submitted_wrongly_is_refused_and_leaves_nothing():
    brain = Brain(options())
    with pytest.raises(InvalidValue, match="maxattempts"):
        brain.submit(spec(mapreduce__map__maxattempts="none"), splits(1), 0)
    assert brain.views() == []
    assert brain.take_orders() == []
    brain.submit(spec(), splits(1), 0)
    with pytest.raises(AlreadyExists):
        brain.submit(spec(), splits(1), 0)
    with pytest.raises(NotFound):
        brain.view(job_id(2))
    with pytest.raises(Conflict):
        brain.drop(job_id())


def test_a_dropped_job_is_forgotten():
    shell = shell_with()
    shell.submit(spec(), [])
    shell.run()
    shell.brain.drop(job_id())
    assert shell.brain.views() == []
    shell.submit(spec(), [])


# ---- Many jobs -----------------------------------------------------------------------------


def running_by_job(shell: Shell) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in shell.running():
        counts[name[8:14]] = counts.get(name[8:14], 0) + 1
    return counts


def test_jobs_share_by_weight():
    shell = Shell(options())
    shell.agent("a0", cpus=6.1, mem=4096)
    shell.submit(spec(1, 0), splits(10))
    shell.submit(spec(2, 0, mapreduce__job__priority="high"), splits(10))
    shell.offer()
    assert running_by_job(shell) == {"1_0001": 2, "1_0002": 4}


def test_the_oldest_comes_first():
    shell = Shell(options(order="fifo"))
    shell.agent("a0", cpus=6.1, mem=4096)
    shell.submit(spec(1, 0), splits(4))
    shell.submit(spec(2, 0, mapreduce__job__priority="high"), splits(10))
    shell.offer()
    assert running_by_job(shell) == {"1_0001": 4, "1_0002": 2}


def test_the_highest_comes_first():
    shell = Shell(options(order="priority"))
    shell.agent("a0", cpus=6.1, mem=4096)
    shell.submit(spec(1, 0), splits(10))
    shell.submit(spec(2, 0, mapreduce__job__priority="high"), splits(10))
    shell.offer()
    assert running_by_job(shell) == {"1_0002": 6}


def test_a_small_job_does_not_wait_behind_a_large_one():
    shell = shell_with(cpus=2.1)
    shell.submit(spec(1, 0), splits(500))
    shell.offer()
    shell.submit(spec(2, 0), splits(1))
    shell.finish(shell.running()[0])
    shell.offer()
    assert "attempt_1_0002_m_000000_0" in shell.running()


def test_of_jobs_submitted_in_a_burst_none_is_left_behind():
    shell = shell_with(agents=4)
    for number in range(1, 301):
        shell.submit(spec(number, number % 2), splits(1, [("a1",)]))
        if number % 50 == 0:
            shell.offer()
    for _ in range(400):
        # Offers are made only where what was declined before has run out.
        shell.offer()
        shell.finish(*shell.running())
        shell.commit()
        shell.complete()
        shell.tick(0.5)
    assert {view.state for view in shell.brain.views()} == {"succeeded"}
    assert not shell.asks


def test_a_new_job_is_offered_what_was_declined_before():
    shell = shell_with(cpus=2.1)
    shell.submit(spec(1, 0, mapreduce__map__memory__mb="9000"), splits(1))
    shell.offer()
    assert shell.rooms() == []
    shell.submit(spec(2, 0), splits(1))
    shell.offer()
    assert running_by_job(shell) == {"1_0002": 1}
