"""Faults that people met in systems of this kind: work that was never looked at again."""

import random

import pytest

from master.allocator.drf import DrfAllocator
from master.allocator.lottery import LotteryAllocator
from master.allocator.priority import PriorityAllocator
from mesos_py.allocation import AllocatorOptions
from mesos_py.constraints import Host
from mesos_py.policy import RolePolicy
from mesos_py.resources import Resources
from mesos_py.testing.allocator_harness import AllocatorHarness, only_hosts, winners
from tests.unit.master.allocator.test_field_cases import Counting

ALLOCATORS = [DrfAllocator, LotteryAllocator, PriorityAllocator]
ONE_CPU = [Resources.of(cpus=1)]
# Far from what anybody has: it must not matter that it is there.
LOOSE = RolePolicy(limit={"cpus": 100_000}, guarantee={"cpus": 1000})


@pytest.fixture(params=ALLOCATORS)
def h(request) -> AllocatorHarness:
    options = AllocatorOptions(policies={"mine": LOOSE, "tight": RolePolicy(limit={"cpus": 4000})})
    return AllocatorHarness(request.param(options), options)


def full_agent(h: AllocatorHarness, name: str, resources: str = "cpus:4;mem:400"):
    """An agent of which others use all, in two tasks."""
    h.framework(f"others-{name}", "others", constraints={"others": only_hosts(name)})
    h.agent(name, resources)
    half = "cpus:2;mem:200" + (";ports:[1-5]" if "ports" in resources else "")
    first = h.use(h.cycle()[0], half, seconds=0)
    second = h.cycle()[0]
    h.suppress(f"others-{name}")
    return first, second


def test_a_wait_for_a_cpu_under_a_quota_that_does_not_bind_ends_within_a_cycle(h):
    h.rule("mine", limit={"cpus": 100_000}, guarantee={})
    first, _ = full_agent(h, "a")
    h.rule("mine", limit={"cpus": 100_000}, guarantee={"cpus": 1000})
    h.framework("f", "mine", min_free={"mine": ONE_CPU})
    h.revive("others-a")
    assert h.cycles() == []
    h.give_back(first)
    # What is guaranteed comes first, and what is free beyond that is anybody's.
    got = [grant for grant in h.cycle() if grant.framework_id == "f"]
    assert got[0].resources.scalar("cpus") >= 1


def test_a_wait_for_ports_ends_within_a_cycle(h):
    first, _ = full_agent(h, "a", "cpus:4;mem:400;ports:[1-9]")
    h.framework("f", "mine", min_free={"mine": [Resources.of(ports=[(3, 3)])]})
    assert h.cycles() == []
    h.give_back(first)
    assert winners(h.cycle()) == [("f", "a")]


def test_a_wait_for_an_attribute_ends_within_a_cycle(h):
    first, _ = full_agent(h, "a")
    h.give_back(first)
    h.framework("f", "mine", constraints={"mine": only_hosts("renamed")})
    assert h.cycles() == []
    h.change_agent("a", host=Host("renamed", {}))
    assert winners(h.cycle()) == [("f", "a")]


def test_a_wait_for_the_limit_of_the_role_ends_within_a_cycle_and_on_another_agent(h):
    h.rule("mine")
    h.framework("f", "tight")
    h.framework("g", "tight/below", constraints={"tight/below": only_hosts("a")})
    h.agent("a", "cpus:4;mem:400")
    (task,) = h.cycle()
    h.suppress(task.framework_id)
    other = ({"f", "g"} - {task.framework_id}).pop()
    h.change_framework(other, constraints={})
    h.agent("b", "cpus:3;mem:300")
    assert h.cycles() == []
    h.change_agent("a", active=False)
    h.give_back(task)
    assert winners(h.cycle()) == [(other, "b")]


@pytest.mark.parametrize("limit_first", [True, False])
def test_a_wait_for_two_causes_ends_when_the_second_is_gone(h, limit_first):
    h.rule("mine")
    h.framework("f", "tight")
    h.agent("a", "cpus:4;mem:400")
    (task,) = h.cycle()
    h.change_framework("f", constraints={"tight": only_hosts("renamed")})
    h.agent("b", "cpus:3;mem:300")
    assert h.cycles() == []
    h.change_agent("a", active=False)
    causes = [
        lambda: h.give_back(task),
        lambda: h.change_agent("b", host=Host("renamed", {})),
    ]
    for cause in causes if limit_first else reversed(causes):
        assert h.cycles() == []
        cause()
    assert winners(h.cycle()) == [("f", "b")]


def test_a_wait_for_what_others_are_guaranteed_ends_when_those_have_it(h):
    h.framework("f", "others")
    h.agent("a", "cpus:1;mem:100")
    assert h.cycles() == []
    h.framework("g", "mine", constraints={"mine": only_hosts("b")})
    h.agent("b", "cpus:1;mem:100")
    # One of two is kept: f gets a or nothing, g gets b.
    assert set(winners(h.cycles())) == {("f", "a"), ("g", "b")}


def test_a_wait_for_what_others_are_guaranteed_ends_when_that_is_less(h):
    h.framework("f", "others")
    h.agent("a", "cpus:1;mem:100")
    assert h.cycles() == []
    h.rule("mine")
    assert winners(h.cycle()) == [("f", "a")]


def test_random_waits_under_a_limit_never_outlast_what_they_wait_for(h):
    dice = random.Random(5)
    for number in range(5):
        h.agent(f"a{number}", "cpus:3;mem:300")
        h.framework(f"f{number}", dice.choice(("tight", "tight/x", "mine", "others")))
    for _ in range(300):
        h.cycles()
        assert h.left_out() == []
        if h.held:
            grant = dice.choice(h.held)
            if dice.random() < 0.5 and grant.resources.scalar("cpus") > 1:
                h.use(grant, "cpus:1", seconds=5)
            elif dice.random() < 0.7:
                h.give_back(grant)
            else:
                h.decline(grant)
        h.advance(1)


def test_a_task_that_ends_under_a_limit_costs_no_look_at_agents_without_a_wait():
    options = AllocatorOptions(policies={"tight": RolePolicy(limit={"cpus": 4000})})
    h = AllocatorHarness(DrfAllocator(options), options)
    h.framework("f", "tight")
    for number in range(200):
        h.agent(f"a{number}", "cpus:1;mem:100")
    h.cycle()
    view = Counting(h)
    h.give_back(h.held[0])
    grants = h.allocator.allocate(view, h.now_s)
    assert len(grants) == 1
    assert view.looks <= 5, "once the limit is used up again nobody needs to be asked"


def test_with_guarantees_a_change_costs_a_look_at_what_changed_only():
    options = AllocatorOptions(policies={"r": RolePolicy(guarantee={"cpus": 50_000})})
    h = AllocatorHarness(DrfAllocator(options), options)
    h.framework("f", "others")
    for number in range(200):
        h.agent(f"a{number}", "cpus:1;mem:100")
    h.cycle()
    view = Counting(h)
    h.give_back(h.held[0])
    assert len(h.allocator.allocate(view, h.now_s)) == 1
    assert view.looks <= 5, "of 200"


def test_a_wait_for_the_limit_ends_for_whoever_got_the_rest_of_it_on_the_same_agent(h):
    h.rule("mine")
    h.framework("f", "tight")
    h.agent("b", "cpus:2;mem:200")
    (elsewhere,) = h.cycle()
    # All that the limit leaves: two of ten.
    h.agent("a", "cpus:10;mem:1000")
    assert winners(h.cycles()) == [("f", "a")]
    h.change_agent("b", active=False)
    assert h.cycles() == []
    h.give_back(elsewhere)
    assert winners(h.cycles()) == [("f", "a")]
