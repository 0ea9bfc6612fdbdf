"""What `hadoop jar` says of a job is what mrjob reads from it."""

import re

import pytest

from frameworks.mapreduce.core.views import AttemptView, JobView, PhaseView, TaskView
from frameworks.mapreduce.hadoop.log4j import Log, displayed
from frameworks.mapreduce.hadoop.tasklogs import TaskLogs
from frameworks.mapreduce.work import Failure
from tests.kit.mrjob_logs import pick_error, read_step, read_task_stderr, read_task_syslog

JOB = "job_20261128141500_0001"
ATTEMPT = "attempt_20261128141500_0001_m_000002_1"
TRACEBACK = 'Traceback (most recent call last):\n  File "m.py", line 37, in f\nValueError: no'


def view(state="running", **more):
    fields = {
        "job_id": JOB,
        "name": "n",
        "user": "u",
        "priority": "normal",
        "output": "file:///out",
        "state": state,
        "submitted_s": 1.0,
        "started_s": 1.0,
        "ended_s": 9.0,
        "maps": PhaseView(total=4, done=2, progress=0.5),
        "reduces": PhaseView(total=2),
    }
    return JobView(**{**fields, **more})


def failed_task(details=TRACEBACK, message="python3 m.py ended with exit code 1"):
    failure = Failure(
        blame="program",
        message=message,
        details=details,
        where="file:///in/a bytes 100 to 150",
        log="/logs/x",
    )
    attempt = AttemptView(
        attempt=ATTEMPT,
        agent_id="a",
        hostname="node-3",
        worker_id="w",
        locality="host",
        state="failed",
        twin=False,
        launched_s=1.0,
        ended_s=2.0,
        failure=failure,
    )
    return TaskView(
        task_id="task_20261128141500_0001_m_000002",
        kind="map",
        number=2,
        state="failed",
        where="",
        failures=1,
        attempts=(attempt,),
    )


def told(*steps, logs=None):
    """The lines, and what mrjob makes of them."""
    lines: list[str] = []
    log = Log(lines.append, "hdfs:///user/u/out", logs)
    for step in steps:
        step(log)
    text = "".join(lines)
    return text, read_step(text.splitlines(keepends=True))


def test_ids_progress_and_the_output_directory_are_found():
    text, found = told(
        lambda log: log.begin(JOB),
        lambda log: log.update(view(), ()),
        lambda log: log.end(view("succeeded"), ()),
    )
    assert found["job_id"] == JOB
    assert found["application_id"] == "application_20261128141500_0001"
    assert found["progress"]["map"] == 50
    assert found["progress"]["reduce"] == 0
    assert found["output_dir"] == "hdfs:///user/u/out"
    assert "errors" not in found
    assert "Streaming Command Failed!" not in text


def test_the_same_progress_is_said_once():
    text, _ = told(*[lambda log: log.update(view(), ())] * 3)
    assert text.count("map 50%") == 1
    assert text.count("number of splits:4") == 1


def test_counters_are_found_by_the_names_that_hadoop_shows():
    counters = {
        "org.apache.hadoop.mapreduce.TaskCounter": {"MAP_INPUT_RECORDS": 12},
        "my group": {"odd=name": 3, "two\nlines": 4},
    }
    _, found = told(lambda log: log.end(view("succeeded", counters=counters), ()))
    assert found["counters"] == {
        "Map-Reduce Framework": {"Map input records": 12},
        "my group": {"odd=name": 3, "two lines": 4},
    }


def test_only_our_own_counters_are_reworded():
    assert displayed({"words": {"MAP_INPUT_RECORDS": 1}}) == {"words": {"MAP_INPUT_RECORDS": 1}}


def test_a_failure_is_found_with_the_traceback():
    text, found = told(lambda log: log.end(view("failed", why="x"), [failed_task()]))
    (error,) = found["errors"]
    assert error["attempt_id"] == ATTEMPT
    assert TRACEBACK in error["hadoop_error"]["message"]
    assert "file:///in/a bytes 100 to 150" in error["hadoop_error"]["message"]
    assert text.endswith("Streaming Command Failed!\n")


def test_a_failure_is_told_once():
    text, _ = told(
        lambda log: log.update(view(), [failed_task()]),
        lambda log: log.update(view(), [failed_task()]),
        lambda log: log.end(view("succeeded"), [failed_task()]),
    )
    assert text.count("Status : FAILED") == 1


@pytest.mark.parametrize(
    "line",
    ["oops INFO a.b: c", "12 WARN x - y", "at WARN [main] x.y: z", "a ERROR x (y) - z"],
)
def test_a_line_of_the_users_that_looks_like_a_record_stays_in_its_own(line):
    _, found = told(lambda log: log.end(view("failed"), [failed_task(f"{line}\nlast")]))
    (error,) = found["errors"]
    message = error["hadoop_error"]["message"].replace("\u200b", "")
    assert f"{line}\nlast" in message


def test_a_killed_job_has_failed_for_hadoop():
    text, _ = told(lambda log: log.end(view("killed", why="by hand"), ()))
    assert "failed with state KILLED due to: by hand" in text
    assert text.endswith("Streaming Command Failed!\n")


# ---- Logs of tasks -------------------------------------------------------------------------


def test_the_log_of_a_failed_attempt_is_where_mrjob_looks_for_it(tmp_path):
    told(lambda log: log.end(view("failed"), [failed_task()]), logs=TaskLogs(tmp_path))
    where = tmp_path / "userlogs" / "application_20261128141500_0001" / ATTEMPT
    error = read_task_stderr((where / "stderr").read_text().splitlines(keepends=True))
    assert error["message"] == TRACEBACK
    syslog = read_task_syslog((where / "syslog").read_text().splitlines(keepends=True))
    assert syslog["hadoop_error"]["message"].startswith("python3 m.py ended with exit code 1\n")
    assert syslog["split"] == {"path": "file:///in/a", "start_line": 100, "num_lines": 50}


def test_the_traceback_is_kept_from_the_commands_that_sh_prints(tmp_path):
    details = f"{TRACEBACK}\n\n+ cd /x\n+ python3 m.py --mapper"
    told(lambda log: log.end(view("failed"), [failed_task(details)]), logs=TaskLogs(tmp_path))
    (stderr,) = tmp_path.rglob("stderr")
    error = read_task_stderr(stderr.read_text().splitlines(keepends=True))
    assert error["message"].rstrip() == f"+ python3 m.py --mapper\n{TRACEBACK}"


def test_what_the_user_is_shown_at_last(tmp_path):
    _, found = told(lambda log: log.end(view("failed"), [failed_task()]))
    picked = pick_error({"step": found})
    assert "ValueError: no" in picked["hadoop_error"]["message"]


def test_logs_that_cannot_be_written_are_no_fault_of_the_job(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    text, _ = told(lambda log: log.end(view("failed"), [failed_task()]), logs=TaskLogs(blocked))
    assert "Status : FAILED" in text


def test_the_form_of_a_line():
    text, _ = told(lambda log: log.begin(JOB))
    assert re.fullmatch(
        r"\d\d/\d\d/\d\d \d\d:\d\d:\d\d INFO mapreduce\.Job: Running job: job_\d+_0001",
        text.splitlines()[-1],
    )
