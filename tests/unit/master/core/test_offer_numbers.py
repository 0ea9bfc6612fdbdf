"""What became of offers, by framework and role."""

import pytest

from master.core import offer_numbers
from master.core.cluster import Options
from master.core.records import OfferNumbers
from mesos_py.v1 import scheduler_pb2 as sched
from tests.kit.core import World


@pytest.fixture
def world():
    return World(Options(offer_timeout_s=10.0))


def record(framework):
    return framework.world.cluster.frameworks[framework.id]


def test_each_end_of_an_offer_is_counted_with_the_time_of_its_answer(world):
    world.agent(resources="cpus:1;mem:100")
    framework = world.framework("a", role="web")
    (offer,) = framework.offers()
    world.advance(0.5)
    framework.decline(offer, refuse_s=0.0)
    (offer,) = framework.offers()
    world.advance(0.25)
    framework.launch(offer, world.task("t", text="cpus:1;mem:100"))
    numbers = world.cluster.offer_numbers["web"]
    assert numbers == record(framework).numbers["web"]
    assert (numbers.sent, numbers.declined, numbers.accepted) == (2, 1, 1)
    # Offers wait until the window of allocation has passed, and so are younger by it.
    assert numbers.answer_s == pytest.approx(0.75, abs=0.05)
    assert (numbers.expired, numbers.rescinded) == (0, 0)


def test_an_offer_that_expires_is_rescinded_too_and_is_no_answer(world):
    world.agent(resources="cpus:1;mem:100")
    framework = world.framework("a", role="web")
    framework.offers()
    world.advance(10.5)
    numbers = record(framework).numbers["web"]
    assert (numbers.expired, numbers.rescinded, numbers.answer_s) == (1, 1, 0.0)


def test_what_a_role_has_seen_outlives_its_frameworks(world):
    world.agent(resources="cpus:1;mem:100")
    framework = world.framework("a", role="web")
    framework.offers()
    framework.call(type=sched.Call.TEARDOWN)
    assert not world.cluster.frameworks
    assert world.cluster.offer_numbers["web"].sent == 1


def test_roles_that_nobody_has_any_more_are_forgotten_before_there_are_too_many(world):
    old = {f"r{number}": OfferNumbers(sent=1) for number in range(offer_numbers.MAX_ROLES)}
    world.cluster.offer_numbers.update(old)
    world.agent(resources="cpus:1;mem:100")
    world.framework("a", role="web").offers()
    assert list(world.cluster.offer_numbers) == ["web"]
