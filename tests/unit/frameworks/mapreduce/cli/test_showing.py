"""Jobs and tasks as people see them: lines while they run, tables, the end."""

import pytest

from frameworks.mapreduce import report
from frameworks.mapreduce.cli import display, rows, status
from frameworks.mapreduce.core.views import AttemptView, JobView, PhaseView, TaskView, Trouble
from frameworks.mapreduce.work import Failure

JOB = "job_20261128141500_0001"


def view(state="running", **more):
    fields = {
        "job_id": JOB,
        "name": "words",
        "user": "u",
        "priority": "normal",
        "output": "file:///out",
        "state": state,
        "submitted_s": 100.0,
        "started_s": 101.0,
        "ended_s": 0.0,
        "maps": PhaseView(total=40, waiting=24, running=4, done=12, progress=0.345),
        "reduces": PhaseView(total=2, waiting=2),
    }
    return JobView(**{**fields, **more})


def attempt(number=0, state="running", **more):
    fields = {
        "attempt": f"attempt_20261128141500_0001_m_000000_{number}",
        "agent_id": "a",
        "hostname": "node-1",
        "worker_id": "w",
        "locality": "host",
        "state": state,
        "twin": False,
        "launched_s": 100.0,
        "started_s": 102.0,
        "progress": 0.5,
    }
    return AttemptView(**{**fields, **more})


def task(state, *attempts, number=0):
    return TaskView(
        task_id=f"task_20261128141500_0001_m_{number:06}",
        kind="map",
        number=number,
        state=state,
        where="file:///in bytes 0 to 9",
        failures=0,
        attempts=attempts,
    )


FAILURE = Failure(
    blame="program",
    message="exit code 1",
    details="Traceback (most recent call last):\nValueError: no",
    where="file:///in bytes 0 to 9",
    log="/logs/x",
)


# ---- While it runs -----------------------------------------------------------------------


def lines_of(capsys):
    return capsys.readouterr().err.splitlines()


def test_lines_come_when_something_has_changed_but_not_all_the_time(capsys):
    now = [0.0]
    shown = display.Lines(lambda: now[0])
    for at, done in ((10.0, 12), (11.0, 13), (16.0, 13), (30.0, 13)):
        now[0] = at
        shown.update(view(maps=PhaseView(total=40, running=4, done=done, progress=0.3)), ())
    said = lines_of(capsys)
    assert len(said) == 2
    assert said[0].startswith("mapreduce: map 30% (12 of 40 done, 4 running); reduce 0%")
    assert "13 of 40" in said[1]


def test_a_failed_attempt_is_said_once_with_its_host(capsys):
    shown = display.Lines(lambda: 0.0)
    failed = [task("running", attempt(state="failed", failure=FAILURE), attempt(1))]
    shown.update(view(), failed)
    shown.update(view(), failed)
    said = [line for line in lines_of(capsys) if "has failed" in line]
    assert said == [
        "mapreduce: attempt_20261128141500_0001_m_000000_0 on node-1 has failed: exit code 1"
    ]


def test_what_it_waits_for_is_said_when_it_changes(capsys):
    shown = display.Lines(lambda: 0.0)
    for _ in range(3):
        shown.update(view(waiting_for="needs 8192 MB, largest offer seen 4096 MB"), ())
    assert sum("needs 8192 MB" in line for line in lines_of(capsys)) == 1


def test_the_end_of_a_failed_job_begins_with_what_the_program_said(capsys):
    cause = attempt(state="failed", failure=FAILURE)
    sibling = attempt(1, state="killed", why=f"stopped since {cause.attempt} had failed")
    display.Quiet().end(
        view("failed", failure=FAILURE, failed_attempt=cause.attempt, failed_host="node-1"),
        [task("failed", cause), task("waiting", sibling, number=1)],
    )
    said = lines_of(capsys)
    assert said[:2] == ["Traceback (most recent call last):", "ValueError: no"]
    assert said[3:] == [
        f"{JOB} has failed: exit code 1",
        "  input:   file:///in bytes 0 to 9",
        f"  attempt: {cause.attempt}",
        "  host:    node-1",
        "  log:     /logs/x",
        f"  stopped because of it: {sibling.attempt}",
    ]


def test_the_end_of_a_good_job_has_the_output_and_counters():
    counters = {
        "org.apache.hadoop.mapreduce.TaskCounter": {"MAP_INPUT_RECORDS": 5000},
        "mine": {"b": 2, "a": 1},
    }
    said = display.end_lines(view("succeeded", ended_s=102.0, counters=counters))
    assert said[0] == f"mapreduce: {JOB} succeeded after 2.0 s (2,500 records/s): file:///out"
    assert said[1:5] == ["Counters:", "  mine", "    a=1", "    b=2"]


def test_a_terminal_gets_bars_that_go_away():
    bars = display.Bars(lambda: 0.0)
    bars.begin(JOB)
    bars.update(view(), ())
    bars.end(view("succeeded", ended_s=102.0), ())


@pytest.mark.parametrize(
    ("phase", "words"),
    [
        (
            PhaseView(total=4, done=1, running=2, eta_s=75.0),
            "1 of 4 done, 2 running, 1 min 15 s left",
        ),
        (PhaseView(total=4, done=1, waiting=3), "1 of 4 done, 3 waiting"),
        (PhaseView(total=4, done=4, attempts_failed=1), "4 of 4 done, 1 attempt failed"),
    ],
)
def test_words_beside_a_bar(phase, words):
    assert display.bar_words(view(), phase) == words


def test_a_rate_is_of_the_time_in_which_records_came():
    rate = display.Rate("MAP_INPUT_RECORDS")
    group = "org.apache.hadoop.mapreduce.TaskCounter"
    assert rate.told(view(), 100.0) == ""
    counters = {group: {"MAP_INPUT_RECORDS": 4000}}
    assert rate.told(view(counters=counters), 102.0) == "2,000 records/s"


# ---- Tables ----------------------------------------------------------------------------------


def test_a_task_is_shown_by_the_attempt_that_counts():
    row = rows.task_row(
        task("running", attempt(state="failed", failure=FAILURE), attempt(1)), 105.0
    )
    assert (row["attempts"], row["host"], row["done"], row["time"]) == (2, "node-1", "50%", "3.0s")
    assert row["note"] == "exit code 1"
    done = rows.task_row(task("done", attempt(state="done", ended_s=110.0)), 200.0)
    assert (done["done"], done["time"], done["note"]) == ("100%", "8.0s", "")


def test_a_task_that_nobody_has_begun_has_no_host():
    row = rows.task_row(task("waiting"), 105.0)
    assert (row["host"], row["attempts"], row["time"]) == ("", 0, "")


def test_tasks_of_note_come_first():
    found = status.of_note([task("done"), task("waiting", number=1), task("failed", number=2)])
    assert [each.state for each in found] == ["failed", "waiting", "done"]


def test_a_job_as_a_whole(capsys):
    maps = PhaseView(total=4, done=4, on_host=3, on_rack=0, elsewhere=1, progress=1.0)
    status.show_job(view(maps=maps, waiting_for="no offers"), [task("done", attempt())], 105.0)
    shown = capsys.readouterr().out
    assert f"{JOB}  words" in shown
    assert "75% of 4 attempts on a host that has the input" in shown
    assert "no offers" in shown
    assert "map 0" in shown


def test_a_job_in_a_list():
    row = rows.job_row(view("failed", why="exit code 1\nmore"), 130.0)
    assert (row["map_words"], row["note"], row["age"]) == ("12/40", "exit code 1", "30s")
    assert rows.job_json(view())["maps"]["total"] == 40


def test_an_output_that_cannot_be_written_is_no_secret(capsys):
    """What, why, since when, how often, when next: in the table, the status and while it runs."""
    trouble = Trouble(
        what="completing it",
        why="OSError: away",
        tries=7,
        since_s=60.0,
        next_s=110.0,
        until_s=660.0,
    )
    since, until = report.clock(60.0), report.clock(660.0)
    facts = f"7 tries since {since}, next in 8 s, given up after {until}"
    words = f"completing it fails: OSError: away ({facts})"
    found = view("finishing", trouble=trouble)
    assert rows.job_row(found, 102.0)["note"] == f"output: {words}"
    status.show_job(found, [], 102.0)
    assert f"trouble:   {words}" in capsys.readouterr().out
    now_s = [102.0]
    shown = display.Lines(lambda: now_s[0])
    for later_s in (0.0, 1.0, 60.0):
        now_s[0] += later_s
        shown.update(found, ())
    said = [line for line in capsys.readouterr().err.splitlines() if "completing" in line]
    assert said[0] == f"mapreduce: output file:///out: {words}"
    assert len(said) == 2
