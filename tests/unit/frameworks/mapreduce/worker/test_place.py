from __future__ import annotations

import pytest

from frameworks.mapreduce.worker.place import Place
from mesos_py.errors import InvalidValue

JOB = "job_1_0001"
ATTEMPT = "attempt_1_0001_m_000000_0"


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path, "http://agent:5051/files/f/e/r")


def published(attempt):
    attempt.out.parent.mkdir(parents=True)
    attempt.out.write_bytes(b"x")


def test_all_of_an_attempt_is_below_the_place(place):
    attempt = place.attempt(ATTEMPT)
    attempt.make(b"{}")
    assert attempt.work.read_bytes() == b"{}"
    assert attempt.cwd.is_dir()
    assert not attempt.out.parent.exists()
    published(attempt)
    unfinished = attempt.out.with_name(f".{attempt.out.name}.unfinished")
    unfinished.write_bytes(b"x")
    (attempt.cwd / "left").write_text("x")
    attempt.clear(keep_output=True)
    assert not attempt.root.exists()
    assert not unfinished.exists()
    assert attempt.out.exists()
    attempt.clear(keep_output=False)
    assert not attempt.out.exists()
    attempt.clear(keep_output=False)


def test_making_it_again_begins_with_nothing(place):
    attempt = place.attempt(ATTEMPT)
    attempt.make(b"1")
    (attempt.cwd / "left").write_text("x")
    attempt.make(b"2")
    assert list(attempt.cwd.iterdir()) == []


def test_the_url_is_where_the_agent_serves_it_or_the_path(place, tmp_path):
    out = place.attempt(ATTEMPT).out
    assert place.url(out) == f"http://agent:5051/files/f/e/r/published/{JOB}/{ATTEMPT}.out"
    assert Place(tmp_path).url(out) == str(out)


@pytest.mark.parametrize("name", ["../../etc", "attempt_1_0001_m_000000", "", "a/b"])
def test_only_names_of_attempts_and_jobs_become_paths(place, name):
    with pytest.raises(InvalidValue):
        place.attempt(name)
    with pytest.raises(InvalidValue):
        place.forget(name)


def test_a_job_is_forgotten_but_for_its_logs(place, tmp_path):
    attempt = place.attempt(ATTEMPT)
    attempt.make(b"")
    published(attempt)
    attempt.log.write_bytes(b"x")
    place.job(JOB).mkdir(parents=True)
    place.job_lock(JOB).touch()
    other = place.attempt(ATTEMPT.replace("0001", "0002"))
    other.make(b"")
    published(other)
    for _ in range(2):
        place.forget(JOB)
        assert not attempt.out.exists()
        assert not place.job(JOB).exists()
        assert not place.job_lock(JOB).exists()
        assert attempt.log.exists()
        assert other.out.exists()


def test_links_are_removed_not_followed(place, tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("x")
    attempt = place.attempt(ATTEMPT)
    attempt.make(b"")
    (attempt.cwd / "link").symlink_to(precious)
    attempt.clear(keep_output=False)
    assert (precious / "file").exists()
