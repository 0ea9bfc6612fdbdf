"""A job in this process is shown as a tracker shows its own."""

from frameworks.mapreduce import report
from frameworks.mapreduce.client.book import Book, summed
from frameworks.mapreduce.job import JobSpec, Program
from frameworks.mapreduce.messages import Running
from frameworks.mapreduce.work import Failure, MapDone, ReduceDone

JOB = "job_20261128141500_0001"


def attempt(kind, task, number=0):
    return f"attempt_20261128141500_0001_{kind}_{task:06}_{number}"


def book():
    spec = JobSpec(
        job_id=JOB,
        name="n",
        user="u",
        inputs=("in",),
        output="file:///out",
        mapper=Program(command="cat"),
        submitted_s=10.0,
    )
    made = Book(spec)
    made.planned(2, 1)
    return made


FAILURE = Failure(blame="program", message="exit code 1", details="Traceback", where="in:0+5")


def test_nothing_has_started():
    view = book().view()
    assert (view.state, view.maps.total, view.maps.waiting, view.reduces.total) == (
        "running",
        2,
        2,
        1,
    )
    assert view.maps.progress == 0.0


def test_progress_is_the_mean_of_tasks_and_counters_are_of_done_and_running():
    made = book()
    made.started(attempt("m", 0), 11.0)
    made.started(attempt("m", 1), 11.0)
    made.moved(attempt("m", 0), Running(progress=0.5, counters={"g": {"n": 2}}))
    made.ended(attempt("m", 1), MapDone(counters={"g": {"n": 3}}), 12.0)
    view = made.view()
    assert view.maps.progress == 0.75
    assert (view.maps.done, view.maps.running) == (1, 1)
    assert view.counters == {"g": {"n": 5}}


def test_a_failed_attempt_counts_and_the_task_waits_again():
    made = book()
    made.started(attempt("m", 0), 11.0)
    made.ended(attempt("m", 0), FAILURE, 12.0)
    view = made.view()
    assert (view.maps.attempts_failed, view.maps.waiting) == (1, 2)
    made.started(attempt("m", 0, 1), 12.0)
    assert made.view().maps.running == 1
    assert made.tasks()[0].failures == 1


def test_the_cause_is_kept_apart_from_what_was_stopped_because_of_it():
    made = book()
    for number in (0, 1):
        made.started(attempt("m", number), 11.0)
    made.ended(attempt("m", 0), FAILURE, 12.0)
    made.ended(attempt("m", 1), None, 12.1)
    made.finished("failed", 13.0, cause=(attempt("m", 0), FAILURE))
    view, tasks = made.view(), made.tasks()
    assert (view.state, view.failed_attempt, view.why) == ("failed", attempt("m", 0), "exit code 1")
    assert [task.state for task in tasks] == ["failed", "waiting", "waiting"]
    assert [each.attempt for each in report.stopped_because(view, tasks)] == [attempt("m", 1)]
    lines = report.failure_lines(view, tasks)
    assert lines[0] == "Traceback"
    assert f"  attempt: {attempt('m', 0)}" in lines
    assert lines[-1] == f"  stopped because of it: {attempt('m', 1)}"


def test_success_has_the_counters_of_the_outcome():
    made = book()
    made.started(attempt("r", 0), 11.0)
    made.ended(attempt("r", 0), ReduceDone(part=1, counters={"g": {"n": 1}}), 12.0)
    made.finished("succeeded", 13.0, counters={"g": {"n": 9}})
    view = made.view()
    assert view.counters == {"g": {"n": 9}}
    assert view.ended_s == 13.0
    assert view.failure is None


def test_a_killed_job_has_killed_attempts():
    made = book()
    made.started(attempt("m", 0), 11.0)
    made.finished("killed", 12.0, why="by hand")
    assert made.view().why == "by hand"
    assert made.tasks()[0].attempts[0].state == "killed"


def test_an_attempt_that_nobody_started_is_ignored():
    made = book()
    made.moved(attempt("m", 0), Running(progress=1.0))
    made.ended(attempt("m", 0), FAILURE, 12.0)
    assert made.view().maps.attempts_failed == 0


def test_a_job_without_maps_is_done_with_them():
    made = book()
    made.planned(0, 0)
    assert summed({"a": {"x": 1}}, {"a": {"x": 1, "y": 2}}) == {"a": {"x": 2, "y": 2}}
