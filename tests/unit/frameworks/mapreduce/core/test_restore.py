"""A brain that continues from the journal of another one."""

import pytest

from frameworks.mapreduce.core.brain import Brain
from frameworks.mapreduce.core.journal import Committed, Launched, Submitted, WorkerGone, job_of
from frameworks.mapreduce.core.orders import FinishJob
from frameworks.mapreduce.messages import Forget, Progress
from mesos_py.errors import InvalidValue
from tests.kit.mapreduce_brain import Shell, job_id, options, spec, splits


def attempt(kind: str, task: int, number: int = 0) -> str:
    return f"attempt_1_0001_{kind}_{task:06}_{number}"


def shell_with(agents: int = 1, cpus: float = 2.1) -> Shell:
    shell = Shell(options())
    for n in range(agents):
        shell.agent(f"a{n}", cpus=cpus)
    return shell


def test_what_was_launched_runs_on_and_what_was_done_is_done():
    shell = shell_with()
    shell.submit(spec(reduces=1), splits(3))
    shell.offer()
    shell.finish(attempt("m", 0))
    shell.fail(attempt("m", 1))
    shell.offer_all()
    before = shell.brain.view(job_id())
    shell.restart()
    after = shell.brain.view(job_id())
    assert (after.maps, after.reduces, after.state) == (before.maps, before.reduces, "running")
    assert sorted(shell.brain.attempts()) == sorted((name, "a0") for name in shell.running())
    shell.finish(*shell.running())
    shell.run()
    view = shell.brain.view(job_id())
    assert (view.state, view.maps.attempts_failed) == ("succeeded", 1)
    assert len(set(shell.launched)) == len(shell.launched)


def test_commits_and_finishes_that_were_not_confirmed_are_ordered_again():
    shell = shell_with()
    shell.submit(spec(reduces=0), splits(1))
    shell.offer()
    shell.finish(*shell.running())
    [commit] = shell.commits
    shell.restart()
    assert shell.commits == [commit]
    shell.commit()
    shell.restart()
    assert shell.finishes == [FinishJob(job_id(), "succeeded", None)]
    shell.complete()
    shell.restart()
    assert (shell.commits, shell.finishes) == ([], [])
    assert shell.brain.view(job_id()).state == "succeeded"


def test_a_job_that_was_being_stopped_is_stopped():
    shell = shell_with()
    shell.submit(spec(), splits(2))
    shell.offer()
    shell.fail(attempt("m", 0), blame="job", message="SyntaxError")
    shell.restart()
    assert shell.killed == [attempt("m", 1)]
    shell.end_killed()
    [order] = shell.finishes
    assert (order.outcome, order.failure and order.failure.message) == ("failed", "SyntaxError")


def test_attempts_that_outlive_their_job_are_killed():
    shell = shell_with()
    shell.submit(spec(), splits(1))
    shell.offer()
    shell.brain.kill(job_id(), "", shell.now_s)
    shell.drain()
    shell.tick(shell.options.stop_s)
    shell.complete()
    assert shell.brain.view(job_id()).state == "killed"
    shell.restart()
    assert shell.killed == [attempt("m", 0)]
    assert shell.finishes == []


def test_a_failure_that_was_written_down_without_its_consequence_has_it():
    shell = shell_with()
    shell.submit(spec(mapreduce__map__maxattempts="1"), splits(2))
    shell.offer()
    shell.fail(attempt("m", 0))
    # The tracker died between two lines of its journal.
    assert b"Stopping" in shell.journal[-1]
    brain = Brain(options())
    brain.restore(shell.records()[:-1], shell.now_s)
    assert brain.view(job_id()).state == "stopping"


def test_twins_are_ended_that_were_not():
    shell = shell_with(agents=2)
    shell.submit(spec(), splits(1))
    shell.offer()
    before = shell.records()
    twin = Launched(attempt("m", 0, 1), "a1", "a1.example", "worker-2", "any", True, shell.now_s)
    shell.finish(attempt("m", 0))
    brain = Brain(options())
    brain.restore([*before, twin, *shell.records()[len(before) :]], shell.now_s)
    killed = [getattr(order, "attempt", "") for order in brain.take_orders()]
    assert attempt("m", 0, 1) in killed


def test_a_worker_of_which_nothing_is_known_may_have_to_be_started_again():
    shell = shell_with(cpus=2.1)
    shell.submit(spec(reduces=0), splits(4))
    shell.offer()
    shell.finish(*shell.running())
    shell.commit()
    shell.restart()
    # 2 cores are free beside the worker; if it is gone, its own room must come out of these.
    shell.offer_all()
    assert len(shell.running()) == 1
    shell.brain.said("a0", Progress(attempts={}), shell.now_s)
    shell.offer_all()
    assert len(shell.running()) == 2
    assert shell.agents["a0"].workers == {"worker-1"}


def test_workers_are_released_and_files_forgotten_as_if_nothing_had_been():
    shell = shell_with()
    shell.submit(spec(reduces=1), splits(1))
    shell.run()
    shell.restart()
    for _ in range(5):
        shell.tick(1)
    assert Forget(job_id()) in shell.messages()
    for _ in range(100):
        shell.tick(1)
    assert shell.released == ["worker-1"]
    shell.restart()
    assert shell.brain.agents() == []


def test_names_of_workers_are_not_given_again():
    shell = shell_with()
    shell.submit(spec(reduces=0), splits(1))
    shell.run()
    for _ in range(100):
        shell.tick(1)
    shell.restart()
    shell.submit(spec(2, 0), splits(1))
    shell.offer_all()
    assert shell.agents["a0"].workers == {"worker-2"}


def test_journals_of_several_jobs_may_be_read_one_after_the_other():
    shell = shell_with(agents=2)
    shell.submit(spec(1), splits(2))
    shell.offer()
    shell.tick(1)
    shell.submit(spec(2), splits(2))
    shell.finish(*shell.running())
    shell.tick(1)
    shell.offer_all()
    records = shell.records()
    parted = [
        record
        for job in (None, job_id(2), job_id(1))
        for record in records
        if job_of(record) == job
    ]
    brain = Brain(options())
    brain.restore(parted, shell.now_s)
    assert [view.job_id for view in brain.views()] == [job_id(1), job_id(2)]
    assert brain.views() == shell.brain.views()


def test_time_does_not_run_backwards():
    shell = shell_with()
    shell.submit(spec(), splits(1))
    brain = Brain(options())
    brain.restore(shell.records(), shell.now_s - 500)
    brain.kill(job_id(), "", shell.now_s - 400)
    assert brain.view(job_id()).submitted_s == shell.now_s


@pytest.mark.parametrize(
    ("records", "why"),
    [
        ([Committed(attempt("m", 0), 0.0)], "was not submitted"),
        ([Submitted(spec(), tuple(splits(1)), 0.0)] * 2, "is there twice"),
        ([Submitted(spec(), (), 0.0), Committed(attempt("m", 0), 1.0)], "the job has 0 of these"),
        ([Committed("nonsense", 0.0)], "is not the name of an attempt"),
    ],
)
def test_records_that_contradict_each_other_are_refused(records, why):
    with pytest.raises(InvalidValue, match=why):
        Brain(options()).restore(records, 0.0)


def test_records_are_of_jobs_but_those_of_workers():
    assert job_of(WorkerGone("a0", "worker-1", 0.0)) is None
    assert job_of(Committed(attempt("m", 0), 0.0)) == job_id()
    with pytest.raises(InvalidValue):
        job_of(Committed("nonsense", 0.0))
