"""Frameworks of a real master: how they come, are lost, come back and end."""

from collections.abc import Iterator

import pytest

from mesos_py.errors import NotFound, Refused
from mesos_py.states import (
    TASK_FINISHED,
    TASK_KILLED,
    TASK_RUNNING,
    is_terminal,
)
from mesos_py.v1.operator_pb2 import Response
from mesos_py.v1.types_pb2 import TaskStatus
from tests.kit.cluster import Cluster
from tests.kit.framework import Framework, pid_of, what
from tests.kit.proxy import Proxy
from tests.kit.raw import RawScheduler, framework_info
from tests.kit.recorder import PATIENCE_S
from tests.kit.waiting import gone, until


@pytest.fixture(scope="module")
def running(tmp_path_factory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("frameworks")
    with Cluster(directory, offer_timeout="0s", max_completed_frameworks="3") as cluster:
        cluster.start_agent("a", executor_shutdown_grace_period="1s")
        cluster.operator.version()
        yield cluster


@pytest.fixture
def cluster(running) -> Iterator[Cluster]:
    with running.undisturbed():
        yield running


@pytest.fixture
def framework(cluster) -> Iterator[Framework]:
    with Framework(cluster.address) as framework:
        yield framework


def listed(cluster: Cluster, framework_id: str) -> Response.GetFrameworks.Framework:
    answer = cluster.operator.frameworks()
    (found,) = [f for f in answer.frameworks if f.framework_info.id.value == framework_id]
    return found


def ended(cluster: Cluster, framework_id: str) -> bool:
    completed = cluster.operator.frameworks().completed_frameworks
    return framework_id in {f.framework_info.id.value for f in completed}


# --- lost and found -----------------------------------------------------------------


def test_a_framework_whose_link_breaks_finds_back_and_its_tasks_do_not_notice(cluster):
    with Proxy(cluster.address) as way, Framework(way.address) as framework:
        running = framework.run("exec sleep 600")
        offer = framework.offer()
        way.cut()
        framework.wait_for("disconnected")
        until(lambda: not listed(cluster, framework.id).connected)
        assert cluster.used() == {"a": "cpus:0.1;mem:16"}
        way.restore()
        framework.wait_for("reregistered")
        assert framework.offer().id != offer.id
        framework.driver.reconcile_tasks()
        again = framework.status(
            running.task_id.value,
            TASK_RUNNING,
            lambda s: s.reason == TaskStatus.REASON_RECONCILIATION,
        )
        assert pid_of(again) == pid_of(running)
        assert not gone(pid_of(running))


def test_calls_made_without_a_link_are_made_up_for(cluster):
    """A kill is sent later, a launch is answered at once: its offer is dead."""
    with Proxy(cluster.address) as way, Framework(way.address) as framework:
        running = framework.run("exec sleep 600")
        offer = framework.offer()
        way.cut()
        framework.wait_for("disconnected")
        framework.driver.kill_task(running.task_id)
        late = framework.task("true", offer, task_id="late")
        framework.driver.launch_tasks(offer, late)
        dropped = framework.wait_for("update", lambda s: s.task_id.value == "late")
        assert dropped.reason == TaskStatus.REASON_INVALID_OFFERS
        assert "is gone" in dropped.message
        way.restore()
        framework.status(running.task_id.value, TASK_KILLED)


def test_a_link_that_died_silently_is_noticed_by_the_heartbeats(tmp_path):
    """Nothing is refused and nothing is closed: packets just vanish."""
    with Cluster(tmp_path, heartbeat="500ms") as cluster, Proxy(cluster.address) as way:
        with Framework(way.address) as framework:
            way.block()
            framework.wait_for("disconnected")
            way.restore()
            framework.wait_for("reregistered")


def test_an_update_from_before_the_link_broke_comes_once_more_until_it_is_acknowledged(cluster):
    """The scheduler is lost between the update and its acknowledgement."""
    careless = {"implicit_acknowledgements": False}
    first = Framework(cluster.address, driver=careless)
    with first:
        task_id = first.launch("true")
        starting = first.wait_for("update")
        first.driver.abort()
    with Framework(cluster.address, framework_id=first.id) as second:
        assert second.wait_for("update").uuid == starting.uuid
        second.status(task_id, TASK_FINISHED)
        assert second.states(task_id) == ["STARTING", "RUNNING", "FINISHED"]


def test_each_successor_is_told_at_once_what_its_predecessors_have_not_acknowledged(cluster):
    """By the agent's own intervals, which double, the last of them would wait for too long."""
    careless = {"implicit_acknowledgements": False}
    with Framework(cluster.address, driver=careless) as framework:
        task_id = framework.launch("true")
        told = [framework.wait_for("update").uuid]
        framework.driver.abort()
    for _ in range(5):
        with Framework(cluster.address, framework_id=framework.id, driver=careless) as framework:
            told.append(framework.wait_for("update").uuid)
            framework.driver.abort()
    assert len(set(told)) == 1
    with Framework(cluster.address, framework_id=framework.id) as last:
        last.status(task_id, TASK_FINISHED)


# --- successors -----------------------------------------------------------------------


@pytest.mark.parametrize("end", ["abort", "failover"])
def test_a_successor_takes_over_the_tasks(cluster, end):
    first = Framework(cluster.address)
    with first:
        running = first.run("exec sleep 600")
        if end == "abort":
            first.driver.abort()
        else:
            first.driver.stop(failover=True)
    until(lambda: not listed(cluster, first.id).connected)
    assert not gone(pid_of(running))
    with Framework(cluster.address, framework_id=first.id) as second:
        assert second.id == first.id
        second.driver.reconcile_tasks()
        again = second.status(running.task_id.value, TASK_RUNNING)
        assert pid_of(again) == pid_of(running)
        second.driver.kill_task(running.task_id)
        second.status(running.task_id.value, TASK_KILLED)


def test_a_second_instance_displaces_the_first(cluster, framework):
    running = framework.run("exec sleep 600")
    held = framework.offer()
    with Framework(cluster.address, framework_id=framework.id) as second:
        error = framework.failure()
        assert isinstance(error, Refused)
        assert str(error) == "Framework failed over"
        assert framework.all("error") == ["Framework failed over"]
        offer = second.offer()
        assert what(offer) == what(held)
        assert offer.id != held.id
        assert not gone(pid_of(running))
        second.driver.reconcile_tasks()
        second.status(running.task_id.value, TASK_RUNNING)


def test_what_a_displaced_instance_still_says_changes_nothing(cluster):
    with RawScheduler(cluster.address) as first, RawScheduler(cluster.address) as second:
        framework_id = first.subscribe()
        second.subscribe(framework_info(id=framework_id))
        first.ended()
        first.call(first.Call.TEARDOWN)
        second.offer()
        assert listed(cluster, framework_id).connected
        second.teardown()


def test_a_scheduler_that_raises_ends_but_its_tasks_wait_for_a_better_one(cluster):
    class Clumsy(Framework):
        def status_update(self, driver, status):
            super().status_update(driver, status)
            if status.state == TASK_RUNNING:
                raise ZeroDivisionError(status.task_id.value)

    first = Clumsy(cluster.address)
    first.driver.start()
    first.launch("exec sleep 600", task_id="one")
    with pytest.raises(ZeroDivisionError, match="one"):
        first.driver.join(PATIENCE_S)
    with Framework(cluster.address, framework_id=first.id) as second:
        second.driver.reconcile_tasks()
        running = second.status("one", TASK_RUNNING)
        assert not gone(pid_of(running))


# --- for good -------------------------------------------------------------------------


def test_a_framework_that_does_not_come_back_in_time_ends_with_its_tasks(cluster):
    first = Framework(cluster.address, failover_s=0.5)
    with first:
        running = first.run("exec sleep 600")
        first.driver.abort()
    cluster.wait_until(lambda: ended(cluster, first.id))
    until(lambda: gone(pid_of(running)))
    (task,) = cluster.history(first.id)
    assert task.state == TASK_KILLED
    assert task.statuses[-1].message == "the framework did not come back within 0.5 s"


def test_a_framework_without_a_failover_time_out_ends_with_its_link(cluster):
    first = Framework(cluster.address, failover_s=0)
    with first:
        running = first.run("exec sleep 600")
        first.driver.abort()
    cluster.wait_until(lambda: ended(cluster, first.id))
    until(lambda: gone(pid_of(running)))


@pytest.mark.parametrize("end", ["teardown", "time-out"])
def test_the_id_of_a_framework_that_has_ended_is_never_taken_again(cluster, end):
    first = Framework(cluster.address, failover_s=0)
    with first:
        if end == "time-out":
            first.driver.abort()
    cluster.wait_until(lambda: ended(cluster, first.id))
    again = Framework(cluster.address, framework_id=first.id)
    again.driver.start()
    error = again.failure()
    assert isinstance(error, Refused)
    assert str(error) == f"framework {first.id}: Framework has been removed"


def test_the_history_of_ended_frameworks_is_bounded(cluster):
    ids = []
    for _ in range(4):
        with Framework(cluster.address) as framework:
            ids.append(framework.id)
    known = [f.framework_info.id.value for f in cluster.operator.frameworks().completed_frameworks]
    assert known == ids[1:]


def test_the_end_of_a_framework_ends_its_tasks_and_frees_their_room(cluster, framework):
    pids = [pid_of(framework.run("exec sleep 600")) for _ in range(3)]
    framework.end()
    until(lambda: all(gone(pid) for pid in pids))
    cluster.wait_until(lambda: not cluster.used())
    states = {task.state for task in cluster.history(framework.id)}
    assert states == {TASK_KILLED}


def test_room_of_tasks_that_are_still_ending_is_offered_to_nobody(cluster, framework, tmp_path):
    """The framework is gone at once, its stubborn task only after the grace."""
    command = f"trap '' TERM; touch {tmp_path}/ready; while :; do sleep 0.02; done"
    running = framework.run(command, cpus=4)
    until((tmp_path / "ready").exists)
    framework.end()
    with Framework(cluster.address) as second:
        second.offer(has="cpus:4")
        assert gone(pid_of(running))


def test_an_operators_teardown_ends_a_framework_and_tells_it(cluster, framework):
    running = framework.run("exec sleep 600")
    cluster.operator.teardown(framework.id)
    error = framework.failure()
    assert isinstance(error, Refused)
    assert "Framework has been removed" in str(error)
    until(lambda: gone(pid_of(running)))
    with pytest.raises(NotFound, match="has ended already"):
        cluster.operator.teardown(framework.id)
    with pytest.raises(NotFound, match="framework 'nobody'"):
        cluster.operator.teardown("nobody")


# --- what a framework says of itself ----------------------------------------------------


def test_an_id_that_the_master_has_never_heard_of_is_taken(cluster):
    """A new master knows nobody: so a framework's own word counts."""
    with Framework(cluster.address, framework_id="mine-from-before") as framework:
        assert framework.id == "mine-from-before"
        assert listed(cluster, "mine-from-before").connected


def test_a_framework_may_change_its_description(cluster, framework):
    framework.info.name = "renamed"
    framework.info.labels.labels.add(key="colour", value="blue")
    framework.driver.update_framework(framework.info)
    cluster.wait_until(lambda: listed(cluster, framework.id).framework_info.name == "renamed")
    info = listed(cluster, framework.id).framework_info
    assert info.labels == framework.info.labels


def test_a_framework_cannot_become_another_users(cluster):
    with RawScheduler(cluster.address) as raw:
        raw.subscribe()
        info = framework_info("renamed", user="somebody")
        raw.call(
            raw.Call.UPDATE_FRAMEWORK,
            update_framework=raw.Call.UpdateFramework(framework_info=info),
        )
        refused = raw.refused(raw.Call.UPDATE_FRAMEWORK)
        assert (refused.field, refused.value) == ("framework_info.user", "somebody")
        known = listed(cluster, raw.framework_id).framework_info
        assert (known.name, known.user) == ("raw", "root")
        raw.teardown()


def test_who_subscribes_twice_on_one_stream_is_told_and_stays_subscribed(cluster):
    with RawScheduler(cluster.address) as raw:
        raw.subscribe()
        again = raw.Call.Subscribe(framework_info=framework_info(id=raw.framework_id))
        raw.call(raw.Call.SUBSCRIBE, subscribe=again)
        assert raw.refused(raw.Call.SUBSCRIBE).message.endswith("has subscribed already")
        raw.teardown()


def test_heartbeats_come_as_often_as_was_promised(tmp_path):
    with Cluster(tmp_path, heartbeat="200ms") as cluster, RawScheduler(cluster.address) as raw:
        raw.subscribe()
        subscribed = raw.event(raw.Event.SUBSCRIBED).subscribed
        assert subscribed.heartbeat_interval_seconds == 0.2
        raw.event(raw.Event.HEARTBEAT, count=4)
        raw.teardown()


def test_ended_frameworks_get_no_more_updates(cluster, framework):
    """A task's last update may come when nobody wants it: the agent forgets it."""
    framework.run("exec sleep 600")
    framework.end()
    cluster.wait_until(lambda: not cluster.used())
    assert not any(is_terminal(status.state) for status in framework.all("update"))
