"""Several instances of one scheduler at a real master: who is active, and what goes on."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from mesos_py.states import TASK_KILLED, TASK_RUNNING
from mesos_py.v1.scheduler_pb2 import Call, Event
from mesos_py.v1.types_pb2 import KillPolicy
from tests.kit.cluster import Cluster
from tests.kit.faces import seen_by_frameworks
from tests.kit.framework import Framework, pid_of
from tests.kit.instances import Instance, one_of
from tests.kit.proxy import Proxy
from tests.kit.raw import RawScheduler, framework_info
from tests.kit.waiting import gone

HOLD = {"standby_hold": "100ms"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("standbys")
    with Cluster(directory, offer_timeout="0s", max_standbys_per_framework="3", **HOLD) as cluster:
        cluster.start_agent("a", executor_shutdown_grace_period="1s")
        cluster.operator.version()
        yield cluster


@pytest.fixture
def cluster(running: Cluster) -> Iterator[Cluster]:
    with running.undisturbed():
        yield running


@pytest.fixture
def framework_id() -> str:
    return f"fw-{uuid.uuid4()}"


def instance_of(framework_id: str, address: str) -> Framework:
    """An instance in this process, not started yet."""
    return Framework(address, framework_id=framework_id, driver={"standby": True})


def process(directory: Path, name: str, cluster: Cluster, framework_id: str) -> Instance:
    master = seen_by_frameworks(cluster.address)
    return Instance(directory, name, "tests.kit.standby_instance", master, framework_id)


def standby(stack: ExitStack, framework_id: str, cluster: Cluster) -> RawScheduler:
    """A raw instance that waits."""
    raw = stack.enter_context(RawScheduler(cluster.address))
    raw.framework_id = framework_id
    subscribe = Call.Subscribe(framework_info=framework_info(id=framework_id), standby=True)
    raw.call(Call.SUBSCRIBE, subscribe=subscribe)
    return raw


def is_active(instance: Instance) -> bool:
    return "registered" in instance.lines


def listed(cluster: Cluster, framework_id: str) -> list[str]:
    """The standbys as the master lists them."""
    frameworks = cluster.operator.frameworks().frameworks
    (found,) = [f for f in frameworks if f.framework_info.id.value == framework_id]
    return list(found.standbys)


def teardown(cluster: Cluster, framework_id: str) -> None:
    cluster.operator.teardown(framework_id)


def test_three_instances_of_which_the_active_one_is_killed_each_time(
    cluster: Cluster, framework_id: str, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        one, two, three = (
            stack.enter_context(process(tmp_path, name, cluster, framework_id))
            for name in ("one", "two", "three")
        )
        left = [one, two, three]
        one_of(left, is_active)
        cluster.wait_until(lambda: len(listed(cluster, framework_id)) == 2)
        while len(left) > 1:
            active = one_of(left, is_active)
            active.kill()
            left.remove(active)
        left[0].wait_for("registered")
        assert listed(cluster, framework_id) == []
        teardown(cluster, framework_id)


@pytest.mark.only_over_grpc
def test_an_active_instance_that_stands_still_is_replaced_and_stands_by_when_it_wakes(
    cluster: Cluster, framework_id: str, tmp_path: Path
) -> None:
    """Nothing is closed: it is the keepalive of its link that is not answered any more."""
    with (
        process(tmp_path, "one", cluster, framework_id) as one,
        process(tmp_path, "two", cluster, framework_id) as two,
    ):
        active = one_of((one, two), is_active)
        waiting = two if active is one else one
        waiting.wait_for("standby 0")
        said = len(active.lines)
        active.pause()
        waiting.wait_for("registered")
        active.cont()
        active.wait_for("standby 0", since=said)
        assert not [line for line in active.lines if line.startswith("error ")]
        assert len(listed(cluster, framework_id)) == 1
        teardown(cluster, framework_id)
        active.wait_for("Framework has been removed")
        waiting.wait_for("Framework has been removed")


def test_tasks_do_not_notice_and_the_successor_is_told_of_them(
    cluster: Cluster, framework_id: str
) -> None:
    one, two = (instance_of(framework_id, cluster.address) for _ in range(2))
    with one:
        running = one.run("exec sleep 600")
        two.driver.start()
        assert two.wait_for("standby") == 0
        one.driver.abort()
        two.wait_for("registered")
        two.driver.reconcile_tasks()
        again = two.status(running.task_id.value, TASK_RUNNING)
        assert pid_of(again) == pid_of(running)
        two.driver.kill_task(running.task_id, grace_s=0.5)
        two.status(running.task_id.value, TASK_KILLED)
        two.end()
    assert gone(pid_of(running))


def test_what_a_standby_says_changes_nothing(cluster: Cluster, framework_id: str) -> None:
    with ExitStack() as stack:
        one = stack.enter_context(instance_of(framework_id, cluster.address))
        running = one.run("exec sleep 600")
        raw = standby(stack, framework_id, cluster)
        raw.event(Event.STANDBY)
        kill = Call.Kill(task_id=running.task_id, kill_policy=KillPolicy())
        raw.call(Call.KILL, kill=kill)
        raw.call(Call.TEARDOWN)
        for count in (1, 2):
            assert "stands by" in raw.event(Event.REFUSED, count=count).refused.message
        assert not gone(pid_of(running))


def test_a_standby_that_stops_ends_nothing(cluster: Cluster, framework_id: str) -> None:
    with instance_of(framework_id, cluster.address) as one:
        running = one.run("exec sleep 600")
        two = instance_of(framework_id, cluster.address)
        two.driver.start()
        two.wait_for("standby")
        two.end()
        cluster.wait_until(lambda: listed(cluster, framework_id) == [])
        assert not gone(pid_of(running))


def test_too_many_standbys_are_refused_in_words(cluster: Cluster, framework_id: str) -> None:
    with ExitStack() as stack:
        stack.enter_context(instance_of(framework_id, cluster.address))
        for ahead in range(3):
            raw = standby(stack, framework_id, cluster)
            assert raw.event(Event.STANDBY).standby.ahead == ahead
        fourth = standby(stack, framework_id, cluster)
        assert "at most 3 may" in fourth.event(Event.ERROR).error.message
        fourth.ended()


def test_they_are_shown(cluster: Cluster, framework_id: str) -> None:
    with ExitStack() as stack:
        stack.enter_context(instance_of(framework_id, cluster.address))
        assert "STANDBYS" not in cluster.cli("frameworks").out.decode()
        standby(stack, framework_id, cluster).event(Event.STANDBY)
        header, row = cluster.cli("frameworks").out.decode().splitlines()
        assert row.split()[header.split().index("STANDBYS")] == "1"
        assert "1 standby waits behind" in cluster.cli("explain", framework_id).out.decode()
        assert cluster.metrics()["master/standbys"] == 1


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_after_a_change_of_the_master_the_active_instance_leads_on(
    tmp_path: Path, framework_id: str, order: tuple[int, int]
) -> None:
    """Whoever finds the new master first: standbys wait for the one that was active."""
    with ExitStack() as stack:
        cluster = stack.enter_context(Cluster(tmp_path, standby_hold="10s"))
        ways = [stack.enter_context(Proxy(cluster.address)) for _ in range(2)]
        one, two = (instance_of(framework_id, way.address) for way in ways)
        one.driver.start()
        stack.callback(one.end)
        one.wait_for("standby")
        one.wait_for("registered")
        two.driver.start()
        stack.callback(two.end)
        two.wait_for("standby")
        # The standby's first: it would be promoted in the moment between.
        for way in reversed(ways):
            way.cut()
        cluster.restart_master()
        for each in order:
            ways[each].restore()
            if each == 1:
                two.wait_for("standby", count=2)
            else:
                one.wait_for("reregistered")
        assert two.all("registered") == []
