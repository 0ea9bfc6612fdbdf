import pytest

from mesos_py.policy import RolePolicy
from tests.kit.revocable import RevocableHarness, need


def cluster(policies=None, agents=2, resources="cpus:4;mem:4096", **options):
    h = RevocableHarness(policies=policies or {}, **options)
    for number in range(agents):
        h.agent(f"a{number}", resources)
    return h


def cpus(h):
    return {one: m["cpus"] / 1000 for one, m in h.allocator.guarantees(h.cluster).items()}


def test_a_fair_share_of_every_resource_by_the_weight_of_the_role():
    h = cluster({"b": RolePolicy(weight=3.0)})
    h.framework("f", "a")
    h.framework("g", "b")
    assert h.allocator.guarantees(h.cluster) == {
        "f": {"cpus": 2000, "mem": 2048000},
        "g": {"cpus": 6000, "mem": 6144000},
    }


def test_frameworks_of_a_role_are_equal():
    h = cluster()
    h.framework("f", "a")
    h.framework("g", "a")
    h.framework("h", "b")
    assert cpus(h) == {"f": 2, "g": 2, "h": 4}


def test_a_framework_in_two_roles_has_both_guarantees():
    h = cluster()
    h.framework("f", "a", "b")
    h.framework("g", "a")
    assert cpus(h) == {"f": 6, "g": 2}


def test_who_neither_competes_nor_holds_nor_needs_anything_is_not_counted():
    h = cluster()
    h.framework("f", "a")
    for name, role in (("idle", "b"), ("holder", "c"), ("needy", "d")):
        h.framework(name, role, suppressed=frozenset({role}))
    assert cpus(h) == {"f": 8}
    h.task("holder", "a0", "cpus:1", role="c")
    assert cpus(h) == {"f": 4, "holder": 4}
    h.change_framework("needy", needs=(need("cpus:1", role="d"),))
    assert set(cpus(h)) == {"f", "holder", "needy"}


def test_an_operators_guarantee_comes_first_and_the_rest_is_shared():
    h = cluster({"q": RolePolicy(guarantee={"cpus": 2000})})
    h.framework("f", "q")
    h.framework("g", "a")
    h.framework("h", "b")
    assert cpus(h) == {"f": 2, "g": 3, "h": 3}
    # Of what the guarantee says nothing of it has a fair share.
    assert h.guaranteed("f", "mem") == pytest.approx(8192 / 3, abs=0.001)


def test_a_guarantee_that_nobody_uses_is_nobody_elses():
    h = cluster({"q": RolePolicy(guarantee={"cpus": 6000})})
    h.framework("g", "a")
    assert cpus(h) == {"g": 2}


def test_more_guaranteed_than_there_is_leaves_nothing():
    h = cluster({"q": RolePolicy(guarantee={"cpus": 100_000})})
    h.framework("f", "q")
    h.framework("g", "a")
    assert h.guaranteed("f") == 100
    assert h.guaranteed("g") == 0


def test_without_fair_guarantees_only_operators_guarantee_anything():
    h = cluster({"q": RolePolicy(guarantee={"cpus": 2000})}, fair_guarantee=False)
    h.framework("f", "q")
    h.framework("g", "a")
    assert h.allocator.guarantees(h.cluster) == {"f": {"cpus": 2000}}


def test_nobody_has_a_fair_share_of_what_is_scarce():
    policies = {"q": RolePolicy(guarantee={"gpus": 1000})}
    h = cluster(policies, resources="cpus:4;mem:4096;gpus:2")
    h.framework("f", "q", gpu_capable=True)
    h.framework("g", "a", gpu_capable=True)
    assert h.guaranteed("f", "gpus") == 1
    assert "gpus" not in h.allocator.guarantees(h.cluster)["g"]


def test_a_guarantee_is_divided_down_the_tree():
    h = cluster(
        {
            "org": RolePolicy(guarantee={"cpus": 6000}),
            "org/ads": RolePolicy(guarantee={"cpus": 2000}),
            "org/web": RolePolicy(weight=3.0),
        }
    )
    h.framework("f", "org/ads")
    h.framework("g", "org/web")
    h.framework("h", "org")
    h.framework("other", "else")
    # 6 less 2 of its own, by 3 to the role's own frameworks' 1.
    assert cpus(h) == {"f": 2, "g": 3, "h": 1, "other": 2}
    roles = h.allocator.guaranteed(h.cluster)
    assert roles.of_role("org")["cpus"] == 6000
    assert roles.of_role("org/web")["cpus"] == 3000


def test_a_deep_role_belongs_to_the_share_of_the_role_at_the_top():
    h = cluster()
    h.framework("f", "a/b/c")
    h.framework("g", "a/d")
    h.framework("h", "z")
    assert cpus(h) == {"f": 2, "g": 2, "h": 4}


def test_a_guarantee_far_below_does_not_count_as_a_share_above():
    h = cluster({"a/b/c": RolePolicy(guarantee={"cpus": 2000})})
    h.framework("f", "a/b/c")
    h.framework("g", "z")
    assert cpus(h) == {"f": 2, "g": 6}


def test_a_framework_whose_holdings_cannot_be_told_spoils_nothing():
    h = cluster()
    h.framework("f", "a")
    h.framework("bad", "b", suppressed=frozenset({"b"}))
    told = h.cluster.held

    def held(framework_id, role):
        if framework_id == "bad":
            raise RuntimeError("it burst")
        return told(framework_id, role)

    h.cluster.held = held
    assert cpus(h) == {"f": 8}
    assert "it burst" in h.allocator.failures()["bad"].reason


@pytest.mark.parametrize("weight", [1e308, 5e-324])
def test_weights_of_any_size_divide_what_there_is(weight):
    h = cluster({"a": RolePolicy(weight=weight), "b": RolePolicy(weight=weight)})
    h.framework("f", "a")
    h.framework("g", "b")
    assert cpus(h) == {"f": 4, "g": 4}


def test_beside_a_weight_without_measure_the_others_are_guaranteed_nothing():
    h = cluster({"a": RolePolicy(weight=1e308)})
    h.framework("f", "a")
    h.framework("g", "b")
    assert cpus(h) == {"f": 8}
