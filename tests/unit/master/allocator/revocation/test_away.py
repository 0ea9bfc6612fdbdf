"""What is kept on agents that are away."""

from mesos_py.policy import RolePolicy
from mesos_py.testing.allocator_harness import only_hosts
from tests.kit.revocable import RevocableHarness, need


def test_what_is_kept_on_an_agent_that_is_away_takes_nothing_from_others_elsewhere():
    h = RevocableHarness(policies={"p": RolePolicy(guarantee={"cpus": 1000})})
    h.framework("greedy", "g", suppressed=frozenset({"g"}))
    h.framework("guaranteed", "p", suppressed=frozenset({"p"}))
    h.agent("a", "cpus:8;mem:512")
    h.fill("greedy", "a", "cpus:1;mem:64", 7, role="g")
    h.fill("guaranteed", "a", "cpus:1;mem:64", 1, role="p")
    h.framework("f", needs=(need("cpus:1;mem:64", 2),), constraints={"*": only_hosts("a")})
    assert len(h.carry_out(h.round())) == 2
    h.change_agent("a", active=False)
    h.framework("other", "o")
    h.agent("b", "cpus:3;mem:300")
    (grant,) = h.cycle()
    assert (grant.framework_id, grant.agent_id) == ("other", "b")
    assert grant.resources.scalar("cpus") == 3
