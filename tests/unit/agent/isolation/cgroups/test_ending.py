"""The complete kill, and the removal of what is still in use for a moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.isolation.cgroups.ending import Ending, remove
from mesos_py.errors import Unavailable
from tests.kit.cgroup_tree import FakeTree


@pytest.fixture(params=[1, 2])
def tree(tmp_path: Path, request: pytest.FixtureRequest) -> FakeTree:
    made = FakeTree(tmp_path)
    made.version = request.param  # type: ignore[attr-defined]
    return made


def group_of(tree, *pids: int):
    layout = tree.v1() if tree.version == 1 else tree.v2()
    layout.make()
    group = layout.kill.agent.child("c1")
    group.make()
    for pid in pids:
        tree.enter(pid, group.file("cgroup.procs"))
    return group


def ending(tree, within_s: float = 1) -> Ending:
    return Ending(tree.version, tree.kill, within_s)


def test_all_that_is_in_it_and_beneath_it_is_killed(tree):
    group = group_of(tree, 7, 8)
    below = group.child("own")
    below.make()
    tree.enter(9, below.file("cgroup.procs"))
    assert ending(tree).end(group) == 3
    assert sorted(tree.killed) == [7, 8, 9]


def test_v1_freezes_before_it_kills_and_thaws_after(tree):
    group = group_of(tree, 7)
    tree.writes.clear()
    ending(tree).end(group)
    if tree.version == 1:
        assert tree.writes == [("freezer.state", "FROZEN"), ("freezer.state", "THAWED")]
    else:
        assert tree.writes == [("cgroup.kill", "1")]


def test_a_v2_kernel_without_cgroup_kill_is_served_as_v1_is(tree):
    if tree.version == 1:
        return
    group = group_of(tree, 7)
    tree.refuse["cgroup.kill"] = 2
    assert ending(tree).end(group) == 1
    assert [value for name, value in tree.writes if name == "cgroup.freeze"] == ["1", "0"]


def test_nothing_is_frozen_where_nobody_is_or_nothing_ever_was(tree):
    group = group_of(tree)
    tree.writes.clear()
    assert ending(tree).end(group) == 0
    assert ending(tree).end(group.child("never")) == 0
    assert tree.writes == []


def test_what_does_not_die_is_an_error_that_names_it(tree):
    group = group_of(tree, 7)
    tree.immortal.add(7)
    with pytest.raises(Unavailable, match=r"1 processes of .*/c1 do not end: 7"):
        ending(tree, within_s=0).end(group)


def test_pause_and_resume(tree):
    group = group_of(tree, 7)
    held = ending(tree)
    assert held.freeze(group)
    held.thaw(group)
    name = "freezer.state" if tree.version == 1 else "cgroup.freeze"
    assert group.read(name).strip() in ("THAWED", "0")
    assert not held.freeze(group.child("never"))


def test_a_group_in_use_for_a_moment_is_removed_after_it(tree):
    group = group_of(tree)
    tree.busy["c1"] = 3
    remove(group)
    assert not group.exists()


def test_a_group_that_stays_in_use_is_an_error_and_the_next_try_succeeds(tree):
    group = group_of(tree, 7)
    with pytest.raises(Unavailable, match=r"/c1 is in use"):
        remove(group, within_s=0)
    tree.kill(7, 9)
    remove(group, within_s=0)
    assert not group.exists()


def test_groups_of_the_tasks_own_are_removed_with_it(tree):
    group = group_of(tree)
    group.child("own").make()
    group.child("own", "more").make()
    remove(group)
    assert not group.exists()


def test_to_remove_what_is_not_there_is_fine(tree):
    remove(group_of(tree).child("never"))
