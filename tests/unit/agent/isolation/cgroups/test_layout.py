"""Where groups are made: v1, v2 and both, delegation, starting twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.isolation.cgroups.files import CgroupError
from agent.isolation.cgroups.layout import LEAF
from agent.isolation.cgroups.options import Options
from mesos_py.errors import InvalidValue
from tests.kit.cgroup_tree import FakeTree


@pytest.fixture
def tree(tmp_path: Path) -> FakeTree:
    return FakeTree(tmp_path)


def where(tree: FakeTree, layout) -> dict[str, str]:
    return {
        name: str(Path(place.agent.path).relative_to(tree.root))
        for name, place in layout.places.items()
    }


def test_v1_has_a_group_with_the_full_agent_id_in_each_hierarchy(tree):
    layout = tree.v1()
    assert where(tree, layout)["memory"] == "memory/mesos_py/agent-S0"
    assert where(tree, layout)["io"] == "blkio/mesos_py/agent-S0"
    assert layout.kill == layout.places["freezer"]
    layout.make()
    assert layout.places["cpu"].agent.exists()


def test_v2_hands_controllers_down_to_containers(tree):
    layout = tree.v2()
    layout.make()
    assert set(layout.places) == {"cpu", "memory", "pids", "cpuset", "io"}
    assert where(tree, layout)["cpu"] == "unified/mesos_py/agent-S0"
    made = layout.places["cpu"].agent.child("c1")
    made.make()
    assert made.has("memory.max")
    assert made.has("io.max")


def test_hybrid_takes_each_controller_from_where_it_is(tree):
    tree.v2_controllers = ("memory", "pids")
    layout = tree.hybrid(("cpu", "cpuacct", "freezer"))
    assert {name: place.version for name, place in layout.places.items()} == {
        "cpu": 1,
        "cpuacct": 1,
        "freezer": 1,
        "memory": 2,
        "pids": 2,
    }


def test_a_v2_without_the_needed_controllers_is_refused_in_words(tree):
    tree.v2_controllers = ("hugetlb",)
    with pytest.raises(InvalidValue, match=r"needs the cpu controller.*v2 at .*unified has not"):
        tree.v2()


def test_no_control_groups_at_all_are_refused_in_words(tree):
    with pytest.raises(InvalidValue, match="no cgroup v2 is mounted"):
        tree.layout(None, "a", v1=(), v2=False)


@pytest.mark.parametrize("agent_id", ["", ".", "..", "a/b", "a\nb", "a\0b", "x" * 256])
def test_an_agent_id_that_names_no_group_is_refused(tree, agent_id):
    with pytest.raises(InvalidValue, match="agent_id"):
        tree.v1(agent_id=agent_id)


@pytest.mark.parametrize("root", ["", "/", "a/../b", "a//b"])
def test_a_root_that_names_no_group_is_refused(root):
    with pytest.raises(InvalidValue, match="cgroups-root"):
        Options.of({"cgroups_root": root}, "/")


# ---- The agent's own group on v2 --------------------------------------------------------


def delegated(tree: FakeTree, *pids: int, privileged: bool = False):
    """The agent runs as /unit.service, which is its own (not privileged: it has no other)."""
    tree.own_v2 = "/unit.service"
    tree.v2()  # mounts
    unit = tree.group(str(tree.root / "unified" / "unit.service"))
    tree.group(str(tree.root / "unified")).write("cgroup.subtree_control", "+cpu")
    for name in ("memory", "pids", "cpuset", "io"):
        tree.group(str(tree.root / "unified")).write("cgroup.subtree_control", f"+{name}")
    unit.make()
    for pid in pids:
        tree.enter(pid, unit.file("cgroup.procs"))
    return tree.v2(privileged=privileged)


def test_root_without_a_delegation_works_beneath_the_top(tree):
    layout = delegated(tree, 10, privileged=True)
    assert where(tree, layout)["cpu"] == "unified/mesos_py/agent-S0"
    layout.make()
    assert tree.text("unified", "unit.service", "cgroup.procs") == "10"


def test_in_a_delegated_group_its_processes_move_into_a_leaf(tree):
    layout = delegated(tree, 10, 11)
    assert where(tree, layout)["cpu"] == "unified/unit.service/mesos_py/agent-S0"
    layout.make()
    assert tree.text("unified", "unit.service", "cgroup.procs") == ""
    assert tree.text("unified", "unit.service", LEAF, "cgroup.procs").split() == ["10", "11"]


def test_an_agent_that_starts_in_the_leaf_of_its_predecessor_uses_the_same_groups(tree):
    first = delegated(tree, 10)
    first.make()
    tree.own_v2 = f"/unit.service/{LEAF}"
    second = tree.v2(privileged=False)
    second.make()
    assert where(tree, second) == where(tree, first)


def test_in_a_container_with_groups_of_its_own_the_leaf_is_at_the_top(tree):
    tree.own_v2 = f"/{LEAF}"
    assert where(tree, tree.v2())["cpu"] == "unified/mesos_py/agent-S0"


def test_a_root_with_a_slash_is_beneath_the_top_though_a_group_is_delegated(tree):
    delegated(tree, 10)
    layout = tree.v2(Options(root="/ours"), privileged=False)
    assert where(tree, layout)["cpu"] == "unified/ours/agent-S0"


def test_what_the_kernel_refuses_names_file_and_value(tree):
    layout = tree.v2()
    tree.refuse["cgroup.subtree_control"] = 13
    with pytest.raises(CgroupError, match=r"unified/cgroup.subtree_control: '\+cpu': Permission"):
        layout.make()


# ---- The end ------------------------------------------------------------------------------


def test_nothing_is_left_at_the_end(tree):
    layout = tree.v1()
    layout.make()
    layout.remove()
    assert tree.groups() == []


def test_what_other_agents_have_stays(tree):
    mine, others = tree.v1(), tree.v1(agent_id="agent-S01")
    mine.make()
    others.make()
    mine.remove()
    assert not mine.places["cpu"].agent.exists()
    assert others.places["cpu"].agent.exists()


def test_containers_that_go_on_keep_their_groups(tree):
    layout = tree.v1()
    layout.make()
    running = layout.places["cpu"].agent.child("c1")
    running.make()
    layout.remove()
    assert running.exists()
    assert layout.containers() == {"c1"}
