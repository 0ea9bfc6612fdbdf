"""The isolator `cgroups` on this machine's kernel: the contract, and limits that hold.

Also what tests/vm runs on cgroup v2.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.isolation import base
from agent.isolation.cgroups.isolator import CgroupIsolator
from mesos_py.resources import Resources
from mesos_py.testing.isolator_contract import IsolatorContract
from mesos_py.testing.isolator_harness import IsolatorHarness, runs, wait_for
from mesos_py.v1 import types_pb2 as pb
from tests.kit import cgroup_host

MIB = 1024 * 1024
# Takes so many MB, says so, and keeps them.
TAKE = "python3 -c 'import time; b = bytearray({mb} * 1048576); print(1, flush=True); {then}'"
SPIN = "while :; do :; done"


@pytest.fixture(autouse=True)
def host(lacking) -> Iterator[None]:
    if (what := cgroup_host.lacks()) is not None:
        lacking(what)
    yield
    assert cgroup_host.remove_all() == []


@pytest.fixture
def h(tmp_path: Path) -> Iterator[IsolatorHarness]:
    flags = {**cgroup_host.FLAGS, "cgroups_enable_cfs": True, "cgroups_pids_limit": 50}
    harness = IsolatorHarness(base, CgroupIsolator, tmp_path, flags)
    yield harness
    harness.close()


@pytest.fixture
def isolator(h: IsolatorHarness) -> CgroupIsolator:
    made: CgroupIsolator = h.isolator()
    made.recover([])
    return made


class TestContract(IsolatorContract):
    interface = base
    flags = cgroup_host.FLAGS
    reaches_all = True

    def make(self, facts):
        return CgroupIsolator(facts)

    def traces(self, agent_id):
        return cgroup_host.groups_named(agent_id)


# ---- Memory ---------------------------------------------------------------------------------


def test_a_task_over_its_memory_is_told_by_the_kernels_own_counter(h, isolator):
    running = h.start(isolator, h.container(), "exec " + TAKE.format(mb=200, then="time.sleep(99)"))
    assert running.wait() == -signal.SIGKILL
    told = isolator.end("c1")
    assert told.reason == pb.TaskStatus.REASON_CONTAINER_LIMITATION_MEMORY
    assert told.message.startswith("Memory limit exceeded: limit 64 MB, peak 64 MB; the kernel")
    assert (told.resources, told.fatal) == (Resources.of(mem=64), True)
    assert isolator.usage("c1")["memory_oom_kills"] == 1


def test_a_killed_child_is_told_while_its_parent_lives(h, isolator):
    script = TAKE.format(mb=200, then="0") + "; echo $? > status; sleep 1000"
    running = h.start(isolator, h.container(), script)
    assert running.note("status") == "137"
    wait_for("the kernel's word", lambda: running.told)
    assert not running.told[0].fatal
    assert "killed 1 process of the task, which goes on" in running.told[0].message
    assert runs(running.pid)
    assert h.finish(isolator, running) is None


def test_a_shell_that_ends_with_its_killed_child_is_told_at_the_end(h, isolator):
    running = h.start(isolator, h.container(), TAKE.format(mb=200, then="0") + " || exit 5")
    assert running.wait() == 5
    told = isolator.end("c1")
    assert told is not None
    assert told.fatal
    assert running.told == []


@pytest.mark.parametrize("script", ["exit 137", "kill -9 $$"])
def test_neither_exit_code_137_nor_a_kill_by_hand_is_taken_for_out_of_memory(h, isolator, script):
    running = h.start(isolator, h.container(), script)
    running.wait()
    assert isolator.end("c1") is None


def test_what_happened_before_anybody_watched_is_told_too(h, isolator):
    script = TAKE.format(mb=200, then="0") + "; echo $? > status; sleep 1000"
    preparation_over = isolator.watch
    isolator.watch = lambda *_: None
    running = h.start(isolator, h.container(), script)
    running.note("status")
    preparation_over("c1", running.told.append)
    wait_for("the kernel's word", lambda: running.told)


def test_memory_may_be_taken_up_to_a_limit_that_grows(h, isolator):
    take = TAKE.format(mb=100, then="time.sleep(99)")
    script = f"read go < go; exec {take} > taken"
    container = h.container()
    os.mkfifo(Path(container.sandbox, "go"))
    running = h.start(isolator, container, script)
    isolator.update("c1", Resources.of(cpus=1, mem=200))
    Path(container.sandbox, "go").write_text("go\n")
    assert running.note("taken") == "1"
    used = isolator.usage("c1")
    assert 100 * MIB < used["memory_bytes"] <= used["memory_peak_bytes"] < 200 * MIB
    assert used["memory_limit_bytes"] == 200 * MIB
    assert used["memory_rss_bytes"] > 100 * MIB


def test_a_limit_below_what_is_used_is_not_forced_and_kills_nobody(h, isolator):
    take = TAKE.format(mb=100, then="time.sleep(99)")
    running = h.start(isolator, h.container(resources="cpus:1;mem:200"), f"exec {take} > taken")
    running.note("taken")
    isolator.update("c1", Resources.of(cpus=1, mem=64))
    assert isolator.usage("c1")["memory_limit_bytes"] == 200 * MIB
    isolator.update("c1", Resources.of(cpus=1, mem=150))
    assert isolator.usage("c1")["memory_limit_bytes"] == 150 * MIB
    assert runs(running.pid)
    assert running.told == []


# ---- Processor time --------------------------------------------------------------------------


def test_a_hard_limit_of_processor_time_holds_and_throttling_is_counted(h, isolator):
    began = time.monotonic()
    h.start(isolator, h.container(resources="cpus:0.2;mem:64"), SPIN)
    wait_for("throttling", lambda: isolator.usage("c1").get("cpu_throttled_periods", 0) >= 5)
    used = isolator.usage("c1")
    took = time.monotonic() - began
    assert used["cpu_limit_cores"] == 0.2
    assert used["cpu_periods"] >= used["cpu_throttled_periods"] >= 5
    assert used["cpu_throttled_seconds"] > 0
    # No time is asserted here but the kernel's own: it gave no more than a fifth, and one
    # period's worth for the start.
    assert used["cpu_user_seconds"] + used["cpu_system_seconds"] < 0.2 * (took + 0.1) + 0.1
    isolator.update("c1", Resources.of(cpus=1.5, mem=64))
    assert isolator.usage("c1")["cpu_limit_cores"] == 1.5


def test_whole_cores_are_ones_own(h, isolator, lacking):
    if (os.cpu_count() or 1) < 2:
        lacking("two processors")
    label = {"mesos_py.whole_cores": "true"}
    container = h.container(resources="cpus:1;mem:64", labels=label)
    running = h.start(isolator, container, "sleep 1000")
    other = h.start(isolator, h.container("c2"), "sleep 1000")
    mine, theirs = os.sched_getaffinity(running.pid), os.sched_getaffinity(other.pid)
    assert len(mine) == 1
    assert not mine & theirs
    h.finish(isolator, running)
    assert mine <= os.sched_getaffinity(other.pid)


# ---- Processes --------------------------------------------------------------------------------


def test_a_fork_bomb_stays_within_its_limit_and_ends_as_a_whole(h, isolator):
    bomb = "b() { setsid sh -c 'sleep 100 & sleep 100 & wait' & b & b & }; b; b; sleep 1000"
    h.start(isolator, h.container(resources="cpus:1;mem:128"), f"exec 2>/dev/null; {bomb}")
    wait_for("the limit", lambda: isolator.usage("c1")["pids"] >= 49)
    assert isolator.usage("c1")["pids_limit"] == 50
    assert isolator.end("c1") is None
    assert isolator.ending.pids(isolator.layout.kill.agent.child("c1")) == []


def test_pause_stops_all_of_it_and_resume_lets_it_go_on(h, isolator):
    h.start(isolator, h.container(), SPIN)

    def used():
        figures = isolator.usage("c1")
        return figures["cpu_user_seconds"] + figures["cpu_system_seconds"]

    assert isolator.pause("c1")
    before = used()
    time.sleep(0.05)
    assert used() == before
    isolator.resume("c1")
    wait_for("it to go on", lambda: used() > before)
    assert isolator.pause("c1")
    isolator.end("c1")


# ---- Disks -------------------------------------------------------------------------------------


def test_disk_traffic_is_limited_and_counted(h, isolator):
    # v1 counts only on disks for which somebody has a limit.
    label = {"mesos_py.io_max": "* wbps=1000000000"}
    container = h.container(resources="cpus:1;mem:128", labels=label)
    script = "dd if=/dev/zero of=file bs=1M count=4 oflag=direct 2>/dev/null; echo $? > done"
    running = h.start(isolator, container, f"{script}; sleep 99")
    assert running.note("done") == "0"
    used = isolator.usage("c1")
    assert used["io_write_bytes"] >= 4 * MIB
    assert used["io_writes"] >= 1
