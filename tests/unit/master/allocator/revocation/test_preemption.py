"""Higher priorities take what they need from lower ones, down to their guarantees."""

from master.allocator.drf import DrfAllocator
from master.allocator.priority import PriorityAllocator
from mesos_py.policy import RolePolicy
from tests.kit.revocable import RevocableHarness, need, victims


def full(make=PriorityAllocator, preempt=True, priority=5, **options):
    """`low` has filled an agent and needs all of it; it is guaranteed half."""
    policies = {"high": RolePolicy(priority=priority)}
    h = RevocableHarness(make, policies=policies, preempt=preempt, **options)
    h.framework("low", "low", suppressed=frozenset({"low"}), needs=(need("cpus:1", 8, "low"),))
    h.agent("a", "cpus:8;mem:512")
    h.fill("low", "a", "cpus:1", 8, role="low")
    h.framework("high", "high")
    return h


def wants(h, count, text="cpus:1"):
    h.change_framework("high", needs=(need(text, count, "high"),))


def test_beyond_its_guarantee_a_higher_priority_takes_what_a_lower_one_needs():
    h = full()
    h.framework("idle", "idle")
    # Three share: 2.667 each are guaranteed.
    wants(h, 5)
    assert len(victims(h.round())) == 5


def test_without_preemption_it_takes_what_it_is_guaranteed():
    h = full(preempt=False)
    h.framework("idle", "idle")
    wants(h, 5)
    assert len(victims(h.round())) == 2


def test_never_below_the_guarantee_of_a_lower_one():
    h = full()
    wants(h, 8)
    assert len(victims(h.round())) == 4
    assert h.guaranteed("low") == 4


def test_an_equal_priority_is_not_preempted():
    h = full(priority=0)
    h.framework("idle", "idle")
    wants(h, 5)
    assert len(victims(h.round())) == 2


def test_fair_shares_know_no_priorities():
    h = full(make=DrfAllocator)
    h.framework("idle", "idle")
    wants(h, 5)
    assert len(victims(h.round())) == 2


def test_frameworks_of_one_role_preempt_by_their_own_priority():
    h = RevocableHarness(PriorityAllocator, preempt=True, fair_guarantee=False)
    h.framework("low", suppressed=frozenset({"*"}), needs=(need("cpus:1", 8),))
    h.agent("a", "cpus:8")
    h.fill("low", "a", "cpus:1", 8)
    h.framework("high", priority=1, needs=(need("cpus:1", 8),))
    assert len(victims(h.round())) == 8


def test_a_large_request_of_a_higher_priority_finds_room_on_one_agent():
    # Two agents full of ten small tasks of a low priority; 60 % of one is asked for.
    h = RevocableHarness(PriorityAllocator, preempt=True)
    h.framework("low", suppressed=frozenset({"*"}))
    for agent_id in ("a", "b"):
        h.agent(agent_id, "cpus:10;mem:1000")
        h.fill("low", agent_id, "cpus:1;mem:100", 10)
    h.framework("high", priority=9, needs=(need("cpus:6;mem:600"),))
    found = h.round()
    assert len(victims(found)) == 6
    assert len({one.agent_id for one in found}) == 1


def test_the_lower_one_does_not_take_it_back():
    h = full()
    wants(h, 4)
    h.carry_out(h.round())
    h.revive("low")
    for grant in h.cycle():
        assert grant.framework_id == "high"
        h.launch(grant, "cpus:1", 4)
    for _ in range(5):
        h.advance(1.0)
        assert h.round() == []
