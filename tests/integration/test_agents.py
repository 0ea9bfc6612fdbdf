"""Agents of a real master: cut off, silent, back again, gone; and masters that come again."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

from mesos_py.resources import Resources
from mesos_py.states import (
    TASK_DROPPED,
    TASK_FINISHED,
    TASK_KILLED,
    TASK_LOST,
    TASK_RUNNING,
    TASK_STARTING,
    TASK_UNREACHABLE,
)
from mesos_py.v1.types_pb2 import TaskStatus
from tests.kit.cluster import PLENTY, Cluster, Daemon
from tests.kit.framework import Framework, pid_of, what
from tests.kit.proxy import Proxy
from tests.kit.waiting import gone, until

# Short for a test, long enough for a busy machine.
PINGS = {"agent_ping_interval": "500ms", "max_agent_ping_timeouts": "4"}
BACK_SOON = {"registration_backoff": "50ms"}


@contextmanager
def behind_a_way(cluster: Cluster, name: str = "a", **flags: str) -> Iterator[Proxy]:
    """An agent whose way to the master can be cut."""
    with Proxy(cluster.address) as way:
        cluster.start_agent(name, master=way.address, **BACK_SOON, **flags)
        yield way


def back(status: TaskStatus) -> bool:
    return status.reason == TaskStatus.REASON_AGENT_REREGISTERED


# --- the link -----------------------------------------------------------------------


def test_an_agent_whose_link_breaks_is_offered_no_more_and_comes_back_as_if_nothing_was(tmp_path):
    with Cluster(tmp_path) as cluster, behind_a_way(cluster) as way:
        with Framework(cluster.address) as framework:
            running = framework.run("exec sleep 600")
            offer = framework.offer()
            agent_id = cluster.agent_id("a")
            way.cut()
            cluster.wait_for_agent("a", "disconnected")
            assert framework.wait_for("rescinded") == offer.id.value
            way.restore()
            cluster.wait_for_agent("a", "connected")
            assert cluster.agent_id("a") == agent_id
            assert what(framework.offer()) == what(offer)
            assert framework.states(running.task_id.value) == ["STARTING", "RUNNING"]
            assert not gone(pid_of(running))


@pytest.mark.parametrize("aware", [True, False])
def test_an_agent_that_stays_away_is_unreachable_and_its_tasks_come_back_with_it(tmp_path, aware):
    with Cluster(tmp_path, agent_reregister_timeout="300ms") as cluster:
        with behind_a_way(cluster) as way:
            with Framework(cluster.address, partition_aware=aware) as framework:
                running = framework.run("exec sleep 600")
                task_id, agent_id = running.task_id.value, cluster.agent_id("a")
                way.cut()
                given_up = framework.status(task_id, TASK_UNREACHABLE if aware else TASK_LOST)
                assert given_up.reason == TaskStatus.REASON_AGENT_REMOVED
                assert given_up.message == "agent unreachable: away for 0.3 s"
                assert framework.wait_for("agent lost") == agent_id
                assert cluster.agent_row("a").state == "unreachable"
                assert cluster.used() == {}
                way.restore()
                returned = framework.status(task_id, TASK_RUNNING, back)
                assert returned.source == TaskStatus.SOURCE_MASTER
                assert cluster.agent_id("a") == agent_id
                allocated = cluster.agent_row("a").allocated_resources
                assert Resources.from_proto("row", allocated) == Resources.parse("cpus:0.1;mem:16")
                assert not gone(pid_of(running))
                framework.driver.kill_task(task_id)
                framework.status(task_id, TASK_KILLED)


def test_what_happened_while_the_agent_was_away_is_told_when_it_is_back(tmp_path):
    with Cluster(tmp_path) as cluster, behind_a_way(cluster) as way:
        with Framework(cluster.address) as framework:
            ends = framework.run(f"while ! [ -e {tmp_path}/go ]; do sleep 0.02; done")
            dies = framework.run("exec sleep 600")
            way.cut()
            cluster.wait_for_agent("a", "disconnected")
            (tmp_path / "go").touch()
            until(lambda: gone(pid_of(ends)))
            framework.driver.kill_task(dies.task_id)
            way.restore()
            framework.status(ends.task_id.value, TASK_FINISHED)
            framework.status(dies.task_id.value, TASK_KILLED)


def test_a_launch_that_was_lost_on_the_way_is_said_to_be(tmp_path):
    """The order was sent, and never arrived; the agent is asked and does not know it."""
    with Cluster(tmp_path) as cluster, behind_a_way(cluster) as way:
        with Framework(cluster.address) as framework:
            offer = framework.offer()
            way.block()
            task = framework.task("true", offer)
            framework.driver.launch_tasks(offer, task, filters=0)
            until(lambda: cluster.task(framework.id, task.task_id.value))
            way.restore()
            dropped = framework.status(task.task_id.value, TASK_DROPPED)
            assert dropped.reason == TaskStatus.REASON_RECONCILIATION
            assert dropped.source == TaskStatus.SOURCE_AGENT
            framework.gather("cpus:4;mem:4096")


# --- silence ------------------------------------------------------------------------


def test_an_agent_that_stands_still_is_unreachable_until_it_goes_on(tmp_path):
    with Cluster(tmp_path, **PINGS) as cluster:
        agent = cluster.start_agent("a", **BACK_SOON)
        with Framework(cluster.address) as framework:
            running = framework.run("exec sleep 600")
            task_id = running.task_id.value
            agent.pause()
            silent = framework.status(task_id, TASK_UNREACHABLE)
            assert silent.message == "agent unreachable: 4 pings went unanswered"
            agent.resume()
            framework.status(task_id, TASK_RUNNING, back)
            assert not gone(pid_of(running))
            assert cluster.agent_row("a").state == "connected"


def test_a_way_that_swallows_everything_is_noticed_by_both_ends(tmp_path):
    """No end of it is told anything: the master counts pings, the agent misses them."""
    with Cluster(tmp_path, **PINGS) as cluster, behind_a_way(cluster) as way:
        with Framework(cluster.address) as framework:
            running = framework.run("exec sleep 600")
            way.block()
            framework.status(running.task_id.value, TASK_UNREACHABLE)
            (agent,) = cluster.agents
            until(lambda: "silence from" in agent.log)
            way.restore()
            framework.status(running.task_id.value, TASK_RUNNING, back)
            assert not gone(pid_of(running))


# --- the end ------------------------------------------------------------------------


def test_an_agent_that_is_stopped_ends_its_tasks_and_takes_its_leave(tmp_path):
    with Cluster(tmp_path) as cluster:
        agent = cluster.start_agent("a")
        with Framework(cluster.address) as framework:
            running = framework.run("exec sleep 600")
            agent_id = cluster.agent_id("a")
            assert agent.stop() == 0
            framework.status(running.task_id.value, TASK_KILLED)
            assert framework.wait_for("agent lost") == agent_id
            assert gone(pid_of(running))
            cluster.wait_until(lambda: not cluster.operator.agents())


def test_an_agent_that_was_killed_leaves_no_process_and_its_successor_is_another(tmp_path):
    """At the same address, so the master knows that the old one cannot come back."""
    with Cluster(tmp_path) as cluster:
        agent = cluster.start_agent("a")
        agent.flags["port"] = str(agent.port)
        with Framework(cluster.address) as framework:
            running = framework.run("exec sleep 600")
            before = cluster.agent_id("a")
            agent.kill()
            until(lambda: gone(pid_of(running)))
            cluster.wait_for_agent("a", "disconnected")
            assert framework.states(running.task_id.value) == ["STARTING", "RUNNING"]
            agent.work_dir = tmp_path / "new"
            agent.start()
            lost = framework.status(running.task_id.value, TASK_LOST)
            assert lost.reason == TaskStatus.REASON_AGENT_REMOVED
            (row,) = cluster.operator.agents()
            assert row.agent_info.id.value != before
            framework.run("exec sleep 600")


def test_an_agent_that_was_killed_comes_back_with_its_tasks(tmp_path):
    """The framework hears of nothing but how the task ends."""
    with Cluster(tmp_path) as cluster:
        agent = cluster.start_agent("a", tasks_on_exit="keep")
        with Framework(cluster.address) as framework:
            running = framework.run("exec sleep 600")
            task_id, pid = running.task_id.value, pid_of(running)
            before = cluster.agent_id("a")
            agent.kill()
            cluster.wait_for_agent("a", "disconnected")
            agent.start()
            assert cluster.agent_id("a") == before
            assert not gone(pid)
            framework.status(framework.launch("true"), TASK_FINISHED)
            framework.driver.kill_task(task_id, grace_s=0)
            framework.status(task_id, TASK_KILLED)
            assert framework.states(task_id) == ["STARTING", "RUNNING", "KILLED"]
            assert gone(pid)
        agent.process.send_signal(signal.SIGINT)
        assert agent.wait() == 0
        cluster.agents.remove(agent)


def test_a_second_agent_with_the_same_work_directory_ends_and_the_first_does_not_notice(tmp_path):
    with Cluster(tmp_path) as cluster:
        first = cluster.start_agent("a")
        with Framework(cluster.address) as framework:
            running = framework.run("exec sleep 600")
            second = cluster.agent("b", work_dir=str(first.work_dir)).launch()
            assert second.wait() == 1
            assert f"{first.work_dir}" in second.log
            assert str(first.process.pid) in second.log
            assert [row.agent_info.hostname for row in cluster.operator.agents()] == ["a"]
            assert not gone(pid_of(running))


def test_agents_on_one_machine_leave_each_others_tasks_alone(tmp_path):
    with Cluster(tmp_path) as cluster:
        first, _ = cluster.start_agents("a", "b")
        with Framework(cluster.address) as framework:
            kept = [framework.run("exec sleep 600", host="b") for _ in range(3)]
            for _ in range(3):
                dies = framework.run("exec sleep 600", host="a")
                first.kill()
                until(partial(gone, pid_of(dies)))
                first.start()
            assert [pid_of(each) for each in kept if not gone(pid_of(each))] == [
                pid_of(each) for each in kept
            ]


# --- another master -------------------------------------------------------------------


def test_a_new_master_at_the_same_address_finds_everything_as_it_was(tmp_path):
    with Cluster(tmp_path) as cluster:
        cluster.start_agents("a", "b", **BACK_SOON)
        with Framework(cluster.address) as framework:
            running = [framework.run("exec sleep 600", host=host) for host in ("a", "b", "a")]
            for count in (1, 2):
                cluster.restart_master()
                framework.wait_for("disconnected", count=count)
                framework.wait_for("reregistered", count=count)
                for name in ("a", "b"):
                    cluster.wait_until(lambda: len(cluster.operator.agents()) == 2)
                    cluster.wait_for_agent(name, "connected")
                framework.driver.reconcile_tasks()
                framework.wait_for("update", reconciled, count=len(running) * count)
                _still_running(cluster, framework, running)
            for each in running:
                framework.driver.kill_task(each.task_id)
                framework.status(each.task_id.value, TASK_KILLED)


def reconciled(status: TaskStatus) -> bool:
    return status.reason == TaskStatus.REASON_RECONCILIATION


def _still_running(cluster: Cluster, framework: Framework, running: list[TaskStatus]) -> None:
    """The new master lists the tasks, says so when asked, and charges for them."""
    for each in running:
        statuses = framework.statuses(each.task_id.value)
        # An update whose acknowledgement went down with the old master may come after it.
        latest = [status for status in statuses if reconciled(status)][-1]
        assert {status.state for status in statuses} <= {TASK_STARTING, TASK_RUNNING}
        assert (latest.state, pid_of(latest)) == (TASK_RUNNING, pid_of(each))
        task = cluster.task(framework.id, each.task_id.value)
        assert task is not None
        assert task.state == TASK_RUNNING
        assert not gone(pid_of(each))
    allocated = {
        row.agent_info.hostname: sorted(r.name for r in row.allocated_resources)
        for row in cluster.operator.agents()
    }
    assert allocated == {"a": ["cpus", "mem"], "b": ["cpus", "mem"]}


def test_what_ended_while_there_was_no_master_is_told_to_the_next(tmp_path):
    with Cluster(tmp_path) as cluster:
        cluster.start_agent("a", **BACK_SOON)
        with Framework(cluster.address) as framework:
            ends = framework.run(f"while ! [ -e {tmp_path}/go ]; do sleep 0.02; done")
            cluster.master.kill()
            framework.wait_for("disconnected")
            (tmp_path / "go").touch()
            until(lambda: gone(pid_of(ends)))
            cluster.master.start()
            framework.status(ends.task_id.value, TASK_FINISHED)
            cluster.wait_for_history(framework.id)


def test_a_framework_that_never_came_back_to_the_new_master_can_be_torn_down(tmp_path):
    """The new master knows it from its agents only."""
    with Cluster(tmp_path) as cluster:
        cluster.start_agent("a", **BACK_SOON)
        first = Framework(cluster.address)
        with first:
            running = first.run("exec sleep 600")
            first.driver.abort()
        cluster.restart_master()
        cluster.wait_until(lambda: cluster.operator.frameworks().frameworks)
        (listed,) = cluster.operator.frameworks().frameworks
        assert (listed.recovered, listed.connected) == (True, False)
        assert listed.framework_info.name == "test"
        assert not gone(pid_of(running))
        cluster.operator.teardown(first.id)
        until(lambda: gone(pid_of(running)))


def test_a_master_that_stood_still_removes_nobody(tmp_path):
    """It could not hear anybody meanwhile, so it may not judge them for their silence."""
    impatient = {"agent_reregister_timeout": "5s", "heartbeat": "1s"}
    with Cluster(tmp_path, **PINGS, **impatient) as cluster:
        cluster.start_agents("a", "b")
        with Framework(cluster.address, failover_s=5) as framework:
            running = [framework.run("exec sleep 600", host=host) for host in ("a", "b")]
            cluster.master.pause()
            _stand_still_beyond_all_time_outs()
            cluster.master.resume()
            # Whom it left waiting has given up the link, and comes back.
            cluster.wait_until(lambda: cluster.metrics().get("master/agents_reregistered", 0) >= 2)
            # That its old offers are gone it may hear later than we do.
            framework.give_back()
            framework.run("exec sleep 600", host="a")
            for name in ("a", "b"):
                cluster.wait_for_agent(name, "connected")
            metrics = cluster.metrics()
            assert metrics.get("master/agents_unreachable", 0) == 0
            assert metrics.get("master/frameworks_removed", 0) == 0
            for each in running:
                assert framework.states(each.task_id.value) == ["STARTING", "RUNNING"]
                assert not gone(pid_of(each))


def _stand_still_beyond_all_time_outs() -> None:
    """The one place where time itself has to pass: 4 pings of 0.5 s, and half as much more."""
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, 3.5)
    signal.pause()


# --- bad beginnings -------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["master", "agent"])
def test_a_port_in_use_is_named_and_nothing_is_left_behind(tmp_path, kind):
    with Cluster(tmp_path) as cluster:
        if kind == "master":
            second = Daemon("master", "second", tmp_path, {"port": str(cluster.master.port)})
        else:
            second = cluster.agent("b", port=str(cluster.master.port))
        second.launch()
        assert second.wait() == 1
        said = f"port {cluster.master.port} on 127.0.0.1 is in use by another process"
        assert said in second.log.splitlines()[-1]
        if kind == "agent":
            cluster.agents.remove(second)
        assert cluster.operator.agents() == []


def test_an_agent_without_a_master_keeps_looking(tmp_path):
    with Cluster(tmp_path) as cluster:
        cluster.master.kill()
        agent = cluster.agent("a", PLENTY, **BACK_SOON).launch()
        until(lambda: "again_in_s" in agent.log)
        assert agent.alive
        cluster.master.start()
        cluster.wait_until(cluster.operator.agents)
        os.kill(agent.process.pid, 0)
