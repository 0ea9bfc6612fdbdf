"""Rules of a job that runs without a cluster."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import pytest

from frameworks.mapreduce.work import Failure, MapDone
from frameworks.mapreduce.worker.local import AttemptEnded, Moved, Planned, Started, run_local
from tests.kit.mapreduce_local import Jobs, counter


@pytest.fixture
def jobs(tmp_path):
    return Jobs(tmp_path)


SPLIT = {"mapreduce.input.fileinputformat.split.maxsize": "5"}
TEXT = "d\nc\nb\na\n" * 4


def test_map_output_that_is_lost_is_made_again_and_only_that(jobs):
    lost: list[str] = []

    def lose(event):
        jobs.events.append(event)
        ended = isinstance(event, AttemptEnded) and isinstance(event.outcome, MapDone)
        if ended and not lost and "_m_000001_" in event.attempt:
            lost.append(event.attempt)
            Path(event.outcome.path).unlink()

    jobs.run(TEXT, "cat", "cat", conf=SPLIT)
    expected = jobs.text
    spec = jobs.spec
    jobs.events.clear()
    again = msgspec.structs.replace(spec, output=str(jobs.directory / "again"))
    outcome = run_local(again, 1, lose, directory=jobs.directory / "between")
    assert outcome.failure is None
    assert (jobs.directory / "again" / "part-00000").read_text() == expected
    maps = [event.attempt for event in jobs.ended if "_m_" in event.attempt]
    assert len(maps) == outcome.maps + 1
    assert [name[:-2] for name in maps].count(lost[0][:-2]) == 2
    # What was made twice counts once.
    assert counter(outcome, "MAP_INPUT_RECORDS") == 16


def test_no_more_attempts_run_at_once_than_asked_for(jobs):
    outcome = jobs.run(TEXT, "sh -c 'cat; sleep 0.1'", conf=SPLIT, parallel=3)
    assert outcome.failure is None
    running = most = 0
    for event in jobs.events:
        running += isinstance(event, Started) - isinstance(event, AttemptEnded)
        most = max(most, running)
    assert most == 3
    assert jobs.events[0] == Planned(outcome.maps, 0)
    assert any(isinstance(event, Moved) for event in jobs.events)


def test_the_first_failure_is_the_job_s_and_others_are_ended(jobs):
    cases = "1) sleep 0.5; echo me >&2; exit 9;; *) sleep 100;;"
    mapper = f"sh -c 'case $mapreduce_task_partition in {cases} esac'"
    conf = {**SPLIT, "mapreduce.map.maxattempts": "1"}
    outcome = jobs.run(TEXT, mapper, conf=conf, parallel=3)
    assert outcome.failure.message.endswith("exit code 9: me")
    assert "_m_000001_" in outcome.attempt
    ends = {event.attempt[-8:-2]: event.outcome for event in jobs.ended}
    assert [name for name, end in ends.items() if isinstance(end, Failure)] == ["000001"]
    assert len(ends) == 3
    assert not jobs.output.exists()
    assert Path(outcome.failure.log).read_text() == "me\n"
    (root,) = (jobs.directory / "between").iterdir()
    assert [path.name for path in root.iterdir()] == ["logs"]


def test_so_many_percent_of_the_maps_may_fail(jobs):
    """Three of four maps do their work; what the other one reads is missing."""
    mapper = "sh -c 'cat; case $mapreduce_task_partition in 1) exit 1;; esac'"
    text = "a\nb\nc\nd\n"
    conf = {"mapreduce.input.fileinputformat.split.maxsize": "2", "mapreduce.map.maxattempts": "2"}
    for reducer in ("cat", None):
        allowed = {**conf, "mapreduce.map.failures.maxpercent": "25"}
        outcome = jobs.run(text, mapper, reducer, conf=allowed)
        assert (outcome.failure, outcome.maps, outcome.maps_given_up) == (None, 4, 1)
        assert jobs.text == "a\nc\nd\n"
    refused = {**conf, "mapreduce.map.failures.maxpercent": "24"}
    assert jobs.run(text, mapper, conf=refused).failure is not None


def test_an_interrupted_job_leaves_nothing(jobs):
    def interrupt(event):
        if isinstance(event, Moved):
            raise KeyboardInterrupt

    jobs.run("a\n", "cat")
    spec = msgspec.structs.replace(jobs.spec, output=str(jobs.directory / "again"))
    threads = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        run_local(spec, 1, interrupt, directory=jobs.directory / "between")
    assert not (jobs.directory / "again").exists()
    assert threading.active_count() == threads
    assert list((jobs.directory / "between").iterdir()) == []


def test_many_files_are_many_maps(jobs):
    paths = [jobs.file(f"many/f{number:03}", f"{number}\n") for number in range(60)]
    outcome = jobs.run((str(Path(paths[0]).parent),), "cat", "cat", reduces=1)
    assert outcome.maps == 60
    assert jobs.text == "".join(sorted(f"{number}\n" for number in range(60)))
    combined = jobs.run(
        (str(Path(paths[0]).parent),), "cat", "cat", conf={"mesos.input.combine": "true"}
    )
    assert combined.maps < 10
    assert jobs.text == "".join(sorted(f"{number}\n" for number in range(60)))
