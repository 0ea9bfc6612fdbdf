"""What all allocators share: a cycle looks at so many agents and leaves the rest."""

import math

import pytest

from master.allocator.drf import DrfAllocator
from master.allocator.engine import MAX_AGENTS
from mesos_py.allocation import AllocatorOptions
from mesos_py.testing.allocator_harness import AllocatorHarness, only_hosts

MANY = 2 * MAX_AGENTS + 10


@pytest.fixture
def h():
    options = AllocatorOptions()
    made = AllocatorHarness(DrfAllocator(options), options)
    for number in range(MANY):
        made.agent(f"a{number}")
    return made


def test_many_changes_are_for_several_cycles_that_follow_at_once(h):
    h.framework("f")
    sizes = []
    while True:
        sizes.append(len(h.cycle()))
        if h.allocator.next_wake_s() is None:
            break
        assert h.allocator.next_wake_s() == -math.inf
    assert sizes == [MAX_AGENTS, MAX_AGENTS, 10]


def test_what_is_left_for_later_is_for_those_who_come_meanwhile_too(h):
    h.framework("f")
    h.cycle()
    h.framework("g")
    grants = h.cycle() + h.cycle()
    assert {grant.framework_id for grant in grants} == {"f", "g"}
    # The newcomer had nothing, and gets agents until it has as much.
    assert abs(sum(1 if g.framework_id == "g" else -1 for g in h.held)) <= 1


def test_an_agent_that_goes_meanwhile_is_not_offered(h):
    h.framework("f")
    offered = {grant.agent_id for grant in h.cycle()}
    left = next(f"a{n}" for n in range(MANY) if f"a{n}" not in offered)
    h.remove_agent(left)
    later = {grant.agent_id for _ in range(3) for grant in h.cycle()}
    assert len(offered | later) == MANY - 1
    assert left not in later


def test_who_wakes_up_is_looked_at_on_all_agents_that_are_left(h):
    h.framework("f", constraints={"*": only_hosts("nowhere")})
    for _ in range(3):
        assert h.cycle() == []
    h.framework("g")
    h.framework("i")
    grants = [grant for _ in range(3) for grant in h.cycle()]
    assert len(grants) == MANY
    assert h.left_out() == []


def test_one_more_who_wakes_up_meanwhile_is_looked_at_beside_the_first(h):
    nowhere = {"*": only_hosts("nowhere")}
    h.framework("f", constraints=nowhere)
    for _ in range(3):
        h.cycle()
    h.change_framework("f", constraints={"*": only_hosts("elsewhere")})
    assert h.cycle() == []  # the rest is for later, for this framework only
    h.framework("g")
    grants = [grant for _ in range(4) for grant in h.cycle()]
    assert len(grants) == MANY
    assert {grant.framework_id for grant in grants} == {"g"}
