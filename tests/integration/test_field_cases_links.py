"""Field cases about links: half-open ones, slow readers, failovers one after the other."""

import random
from functools import partial

import psutil

from mesos_py.rpc import LinkTimeouts
from mesos_py.states import TASK_KILLED, TASK_RUNNING
from mesos_py.v1.scheduler_pb2 import Call
from mesos_py.v1.types_pb2 import TaskID, TaskStatus
from tests.kit.cluster import Cluster
from tests.kit.framework import Framework, pid_of
from tests.kit.proxy import Proxy
from tests.kit.raw import RawScheduler
from tests.kit.waiting import gone, until

QUICK = {"timeouts": LinkTimeouts(connect_s=1.0, backoff_first_s=0.05, backoff_cap_s=0.2)}
MIB = 1 << 20


# --- half-open ------------------------------------------------------------------------------


def test_a_first_connect_into_silence_is_given_up_and_tried_again(tmp_path):
    """The port answers, and then nothing more ever comes."""
    with Cluster(tmp_path) as cluster, Proxy(cluster.address) as way:
        way.block()
        framework = Framework(way.address, driver=QUICK)
        framework.driver.start()
        until(lambda: way.swallowed >= 2)
        way.restore()
        framework.wait_for("registered")
        framework.end()


def test_of_several_masters_one_that_is_silent_does_not_stop_the_search(tmp_path):
    with Cluster(tmp_path) as cluster, Proxy(cluster.address) as way:
        way.block()
        with Framework(f"{way.address},{cluster.address}", driver=QUICK) as framework:
            assert framework.driver.connected


def test_work_goes_on_after_a_silence_in_the_middle_of_it(tmp_path):
    """Of both links at once: no task is lost, and the next one starts."""
    flags = {"heartbeat": "500ms", "agent_ping_interval": "500ms", "max_agent_ping_timeouts": "4"}
    with Cluster(tmp_path, **flags) as cluster, Proxy(cluster.address) as way:
        cluster.start_agent("a", master=way.address, registration_backoff="50ms")
        with Framework(way.address) as framework:
            running = framework.run("exec sleep 600")
            way.block()
            framework.wait_for("disconnected")
            cluster.wait_for_agent("a", "unreachable")
            way.restore()
            framework.wait_for("reregistered")
            framework.run("exec sleep 600")
            framework.driver.reconcile_tasks([running])
            framework.status(running.task_id.value, TASK_RUNNING, reconciled)
            assert not gone(pid_of(running))


def reconciled(status: TaskStatus) -> bool:
    return status.reason == TaskStatus.REASON_RECONCILIATION


# --- slow readers -----------------------------------------------------------------------------


def test_who_does_not_read_is_cut_off_and_costs_nobody_memory_or_time(tmp_path):
    with Cluster(tmp_path, max_peer_queue="4MB") as cluster:
        cluster.start_agent("a")
        slow = RawScheduler(cluster.address)
        try:
            with Framework(cluster.address) as framework:
                master = psutil.Process(cluster.master.process.pid)
                before = master.memory_info().rss
                _ask_much_and_read_nothing(slow)
                until(lambda: "peer cut off" in cluster.master.log)
                assert master.memory_info().rss - before < 100 * MIB
                framework.run("exec sleep 600", host="a")
                assert framework.all("disconnected") == []
        finally:
            slow.close()
        assert "the peer reads too slowly" in cluster.master.log


def _ask_much_and_read_nothing(slow: RawScheduler) -> None:
    """A hundred times two thousand answers: some 40 MB, of which none is fetched."""
    subscribe = Call(type=Call.SUBSCRIBE)
    subscribe.subscribe.framework_info.name = "slow"
    slow.send(subscribe)
    tasks = [Call.Reconcile.Task(task_id=TaskID(value=f"task-{n:0>60}")) for n in range(2000)]
    call = Call(type=Call.RECONCILE, reconcile=Call.Reconcile(tasks=tasks))
    for _ in range(100):
        slow.send(call)


# --- failovers ----------------------------------------------------------------------------------


def test_failovers_of_master_and_scheduler_in_any_order_kill_nothing(tmp_path):
    """Long tasks keep their processes, and whoever comes next knows them all."""
    dice = random.Random(7)
    with Cluster(tmp_path) as cluster:
        cluster.start_agent("a", registration_backoff="50ms")
        framework = Framework(cluster.address)
        with framework:
            running = [framework.run("exec sleep 600") for _ in range(3)]
            framework_id = framework.id
            framework.driver.abort()
        for who in dice.sample(["master"] * 3 + ["scheduler"] * 5, 8):
            if who == "master":
                cluster.restart_master()
                cluster.wait_until(partial(_connected, cluster))
                continue
            with Framework(cluster.address, framework_id=framework_id) as framework:
                _knows_all(framework, running)
                framework.driver.abort()
        with Framework(cluster.address, framework_id=framework_id) as framework:
            _knows_all(framework, running)
            for each in running:
                framework.driver.kill_task(each.task_id)
                framework.status(each.task_id.value, TASK_KILLED)


def _connected(cluster: Cluster) -> bool:
    return [agent.state for agent in cluster.operator.agents()] == ["connected"]


def _knows_all(framework: Framework, running: list[TaskStatus]) -> None:
    framework.driver.reconcile_tasks(running)
    for each in running:
        known = framework.status(each.task_id.value, TASK_RUNNING, reconciled)
        assert pid_of(known) == pid_of(each)
        assert not gone(pid_of(each))
