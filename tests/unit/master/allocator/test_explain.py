import re

from master.allocator.drf import DrfAllocator
from mesos_py.allocation import AllocatorOptions, Skip
from mesos_py.policy import RolePolicy
from mesos_py.resources import Resources
from mesos_py.testing.allocator_harness import AllocatorHarness, RaisingConstraint, only_hosts


def harness(**options) -> AllocatorHarness:
    chosen = AllocatorOptions(**options)
    return AllocatorHarness(DrfAllocator(chosen), chosen)


def told(h: AllocatorHarness, framework_id: str = "f") -> list[Skip]:
    return h.allocator.explain(framework_id, h.cluster, h.now_s)


def test_a_decline_is_told_with_the_time_that_is_left():
    h = harness()
    h.framework("f")
    h.agent("a")
    h.decline(h.cycle()[0], seconds=5)
    h.advance(1.8)
    assert told(h) == [
        Skip(
            "filtered",
            "a: declined by the framework itself, asked again in 3.2 s or when more is free",
            "a",
        )
    ]


def test_a_constraint_is_told_with_its_text():
    h = harness()
    h.framework("f", constraints={"*": only_hosts("b", "c")})
    h.agent("a")
    (skip,) = told(h)
    assert skip.code == "constraint"
    assert "hostname equals b or hostname equals c" in skip.message


def test_too_small_is_told_with_what_is_free_and_what_is_wanted():
    h = harness(min_offer=(Resources.of(cpus=2), Resources.of(mem=64)))
    h.framework("f")
    h.agent("a", "cpus:1;mem:32")
    (skip,) = told(h)
    assert skip.message == "a: cpus:1;mem:32 is free, offered from cpus:2 or mem:64 on"


def test_nothing_free_is_told_with_who_holds_most():
    h = harness()
    h.framework("f")
    h.framework("g")
    h.agent("a", "cpus:4;mem:400")
    h.agent("b", "cpus:4;mem:400")
    h.cycle()
    h.use(h.held[0], "cpus:1;mem:10")
    h.decline(h.held[1])
    for name in ("b", "a"):
        if h.cluster.free(name):
            h.cycle()
    skips = told(h)
    assert {skip.code for skip in skips} == {"nothing-free"}
    assert {skip.agent_id for skip in skips} == {"a", "b"}
    assert "the framework itself cpus:" in skips[0].message
    assert "'G' (g) cpus:" in skips[0].message


def test_outranked_is_told_with_the_shares_of_frameworks():
    h = harness()
    h.framework("f")
    h.agent("a", "cpus:2;mem:100")
    h.cycle()
    h.framework("g")
    h.agent("b", "cpus:8;mem:100")
    (skip,) = [skip for skip in told(h) if skip.code == "outranked"]
    assert skip.message == "b: framework 'G' (g) comes first: share 0.000 against 0.500"
    assert skip.agent_id == "b"
    assert told(h, "g") == []


def test_outranked_is_told_with_the_shares_of_roles():
    h = harness(policies={"r": RolePolicy(weight=2.0)})
    h.framework("f", "r")
    h.agent("a")
    h.cycle()
    h.framework("g", "s")
    h.agent("b")
    (skip,) = [skip for skip in told(h) if skip.code == "outranked"]
    assert "framework 'G' (g) in role 's' comes first: share 0.000 against 0.250" in skip.message


def test_outranked_at_equal_shares_says_so():
    h = harness()
    h.framework("f")
    h.framework("e")
    h.agent("a")
    (skip,) = told(h)
    assert "the same share, 0.000" in skip.message


def test_many_agents_with_one_reason_are_told_together():
    h = harness()
    h.framework("f", constraints={"*": only_hosts("nowhere")})
    for number in range(50):
        h.agent(f"a{number}")
    (skip,) = told(h)
    assert skip.message.startswith("50 agents (a0, a1, a2, ...): excluded by")
    assert skip.agent_id == ""


def test_many_reasons_of_one_kind_are_counted():
    h = harness()
    h.framework("f", min_free={"*": [Resources.of(cpus=1000)]})
    for number in range(50):
        h.agent(f"a{number}", f"cpus:{number + 1}")
    skips = told(h)
    assert len(skips) == 21
    assert skips[-1] == Skip("too-small", "30 more agents for reasons of this kind")


def test_the_rest_is_counted_in_agents():
    h = harness()
    h.framework("f", min_free={"*": [Resources.of(cpus=1000)]})
    for number in range(25):
        h.agent(f"a{number}", f"cpus:{number + 1}")
    for number in range(10):
        h.agent(f"b{number}", "cpus:500")
    assert told(h)[-1].message.startswith("15 more agents")


def test_roles_are_named_where_there_are_several():
    h = harness()
    h.framework("f", "r", "s", suppressed=frozenset({"s"}))
    h.agent("a")
    h.decline(h.cycle()[0], seconds=60)
    first, second = told(h)
    assert first.code == "suppressed"
    assert "'s'" in first.message
    assert second.code == "filtered"
    assert "role 'r': declined" in second.message


def test_reasons_that_do_not_depend_on_the_role_are_told_once():
    h = harness()
    h.framework("f", "r", "s")
    h.agent("a", active=False)
    assert [skip.code for skip in told(h)] == ["inactive"]


def test_gpus_are_told():
    h = harness()
    h.framework("f")
    h.agent("a", "cpus:1;gpus:2")
    (skip,) = told(h)
    assert skip.code == "gpu-only"


def test_a_broken_record_is_told():
    h = harness()
    h.framework("f", constraints={"*": RaisingConstraint(())})
    h.agent("a")
    (skip,) = told(h)
    assert skip.code == "error"
    assert "it burst" in skip.message
    assert h.allocator.failures() == {}


def test_a_view_that_fails_for_an_agent_or_a_holder_is_told_and_survived():
    class Flaky:
        def __init__(self, cluster):
            self.cluster = cluster

        def free(self, agent_id):
            if agent_id == "b":
                raise OSError("not now")
            return self.cluster.free(agent_id)

        def held(self, framework_id, role):
            if framework_id == "g":
                raise OSError("not now")
            return self.cluster.held(framework_id, role)

        def __getattr__(self, name):
            return getattr(self.cluster, name)

    h = harness()
    h.agent("a")
    h.framework("f")
    h.cycle()
    h.framework("g")
    h.agent("b")
    skips = h.allocator.explain("f", Flaky(h.cluster), h.now_s)
    assert {skip.code: skip.agent_id for skip in skips} == {"nothing-free": "a", "error": "b"}


def test_one_that_would_get_something_elsewhere_waits_for_nothing():
    h = harness()
    h.framework("e")
    h.framework("f")
    h.agent("a")
    h.agent("b")
    assert told(h) == []


def test_messages_hold_no_line_breaks_and_no_object_addresses():
    h = harness()
    h.framework("f", constraints={"*": only_hosts("b")})
    h.agent("a")
    for skip in told(h):
        assert not re.search(r"\n|0x[0-9a-f]{6}", skip.message)


def test_each_time_that_somebody_is_passed_over_is_counted_by_its_reason():
    h = harness()
    h.framework("picky", "r", "s", constraints={"r": only_hosts("elsewhere")})
    h.framework("busy", "t")
    h.suppress("picky", "s")
    h.agent("a")
    (grant,) = h.cycle()
    (told,) = h.allocator.passed_over("picky")
    assert (told.role, told.code, told.count, told.agent_id) == ("r", "constraint", 1, "a")
    assert told.last_s == h.now_s
    h.advance(1.0)
    h.give_back(grant)
    h.agent("b")
    h.cycle()
    (told,) = h.allocator.passed_over("picky")
    assert (told.count, told.last_s) == (3, h.now_s)
    assert list(h.allocator.passed_over("nobody")) == []


def test_an_explanation_counts_nothing():
    h = harness()
    h.framework("picky", constraints={"*": only_hosts("elsewhere")})
    h.agent("a")
    for _ in range(3):
        assert h.allocator.explain("picky", h.cluster, h.now_s)
    assert list(h.allocator.passed_over("picky")) == []


def test_an_agent_that_does_not_answer_is_told_apart_from_one_that_may_not_be_offered():
    h = harness()
    h.agent("gone")
    h.framework("f")
    h.change_agent("gone", active=False, reachable=False)
    (skip,) = h.allocator.explain("f", h.cluster, h.now_s)
    assert (skip.code, skip.agent_id) == ("unreachable", "gone")
