"""What frameworks are told that they are guaranteed, and when."""

import pytest

from master.core import guarantees
from mesos_py.resources import Resources
from mesos_py.v1 import scheduler_pb2 as sched
from tests.kit.scripted import ScriptedWorld


@pytest.fixture
def world():
    made = ScriptedWorld()
    yield made
    made.check()


def told(framework):
    return [
        str(Resources.from_proto("guarantee", event.guarantee.resources))
        for event in framework.take()
        if event.type == sched.Event.GUARANTEE
    ]


def change(world):
    """Something happens that lets the master allocate."""
    world.cluster.want_allocation(world.clock.now())
    world.settle()


def said_at_subscription(framework):
    (subscribed, *_) = framework.subscribe()
    return str(Resources.from_proto("share", subscribed.subscribed.guaranteed_share))


def test_it_is_said_at_the_subscription_and_is_no_news_then(world):
    framework = world.framework(failover_timeout=60.0)
    world.script.guaranteed = {framework.id: {"cpus": 2500, "gpus": 0}}
    assert said_at_subscription(framework) == "cpus:2.5"
    change(world)
    world.advance(5)
    assert told(framework) == []


def test_a_change_is_told_once(world):
    framework = world.framework()
    world.advance(2)
    world.script.guaranteed = {framework.id: {"cpus": 1000}}
    change(world)
    change(world)
    world.advance(5)
    assert told(framework) == ["cpus:1"]
    world.script.guaranteed = {}
    change(world)
    world.advance(2)
    assert told(framework) == [""]


def test_many_changes_in_a_second_are_told_together(world):
    framework = world.framework()
    world.advance(5)
    framework.take()
    asked = world.script.asked_guarantees
    for cpus in range(1, 90):
        world.script.guaranteed = {framework.id: {"cpus": cpus * 1000}}
        change(world)
    world.advance(2)
    assert world.script.asked_guarantees - asked <= 3
    assert told(framework)[-1] == "cpus:89"


def test_nobody_is_asked_while_nothing_happens(world):
    world.framework()
    world.advance(5)
    asked = world.script.asked_guarantees
    world.advance(60)
    assert world.script.asked_guarantees == asked


def test_who_is_away_hears_it_when_he_is_back(world):
    framework = world.framework(failover_timeout=60.0)
    framework.disconnect()
    world.script.guaranteed = {framework.id: {"cpus": 1000}}
    change(world)
    world.advance(2)
    assert said_at_subscription(framework) == "cpus:1"


def test_of_many_that_subscribe_at_once_the_later_ones_are_told_a_moment_after(world):
    class Known(dict):
        def get(self, key, default=None):
            return {"cpus": 1000}

    world.script.guaranteed = Known()
    frameworks = [world.framework(str(n)) for n in range(guarantees.AT_ONCE + 5)]
    assert world.script.asked_guarantees == guarantees.AT_ONCE
    world.advance(3)
    heard = [told(framework) for framework in frameworks]
    assert heard == [[]] * guarantees.AT_ONCE + [["cpus:1"]] * 5


def test_an_allocator_that_fails_to_say_costs_nobody_his_subscription(world):
    def fail(view):
        raise RuntimeError("broken")

    world.script.guarantees = fail
    framework = world.framework()
    assert framework.id
    assert world.cluster.counters["dropped/guarantees-failed"] >= 1
