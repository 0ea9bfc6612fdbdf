"""Which sandboxes go, and when."""

from __future__ import annotations

import errno
import os
import shutil
import time
from pathlib import Path

import pytest

from agent.sandboxes.collector import Collector, Limits, age_limit_s
from agent.sandboxes.erasing import Trash
from agent.sandboxes.removals import Removal, Removals
from mesos_py.metrics import Metrics

NOW = 1_000_000.0
DAY = 86_400.0


class World:
    def __init__(self, work_dir: Path, **limits: float) -> None:
        self.work_dir = work_dir
        self.live: set[str] = set()
        # What the disk says, one after the other; the last one stays.
        self.usages = [0.0]
        self.removals = Removals(work_dir / "sandboxes" / "removed")
        self.metrics = Metrics()
        self.collector = Collector(
            str(work_dir),
            Limits(**{"gc_delay_s": 7 * DAY, "rescan_s": 0, **limits}),
            lambda container_id: container_id in self.live,
            self.removals,
            self.metrics,
            lambda _: self.usages.pop(0) if len(self.usages) > 1 else self.usages[0],
        )

    def sandbox(self, container_id: str, age_s: float = 0, agent_id: str = "A1") -> Path:
        runs = self.work_dir / f"agents/{agent_id}/frameworks/F/executors/E-{container_id}/runs"
        made = runs / container_id
        made.mkdir(parents=True)
        (runs / "latest").symlink_to(container_id)
        (made / "stdout").write_text("output")
        self.age(made, age_s)
        return made

    def age(self, path: Path, age_s: float) -> None:
        for each in (path / "stdout", path):
            os.utime(each, (NOW - age_s, NOW - age_s))

    def sweep(self) -> int:
        return self.collector.sweep(NOW)

    def left(self) -> set[str]:
        return {
            each.name
            for each in self.work_dir.glob("agents/*/frameworks/*/executors/*/runs/*")
            if not each.is_symlink()
        }


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.parametrize(
    ("usage", "limit"), [(0.0, 6.3), (0.4, 3.5), (0.9, 0.0), (0.95, 0.0), (1.0, 0.0)]
)
def test_the_fuller_the_disk_the_younger_they_go(usage, limit):
    assert age_limit_s(Limits(gc_delay_s=7 * DAY), usage) == pytest.approx(limit * DAY)


def test_how_old_they_may_get_is_a_number_for_operators(world):
    world.usages = [0.4]
    limit_s = world.metrics.snapshot()["sandbox_age_limit_seconds"]
    assert limit_s == pytest.approx(3.5 * DAY)


def test_old_ones_go_and_what_leads_to_them(world):
    world.sandbox("old", 7 * DAY)
    world.sandbox("young", 6 * DAY)
    assert world.sweep() == 1
    assert world.left() == {"young"}
    executors = world.work_dir / "agents/A1/frameworks/F/executors"
    assert [each.name for each in executors.iterdir()] == ["E-young"]
    assert not list((world.work_dir / "trash").iterdir())
    removal = world.removals.of_executor("F", "E-old")
    assert removal is not None
    assert (removal.container_id, removal.at_wall_s) == ("old", NOW)
    assert world.sweep() == 0


def test_pressure_makes_them_go_sooner(world):
    world.sandbox("a", 2 * DAY)
    world.usages = [0.5]
    assert world.sweep() == 0
    world.usages = [0.7]
    assert world.sweep() == 1


def test_live_ones_stay_however_old_and_full(world):
    world.sandbox("live", 100 * DAY)
    world.sandbox("dead", 0)
    world.live.add("live")
    world.usages = [1.0]
    assert world.sweep() == 1
    assert world.left() == {"live"}


def test_one_that_becomes_live_meanwhile_stays(world):
    world.sandbox("a", 100 * DAY)
    asked = []

    def is_live(container_id: str) -> bool:
        asked.append(container_id)
        return len(asked) > 1

    world.collector._is_live = is_live
    assert world.sweep() == 0
    assert world.left() == {"a"}


def test_another_agents_and_an_earlier_ones_are_collected_too(world):
    world.sandbox("a", 7 * DAY, agent_id="before-the-reboot")
    assert world.sweep() == 1
    assert not list((world.work_dir / "agents/before-the-reboot").iterdir())


def test_the_newer_run_of_an_executor_keeps_its_link(world):
    old = world.sandbox("old", 7 * DAY)
    new = old.with_name("new")
    new.mkdir()
    world.age(old, 7 * DAY)
    latest = old.with_name("latest")
    latest.unlink()
    latest.symlink_to("new")
    assert world.sweep() == 1
    assert latest.readlink() == Path("new")


def test_output_that_is_written_late_makes_it_young(world):
    sandbox = world.sandbox("a", 100 * DAY)
    os.utime(sandbox / "stdout", (NOW, NOW))
    assert world.sweep() == 0


def test_the_end_is_noted_in_the_sandbox_itself(world):
    sandbox = world.sandbox("a", 100 * DAY)
    world.collector.ended(tuple(sandbox.relative_to(world.work_dir).parts))
    world.collector.ended(("agents", "A1", "never", "made"))
    world.collector._note_ends()
    assert abs(sandbox.stat().st_mtime - time.time()) < 3600


def test_a_time_in_the_far_future_does_not_keep_it_for_ever(world):
    sandbox = world.sandbox("a", -1000 * DAY)
    assert world.sweep() == 0
    assert abs(sandbox.stat().st_mtime - time.time()) < 3600
    world.age(sandbox, -1000 * DAY)
    os.utime(sandbox, (NOW - 7 * DAY, NOW - 7 * DAY))
    assert world.sweep() == 1


def test_what_is_published_goes_last(world):
    for name in ("plain", "shuffle"):
        world.sandbox(name, DAY)
    shuffle = next(world.work_dir.glob("agents/*/frameworks/*/executors/*/runs/shuffle"))
    (shuffle / "published").mkdir()
    world.age(shuffle, DAY)
    # Full, but after the first one has gone there is room.
    world.usages = [0.95, 0.5]
    assert world.sweep() == 1
    assert world.left() == {"shuffle"}
    world.usages = [0.95]
    assert world.sweep() == 1


def test_what_is_published_goes_for_its_age_too(world):
    sandbox = world.sandbox("a")
    (sandbox / "published").mkdir()
    world.age(sandbox, 7 * DAY)
    assert world.sweep() == 1


def test_between_two_looks_at_everything_only_what_has_ended_is_looked_at(tmp_path):
    world = World(tmp_path, rescan_s=3600)
    old = world.sandbox("old", 1)
    world.sweep()
    unseen = world.sandbox("unseen", 1)
    ended = world.sandbox("ended", 1)
    world.collector.ended(tuple(ended.relative_to(tmp_path).parts))
    world.collector._note_ends()
    gone = world.sandbox("gone", 1)
    world.collector.ended(tuple(gone.relative_to(tmp_path).parts))
    world.collector._note_ends()
    shutil.rmtree(gone)
    # Written to after all.
    os.utime(old / "stdout", (NOW + 10, NOW + 10))
    world.usages = [1.0]
    later = time.time() + 10
    world.collector._scanned_wall_s = later
    assert world.collector.sweep(later) == 2
    assert world.left() == {"unseen"}
    assert unseen.is_dir()


def test_links_are_not_followed(world, tmp_path):
    canary = tmp_path / "canary"
    canary.mkdir()
    (canary / "file").write_text("unharmed")
    sandbox = world.sandbox("a")
    (sandbox / "out").symlink_to(canary)
    (sandbox / "file").hardlink_to(canary / "file")
    world.age(sandbox, 7 * DAY)
    # Links in the place of sandboxes, executors and agents are no sandboxes.
    (sandbox.parent / "link").symlink_to(canary)
    (world.work_dir / "agents/A1/frameworks/link").symlink_to(canary)
    (world.work_dir / "agents/link").symlink_to(world.work_dir / "agents/A1")
    world.sweep()
    assert world.left() == set()
    assert (canary / "file").read_text() == "unharmed"


def test_one_that_cannot_be_moved_is_counted_and_harms_no_other(world, monkeypatch):
    world.sandbox("a", 8 * DAY)
    world.sandbox("b", 7 * DAY)
    monkeypatch.setattr(
        "agent.sandboxes.collector.mounted_beneath",
        lambda directory: {f"{directory}/agents/A1/frameworks/F/executors/E-a/runs/a/volume"},
    )
    assert world.sweep() == 1
    assert world.left() == {"a"}
    assert world.metrics.snapshot()["sandbox_removals_failed_total"] == 1


def test_what_an_agent_that_ended_had_in_its_trash_goes_with_the_next_sweep(world):
    (world.work_dir / "trash/0-old/deep").mkdir(parents=True)
    world.sweep()
    assert not list((world.work_dir / "trash").iterdir())


@pytest.mark.parametrize("fails", [False, True])
def test_who_asks_while_one_is_moved_away_is_told_that_it_was_removed(world, monkeypatch, fails):
    """The reader that found no sandbox, and no word of a removal either: between the two."""
    world.sandbox("old", 7 * DAY)
    told = []

    def take(trash: Trash, directory: int, name: str) -> None:
        told.append((world.removals.of_container(name), world.removals.of_executor("F", "E-old")))
        if fails:
            raise OSError(errno.EBUSY, "busy")

    monkeypatch.setattr(Trash, "take", take)
    world.sweep()
    removal = Removal("old", "F", "E-old", NOW)
    assert told == [(removal, removal)]
    afterwards = None if fails else removal
    assert world.removals.of_container("old") == afterwards
    assert world.removals.of_executor("F", "E-old") == afterwards
