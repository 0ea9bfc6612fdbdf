"""What trackers keep beneath their state."""

from __future__ import annotations

from pathlib import Path

import pytest

from frameworks.mapreduce.core.journal import JobEnded, Launched, Submitted, WorkerGone
from frameworks.mapreduce.core.views import JobView, PhaseView, TaskView
from frameworks.mapreduce.job import JobSpec, Piece, Program, Split
from frameworks.mapreduce.tracker.journal import Entry
from frameworks.mapreduce.tracker.store import (
    Cleaned,
    Line,
    Store,
    Summary,
    TrackerRecord,
    WorkerKept,
    WorkerStart,
    entries_of,
    lines_of,
    living,
)
from mesos_py.errors import AlreadyExists, InvalidValue, NotFound

JOB = "job_1_0001"
OTHER = "job_1_0002"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "state"))


def spec(job_id: str = JOB, name: str = "") -> JobSpec:
    return JobSpec(
        job_id=job_id,
        name=name,
        user="u",
        inputs=("i",),
        output="/o",
        mapper=Program(function=b"\0\xff"),
    )


def view(job_id: str = JOB) -> JobView:
    phase = PhaseView(total=1)
    return JobView(
        job_id=job_id,
        name="",
        user="u",
        priority="normal",
        output="/o",
        state="succeeded",
        submitted_s=1.0,
        started_s=2.0,
        ended_s=3.0,
        maps=phase,
        reduces=phase,
    )


def task(number: int) -> TaskView:
    return TaskView(
        task_id=f"task_{number}",
        kind="map",
        number=number,
        state="done",
        where="\n",
        failures=0,
        attempts=(),
    )


def launched(job_id: str, worker: str) -> Launched:
    return Launched(f"attempt_{job_id[4:]}_m_000000_0", "a", "h", worker, "any", False, 1.0)


def test_the_framework_has_one_id_until_it_is_forgotten(store):
    found = store.framework_id()
    assert store.framework_id() == found
    store.forget_framework()
    store.forget_framework()
    assert store.framework_id() != found


def test_a_job_is_kept_once(store, tmp_path):
    assert store.put_job(spec()) is False
    assert store.put_job(spec()) is True
    with pytest.raises(AlreadyExists, match=JOB):
        store.put_job(spec(name="another"))
    assert store.staging(JOB) == f"file://{tmp_path}/state/jobs/{JOB}"
    store.withdraw_job(JOB)
    assert store.put_job(spec(name="another")) is False
    store.remove_job(JOB)
    store.remove_job(JOB)


@pytest.mark.parametrize("name", ["..", "job_1_0001/../..", "", "job1"])
def test_only_names_of_jobs_are_names_of_files(store, name):
    for call in (store.staging, store.summary, store.tasks):
        with pytest.raises(InvalidValue):
            call(name)


def test_history_is_read_as_it_was_written(store, tmp_path):
    with pytest.raises(NotFound):
        store.summary(JOB)
    for job_id in (OTHER, JOB):
        store.put_history(Summary(view=view(job_id), spec=spec(job_id)), [task(1), task(2)])
    store.put_summary(Summary(view=view(), spec=spec(), agents_left={"h": "gone"}))
    assert [each.view.job_id for each in store.summaries(10)] == [JOB, OTHER]
    assert [each.view.job_id for each in store.summaries(1)] == [OTHER]
    assert store.summaries(0) == []
    assert store.summary(JOB).agents_left == {"h": "gone"}
    assert store.tasks(JOB) == [task(1), task(2)]
    # One that cannot be read does not hide the others.
    (tmp_path / "state/history" / f"{JOB}.json").write_text("{")
    assert [each.view.job_id for each in store.summaries(10)] == [OTHER]


def test_a_tracker_says_how_it_starts_its_workers(store):
    start = WorkerStart(("python", "-m", "w"), {"A": "b"}, 0.1, 64.0)
    store.add_tracker(TrackerRecord(3, "w", "h", 1.0, start))
    found = store.tracker(3)
    assert found is not None
    assert found.worker == start
    assert store.tracker(4) is None


def test_records_are_read_as_they_were_written():
    lines: list[Line] = [
        Submitted(spec(), (Split((Piece("u", 0, 1),), 1),), 1.0),
        launched(JOB, "w1"),
        JobEnded(JOB, 2.0),
        WorkerGone("a", "w1", 3.0),
        WorkerKept("a", "w2"),
        Cleaned(JOB),
    ]
    entries = entries_of(lines)
    assert [each.owner for each in entries] == [JOB, JOB, JOB, "-", "-", JOB]
    assert lines_of(entries) == lines
    with pytest.raises(InvalidValue):
        lines_of([Entry(JOB, b'{"type":"Unheard"}')])


def test_of_jobs_that_are_over_only_their_workers_are_kept():
    lines: list[Line] = [
        Submitted(spec(), (), 1.0),
        launched(JOB, "w1"),
        launched(JOB, "w2"),
        Submitted(spec(OTHER), (), 1.0),
        launched(OTHER, "w3"),
        WorkerKept("a", "w1"),
        WorkerKept("a", "w2"),
        Cleaned(JOB),
        WorkerGone("a", "w1", 2.0),
        WorkerGone("a", "w3", 2.0),
    ]
    assert living(lines) == [*lines[3:5], lines[6], lines[9]]
