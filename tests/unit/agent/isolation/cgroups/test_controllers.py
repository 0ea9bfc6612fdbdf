"""What each controller writes and reads, on both versions."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from agent.isolation.cgroups.cpu import Cpu, shares, weight
from agent.isolation.cgroups.cpuacct import CpuAccounting
from agent.isolation.cgroups.cpuset import Cpuset
from agent.isolation.cgroups.files import CgroupError
from agent.isolation.cgroups.io import Io, parse_limits
from agent.isolation.cgroups.memory import Memory
from agent.isolation.cgroups.numbers import MIB
from agent.isolation.cgroups.options import Options
from agent.isolation.cgroups.pids import Pids
from mesos_py.errors import InsufficientResources, InvalidValue
from mesos_py.resources import Resources
from tests.kit.cgroup_tree import FakeTree, container


@pytest.fixture
def tree(tmp_path: Path) -> FakeTree:
    return FakeTree(tmp_path)


def made(tree: FakeTree, kind, version: int, **options):
    chosen = Options(**options)
    layout = tree.v1(chosen) if version == 1 else tree.v2(chosen)
    layout.make()
    return kind(layout.places[kind.name], chosen)


def put(controller, container_id: str, name: str, text: str) -> None:
    Path(controller.group(container_id).file(name)).write_text(text)


def read(controller, container_id: str, name: str) -> str:
    text: str = controller.group(container_id).read(name)
    return text.strip()


# ---- cpu ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("milli", "on_v1", "on_v2"),
    [(0, 2, 1), (1, 2, 1), (100, 102, 10), (1000, 1024, 100), (10**6, 262144, 10000)],
)
def test_shares_follow_the_cpus_within_what_the_kernel_takes(milli, on_v1, on_v2):
    assert (shares(milli), weight(milli)) == (on_v1, on_v2)


@pytest.mark.parametrize(("version", "name"), [(1, "cpu.shares"), (2, "cpu.weight")])
def test_an_agents_tasks_weigh_together_what_it_gives_away(tree, version, name):
    cpu = made(tree, Cpu, version, cpus_milli=2500)
    per_core = {1: 1024, 2: 100}[version]
    assert cpu.place.agent.read(name).strip() == str(per_core * 5 // 2)
    assert cpu.place.chain[0].read(name).strip() == str(per_core * (os.cpu_count() or 1))


def test_without_the_flag_there_is_no_hard_limit(tree):
    cpu = made(tree, Cpu, 1)
    cpu.prepare(container(resources="cpus:0.5"))
    assert read(cpu, "c1", "cpu.shares") == "512"
    assert read(cpu, "c1", "cpu.cfs_quota_us") == "-1"
    assert "cpu_limit_cores" not in cpu.usage("c1")


@pytest.mark.parametrize("version", [1, 2])
def test_a_hard_limit_grows_and_shrinks_with_the_cpus(tree, version):
    cpu = made(tree, Cpu, version, quota=True)
    cpu.prepare(container(resources="cpus:0.5"))
    assert cpu.usage("c1")["cpu_limit_cores"] == 0.5
    cpu.update("c1", Resources.of(cpus=2.5))
    assert cpu.usage("c1")["cpu_limit_cores"] == 2.5
    cpu.update("c1", Resources.of(cpus=0.001))
    assert cpu.usage("c1")["cpu_limit_cores"] == 0.01  # a millisecond of each tenth second


def test_throttling_is_counted_in_the_units_of_each_version(tree, tmp_path):
    first = made(tree, Cpu, 1, quota=True)
    first.prepare(container())
    put(first, "c1", "cpu.stat", "nr_periods 9\nnr_throttled 4\nthrottled_time 2500000000\n")
    assert first.usage("c1") == {
        "cpu_periods": 9,
        "cpu_throttled_periods": 4,
        "cpu_throttled_seconds": 2.5,
        "cpu_limit_cores": 1,
    }
    second = made(tree, Cpu, 2, quota=True)
    second.prepare(container())
    put(
        second,
        "c1",
        "cpu.stat",
        "usage_usec 5\nuser_usec 3000000\nsystem_usec 500000\n"
        "nr_periods 9\nnr_throttled 4\nthrottled_usec 2500000\n",
    )
    assert second.usage("c1") == {
        "cpu_user_seconds": 3,
        "cpu_system_seconds": 0.5,
        "cpu_periods": 9,
        "cpu_throttled_periods": 4,
        "cpu_throttled_seconds": 2.5,
        "cpu_limit_cores": 1,
    }


def test_time_used_is_read_in_nanoseconds_or_else_in_ticks(tree):
    cpu = made(tree, CpuAccounting, 1)
    cpu.prepare(container())
    put(cpu, "c1", "cpuacct.usage_user", "1500000000\n")
    put(cpu, "c1", "cpuacct.usage_sys", "250000000\n")
    assert cpu.usage("c1") == {"cpu_user_seconds": 1.5, "cpu_system_seconds": 0.25}
    Path(cpu.group("c1").file("cpuacct.usage_user")).unlink()
    put(cpu, "c1", "cpuacct.stat", "user 150\nsystem 20\n")
    assert set(cpu.usage("c1")) == {"cpu_user_seconds", "cpu_system_seconds"}


def test_figures_of_a_group_that_is_gone_are_left_out(tree):
    for version, kinds in (
        (1, (Cpu, CpuAccounting, Memory, Pids, Io)),
        (2, (Cpu, Memory, Pids, Io)),
    ):
        for kind in kinds:
            assert made(tree, kind, version, quota=True).usage("never") == {}


# ---- memory ---------------------------------------------------------------------------------

LIMIT = {1: "memory.limit_in_bytes", 2: "memory.max"}
SOFT = {1: "memory.soft_limit_in_bytes", 2: "memory.low"}
USED = {1: "memory.usage_in_bytes", 2: "memory.current"}


@pytest.mark.parametrize("version", [1, 2])
def test_memory_has_a_hard_and_a_soft_limit_of_at_least_32_mb(tree, version):
    memory = made(tree, Memory, version)
    memory.prepare(container(resources="cpus:1;mem:64.5"))
    assert read(memory, "c1", LIMIT[version]) == str(64 * MIB + MIB // 2)
    assert read(memory, "c1", SOFT[version]) == str(64 * MIB + MIB // 2)
    memory.prepare(container("c2", resources="cpus:1"))
    assert read(memory, "c2", LIMIT[version]) == str(32 * MIB)


@pytest.mark.parametrize("version", [1, 2])
def test_memory_grows_and_shrinks(tree, version):
    memory = made(tree, Memory, version)
    memory.prepare(container())
    for mem in (128, 64, 256, 40):
        memory.update("c1", Resources.of(mem=mem))
        assert memory.usage("c1")["memory_limit_bytes"] == mem * MIB


@pytest.mark.parametrize("grows", [True, False])
def test_with_swap_limited_memory_and_swap_are_never_less_than_memory(tree, grows):
    memory = made(tree, Memory, 1, limit_swap=True)
    memory.prepare(container(resources="mem:64"))
    tree.writes.clear()
    memory.update("c1", Resources.of(mem=128 if grows else 40))
    names = [name for name, _ in tree.writes if name.endswith("limit_in_bytes")][1:]
    wanted = ["memory.memsw.limit_in_bytes", "memory.limit_in_bytes"]
    assert names == (wanted if grows else wanted[::-1])


def test_v2_without_swap(tree):
    memory = made(tree, Memory, 2, limit_swap=True)
    memory.prepare(container())
    assert read(memory, "c1", "memory.swap.max") == "0"


def test_v1_that_refuses_to_shrink_keeps_the_hard_limit_and_lowers_the_soft_one(tree):
    memory = made(tree, Memory, 1)
    memory.prepare(container(resources="mem:128"))
    tree.refuse["memory.limit_in_bytes"] = errno.EBUSY
    memory.update("c1", Resources.of(mem=64))
    assert read(memory, "c1", LIMIT[1]) == str(128 * MIB)
    assert read(memory, "c1", SOFT[1]) == str(64 * MIB)
    del tree.refuse["memory.limit_in_bytes"]
    memory.update("c1", Resources.of(mem=64))
    assert read(memory, "c1", LIMIT[1]) == str(64 * MIB)


def test_v2_is_never_told_a_limit_below_what_is_used_since_it_would_kill(tree):
    memory = made(tree, Memory, 2)
    memory.prepare(container(resources="mem:128"))
    put(memory, "c1", USED[2], str(62 * MIB))
    memory.update("c1", Resources.of(mem=64))
    assert read(memory, "c1", LIMIT[2]) == str(128 * MIB)
    put(memory, "c1", USED[2], str(20 * MIB))
    memory.update("c1", Resources.of(mem=64))
    assert read(memory, "c1", LIMIT[2]) == str(64 * MIB)


def test_another_refusal_is_an_error_with_file_and_value(tree):
    memory = made(tree, Memory, 1)
    tree.refuse["memory.limit_in_bytes"] = errno.EINVAL
    with pytest.raises(CgroupError, match=r"c1/memory.limit_in_bytes: '67108864': Invalid arg"):
        memory.prepare(container())


def test_a_kernel_without_soft_limits_is_good_enough(tree):
    memory = made(tree, Memory, 1)
    tree.refuse["memory.soft_limit_in_bytes"] = errno.EOPNOTSUPP
    memory.prepare(container())
    assert read(memory, "c1", LIMIT[1]) == str(64 * MIB)


@pytest.mark.parametrize("version", [1, 2])
def test_memory_figures(tree, version):
    memory = made(tree, Memory, version)
    memory.prepare(container())
    put(memory, "c1", USED[version], "5000\n")
    peak = {1: "memory.max_usage_in_bytes", 2: "memory.peak"}[version]
    put(memory, "c1", peak, "6000\n")
    put(memory, "c1", "memory.stat", "anon 1\nfile 2\nrss 9\ntotal_rss 1\ntotal_cache 2\n")
    assert memory.usage("c1") == {
        "memory_bytes": 5000,
        "memory_rss_bytes": 1,
        "memory_cache_bytes": 2,
        "memory_peak_bytes": 6000,
        "memory_limit_bytes": 64 * MIB,
        "memory_oom_kills": 0,
    }


OOM = {
    1: ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill {}\n"),
    2: ("memory.events", "low 0\nhigh 0\nmax 7\noom 2\noom_kill {}\noom_group_kill 0\n"),
}


@pytest.mark.parametrize("version", [1, 2])
def test_kills_are_told_with_limit_and_peak(tree, version):
    memory = made(tree, Memory, version)
    memory.prepare(container())
    name, text = OOM[version]
    put(memory, "c1", name, text.format(2))
    peak = {1: "memory.max_usage_in_bytes", 2: "memory.peak"}[version]
    put(memory, "c1", peak, str(64 * MIB))
    if version == 1:
        put(memory, "c1", "memory.failcnt", "31\n")
    assert memory.kills("c1") == 2
    told = memory.limitation("c1", 2, fatal=True)
    wanted = "Memory limit exceeded: limit 64 MB, peak 64 MB; the kernel killed 2 processes"
    assert (told.message, told.resources, told.fatal) == (wanted, Resources.of(mem=64), True)


@pytest.mark.parametrize("version", [1, 2])
def test_a_victim_that_was_within_its_limit_is_told_so(tree, version):
    memory = made(tree, Memory, version)
    memory.prepare(container())
    put(memory, "c1", "memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 1\n")
    told = memory.limitation("c1", 1, fatal=False)
    assert told.message.startswith("Out of memory on the agent: the kernel killed 1 process (")
    assert told.message.endswith("of the task, which goes on")


def test_v1_counts_what_happened_in_groups_of_the_tasks_own(tree):
    memory = made(tree, Memory, 1)
    memory.prepare(container())
    own = memory.group("c1").child("own")
    own.make()
    Path(own.file("memory.oom_control")).write_text(OOM[1][1].format(3))
    assert memory.kills("c1") == 3


def test_a_v2_without_a_peak_leaves_it_out(tree):
    memory = made(tree, Memory, 2)
    memory.prepare(container())
    Path(memory.group("c1").file("memory.peak")).unlink()
    assert "memory_peak_bytes" not in memory.usage("c1")
    assert "peak unknown" in memory.limitation("c1", 1, fatal=True).message


# ---- pids -----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [1, 2])
def test_pids_are_limited_by_flag_only(tree, version):
    pids = made(tree, Pids, version, pids_limit=100)
    pids.prepare(container())
    put(pids, "c1", "pids.current", "3\n")
    assert pids.usage("c1") == {"pids": 3, "pids_limit": 100}
    without = made(tree, Pids, version)
    without.prepare(container("c2"))
    assert without.usage("c2") == {"pids": 0}


# ---- cpuset ---------------------------------------------------------------------------------


def test_v1_keeps_all_who_ask_for_nothing_in_one_group(tree):
    cpuset = made(tree, Cpuset, 1)
    one, two = cpuset.prepare(container("c1")), cpuset.prepare(container("c2"))
    assert one == two
    assert one.path.endswith("agent-S0/shared")
    assert (one.read("cpuset.cpus").strip(), one.read("cpuset.mems").strip()) == ("0-3", "0")


@pytest.mark.parametrize("version", [1, 2])
def test_whole_cores_are_taken_from_the_others_and_given_back(tree, version):
    cpuset = made(tree, Cpuset, version)
    others = cpuset.prepare(container("c1"))
    mine = cpuset.prepare(container("c2", "cpus:2", whole_cores="true"))
    assert mine.read("cpuset.cpus").strip() == "2-3"
    assert others.read("cpuset.cpus").strip() == "0-1"
    late = cpuset.prepare(container("c3"))
    assert late.read("cpuset.cpus").strip() == "0-1"
    cpuset.forget("c2")
    assert others.read("cpuset.cpus").strip() == "0-3"


@pytest.mark.parametrize("version", [1, 2])
def test_one_core_always_stays_shared(tree, version):
    cpuset = made(tree, Cpuset, version)
    cpuset.prepare(container("c1", "cpus:2", whole_cores="yes"))
    with pytest.raises(InsufficientResources, match="2 whole cores wanted, 1 there"):
        cpuset.prepare(container("c2", "cpus:2", whole_cores="yes"))
    cpuset.prepare(container("c3", "cpus:1", whole_cores="1"))


@pytest.mark.parametrize(
    ("resources", "value", "why"),
    [
        ("cpus:1.5", "true", "whole number of cpus, not 1.5"),
        ("mem:64", "true", "whole number of cpus, not 0"),
        ("cpus:1", "perhaps", "must be true or false"),
    ],
)
def test_a_label_that_cannot_be_met_names_itself_and_why(tree, resources, value, why):
    cpuset = made(tree, Cpuset, 1)
    with pytest.raises(InvalidValue, match=f"labels.mesos_py.whole_cores.*{why}"):
        cpuset.prepare(container("c1", resources, whole_cores=value))


@pytest.mark.parametrize("version", [1, 2])
def test_an_agent_that_was_started_again_knows_whose_cores_are_taken(tree, version):
    first = made(tree, Cpuset, version)
    first.prepare(container("c1", "cpus:2", whole_cores="true"))
    first.prepare(container("c2", "cpus:1"))
    second = made(tree, Cpuset, version)
    second.recover("c1", Resources.of(cpus=2))
    second.recover("c2", Resources.of(cpus=1))
    with pytest.raises(InsufficientResources, match="1 there"):
        second.prepare(container("c3", "cpus:2", whole_cores="true"))
    second.forget("c1")
    shared = second.group("c2")
    assert shared.read("cpuset.cpus").strip() == "0-3"


# ---- io -------------------------------------------------------------------------------------


def test_limits_are_written_as_each_version_wants_them(tree):
    first = made(tree, Io, 1, io_max="8:0 rbps=1000 wiops=5")
    group = first.prepare(container())
    assert group.read("blkio.throttle.read_bps_device").strip() == "8:0 1000"
    assert group.read("blkio.throttle.write_iops_device").strip() == "8:0 5"
    second = made(tree, Io, 2, io_max="8:0 rbps=1000 wiops=5")
    assert second.prepare(container()).read("io.max").strip() == "8:0 rbps=1000 wiops=5"


def test_a_task_can_only_tighten_what_the_operator_allows(tree):
    io = made(tree, Io, 2, io_max="8:0 rbps=1000")
    group = io.prepare(container(io_max="8:0 rbps=5000 wbps=10"))
    assert group.read("io.max").strip() == "8:0 rbps=1000 wbps=10"


def test_a_weight_is_written_where_the_kernel_has_them(tree):
    io = made(tree, Io, 2)
    assert io.prepare(container(io_weight="500")).read("io.weight").strip() == "500"
    without = made(tree, Io, 1)
    with pytest.raises(InvalidValue, match=r"labels.mesos_py.io_weight.*has no weights"):
        without.prepare(container(io_weight="500"))


@pytest.mark.parametrize("value", ["0", "10001", "-1", "1.5", "many", "", "٣", "1_0"])
def test_a_weight_that_is_none_is_refused(tree, value):
    with pytest.raises(InvalidValue, match=r"labels\.mesos_py\.io_weight"):
        made(tree, Io, 2).prepare(container(io_weight=value))


@pytest.mark.parametrize(
    "text",
    ["8:0", "sda rbps=1", "8:0 rbps=0", "8:0 rbps=-1", "8:0 rbps", "8:0 speed=1", "8 rbps=1"],
)
def test_a_limit_that_is_none_is_refused(text):
    with pytest.raises(InvalidValue, match="cgroups-io-max"):
        parse_limits(text, "cgroups-io-max")


def test_disk_traffic_is_summed_over_disks(tree):
    first = made(tree, Io, 1)
    first.prepare(container())
    lines = "8:0 Read 10\n8:0 Write 20\n8:0 Total 30\n8:16 Read 1\nTotal 31\n"
    put(first, "c1", "blkio.throttle.io_service_bytes_recursive", lines)
    put(first, "c1", "blkio.throttle.io_serviced_recursive", "8:0 Read 2\n8:0 Write 3\nTotal 5\n")
    figures = {"io_read_bytes": 11, "io_write_bytes": 20, "io_reads": 2, "io_writes": 3}
    assert first.usage("c1") == figures
    second = made(tree, Io, 2)
    second.prepare(container())
    put(second, "c1", "io.stat", "8:0 rbytes=10 wbytes=20 rios=2 wios=3 dbytes=0\n8:16 rbytes=1\n")
    assert second.usage("c1") == figures
