"""The fake cluster, and a framework as people write them, on it."""

import threading
from typing import Any

import pytest

from mesos_py.matching import match_offers
from mesos_py.resources import Resources
from mesos_py.rpc import LinkTimeouts
from mesos_py.scheduler import Scheduler, SchedulerDriver
from mesos_py.states import (
    TASK_FAILED,
    TASK_FINISHED,
    TASK_KILLED,
    TASK_LOST,
    TASK_RUNNING,
    is_terminal,
)
from mesos_py.testing.builders import make_framework, make_task
from mesos_py.testing.fake_cluster import FINISHES, FakeCluster
from mesos_py.v1.types_pb2 import TaskStatus

PATIENCE_S = 20
NEED = Resources.of(cpus=1, mem=16)
AGENTS = {"a1": Resources.of(cpus=2, mem=64), "a2": Resources.of(cpus=2, mem=64)}
QUICK = LinkTimeouts(backoff_first_s=0.01, backoff_cap_s=0.02)


class Batch(Scheduler):
    """Runs each task until it has finished, and stops when all have."""

    def __init__(self, count):
        self.waiting = [f"t{n}" for n in range(count)]
        self.finished = []
        self.states = []

    def resource_offers(self, driver, offers):
        placed, self.waiting = match_offers(offers, self.waiting, lambda _: NEED)
        for offer, chosen in placed:
            driver.launch_tasks(offer, [make_task(t, resources=NEED) for t in chosen])

    def status_update(self, driver, status):
        task_id = status.task_id.value
        self.states.append((task_id, status.state))
        if status.state == TASK_FINISHED:
            self.finished.append(task_id)
        elif is_terminal(status.state):
            self.waiting.append(task_id)
            driver.set_needs_offers(True)
        if len(self.finished) == 50:
            driver.stop()


def run(cluster, scheduler):
    driver = SchedulerDriver(scheduler, make_framework(), cluster.address, timeouts=QUICK)
    driver.start()
    assert driver.join(PATIENCE_S)


def test_fifty_tasks_on_room_for_four():
    scheduler = Batch(50)
    with FakeCluster(AGENTS) as cluster:
        run(cluster, scheduler)
    assert sorted(scheduler.finished) == sorted(f"t{n}" for n in range(50))
    assert {agent_id for _, agent_id in cluster.launched} == {"a1", "a2"}
    assert [state for task_id, state in scheduler.states if task_id == "t7"] == list(FINISHES)


def test_failed_tasks_are_run_again_and_links_that_break_lose_nothing():
    failures = {f"t{n}" for n in range(0, 50, 7)}

    def outcome(info):
        if info.task_id.value in failures:
            failures.discard(info.task_id.value)
            return (TASK_RUNNING, TASK_FAILED)
        return FINISHES

    scheduler = Batch(50)
    with FakeCluster(AGENTS, outcome) as cluster:
        driver = SchedulerDriver(scheduler, make_framework(), cluster.address, timeouts=QUICK)
        driver.start()
        for count in range(1, 4):
            cluster.wait_for_subscription(count)
            if not driver.join(0):
                try:
                    cluster.cut()
                except AssertionError:
                    break  # all was done before
        # A master that lost what was in doubt is asked at its heartbeats.
        while not driver.join(0.05):
            try:
                cluster.heartbeat()
            except AssertionError:
                continue
    assert sorted(set(scheduler.finished)) == sorted(f"t{n}" for n in range(50))


class Holder(Scheduler):
    """Launches one task, kills it once it runs, and notes the rest."""

    def __init__(self):
        self.states = []
        self.ended = threading.Event()

    def resource_offers(self, driver, offers):
        driver.launch_tasks(offers[0], [] if self.states else make_task("t1", resources=NEED))

    def status_update(self, driver, status):
        self.states.append(status.state)
        if status.state == TASK_RUNNING:
            driver.kill_task("t1")
        if is_terminal(status.state):
            driver.stop()


def test_task_without_an_end_runs_until_it_is_killed():
    scheduler = Holder()
    with FakeCluster(AGENTS, lambda _: (TASK_RUNNING,)) as cluster:
        run(cluster, scheduler)
    assert scheduler.states == [TASK_RUNNING, TASK_KILLED]


class TooBig(Scheduler):
    def __init__(self):
        self.status: Any = None

    def resource_offers(self, driver, offers):
        driver.launch_tasks(offers[0], make_task("t1", resources=Resources.of(cpus=100)))

    def status_update(self, driver, status):
        self.status = status
        driver.stop()


def test_task_that_does_not_fit_is_lost_with_a_reason():
    scheduler = TooBig()
    with FakeCluster(AGENTS) as cluster:
        run(cluster, scheduler)
    assert scheduler.status.state == TASK_LOST
    assert scheduler.status.reason == TaskStatus.REASON_INVALID_OFFERS
    assert "cpus" in scheduler.status.message


class Reconciler(Scheduler):
    def __init__(self):
        self.answers = {}

    def registered(self, driver, framework_id, master_info):
        driver.set_needs_offers(False)
        driver.reconcile_tasks(["stranger"])

    def status_update(self, driver, status):
        self.answers[status.task_id.value] = (status.state, status.reason)
        driver.stop()


def test_unknown_task_is_answered_as_lost():
    scheduler = Reconciler()
    with FakeCluster(AGENTS) as cluster:
        run(cluster, scheduler)
    assert scheduler.answers == {"stranger": (TASK_LOST, TaskStatus.REASON_RECONCILIATION)}


def test_fake_says_when_nobody_is_there():
    with FakeCluster({}) as cluster:
        with pytest.raises(AssertionError, match="nobody"):
            cluster.heartbeat()
        with pytest.raises(AssertionError, match="0 of 1"):
            cluster.wait_for(1, timeout_s=0)
    with pytest.raises(AssertionError, match="with"):
        FakeCluster({}).heartbeat()
