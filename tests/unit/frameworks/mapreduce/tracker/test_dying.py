"""A tracker that dies just before, or just after, anything that it writes down."""

from __future__ import annotations

from pathlib import Path

import pytest

from frameworks.mapreduce.tracker import journal
from frameworks.mapreduce.tracker.options import TrackerOptions
from frameworks.mapreduce.tracker.place import Place
from frameworks.mapreduce.tracker.tracker import Tracker
from mesos_py import Resources
from mesos_py.errors import MesosPyError
from tests.kit.mapreduce_workers import JOB, FakeWorkers, job, written
from tests.kit.waiting import until

AGENTS = {"a1": Resources.of(cpus=4, mem=4096)}
NEVER = 10**6


class Died(OSError):
    """Its file system is gone for it: to the others that is as if it had been killed."""


class Writes:
    """Counts what is written to journals; at one of them the tracker dies."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = NEVER
        self.after = False
        create = Place.create

        def counted(place: Place, name: str, data: bytes) -> None:
            if name.startswith("journal/"):
                self.left -= 1
                if self.left < 0 or (self.left == 0 and not self.after):
                    raise Died(name)
            create(place, name, data)
            if name.startswith("journal/") and self.left == 0:
                raise Died(name)

        monkeypatch.setattr(Place, "create", counted)
        monkeypatch.setattr(journal, "PAUSES", ())


@pytest.mark.parametrize(
    ("number", "after"),
    [(number, number % 2 == 0) for number in range(1, 15)],
    ids=str,
)
def test_the_next_one_completes_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, after: bool
):
    spec = job(tmp_path, maps=2, reduces=2)
    writes = Writes(monkeypatch)
    with FakeWorkers(AGENTS) as cluster:
        state = str(tmp_path / "state")
        writes.left, writes.after = number, after
        first = Tracker(TrackerOptions(master=cluster.address, state=state))
        died = False
        try:
            first.start()
            first.wait_active(30)
            first.submit(spec)
            until(lambda: first.is_idle or first.join(0))
        except (MesosPyError, Died):
            died = True
        finally:
            first.stop(end=False)
        assert died == (writes.left <= 0)
        writes.left = NEVER
        second = Tracker(TrackerOptions(master=cluster.address, state=state))
        second.start()
        try:
            assert second.wait_active(30)
            second.submit(spec)
            until(lambda: second.view(JOB).state in ("succeeded", "failed", "killed"))
            view = second.view(JOB)
            assert (view.state, view.failure) == ("succeeded", None)
            out = written(spec)
            assert sorted(out) == ["_SUCCESS", "part-00000", "part-00001"]
            until(lambda: second.is_idle)
            assert not (tmp_path / "state" / "jobs" / JOB).exists()
        finally:
            second.stop(end=True)
