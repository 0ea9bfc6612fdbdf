"""What the command removes that follows a dead worker, and what it never touches."""

from __future__ import annotations

import subprocess

import pytest

from frameworks.mapreduce.tracker import sweep

JOB = "job_1_0001"
TASK = "clean_job_1_0001_7_1"
WORKER = "worker-1-1"
NAMES = (
    f"published/{JOB}/.attempt_1_0001_m_000000_0.out.x",
    f"jobs/{JOB}/files/words.py",
    f"jobs/{JOB}.lock",
    "work/attempt_1_0001_m_000000_0/cwd/words.py",
)
OTHERS = (
    "published/job_1_00011/a.out",
    "jobs/job_1_00011/job.json",
    "work/attempt_1_00011_m_000000_0/work.json",
    f"logs/{JOB}/attempt_1_0001_m_000000_0.log",
    "stdout",
)


@pytest.fixture
def executors(tmp_path):
    made = tmp_path / "agents" / "a" / "frameworks" / "f" / "executors"
    (made / TASK / "runs" / "own").mkdir(parents=True)
    return made


def sandbox(executors, worker=WORKER, run="1"):
    made = executors / worker / "runs" / run
    for name in (*NAMES, *OTHERS):
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).touch()
    return made


def swept(executors, here=f"{TASK}/runs/own"):
    words = sweep.command(TASK, WORKER, JOB)
    return subprocess.run(words, cwd=executors / here, capture_output=True, text=True, check=False)


def test_what_has_the_jobs_name_in_all_sandboxes_of_the_worker_goes_and_nothing_else(executors):
    mine = [sandbox(executors), sandbox(executors, run="2")]
    (executors / WORKER / "runs" / "latest").symlink_to("2")
    other = sandbox(executors, "worker-1-11")
    found = swept(executors)
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")
    for each in mine:
        assert not [name for name in NAMES if (each / name).exists()]
        assert not (each / "work" / "attempt_1_0001_m_000000_0").exists()
        assert all((each / name).exists() for name in OTHERS)
    assert all((other / name).exists() for name in (*NAMES, *OTHERS))
    # A command whose end was not told is run again.
    assert swept(executors).returncode == 0


def test_a_worker_that_never_ran_there_has_left_nothing(executors):
    assert swept(executors).returncode == 0


def test_links_of_programs_are_not_followed(executors, tmp_path):
    mine = sandbox(executors)
    theirs = tmp_path / "theirs"
    (theirs / JOB).mkdir(parents=True)
    (theirs / JOB / "precious").touch()
    (mine / "jobs").rename(mine / "old")
    (mine / "jobs").symlink_to(theirs)
    (mine / "published" / JOB).rename(mine / "older")
    (mine / "published" / JOB).symlink_to(theirs)
    (executors / WORKER / "runs" / "3").symlink_to(theirs)
    assert swept(executors).returncode == 0
    assert (theirs / JOB / "precious").exists()
    assert not (mine / "published" / JOB).is_symlink()


def test_where_the_worker_is_a_link_nothing_is_removed(executors, tmp_path):
    elsewhere = sandbox(tmp_path / "elsewhere")
    (executors / WORKER).symlink_to(elsewhere.parents[1])
    found = swept(executors)
    assert found.returncode == 1
    assert found.stderr.startswith("a link: ")
    assert all((elsewhere / name).exists() for name in NAMES)


def test_where_sandboxes_lie_otherwise_nothing_is_removed_and_it_is_said(executors):
    mine = sandbox(executors)
    (executors / "other" / "runs" / "own").mkdir(parents=True)
    found = swept(executors, "other/runs/own")
    assert found.returncode == 1
    assert found.stderr.startswith("sandboxes do not lie as expected: ")
    assert all((mine / name).exists() for name in NAMES)
