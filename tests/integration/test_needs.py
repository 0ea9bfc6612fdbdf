"""Needs, guarantees and giving back, with real masters, agents and frameworks."""

import sys
from collections.abc import Iterator

import pytest

from mesos_py import asked_back, is_preempted
from mesos_py.resources import Resources
from mesos_py.scheduler.needs import Need
from mesos_py.states import TASK_KILLED, TASK_RUNNING
from mesos_py.tasks import custom_executor, executor_task
from mesos_py.v1.types_pb2 import TaskStatus
from tests.kit import echo_executor, faces
from tests.kit.cluster import Cluster
from tests.kit.framework import Framework
from tests.kit.waiting import until

SIZE = "cpus:4;mem:4096;disk:0;ports:[21500-21501]"
ONE = Resources.of(cpus=1, mem=64)


SOON = {"revocation_patience": "100ms", "revocation_interval": "100ms"}


@pytest.fixture
def cluster(tmp_path) -> Iterator[Cluster]:
    with Cluster(tmp_path, revocation_grace="500ms", **SOON) as cluster:
        cluster.start_agent("a", SIZE)
        yield cluster


@pytest.fixture
def patient_cluster(tmp_path) -> Iterator[Cluster]:
    """Whoever is asked has all the time of the test for an answer."""
    with Cluster(tmp_path, revocation_grace="1h", **SOON) as cluster:
        cluster.start_agent("a", SIZE)
        yield cluster


def fill(framework: Framework, count: int = 4) -> list[str]:
    """Tasks that run for ever, on all there is."""
    offer = framework.offer(has="cpus:4")
    tasks = [framework.task("sleep 3600", offer, cpus=1, mem=64) for _ in range(count)]
    framework.driver.launch_tasks(offer, tasks, filters=3600)
    for task in tasks:
        framework.status(task.task_id.value, TASK_RUNNING)
    return [task.task_id.value for task in tasks]


def need(framework: Framework, count: int = 1) -> None:
    """Offers of less than one cpu are of no use to it, and would not be answered."""
    framework.driver.set_filters(min_free=ONE)
    framework.driver.request_resources([Need("work", ONE, count)])


def asked(framework: Framework):
    """What the framework is asked to give back, the first time that it is."""
    (offer, *_) = framework.wait_for("inverse offers", bool)
    found = asked_back(offer)
    assert found is not None
    return found


def test_who_states_needs_gets_room_from_one_that_holds_more_than_its_own(cluster):
    with Framework(cluster.address, "greedy") as greedy, Framework(cluster.address, "f") as needy:
        fill(greedy)
        need(needy, 2)
        answer = needy.wait_for("needs")
        assert answer.admitted
        assert [item.count for item in answer.accepted] == [2]
        question = asked(greedy)
        assert question.resources.scalars["cpus"] == 2000
        assert len(question.task_ids) == 2
        for task_id in question.task_ids:
            status = greedy.status(task_id, TASK_KILLED)
            assert is_preempted(status)
            assert status.message.startswith("Preempted: ")
        # What they had may come in one piece, or in two: they need not end at once.
        for _ in range(2):
            needy.run("sleep 3600", has="cpus:1", cpus=1, mem=64)
        # The other two are its own: nothing more is asked of it.
        assert len(greedy.all("inverse offers")) == 1


def test_a_framework_gives_up_what_it_chooses_itself(patient_cluster):
    cluster = patient_cluster
    with Framework(cluster.address, "greedy") as greedy, Framework(cluster.address, "f") as needy:
        tasks = fill(greedy)
        need(needy)
        question = asked(greedy)
        (mine,) = [task_id for task_id in tasks if task_id not in question.task_ids][:1]
        greedy.driver.accept_inverse_offers(question.offer_id)
        greedy.driver.kill_task(mine)
        assert not is_preempted(greedy.status(mine, TASK_KILLED))
        needy.run("sleep 3600", has="cpus:1", cpus=1, mem=64)
        assert greedy.states(question.task_ids[0])[-1] == "RUNNING"


def test_the_reason_of_a_preemption_outlives_a_restart_of_the_agent(tmp_path):
    """The task ignores TERM, so that its agent ends and comes back in the middle."""
    with Cluster(tmp_path, revocation_grace="100ms", revocation_patience="0s") as cluster:
        agent = cluster.start_agent("a", SIZE, tasks_on_exit="keep")
        with Framework(cluster.address, "g") as greedy, Framework(cluster.address, "f") as needy:
            stubborn = "trap '' TERM; while :; do sleep 0.1; done"
            offer = greedy.offer(has="cpus:4")
            tasks = [greedy.task(stubborn, offer, cpus=2, mem=64) for _ in range(2)]
            for task in tasks:
                task.kill_policy.grace_period.nanoseconds = 5 * 10**9
            greedy.driver.launch_tasks(offer, tasks, filters=3600)
            for task in tasks:
                greedy.status(task.task_id.value, TASK_RUNNING)
            need(needy)
            (chosen,) = asked(greedy).task_ids
            greedy.wait_for("inverse rescinded")
            agent.kill()
            agent.flags["tasks_on_exit"] = "end"
            agent.start()
            assert is_preempted(greedy.status(chosen, TASK_KILLED))
            # The agent's end would wait for it for as long.
            (other,) = {task.task_id.value for task in tasks} - {chosen}
            greedy.driver.kill_task(other, grace_s=0.1)
            greedy.status(other, TASK_KILLED)


def test_a_task_of_a_custom_executor_says_that_it_was_preempted(cluster):
    with Framework(cluster.address, "greedy") as greedy, Framework(cluster.address, "f") as needy:
        offer = greedy.offer(has="cpus:4")
        command = [sys.executable, echo_executor.__file__]
        executor = custom_executor("echo", command, cpus=0.5, env=faces.of_executors())
        tasks = [
            executor_task(name, name, offer, executor, data=b"run", cpus=1.75, mem=100)
            for name in ("t1", "t2")
        ]
        greedy.driver.launch_tasks(offer, tasks, filters=3600)
        for name in ("t1", "t2"):
            greedy.status(name, TASK_RUNNING)
        need(needy)
        (chosen,) = asked(greedy).task_ids
        status = greedy.status(chosen, TASK_KILLED)
        assert status.reason == TaskStatus.REASON_CONTAINER_PREEMPTED


def guaranteed_cpus(framework: Framework) -> int:
    return framework.driver.guaranteed_share().scalars.get("cpus", 0)


def test_the_guaranteed_share_is_known_again_after_the_link_was_lost(cluster):
    with Framework(cluster.address, "one") as one:
        until(lambda: guaranteed_cpus(one) == 4000)
        with Framework(cluster.address, "two"):
            until(lambda: guaranteed_cpus(one) == 2000)
            one.wait_for("guarantee", lambda share: share.scalars["cpus"] == 2000)
            cluster.restart_master()
            one.wait_for("reregistered")
            until(lambda: guaranteed_cpus(one) == 2000)
