"""The isolator over fake hierarchies: the steps of a container, orphans, out-of-memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.isolation.base import Recovered
from agent.isolation.cgroups.ending import Ending
from agent.isolation.cgroups.isolator import CgroupIsolator
from mesos_py.errors import InvalidValue, Unavailable
from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb
from tests.kit.cgroup_tree import FakeTree, container, facts

OOM = {
    1: ("memory", "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill {}\n"),
    2: ("unified", "memory.events", "max 1\noom 1\noom_kill {}\n"),
}


@pytest.fixture(params=[1, 2])
def version(request):
    return request.param


@pytest.fixture
def tree(tmp_path: Path) -> FakeTree:
    return FakeTree(tmp_path)


def isolator(tree: FakeTree, version: int, agent_id: str = "agent-S0") -> CgroupIsolator:
    layout = tree.v1(agent_id=agent_id) if version == 1 else tree.v2(agent_id=agent_id)
    made = CgroupIsolator(facts(agent_id=agent_id), layout=layout)
    made.ending = Ending(version, tree.kill, within_s=0.01)
    made._is_dying = lambda pid: pid in tree.dying
    return made


def recovered(container_id: str, pid: int = 7) -> Recovered:
    return Recovered(container_id, "f", "e", pid, Resources.of(cpus=1, mem=64), None)


def kernel_kills(tree: FakeTree, version: int, how_many: int, container_id: str = "c1") -> None:
    hierarchy, name, text = OOM[version]
    path = tree.root / hierarchy / "mesos_py" / "agent-S0" / container_id / name
    path.write_text(text.format(how_many))


def test_a_container_is_told_to_enter_one_group_per_hierarchy(tree, version):
    made = isolator(tree, version)
    enter = made.prepare(container()).enter
    assert len(enter) == len(set(enter)) == {1: 7, 2: 1}[version]
    name = {1: "/tasks", 2: "/cgroup.procs"}[version]
    assert all(file.endswith(name) and "/agent-S0/" in file for file in enter)


def test_one_more_process_enters_the_same_groups(tree, version):
    made = isolator(tree, version)
    enter = made.prepare(container()).enter
    assert made.join("c1", 7).enter == enter
    again = isolator(tree, version)
    again.recover([recovered("c1")])
    assert again.join("c1", 7).enter == enter


def test_after_the_end_nothing_is_left(tree, version):
    made = isolator(tree, version)
    tree.enter(7, *made.prepare(container()).enter)
    made.isolate("c1", 7)
    assert made.usage("c1")["memory_limit_bytes"] == 64 * 1024**2
    assert made.end("c1") is None
    assert tree.killed == [7]
    made.cleanup("c1")
    made.close()
    assert tree.groups() == []


def test_cleanup_is_for_containers_never_prepared_too_and_twice(tree, version):
    made = isolator(tree, version)
    made.prepare(container())
    for container_id in ("c1", "c1", "never"):
        assert made.end(container_id) is None
        made.cleanup(container_id)


def test_what_hangs_is_said_to_hang_and_ends_later(tree, version):
    made = isolator(tree, version)
    tree.enter(7, *made.prepare(container()).enter)
    tree.immortal.add(7)
    with pytest.raises(Unavailable, match="do not end: 7"):
        made.end("c1")
    tree.immortal.clear()
    assert made.end("c1") is None


@pytest.mark.parametrize("container_id", ["", "..", "a/b"])
def test_a_container_id_that_names_no_group_is_refused(tree, container_id):
    with pytest.raises(InvalidValue, match="container_id"):
        isolator(tree, 1).prepare(container(container_id))


def test_a_label_for_a_controller_that_is_missing_is_refused_in_words(tree):
    tree.v2_controllers = ("cpu", "memory")
    made = isolator(tree, 2)
    with pytest.raises(InvalidValue, match=r"labels.mesos_py.io_max.*has no io controller"):
        made.prepare(container(io_max="8:0 rbps=1"))
    with pytest.raises(InvalidValue, match=r"whole_cores.*has no cpuset controller"):
        made.prepare(container(whole_cores="true"))
    made.prepare(container(whole_cores="false"))


def test_a_kernel_that_does_not_count_its_victims_is_refused(tree):
    layout = tree.v1()
    layout.make()
    Path(layout.places["memory"].agent.file("memory.oom_control")).write_text("under_oom 0\n")
    with pytest.raises(InvalidValue, match="does not count processes killed for memory"):
        CgroupIsolator(facts(), layout=layout)


def test_an_io_limit_of_the_operators_that_is_none_is_refused_at_the_start(tree):
    with pytest.raises(InvalidValue, match="cgroups-io-max: 'speed=1'"):
        CgroupIsolator(facts(cgroups_io_max="8:0 speed=1"), layout=tree.v1())


# ---- After a restart ------------------------------------------------------------------------


def test_orphans_are_ended_and_removed_and_those_that_run_stay(tree, version):
    first = isolator(tree, version)
    for number, name in enumerate(("c1", "c2", "c3"), start=7):
        tree.enter(number, *first.prepare(container(name)).enter)
    second = isolator(tree, version)
    second.recover([recovered("c2", 8)])
    assert sorted(tree.killed) == [7, 9]
    assert second.layout.containers() == {"c2"}
    second.update("c2", Resources.of(cpus=1, mem=128))
    assert second.usage("c2")["memory_limit_bytes"] == 128 * 1024**2
    second.end("c2")
    second.cleanup("c2")
    assert second.layout.containers() == set()


@pytest.mark.parametrize("other", ["agent-S01", "agent-S", "xagent-S0", "agent-S0 "])
def test_orphans_of_an_agent_whose_name_looks_alike_are_left_alone(tree, version, other):
    theirs = isolator(tree, version, other)
    tree.enter(7, *theirs.prepare(container()).enter)
    isolator(tree, version).recover([])
    assert tree.killed == []
    assert theirs.layout.containers() == {"c1"}


def test_an_orphan_that_hangs_does_not_keep_the_agent_from_starting(tree, version):
    first = isolator(tree, version)
    tree.enter(7, *first.prepare(container("c1")).enter)
    tree.enter(8, *first.prepare(container("c2")).enter)
    tree.immortal.add(7)
    second = isolator(tree, version)
    second.recover([])
    assert second.layout.containers() == {"c1"}


def test_why_a_container_ended_while_no_agent_ran_is_still_told(tree, version):
    isolator(tree, version).prepare(container())
    kernel_kills(tree, version, 1)
    second = isolator(tree, version)
    second.recover([])
    told = second.end("c1")
    assert told is not None
    assert told.reason == pb.TaskStatus.REASON_CONTAINER_LIMITATION_MEMORY
    second.cleanup("c1")
    assert second.end("c1") is None


# ---- Out of memory -----------------------------------------------------------------------------


def test_a_kill_at_the_end_is_told_with_the_end(tree, version):
    made = isolator(tree, version)
    made.prepare(container())
    kernel_kills(tree, version, 1)
    told = made.end("c1")
    assert told is not None
    assert told.fatal
    assert told.reason == pb.TaskStatus.REASON_CONTAINER_LIMITATION_MEMORY
    assert "limit 64 MB" in told.message


def test_a_killed_child_is_told_once_while_its_parent_lives(tree, version):
    told: list = []
    made = isolator(tree, version)
    tree.enter(7, *made.prepare(container()).enter)
    made.isolate("c1", 7)
    made._held["c1"].exceeded = told.append
    assert made._look("c1", True) == 0.005  # v1 tells before it kills
    kernel_kills(tree, version, 1)
    assert made._look("c1", False) == 0.5  # the container may be about to end
    assert not told
    assert made._look("c1", False) is None
    assert [(each.fatal, "which goes on" in each.message) for each in told] == [(False, True)]
    assert made.end("c1") is None  # no news
    kernel_kills(tree, version, 2)
    again = made.end("c1")
    assert again is not None
    assert "killed 1 process" in again.message


def test_a_victim_that_takes_its_time_to_die_is_waited_for(tree, version):
    told: list = []
    made = isolator(tree, version)
    tree.enter(7, *made.prepare(container()).enter)
    made.isolate("c1", 7)
    made._held["c1"].exceeded = told.append
    kernel_kills(tree, version, 1)
    tree.dying.add(7)
    assert [made._look("c1", number == 0) for number in range(4)] == [0.5] * 4
    tree.dying.clear()
    assert made._look("c1", False) == 0.5  # and then for what follows from it
    assert not told
    assert made._look("c1", False) is None
    assert len(told) == 1


def test_a_killed_first_process_is_left_to_the_end(tree, version):
    told: list = []
    made = isolator(tree, version)
    tree.enter(8, *made.prepare(container()).enter)
    made.isolate("c1", 7)
    made._held["c1"].exceeded = told.append
    kernel_kills(tree, version, 1)
    assert made._look("c1", True) == 0.5
    assert made._look("c1", False) == 0.5
    assert not told
    assert made.end("c1") is not None


def test_to_count_in_vain_ends_and_begins_anew_when_the_kernel_tells_again(tree, version):
    made = isolator(tree, version)
    tree.enter(7, *made.prepare(container()).enter)
    made.isolate("c1", 7)
    made._held["c1"].exceeded = lambda _: None
    pauses = [made._look("c1", True)]
    while pauses[-1] is not None:
        pauses.append(made._look("c1", False))
    assert pauses == [0.005, 0.02, 0.1, 0.5, 2.0, 10.0, None]
    assert made._look("c1", True) == 0.005
    assert made._look("unknown", True) is None
