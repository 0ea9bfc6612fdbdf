from dataclasses import replace

from master.allocator.drf import DrfAllocator
from mesos_py.allocation import AllocatorOptions
from mesos_py.policy import RolePolicy
from mesos_py.resources import Resources
from mesos_py.testing.allocator_harness import AllocatorHarness, only_hosts


def harness(**options) -> AllocatorHarness:
    chosen = AllocatorOptions(**options)
    return AllocatorHarness(DrfAllocator(chosen), chosen)


def told(h: AllocatorHarness, framework_id: str = "f") -> list[tuple[str, str]]:
    skips = h.allocator.explain(framework_id, h.cluster, h.now_s)
    return [(skip.code, skip.message) for skip in skips]


def test_a_limit_is_told_with_the_role_that_has_it_and_what_is_held():
    h = harness(policies={"top": RolePolicy(limit={"cpus": 4000})})
    h.framework("f", "top/x")
    h.agent("a", "cpus:4;mem:100")
    h.cycle()
    h.agent("b", "cpus:4;mem:100")
    assert told(h)[1] == ("limit", "b: role 'top' is limited to 4 cpus and holds 4")


def test_a_limit_that_leaves_room_for_guarantees_only_names_them():
    policies = {
        "top": RolePolicy(limit={"cpus": 4000}),
        "top/y": RolePolicy(guarantee={"cpus": 4000}),
        "elsewhere": RolePolicy(guarantee={"cpus": 1000}),
    }
    h = harness(policies=policies)
    h.framework("f", "top/x")
    h.agent("a", "cpus:9;mem:100")
    assert told(h) == [
        (
            "limit",
            "a: role 'top' is limited to 4 cpus and holds 0, 4 are kept for the guarantees of "
            "roles below it: role 'top/y' lacks 4 of 4",
        )
    ]


def test_a_guarantee_is_told_with_whom_it_is_kept_for():
    h = harness(policies={"r": RolePolicy(guarantee={"cpus": 8000})})
    h.framework("f", "other")
    h.agent("a", "cpus:4;mem:100")
    assert told(h) == [
        (
            "quota",
            "a: 4 cpus are free in the cluster and 8 are promised by guarantees: "
            "role 'r' lacks 8 of 8",
        )
    ]


def test_many_guarantees_are_counted():
    policies = {f"r{n}": RolePolicy(guarantee={"cpus": 1000 * n}) for n in range(1, 6)}
    h = harness(policies=policies)
    h.framework("f", "other")
    h.agent("a", "cpus:4;mem:100")
    ((_, text),) = told(h)
    assert "role 'r5' lacks 5 of 5, role 'r4' lacks 4 of 4, role 'r3'" in text
    assert text.endswith("2 more roles lack some")


def test_a_reserved_agent_is_told_with_its_owners():
    h = harness(policies={"r": RolePolicy(agents=frozenset({"a"}))})
    h.framework("f", "other")
    h.agent("a")
    assert told(h) == [("reserved", "a: kept for role 'r' and those below it")]


def test_too_little_of_an_agent_is_told_with_the_share():
    h = harness(min_offer_share=0.5)
    h.framework("f")
    h.agent("a", "cpus:4;mem:400")
    h.use(h.cycle()[0], "cpus:3;mem:100", seconds=0)
    assert told(h) == [
        ("too-small", "a: cpus:1;mem:300 is free, offered from 50% of its cpus:4;mem:400 on")
    ]


def test_what_is_reserved_is_in_neither_of_the_two():
    h = harness(min_offer_share=0.5)
    h.framework("f")
    h.agent("a", "cpus:4;mem:400;cpus(b):8;mem(b):100")
    h.use(h.cycle()[0], "cpus:3;mem:100", seconds=0)
    assert told(h) == [
        ("too-small", "a: cpus:1;mem:300 is free, offered from 50% of its cpus:4;mem:400 on")
    ]


def test_too_little_of_its_own_is_told_as_that():
    h = harness(min_offer_share=0.5)
    h.framework("f", "b", min_free={"b": [Resources.of(cpus=2)]})
    h.agent("a", "cpus:4;mem:400;cpus(b):2")
    grant = h.cycle()[0]
    h.give_back(grant)
    used = Resources.parse_reserved("cpus:4;mem:100;cpus(b):1")
    h.cluster.hold(replace(grant, resources=used))
    assert told(h) == [
        ("too-small", "a: cpus(b):1 of it may be offered at a time, wanted from cpus:2 on")
    ]


def test_a_minimum_above_the_largest_part_is_told():
    h = harness(max_offer=Resources.of(cpus=2))
    h.framework("f", min_free={"*": [Resources.of(cpus=3)]})
    h.agent("a", "cpus:4;mem:400")
    assert told(h) == [
        ("too-small", "a: cpus:2;mem:400 of it may be offered at a time, wanted from cpus:3 on")
    ]


def test_room_for_short_tasks_is_told_where_it_is_what_is_missing():
    h = harness(short_share=0.5, short_max_s=30.0)
    h.framework("f", min_free={"*": [Resources.of(cpus=3)]})
    h.agent("a", "cpus:4;mem:400")
    assert told(h) == [
        (
            "short-only",
            "a: cpus:4;mem:400 is free, part of it for tasks of at most 30 s only, "
            "cpus:2;mem:200 for longer ones",
        )
    ]


def test_a_declined_part_is_told_with_its_time():
    h = harness(policies={"r": RolePolicy(limit={"cpus": 2000})})
    h.framework("f", "r")
    h.agent("a", "cpus:4;mem:100")
    h.decline(h.cycle()[0], seconds=7)
    ((code, text),) = told(h)
    assert code == "filtered"
    assert "asked again in 7.0 s" in text


def test_who_waits_because_others_take_all_that_may_be_given_away_is_told_so():
    h = harness(policies={"r": RolePolicy(limit={"cpus": 1000})})
    h.framework("a-first", "r")
    h.framework("f", "r")
    h.agent("a", "cpus:1;mem:100")
    h.agent("b", "cpus:4;mem:100")
    codes = {code for code, _ in told(h)}
    assert codes == {"outranked"}


def test_who_is_owed_nothing_is_not_counted_as_passed_over_for_those_who_are():
    h = harness(policies={"r": RolePolicy(guarantee={"cpus": 1000})})
    h.framework("g", "r", constraints={"r": only_hosts("elsewhere")})
    h.framework("f", "other")
    h.agent("a", "cpus:4;mem:100")
    (grant,) = h.cycle()
    assert (grant.framework_id, grant.resources.scalar("cpus")) == ("f", 3)
    assert h.allocator.passed_over("f") == []
