"""Whether a job that has made an output directory was begun, or may yet be."""

from __future__ import annotations

from pathlib import Path

import pytest

from frameworks.mapreduce.tracker.abandoned import is_abandoned
from frameworks.mapreduce.tracker.committing import Owner
from frameworks.mapreduce.tracker.journal import Entry, Journal
from frameworks.mapreduce.tracker.place import Place, beside
from mesos_py.errors import Superseded

JOB = "job_1_0001"
OURS = "file:///ours"


def asked(state: str, ours: bool = False) -> bool:
    return is_abandoned(Owner(JOB, state), OURS, lambda _: ours, "asker")


def journal(place: Place, *owners: str) -> Journal:
    made, _ = Journal.take_over(place, "w")
    made.begin([])
    made.append([Entry(owner, b"{}") for owner in owners])
    return made


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Of a tracker of one job."""
    return Place(beside(str(tmp_path / "out"), JOB))


@pytest.mark.parametrize("ours", [True, False])
def test_of_our_own_jobs_we_know(tmp_path, ours):
    state = f"file://{tmp_path}"
    assert is_abandoned(Owner(JOB, state), state, lambda job_id: ours, "x") == (not ours)


def test_in_a_state_of_others_the_job_may_yet_be_begun(tmp_path):
    place = Place(str(tmp_path / "shared"))
    writer = journal(place)
    assert not asked(place.url)
    # And they are left alone.
    writer.append([Entry(JOB, b"{}")])
    assert not asked("")


def test_a_job_that_was_begun_is_not_abandoned_and_its_tracker_left_alone(place):
    writer = journal(place, JOB)
    assert not asked(place.url)
    writer.append([Entry(JOB, b"{}")])


def test_a_job_that_was_not_begun_cannot_be_any_more(place):
    writer = journal(place, "-")
    assert asked(place.url)
    with pytest.raises(Superseded):
        writer.append([Entry(JOB, b"{}")])
    assert asked(place.url)


def test_with_its_state_a_job_is_gone(place):
    assert asked(place.url)
