"""What operators say of roles that cannot hold together, rule by rule."""

import pytest

from master.core.feasibility import problems
from mesos_py.policy import RolePolicy


def guaranteed(cpus, **more):
    return RolePolicy(guarantee={"cpus": cpus * 1000}, **more)


def limited(cpus):
    return RolePolicy(limit={"cpus": cpus * 1000})


def kept(*agents):
    return RolePolicy(agents=frozenset(agents))


def found(policies, total=0, hosts=None):
    """Each problem as it looks from each role."""
    listed = problems(policies, {"cpus": total * 1000}, hosts or {})
    return [f"{s.role} {s.field} {s.value}: {s.reason}" for p in listed for s in p.sides]


@pytest.mark.parametrize(
    "policies",
    [
        {},
        {"a": guaranteed(10)},
        {"a": guaranteed(6), "b": guaranteed(4)},
        {"a": guaranteed(10), "a/b": guaranteed(6), "a/c": guaranteed(4)},
        {"a/b": guaranteed(6), "a/c": guaranteed(4)},
        {"a": limited(10), "a/b": guaranteed(6), "a/c": guaranteed(4)},
        {"a": limited(5), "a/b": limited(5), "ab": limited(9)},
        {"a": RolePolicy(limit={"cpus": 1}), "a/b": RolePolicy(limit={"mem": 10**6})},
        {"a": kept("h1"), "a/b": kept("h1"), "a/b/c": kept("h1")},
        {"a": kept("h1"), "b": kept("h2")},
    ],
)
def test_what_can_hold_together(policies):
    assert found(policies, total=10) == []


def test_guarantees_of_children_beyond_that_of_their_parent():
    policies = {"a": guaranteed(9), "a/b": guaranteed(6), "a/c": guaranteed(4)}
    assert found(policies, total=100) == [
        "a/b guarantees.cpus 6: the guarantees below a come to 10 cpus, a has 9",
        "a/c guarantees.cpus 4: the guarantees below a come to 10 cpus, a has 9",
        "a guarantees.cpus 9: the guarantees below it come to 10 cpus",
    ]


def test_a_guarantee_counts_for_the_nearest_above_it_that_has_one():
    policies = {"a": guaranteed(9), "a/b/c": guaranteed(6), "a/d": guaranteed(4)}
    assert len(found(policies, total=100)) == 3
    between = {**policies, "a/b": guaranteed(5)}
    assert found(between, total=100)[0] == (
        "a/b/c guarantees.cpus 6: the guarantees below a/b come to 6 cpus, a/b has 5"
    )


def test_a_guarantee_of_another_scalar_is_no_guarantee_of_this_one():
    policies = {"a": RolePolicy(guarantee={"mem": 1}), "a/b": guaranteed(6)}
    assert found(policies, total=5)[0].startswith("a/b guarantees.cpus 6: all guarantees come to 6")


def test_guarantees_below_a_role_with_a_limit_and_no_guarantee():
    policies = {
        "a": limited(9),
        "a/b": guaranteed(6),
        "a/c/d": guaranteed(4),
        "a/c/d/e": limited(1),
    }
    assert found(policies, total=100) == [
        "a/b guarantees.cpus 6: the guarantees below a come to 10 cpus, its limit is 9",
        "a/c/d guarantees.cpus 4: the guarantees below a come to 10 cpus, its limit is 9",
        "a limits.cpus 9: the guarantees below it come to 10 cpus",
    ]


def test_guarantees_beyond_the_cluster_may_be_forced_and_the_others_not():
    (problem,) = problems({"a": guaranteed(6), "b": guaranteed(5)}, {"cpus": 10_000}, {})
    assert (problem.name, problem.wanted, problem.there) == ("cpus", 11_000, 10_000)
    assert problem.forceable
    assert problem.excess == 1000
    assert problem.sides[1].reason == "all guarantees come to 11 cpus, the cluster has 10"
    policies = {"a": guaranteed(1), "a/b": guaranteed(2)}
    assert not any(each.forceable for each in problems(policies, {"cpus": 10_000}, {}))


def test_what_the_cluster_does_not_have_at_all_cannot_be_guaranteed():
    (problem,) = problems({"a": RolePolicy(guarantee={"tapes": 1500})}, {"cpus": 10_000}, {})
    assert problem.sides[0].reason == "all guarantees come to 1.5 tapes, the cluster has 0"


def test_a_limit_above_that_of_any_role_above():
    policies = {"a": limited(5), "a/b/c": limited(6)}
    assert found(policies) == [
        "a/b/c limits.cpus 6: is above the limit of a, 5",
        "a limits.cpus 5: is below the limit of a/b/c, 6",
    ]


def test_an_agent_for_two_roles_that_are_not_above_one_another():
    assert found({"a": kept("h1", "h2"), "b": kept("h2"), "ab": kept("h3")}) == [
        "b agents h2: is reserved for a",
        "a agents h2: is reserved for b",
    ]


def test_an_agent_is_the_same_by_its_id_and_by_its_host():
    policies = {"a": kept("h1"), "b": kept("S7")}
    assert found(policies, hosts={"h1": ["S6", "S7"]})[0] == "b agents S7: is reserved for a"
    assert found(policies, hosts={"h1": ["S6"], "h2": ["S7"]}) == []


def test_two_roles_with_a_whole_host_of_agents_in_common_have_one_problem():
    policies = {"a": kept("h1"), "b": kept("h1")}
    assert len(list(problems(policies, {}, {"h1": ["S1", "S2", "S3"]}))) == 1
