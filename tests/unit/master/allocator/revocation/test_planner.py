"""Who has to go, for whom, and when nothing helps."""

import math

import pytest

from mesos_py.constraints import Host
from mesos_py.errors import InvalidValue
from mesos_py.policy import RolePolicy
from mesos_py.resources import Resources
from mesos_py.testing.allocator_harness import only_hosts
from tests.kit.revocable import RevocableHarness, need, victims


def full(agents=1, tasks=8, size="cpus:1;mem:64", total="cpus:8;mem:512", **options):
    """Agents that the framework `greedy` has filled; `f` has nothing."""
    h = RevocableHarness(**options)
    h.framework("greedy", "g", suppressed=frozenset({"g"}))
    for number in range(agents):
        h.agent(f"a{number}", total)
        h.fill("greedy", f"a{number}", size, tasks, role="g")
    h.framework("f")
    return h


def test_as_much_is_taken_back_as_is_needed_and_no_more():
    h = full()
    h.change_framework("f", needs=(need("cpus:1", 3),))
    (revocation,) = h.round()
    assert len(revocation.task_ids) == 3
    assert revocation.resources == Resources.parse("cpus:3;mem:192")
    assert (revocation.framework_id, revocation.role) == ("greedy", "g")
    assert (revocation.agent_id, revocation.beneficiary) == ("a0", "f")
    assert "'F' (f)" in revocation.reason


def test_nothing_is_taken_back_without_needs():
    h = full()
    assert h.round() == []
    assert h.allocator.next_wake_s() is None


def test_never_below_the_guarantee():
    h = full()
    h.change_framework("f", needs=(need("cpus:1", 8),))
    assert len(victims(h.round())) == 4
    assert h.guaranteed("greedy") == 4


def test_what_is_free_is_counted_first():
    h = full(tasks=6)
    h.change_framework("f", needs=(need("cpus:1", 3),))
    assert len(victims(h.revocations())) == 1


def test_what_it_holds_counts_towards_its_need():
    h = full(tasks=6)
    h.task("f", "a0", "cpus:2")
    h.change_framework("f", needs=(need("cpus:1", 2),))
    assert h.round() == []


def test_an_offer_that_it_has_counts_towards_its_need():
    h = full(tasks=6)
    h.change_framework("f", needs=(need("cpus:1", 2),))
    h.cycle()
    assert h.held_by("f") == 2
    assert h.revocations() == []


def test_the_room_is_made_on_one_agent():
    # Two agents full of ten small tasks each; 60 % of one agent is asked for.
    h = full(agents=2, tasks=10, size="cpus:1", total="cpus:10")
    h.change_framework("f", needs=(need("cpus:6"),))
    found = h.round()
    assert {one.agent_id for one in found} in ({"a0"}, {"a1"})
    assert len(victims(found)) == 6


def test_a_request_larger_than_any_agent_kills_nothing():
    h = full(agents=2, tasks=10, size="cpus:1", total="cpus:10")
    h.change_framework("f", needs=(need("cpus:11"),))
    assert h.round() == []


def test_whole_cores_are_found_where_they_can_be_made_whole():
    h = full(agents=2, tasks=0)
    h.fill("greedy", "a0", "cpus:0.5", 16, role="g")
    h.fill("greedy", "a1", "cpus:2", 4, role="g")
    h.change_framework("f", needs=(need("cpus:4"),))
    (revocation,) = h.round()
    assert revocation.agent_id == "a1"
    assert revocation.resources.scalar("cpus") == 4


def test_room_of_the_wrong_kind_is_not_made():
    h = full()
    h.change_framework("f", needs=(need("cpus:1;disk:1"),))
    assert h.round() == []


@pytest.mark.parametrize(
    "fields",
    [
        {"constraints": {"*": only_hosts("elsewhere")}},
        {"suppressed": frozenset({"*"})},
        {"active": False},
    ],
    ids=["constraint", "suppressed", "away"],
)
def test_nothing_is_taken_back_for_one_who_cannot_be_offered_it(fields):
    h = full()
    h.change_framework("f", needs=(need("cpus:1"),), **fields)
    assert h.round() == []


def test_agents_with_gpus_are_left_alone_for_one_who_cannot_use_them():
    h = full(agents=0)
    h.agent("gpu", "cpus:8;gpus:1")
    h.fill("greedy", "gpu", "cpus:1", 8, role="g")
    h.change_framework("f", needs=(need("cpus:1"),))
    assert h.round() == []
    h.change_framework("f", gpu_capable=True)
    assert len(victims(h.round())) == 1


def test_an_agent_that_is_not_active_is_left_alone():
    h = full(agents=2)
    h.change_agent("a0", active=False)
    h.change_framework("f", needs=(need("cpus:1"),))
    assert [one.agent_id for one in h.round()] == ["a1"]


def test_a_need_for_one_agent_is_made_there():
    h = full(agents=3)
    h.change_framework("f", needs=(need("cpus:2", agent="a2"),))
    assert {one.agent_id for one in h.round()} == {"a2"}


def test_nothing_is_taken_where_it_refused_as_much_as_would_be_free():
    h = full(agents=1, tasks=0)
    h.change_framework("f", needs=(need("cpus:1"),))
    (grant,) = h.cycle()
    h.decline(grant, seconds=1000)
    h.fill("greedy", "a0", "cpus:1;mem:64", 8, role="g")
    assert h.round() == []


def test_stating_needs_ends_its_refusals():
    h = full(agents=1, tasks=0)
    (grant,) = h.cycle()
    h.decline(grant, seconds=1000)
    h.fill("greedy", "a0", "cpus:1;mem:64", 8, role="g")
    h.change_framework("f", needs=(need("cpus:1"),))
    assert len(victims(h.round())) == 1


def test_the_youngest_go_first():
    h = full(tasks=0)
    ages = [50.0, 10.0, 70.0, 30.0, 60.0, 20.0, 80.0, 40.0]
    names = {age: h.task("greedy", "a0", "cpus:1;mem:64", age, "g") for age in ages}
    h.change_framework("f", needs=(need("cpus:1", 2),))
    assert set(victims(h.round())) == {names[10.0], names[20.0]}


def test_the_agent_where_the_least_is_lost_is_chosen():
    h = full(agents=2, tasks=0, total="cpus:8")
    for agent_id, ran_s in (("a0", 50.0), ("a1", 40.0)):
        for _ in range(8):
            h.task("greedy", agent_id, "cpus:1", ran_s, "g")
    h.change_framework("f", needs=(need("cpus:4"),))
    assert {one.agent_id for one in h.round()} == {"a1"}


def test_one_large_task_goes_rather_than_six_small_ones_that_ran_as_long():
    h = full(tasks=0, total="cpus:16")
    large = h.task("greedy", "a0", "cpus:6", 30.0, "g")
    for _ in range(10):
        h.task("greedy", "a0", "cpus:1", 29.0, "g")
    h.change_framework("f", needs=(need("cpus:6"),))
    assert victims(h.round()) == [large]


def test_no_victim_is_left_that_a_larger_one_has_made_needless():
    h = full(tasks=0, total="cpus:9")
    h.task("greedy", "a0", "cpus:1", 1.0, "g")
    large = h.task("greedy", "a0", "cpus:4", 50.0, "g")
    h.fill("greedy", "a0", "cpus:1", 4, role="g")
    h.change_framework("f", needs=(need("cpus:4"),))
    assert victims(h.round()) == [large]


def test_the_most_oversubscribed_is_taken_from_one_task_at_a_time():
    h = RevocableHarness(victims="most-over")
    h.agent("a", "cpus:12")
    for name, tasks in (("x", 6), ("y", 4), ("z", 2)):
        h.framework(name, name, suppressed=frozenset({name}))
        h.fill(name, "a", "cpus:1", tasks, role=name)
    h.framework("f", "f", needs=(need("cpus:1", 3, "f"),))
    taken = {one.framework_id: len(one.task_ids) for one in h.round()}
    # Of guarantees of 3 each, x is 3 above and y 1: from 6 and 4 to 4 and 3... or 3 and 4.
    assert sum(taken.values()) == 3
    assert taken["x"] >= 2
    assert "z" not in taken


def test_the_cost_that_a_framework_states_decides():
    h = full(tasks=0, victims="cost")
    for cost in (5.0, 3.0, 9.0, 1.0):
        h.task("greedy", "a0", "cpus:1", 1.0, "g", cost)
    # Nothing said: the seconds that it has run.
    old, young = (h.task("greedy", "a0", "cpus:1", ran_s, "g") for ran_s in (100.0, 2.0))
    h.task("greedy", "a0", "cpus:2", 1000.0, "g")
    h.change_framework("f", needs=(need("cpus:1", 2),))
    found = victims(h.round())
    assert young in found
    assert old not in found
    assert len(found) == 2


def test_a_policy_of_somebody_else_decides():
    h = full(victims="mine", victim_policy=lambda victim: -int(victim.tenant.task_id[1:]) + 100)
    h.change_framework("f", needs=(need("cpus:1"),))
    assert victims(h.round()) == ["t8"]


def test_a_policy_that_raises_spares_the_task_and_is_told():
    def policy(victim):
        if victim.tenant.task_id != "t5":
            raise RuntimeError("it burst")
        return 1.0

    h = full(victims="mine", victim_policy=policy)
    h.change_framework("f", needs=(need("cpus:1"),))
    assert victims(h.round()) == ["t5"]
    assert "it burst" in h.allocator.failures()["greedy"].reason


def test_a_policy_that_is_not_known_is_refused():
    with pytest.raises(InvalidValue, match="youngest"):
        RevocableHarness(victims="oldest")


def test_nothing_is_ever_taken_back_when_it_is_switched_off():
    h = full(victims="off")
    h.change_framework("f", needs=(need("cpus:1"),))
    assert h.round() == []
    assert h.allocator.next_wake_s() is None


def test_beyond_its_guarantee_only_what_others_hold_above_their_needs_is_taken():
    h = full()
    h.change_framework("greedy", needs=(need("cpus:1", 6, "g"),))
    # Guaranteed are 4: these may be taken from what greedy needs, the others not.
    h.change_framework("f", needs=(need("cpus:1", 6),))
    h.carry_out(h.round())
    assert (h.held_by("greedy"), h.held_by("f")) == (4, 0)
    for grant in h.cycle():
        h.launch(grant, "cpus:1", 4)
    assert h.round() == []


def test_what_nobody_needs_is_taken_beyond_the_guarantee_too():
    h = full(policies={"g": RolePolicy(guarantee={"cpus": 1000})})
    h.change_framework("greedy", needs=(need("cpus:1", 3, "g"),))
    h.framework("h", "h")
    # Fair is (8 - 1) / 2; a need of 5 is above it, and greedy keeps the 3 it needs.
    h.change_framework("f", needs=(need("cpus:1", 8),))
    assert len(victims(h.round())) == 5


def test_a_bundle_that_is_guaranteed_is_taken_though_the_holder_needs_it():
    h = full()
    h.change_framework("greedy", needs=(need("cpus:1", 8, "g"),))
    h.change_framework("f", needs=(need("cpus:4"),))
    assert len(victims(h.round())) == 4


def test_one_bundle_that_is_more_than_the_guarantee_is_not_taken_from_what_is_needed():
    h = full()
    h.change_framework("greedy", needs=(need("cpus:1", 8, "g"),))
    h.change_framework("f", needs=(need("cpus:5"),))
    assert h.round() == []


def test_a_resource_that_is_not_short_protects_nobody():
    # Greedy has all cpus and hardly any memory: it is below its share of that.
    h = full(size="cpus:1;mem:1", total="cpus:8;mem:8192")
    h.change_framework("f", needs=(need("cpus:1;mem:100", 2),))
    assert len(victims(h.round())) == 2


def test_a_guarantee_of_a_short_resource_protects():
    h = full(tasks=0, total="cpus:8;mem:512")
    h.fill("greedy", "a0", "cpus:1;mem:64", 4, role="g")
    h.framework("other", "o", suppressed=frozenset({"o"}))
    h.fill("other", "a0", "cpus:0.1;mem:64", 4, role="o")
    # Memory is short: a third of it is 170, and each of both has 256.
    h.change_framework("f", needs=(need("mem:128", 2),))
    found = h.revocations()
    assert sum(one.resources.scalar("mem") for one in found) == 128
    assert {len(one.task_ids) for one in found} == {1}


def test_several_who_lack_are_served_in_the_order_of_shares():
    h = full(agents=1)
    h.framework("second", "s")
    h.change_framework("second", needs=(need("cpus:1", 2, "s"),))
    h.change_framework("f", needs=(need("cpus:1", 2),))
    found = h.round()
    assert {one.beneficiary: len(one.task_ids) for one in found} == {"f": 2, "second": 2}
    assert len(set(victims(found))) == 4


def test_the_cap_limits_a_round_to_a_part_of_the_cluster():
    h = full(revocation_cap=0.25)
    h.change_framework("f", needs=(need("cpus:1", 4),))
    assert len(victims(h.round())) == 2
    h.advance(0.1)
    assert len(victims(h.round())) == 2
    h.advance(0.1)
    assert h.round() == []


def test_one_bundle_is_taken_however_small_the_cap():
    h = full(revocation_cap=0.01)
    h.change_framework("f", needs=(need("cpus:4"),))
    assert len(victims(h.round())) == 4


def test_what_is_in_progress_is_not_taken_twice():
    h = full()
    h.change_framework("f", needs=(need("cpus:1", 2),))
    assert len(victims(h.round())) == 2
    for _ in range(3):
        h.advance(1)
        assert h.round() == []
    h.change_framework("f", needs=(need("cpus:1", 3),))
    assert len(victims(h.round())) == 1
    assert len(set(victims(h.open))) == 3


def test_offers_are_rescinded_before_tasks_are_killed():
    h = full(tasks=6)
    h.change_framework("f", suppressed=frozenset({"*"}))
    h.revive("greedy")
    (grant,) = h.cycle()
    assert grant.framework_id == "greedy"
    h.change_framework("f", suppressed=frozenset(), needs=(need("cpus:1", 3),))
    found = h.round()
    by_kind = {bool(one.task_ids): one for one in found}
    assert by_kind[False].resources.scalar("cpus") == 2
    assert len(by_kind[True].task_ids) == 1
    h.suppress("greedy")
    h.carry_out(found)
    assert [(one.framework_id, one.resources.scalar("cpus")) for one in h.cycle()] == [("f", 3)]


def test_a_young_offer_is_waited_for():
    h = full(tasks=6, revocation_patience_s=1.0)
    made_s = h.now_s + 0.9
    h.since = lambda grant: made_s
    h.change_framework("f", suppressed=frozenset({"*"}))
    h.revive("greedy")
    h.cycle()
    h.change_framework("f", suppressed=frozenset(), needs=(need("cpus:1"),))
    assert h.round() == []
    h.advance(1.0)
    assert h.round() == []
    h.advance(1.0)
    (revocation,) = h.round()
    assert revocation.task_ids == ()


def test_a_task_from_before_this_master_led_goes_last():
    h = full(tasks=0)
    for _ in range(7):
        h.task("greedy", "a0", "cpus:1", math.inf, "g")
    known = h.task("greedy", "a0", "cpus:1", 1e6, "g")
    h.change_framework("f", needs=(need("cpus:1"),))
    assert victims(h.round()) == [known]


def test_ports_that_others_have_are_freed_for_one_who_needs_them():
    h = full(tasks=0, total="cpus:8;ports:[31000-31009]")
    h.fill("greedy", "a0", "cpus:1", 4, role="g")
    web = h.task("greedy", "a0", "cpus:2;ports:[31003-31004]", 500.0, "g")
    h.change_framework("f", needs=(need("cpus:1;ports:[31004-31004]"),))
    assert victims(h.revocations()) == [web]


def test_tasks_under_a_role_that_their_framework_has_left_can_be_taken_back():
    h = full()
    h.change_framework("greedy", roles=("elsewhere",), suppressed=frozenset())
    h.suppress("greedy")
    h.change_framework("f", needs=(need("cpus:1"),))
    assert len(victims(h.round())) == 1


def test_a_ledger_that_cannot_tell_of_one_agent_spoils_only_that_one():
    h = full(agents=2)
    told = h.cluster.tenants

    def tenants(agent_id):
        if agent_id == "a0":
            raise RuntimeError("it burst")
        return told(agent_id)

    h.cluster.tenants = tenants
    h.change_framework("f", needs=(need("cpus:1"),))
    assert {one.agent_id for one in h.round()} == {"a1"}
    assert "it burst" in h.allocator.failures()["a0"].reason


def test_one_whose_record_raises_does_not_stop_the_others():
    h = full()
    h.framework("bad", "b", needs=(need("cpus:1", role="b"),))
    told = h.cluster.held

    def held(framework_id, role):
        if framework_id == "bad":
            raise RuntimeError("it burst")
        return told(framework_id, role)

    h.cluster.held = held
    h.change_framework("f", needs=(need("cpus:1"),))
    assert {one.beneficiary for one in h.round()} == {"f"}
    assert h.allocator.failures()["bad"].count >= 1


def test_needs_beyond_all_measure_are_no_matter():
    h = full()
    h.change_framework("f", needs=(need("cpus:1", 2**31), need("cpus:0.001", 2**31, role="x")))
    assert len(victims(h.round())) == 4


def test_the_first_lines_are_covered_by_what_it_holds_and_mandatory_ones_before():
    h = full(tasks=4)
    h.fill("f", "a0", "cpus:1", 4)
    # The 4 it holds cover the mandatory line: lacking are 2 of one cpu.
    h.change_framework("f", needs=(need("cpus:1", 2), need("cpus:4", mandatory=True)))
    assert h.round() == []
    h.end("t5")
    assert h.held_by("f") == 3


def test_many_agents_are_looked_at_in_turns():
    h = RevocableHarness()
    h.framework("greedy", "g", suppressed=frozenset({"g"}))
    for number in range(1100):
        h.agent(f"a{number}", "cpus:1")
        h.task("greedy", f"a{number}", "cpus:1", 1.0, "g")
    # Only the last one would do: it is found in the third round.
    h.change_agent("a1099", host=Host("last", {}))
    h.framework("f", constraints={"*": only_hosts("last")}, needs=(need("cpus:1"),))
    for _ in range(2):
        assert h.round() == []
        h.advance(1.0)
    assert {one.agent_id for one in h.round()} == {"a1099"}


def test_many_who_lack_something_are_served_in_turns():
    h = RevocableHarness()
    h.framework("greedy", "g", suppressed=frozenset({"g"}))
    for number in range(60):
        h.agent(f"a{number}", "cpus:10")
        h.fill("greedy", f"a{number}", "cpus:1", 10, role="g")
    for number in range(30):
        h.framework(f"f{number}", f"r{number}", needs=(need("cpus:1", 2, f"r{number}"),))
    first = {one.beneficiary for one in h.round()}
    assert 0 < len(first) < 30
    served = set(first)
    for _ in range(20):
        h.advance(1.0)
        served |= {one.beneficiary for one in h.round()}
    assert len(served) == 30


def test_who_needs_very_many_is_given_some_in_each_round():
    h = full(agents=500, tasks=1, total="cpus:1;mem:64")
    h.change_framework("f", needs=(need("cpus:1;mem:64", 250),))
    taken = []
    for _ in range(5):
        taken.append(len(victims(h.round())))
        h.advance(1.0)
    assert taken[0] >= 50
    assert sum(taken) == 250
