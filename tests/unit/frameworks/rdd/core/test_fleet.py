from typing import Any

import pytest

from frameworks.common.pool import PoolRules
from frameworks.rdd.core.fleet import MOST_FAILED_STARTS, Fleet, Gone, Orders, Shape
from mesos_py import (
    TASK_FAILED,
    TASK_KILLED,
    TASK_LOST,
    TASK_RUNNING,
    TASK_UNREACHABLE,
    AskedBack,
    Offer,
    Resources,
    TaskState,
    TaskStatus,
)

SHAPE = Shape(slots=2, mem_mb=900, overhead_mb=100)


class Scene:
    """A fleet at a time, and offers for it."""

    def __init__(self, **rules: Any) -> None:
        self.fleet = Fleet("job", SHAPE, PoolRules(**{"most": 100, **rules}))
        self.now_s = 1000.0
        self.offers = 0

    def offer(self, agent: str = "a", cpus: float = 2, mem: float = 1000) -> str:
        self.offers += 1
        offer = Offer(hostname=f"host-{agent}")
        offer.id.value = f"offer-{self.offers}"
        offer.agent_id.value = agent
        offer.resources.extend(Resources.of(cpus=cpus, mem=mem).to_proto())
        self.fleet.offered([offer])
        return offer.id.value

    def look(self, after_s: float = 0) -> Orders:
        self.now_s += after_s
        return self.fleet.look(self.now_s)

    def started(self, agent: str = "a", cpus: float = 2, mem: float = 1000) -> list[str]:
        self.offer(agent, cpus, mem)
        return [start.executor_id for start in self.look().starts]

    def join(self, executor_id: str) -> bool:
        return self.fleet.joined(executor_id, self.now_s)

    def status(self, executor_id: str, state: TaskState.ValueType, message: str = "") -> Orders:
        status = TaskStatus(state=state, message=message)
        status.task_id.value = executor_id
        status.agent_id.value = "a"
        return self.fleet.status(status, self.now_s)


@pytest.fixture
def scene() -> Scene:
    return Scene(backoff_first_s=0)


def test_without_work_nothing_is_wanted_and_offers_go_back(scene):
    offer = scene.offer()
    orders = scene.look()
    assert orders == Orders(declined=[offer], needs_offers=False)
    assert scene.look() == Orders()  # said once


def test_as_many_are_started_as_the_tasks_need_and_room_allows(scene):
    scene.fleet.want(5)
    assert scene.look().needs_offers is True
    assert scene.started(cpus=4, mem=2999) == ["job-1", "job-2"]
    assert scene.fleet.missing_executors == 1
    scene.offer(cpus=1, mem=5000)
    scene.offer(cpus=5, mem=999)
    assert scene.look().starts == []
    assert scene.started() == ["job-3"]
    assert scene.fleet.missing_executors == 0


def test_they_are_spread_over_agents(scene):
    scene.fleet.want(8)
    for agent in "abc":
        scene.offer(agent, cpus=8, mem=8000)
    agents = [start.offer.agent_id.value for start in scene.look().starts]
    assert sorted(agents) == ["a", "a", "b", "c"]


def test_offers_for_short_tasks_and_of_unknown_kind_are_declined(scene):
    scene.fleet.want(2)
    short = Offer(hostname="h")
    short.max_task_duration.nanoseconds = 10**12
    short.id.value, short.agent_id.value = "short", "a"
    short.resources.extend(Resources.of(cpus=8, mem=8000).to_proto())
    scene.fleet.offered([short])
    assert scene.look().declined == ["short"]


def test_a_rescinded_offer_and_those_of_a_lost_master_are_not_used(scene):
    scene.fleet.want(2)
    scene.look()
    scene.fleet.rescinded(scene.offer())
    assert scene.look() == Orders()
    scene.offer()
    scene.fleet.unlinked()
    assert scene.look() == Orders(needs_offers=True)  # a new master has not heard it


def test_one_that_joins_is_not_started_again_and_one_unknown_is_turned_away(scene):
    scene.fleet.want(2)
    (executor_id,) = scene.started()
    assert scene.join(executor_id)
    assert scene.look() == Orders()
    assert not scene.join("job-7")
    assert scene.fleet.waiting(scene.now_s) == ""


@pytest.mark.parametrize(
    ("state", "lost", "blame"),
    [(TASK_FAILED, False, True), (TASK_LOST, True, False), (TASK_UNREACHABLE, True, False)],
)
def test_what_has_ended_is_told_once_with_what_is_lost(scene, state, lost, blame):
    scene.fleet.want(2)
    (executor_id,) = scene.started()
    scene.join(executor_id)
    orders = scene.status(executor_id, state, "why\nit is so")
    (gone,) = orders.gone
    assert (gone.executor_id, gone.outputs_lost, gone.blame) == (executor_id, lost, blame)
    assert gone.reason.startswith("job-1 on host-a: ")
    assert gone.reason.endswith(": why it is so")
    assert scene.status(executor_id, state) == Orders()
    assert scene.look().needs_offers is True  # another one is wanted


def test_one_that_was_dropped_is_killed_and_nobodys_fault(scene):
    scene.fleet.want(2)
    (executor_id,) = scene.started()
    scene.join(executor_id)
    assert scene.fleet.drop(executor_id, scene.now_s).kills == [(executor_id, "a")]
    assert scene.fleet.drop(executor_id, scene.now_s) == Orders()
    assert not scene.join(executor_id)  # its hello crossed the order
    orders = scene.status(executor_id, TASK_KILLED)
    assert orders.gone == [Gone(executor_id, "was told to leave", False, False)]


def test_a_task_of_an_agent_that_comes_back_is_killed(scene):
    scene.fleet.want(2)
    (executor_id,) = scene.started()
    scene.status(executor_id, TASK_UNREACHABLE)
    assert scene.status(executor_id, TASK_RUNNING).kills == [(executor_id, "a")]


def test_executors_that_end_as_they_start_are_given_up_with_the_last_reason(scene):
    scene.fleet.want(2)
    for count in range(1, MOST_FAILED_STARTS + 1):
        (executor_id,) = scene.started()
        orders = scene.status(executor_id, TASK_FAILED, "no module named frameworks")
        assert bool(orders.given_up) == (count == MOST_FAILED_STARTS)
    assert "no module named frameworks" in orders.given_up
    assert f"mesos-py logs {executor_id}" in orders.given_up


def test_those_that_fail_together_count_once(scene):
    scene.fleet.want(100)
    for _ in range(MOST_FAILED_STARTS - 1):
        together = scene.started(cpus=20, mem=10_000)
        assert len(together) == 10
        assert not any(scene.status(each, TASK_FAILED).given_up for each in together)
    first, *_ = scene.started(cpus=20, mem=10_000)
    assert scene.status(first, TASK_FAILED).given_up


def test_failed_starts_are_forgiven_where_one_has_joined(scene):
    scene.fleet.want(4)
    (first,) = scene.started()
    scene.join(first)
    for _ in range(2 * MOST_FAILED_STARTS):
        (executor_id,) = scene.started()
        assert not scene.status(executor_id, TASK_FAILED).given_up


def test_one_that_does_not_call_is_ended_and_counts_as_failed():
    scene = Scene(start_s=30, backoff_first_s=10)
    scene.fleet.want(2)
    (executor_id,) = scene.started()
    assert scene.fleet.wake_s(scene.now_s) == scene.now_s + 30
    assert scene.look(after_s=29) == Orders()
    assert scene.look(after_s=1).kills == [(executor_id, "a")]
    assert "has not called in 30 s; the next one is started 10 s later" in scene.fleet.waiting(
        scene.now_s
    )
    assert scene.started() == []  # not at once
    scene.now_s += 10
    assert scene.started() == ["job-2"]


def test_what_is_waited_for_is_said_with_numbers(scene):
    scene.fleet.want(3)
    assert scene.fleet.waiting(scene.now_s) == (
        "2 more executors could work, each with 2 cpus and 1000 MB: no offer has that"
    )
    scene.started(cpus=4, mem=2000)
    assert scene.fleet.waiting(scene.now_s) == "2 executors are starting"


def test_no_more_than_allowed_also_while_some_are_ending():
    scene = Scene(most=1)
    scene.fleet.want(10)
    (executor_id,) = scene.started(cpus=8, mem=8000)
    scene.fleet.drop(executor_id, scene.now_s)
    assert scene.started() == []
    scene.status(executor_id, TASK_KILLED)
    assert scene.started() == ["job-2"]


def test_room_that_is_wanted_back_is_left(scene):
    scene.fleet.want(4)
    first, _ = scene.started(cpus=4, mem=2000)
    asked = AskedBack("o", "a", SHAPE.resources, (first, "other"), 5.0, "for others", "*")
    assert scene.fleet.asked_back(asked).leaving == [first]
    assert scene.fleet.asked_back(asked) == Orders()
