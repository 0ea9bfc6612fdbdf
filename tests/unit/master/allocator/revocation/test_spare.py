"""What is free stays free for whom it was left."""

from master.allocator.drf import DrfAllocator
from tests.kit.revocable import RevocableHarness, need


def test_what_its_victim_could_have_of_what_is_free_is_not_used_for_the_next_bundle():
    h = RevocableHarness()
    h.agent("a", "cpus:4;mem:300")
    h.framework("greedy", "g", suppressed=frozenset({"g"}))
    h.framework("low", "l", suppressed=frozenset({"l"}))
    h.task("greedy", "a", "cpus:2;mem:100", 100.0, role="g")
    h.task("low", "a", "cpus:0.4;mem:100", 100.0, role="l")
    h.task("low", "a", "cpus:0.1;mem:100", 100.0, role="l")
    h.framework("f", needs=(need("cpus:0.5;mem:50", 2),))
    # `low` holds too much mem, and falls below its 1.33 cpus, while 1.5 are free.
    (found,) = h.round()
    assert found.framework_id == "low"
    assert isinstance(h.allocator, DrfAllocator)
    assert h.allocator.revoker.progress.holds.kept("a")["cpus"] == 500
