import pytest

from master.allocator.drf import DrfAllocator
from mesos_py.allocation import AllocatorOptions, Need
from mesos_py.constraints import Constraint, Host
from mesos_py.policy import RolePolicy
from mesos_py.resources import Resources
from mesos_py.testing.allocator_harness import (
    AllocatorHarness,
    RaisingConstraint,
    only_hosts,
    winners,
)


def harness(**policies: RolePolicy) -> AllocatorHarness:
    options = AllocatorOptions(policies=policies)
    return AllocatorHarness(DrfAllocator(options), options)


def needs(text: str, count: int = 1, role: str = "*", **fields) -> tuple[Need, ...]:
    return (Need(role, Resources.parse(text), count, mandatory=True, **fields),)


def why(h: AllocatorHarness, framework_id: str = "f") -> str:
    h.cycle()
    return h.allocator.waiting().get(framework_id, "")


def test_what_is_not_there_in_the_cluster_is_named_with_both_amounts():
    h = harness()
    h.agent("a", "cpus:4;mem:100")
    h.framework("f", needs=needs("cpus:3", 2))
    assert why(h) == (
        "it needs 6 cpus: with what others need or are guaranteed that is 6, active agents have 4"
    )


def test_what_is_there_but_on_no_one_agent_is_named():
    h = harness()
    for name in "ab":
        h.agent(name, "cpus:2;mem:100")
    h.framework("f", needs=needs("cpus:3", name="trainer"))
    assert why(h) == "1 of 1 x 'trainer' (cpus:3) find no room on any agent that it may use"


@pytest.mark.parametrize(
    ("resources", "fields"),
    [
        ("cpus:4;mem:100", {"constraints": {"*": only_hosts("b")}}),
        ("cpus:4;mem:100", {"constraints": {"*": RaisingConstraint(())}}),
        ("cpus:4;mem:100;gpus:1", {}),
    ],
)
def test_an_agent_that_it_may_not_use_does_not_count(resources, fields):
    h = harness()
    h.agent("a", resources)
    h.framework("f", needs=needs("cpus:1"), **fields)
    assert "find no room" in why(h)


def test_an_inactive_agent_does_not_count_until_it_is_back():
    h = harness()
    h.agent("a", "cpus:4;mem:100", active=False)
    h.framework("f", needs=needs("cpus:1"))
    assert "active agents have 0" in why(h)
    h.change_agent("a", active=True)
    assert why(h) == ""


def test_a_need_pinned_to_an_agent_counts_there_only_and_is_placed_first():
    h = harness()
    h.agent("a", "cpus:4;mem:100")
    h.agent("b", "cpus:4;mem:100")
    h.framework("f", needs=needs("cpus:4"))
    h.framework("g", needs=needs("cpus:4", agent_id="a"))
    h.framework("x", needs=needs("cpus:1", agent_id="nowhere"))
    h.cycle()
    # f was put on a at first, and makes way.
    assert set(h.allocator.waiting()) == {"x"}
    assert "cpus" in h.allocator.waiting()["x"]


def test_the_kind_matters_not_the_amount_alone():
    h = harness()
    h.agent("a", "cpus:4;mem:100;ports:[1-4]")
    h.framework("f", needs=needs("cpus:1;ports:[9-9]"))
    assert "ports:[9-9]" in why(h)
    h.change_framework("f", needs=needs("cpus:1;ports:[4-4]"))
    assert why(h) == ""
    h.change_framework("f", needs=needs("cpus:1;ports:[4-4]", 2))
    assert "1 of 2" in why(h)


def test_the_limit_of_the_role_or_one_above_it_counts():
    h = harness(top=RolePolicy(limit={"cpus": 3000}))
    h.agent("a", "cpus:9;mem:100")
    h.framework("f", "top/x", needs=needs("cpus:2", role="top/x"))
    h.framework("g", "top/y", needs=needs("cpus:2", role="top/y"))
    assert why(h) == ""
    assert why(h, "g") == "4 cpus are mandatory in role 'top', which is limited to 3"
    h.rule("top", limit={"cpus": 4000})
    assert why(h, "g") == ""


def test_what_others_are_guaranteed_is_not_given_away():
    h = harness(r=RolePolicy(guarantee={"cpus": 3000}))
    h.agent("a", "cpus:4;mem:100")
    h.framework("f", "other", needs=needs("cpus:2", role="other"))
    h.framework("g", "r/x", needs=needs("cpus:2", role="r/x"))
    assert "that is 5, active agents have 4" in why(h)
    assert why(h, "g") == "", "what it needs is inside what its role is guaranteed"


def test_a_reserved_agent_counts_for_its_role_only_and_is_used_first():
    h = harness(r=RolePolicy(agents=frozenset({"mine"})))
    h.agent("a", "cpus:4;mem:100")
    h.agent("mine", "cpus:4;mem:100")
    h.framework("f", "r", needs=needs("cpus:4", role="r"))
    h.framework("g", "s", needs=needs("cpus:4", role="s"))
    h.framework("x", "s", needs=needs("cpus:1", role="s"))
    h.cycle()
    assert set(h.allocator.waiting()) == {"x"}


def test_a_later_and_smaller_one_is_let_in_before_one_that_does_not_fit():
    h = harness()
    h.agent("a", "cpus:4;mem:100")
    h.framework("f", needs=needs("cpus:5"))
    h.framework("g", needs=needs("cpus:4"))
    assert why(h)
    assert winners(h.held) == [("g", "a")]


def test_it_is_said_how_many_were_admitted_before():
    h = harness()
    h.agent("a", "cpus:4;mem:100")
    h.agent("b", "cpus:4;mem:100")
    h.framework("f", needs=needs("cpus:3", 2))
    h.framework("g", needs=needs("cpus:2"))
    assert why(h, "g").endswith("with what 1 framework admitted before need")


def test_lower_needs_keep_it_in_and_higher_ones_are_judged_anew():
    h = harness()
    h.agent("a", "cpus:4;mem:100")
    h.framework("f", needs=needs("cpus:1", 4))
    assert why(h) == ""
    h.change_agent("a", total=Resources.parse("cpus:4;mem:100"), active=False)
    h.change_framework("f", needs=needs("cpus:1", 3))
    assert why(h) == "", "what fits less is no reason to be put out"
    h.change_agent("a", active=True)
    h.change_framework("f", needs=needs("cpus:1", 5))
    assert why(h)


def test_judging_again_changes_nothing_for_those_who_wait_and_can_be_explained():
    h = harness()
    h.agent("a", "cpus:4;mem:100")
    h.framework("f", needs=needs("cpus:9"))
    # Asked before the first cycle, when nobody has been judged yet.
    (skip,) = h.allocator.explain("f", h.cluster, h.now_s)
    assert skip.code == "not-admitted"
    assert why(h, "b") == ""
    assert h.cycle() == []
    assert skip.message.endswith(h.allocator.waiting()["f"])


class CountingConstraint(Constraint):
    """Lets everything pass, and counts how often it was asked."""

    asked = 0

    def allows(self, host: Host) -> bool:
        CountingConstraint.asked += 1
        return True


def test_a_constraint_is_tried_once_on_each_agent_however_many_needs_there_are():
    h = harness()
    for number in range(20):
        h.agent(f"a{number}", "cpus:4;mem:100")
    many = tuple(one for size in range(1, 41) for one in needs(f"cpus:1;mem:{size}"))
    CountingConstraint.asked = 0
    h.framework("f", needs=many, constraints={"*": CountingConstraint(((),))})
    assert why(h) == ""
    # The offers that it is sent then ask, and so does the harness, which checks them.
    assert CountingConstraint.asked <= 3 * 20


def test_a_guarantee_that_reservations_cover_takes_nothing_from_others():
    options = AllocatorOptions(policies={"a": RolePolicy(guarantee={"cpus": 4000})})
    h = AllocatorHarness(DrfAllocator(options), options)
    h.agent("one", "cpus(a/x):4;mem(a/x):10")
    h.agent("two", "cpus:8;mem:1000")
    h.framework("b", "b", needs=(Need("b", Resources.parse("cpus:8;mem:10"), 1, "", True),))
    assert why(h, "b") == ""
    assert [grant.agent_id for grant in h.held] == ["two"]
