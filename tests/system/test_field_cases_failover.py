"""Field cases "Failover & recovery" and "Task life cycle" where hosts and wires fail.

Each master, agent and scheduler is a host of its own; see `tests/kit/chaos`.
"""

from __future__ import annotations

import random

import pytest

from tests.kit.chaos.cluster import ChaosCluster
from tests.kit.chaos.ledger import boottime_s
from tests.kit.chaos.wires import both_ways, lossy
from tests.kit.chaos.workload import Plan

pytestmark = pytest.mark.needs("root", "nft", "unshare", "nsenter")

HEARTBEAT_S = 1.0


def agents_of(cluster: ChaosCluster) -> list[str]:
    """Their states, as a master says that answers."""
    view = cluster.view()
    return [] if view is None else [agent.state for agent in view.agents]


def pids(cluster: ChaosCluster) -> dict[str, int]:
    """Of tasks that run: those that have not made the mark of their end."""
    return {run.task_id: run.pid for run in cluster.runs() if run.ended is None}


def test_2000_short_tasks_with_lost_packets_and_two_cuts_are_all_known_to_have_ended(tmp_path):
    plan = Plan("", "", short=2000, long=0, seconds=0.2, cpus=0.25)
    with ChaosCluster(tmp_path, plan) as cluster:
        cluster.wires.add(lossy(50))
        master = cluster.masters[0].host
        for number, agent in enumerate(cluster.agents):
            cluster.wait_for("update", 100 + 500 * number, state="FINISHED", limit_s=120)
            cut = both_ways(master, agent.host)
            cluster.wires.add(cut)
            cluster.sleep(10)
            cluster.wires.remove(cut)
        # So many packets were lost that the fault was one.
        assert cluster.wires.dropped() > 0
        cluster.wires.remove(lossy(50))
        cluster.wait_for("done", limit_s=120)
        cluster.prove()
        assert cluster.count("launch") >= 2000


def test_a_first_connect_into_the_void_and_a_link_that_dies_without_a_word(tmp_path):
    plan = Plan("", "", short=100_000, long=1, seconds=0.2)
    flags = {"heartbeat": f"{HEARTBEAT_S:g}s"}
    with ChaosCluster(tmp_path, plan, master_flags=flags, start_scheduler=False) as cluster:
        cut = both_ways(cluster.masters[0].host, cluster.scheduler.host)
        cluster.wires.add(cut)
        cluster.scheduler.launch()
        # As long as it takes to give up a first attempt or two.
        cluster.sleep(8)
        assert cluster.count("registered", pid=cluster.scheduler.process.pid) == 0
        cluster.wires.remove(cut)
        cluster.wait_for("update", state="FINISHED")

        begun, known = boottime_s(), cluster.count("disconnected")
        cluster.wires.add(cut)
        cluster.wait_for("disconnected", known + 1)
        cluster.sleep(max(0.0, begun + 15 - boottime_s()))
        healed = boottime_s()
        cluster.wires.remove(cut)
        cluster.wait_until(lambda: cluster.runs_since(healed))
        cluster.prove()


def test_a_master_that_stood_still_for_30_s_removes_nobody(tmp_path):
    with ChaosCluster(tmp_path, Plan("", "", short=100_000, long=4, seconds=0.5)) as cluster:
        cluster.wait_for("update", 5, state="FINISHED")
        cluster.wait_until(lambda: len([r for r in cluster.runs() if "long" in r.task_id]) == 4)
        before = pids(cluster)
        cluster.masters[0].pause()
        cluster.sleep(30)
        cluster.masters[0].resume()
        resumed = boottime_s()
        cluster.wait_until(lambda: cluster.runs_since(resumed))
        # More than a window in which agents are given up has passed after that.
        cluster.sleep(10)
        assert cluster.count("update", state="UNREACHABLE") == 0
        kept = {task: pid for task, pid in before.items() if task.startswith("long")}
        assert kept.items() <= pids(cluster).items()
        cluster.wait_until(lambda: agents_of(cluster) == ["connected"] * 2)
        cluster.prove()


def test_20_failovers_of_master_and_scheduler_leave_long_tasks_alone(tmp_path):
    dice = random.Random(4)
    with ChaosCluster(tmp_path, Plan("", "", short=100_000, long=4, seconds=0.5)) as cluster:
        cluster.wait_until(lambda: len([r for r in cluster.runs() if "long" in r.task_id]) == 4)
        before = {task: pid for task, pid in pids(cluster).items() if task.startswith("long")}
        for _ in range(20):
            daemon = dice.choice([cluster.masters[0], cluster.scheduler])
            seen = cluster.count("registered")
            cluster.take_down(daemon.name, "kill")
            cluster.bring_up(daemon.name)
            cluster.wait_for("registered", seen + 1)
            cluster.sleep(dice.uniform(0, 1))
        assert before.items() <= pids(cluster).items()
        cluster.prove()
        assert [run.task_id for run in cluster.runs() if "long" in run.task_id] == [*before]


def test_what_ended_while_its_agent_was_dead_is_told_and_not_run_again(tmp_path):
    plan = Plan("", "", short=100_000, long=2, seconds=2.0)
    with ChaosCluster(tmp_path, plan, agents=1) as cluster:
        cluster.wait_for("update", 2, state="FINISHED")
        cluster.wait_until(lambda: len(pids(cluster)) >= 6)
        running = pids(cluster)
        cluster.take_down("agent0", "kill")
        # By then all short ones have ended on their own.
        cluster.wait_until(lambda: all(task.startswith("long") for task in pids(cluster)))
        cluster.bring_up("agent0")
        for task_id in running:
            if not task_id.startswith("long"):
                cluster.wait_for("update", task=task_id, state="FINISHED")
        cluster.prove()


def test_a_full_disk_of_an_agent_costs_no_task_its_end(tmp_path):
    plan = Plan("", "", short=100_000, long=2, seconds=0.5)
    with ChaosCluster(tmp_path, plan, disks=["agent0"]) as cluster:
        cluster.wait_for("update", 10, state="FINISHED")
        disk = cluster.disk("agent0")
        disk.fill()
        cluster.sleep(10)
        disk.free()
        freed = boottime_s()
        cluster.wait_until(lambda: cluster.finished_on("agent0", freed))
        cluster.prove()
