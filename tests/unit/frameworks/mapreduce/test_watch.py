"""Staying with a job: until it ends, until it is to end, and while its tracker is away."""

import os
import signal

from frameworks.mapreduce.core.views import JobView, PhaseView
from frameworks.mapreduce.watch import Display, Interrupts, interrupts, watch
from mesos_py.errors import Unavailable

JOB = "job_20261128141500_0001"


def view(state, failed=0):
    return JobView(
        job_id=JOB,
        name="n",
        user="u",
        priority="normal",
        output="o",
        state=state,
        submitted_s=0,
        started_s=0,
        ended_s=0,
        maps=PhaseView(total=1, attempts_failed=failed),
        reduces=PhaseView(total=0),
    )


class Job:
    """Answers with `views`, the last one for good; an error among them is raised."""

    job_id = JOB

    def __init__(self, *views, until_killed=False):
        self.views = list(views)
        self.until_killed = until_killed
        self.killed = []
        self.tasks_asked = 0

    def status(self):
        if self.killed and self.until_killed:
            return view("killed")
        found = self.views.pop(0) if len(self.views) > 1 else self.views[0]
        if isinstance(found, Exception):
            raise found
        return found

    def tasks(self):
        self.tasks_asked += 1
        return ("tasks",)

    def kill(self, why):
        self.killed.append(why)


class Told(Display):
    def __init__(self):
        self.calls = []

    def begin(self, job_id):
        self.calls.append(("begin", job_id))

    def update(self, view, tasks):
        self.calls.append(("update", view.state, tasks))

    def note(self, text):
        self.calls.append(("note", text))

    def end(self, view, tasks):
        self.calls.append(("end", view.state, tasks))

    def notes(self):
        return [call[1] for call in self.calls if call[0] == "note"]


def test_it_ends_with_the_job():
    display = Told()
    found = watch(Job(view("running"), view("succeeded")), display, Interrupts())
    assert found is not None
    assert found.state == "succeeded"
    assert [call[0] for call in display.calls] == ["begin", "update", "update", "end"]
    assert display.calls[-1] == ("end", "succeeded", ("tasks",))


def test_tasks_are_asked_for_only_when_more_attempts_have_failed():
    job = Job(view("running"), view("running", 1), view("running", 1), view("succeeded", 1))
    display = Told()
    watch(job, display, Interrupts())
    assert [call[2] for call in display.calls if call[0] == "update"] == [(), ("tasks",), (), ()]
    assert job.tasks_asked == 2


def test_a_tracker_that_is_away_is_asked_until_it_answers():
    away = Unavailable("no answer")
    display = Told()
    found = watch(Job(away, away, view("succeeded")), display, Interrupts())
    assert found is not None
    assert found.state == "succeeded"
    assert display.notes() == [
        "the tracker does not answer, asking on: no answer",
        "the tracker answers again",
    ]


def test_a_signal_kills_the_job_once_and_says_so():
    asked, display = Interrupts(), Told()
    asked.asked(signal.SIGINT, None)
    job = Job(view("running"), until_killed=True)
    found = watch(job, display, asked)
    assert found is not None
    assert found.state == "killed"
    assert job.killed == ["its user ended it (SIGINT)"]
    assert f"SIGINT: killing {JOB}; once more: do not wait" in display.notes()


def test_a_second_signal_does_not_wait():
    asked, display = Interrupts(), Told()
    asked.asked(signal.SIGINT, None)
    asked.asked(signal.SIGINT, None)
    job = Job(view("stopping"))
    assert watch(job, display, asked) is None
    assert job.killed


class Closed(Told):
    """A terminal that was closed."""

    def note(self, *what):
        raise OSError(5, "Input/output error")

    begin = update = end = note


def test_a_job_is_killed_although_nobody_reads_that_it_is():
    asked = Interrupts()
    asked.asked(signal.SIGHUP, None)
    job = Job(view("running"), until_killed=True)
    found = watch(job, Closed(), asked)
    assert found is not None
    assert found.state == "killed"
    assert job.killed == ["its user ended it (SIGHUP)"]


def test_signals_are_counted_inside_and_are_as_before_outside():
    before = signal.getsignal(signal.SIGTERM)
    with interrupts() as asked:
        os.kill(os.getpid(), signal.SIGTERM)
        asked.wait(5)
    assert asked.numbers == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGTERM) is before


def test_who_ignores_a_signal_goes_on_ignoring_it():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interrupts():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
