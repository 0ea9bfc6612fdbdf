import math
from collections import Counter
from itertools import permutations

import pytest

from master.allocator.dice import Dice
from master.allocator.drf import DrfAllocator
from master.allocator.lottery import Drum, Lottery, LotteryAllocator, filled
from master.allocator.roles import Contender, Roster
from mesos_py.allocation import AllocatorOptions, FrameworkRow
from mesos_py.policy import RolePolicy
from mesos_py.testing.allocator_harness import AllocatorHarness, only_hosts, winners

# Chi-square that chance alone passes once in 10,000 times, by degrees of freedom.  Seeds
# are fixed, so that a test that holds once holds always.
CHANCE = {1: 15.1, 2: 18.4, 3: 21.1, 4: 23.5, 5: 25.7, 23: 55.0}


def harness(**options) -> AllocatorHarness:
    chosen = AllocatorOptions(**options)
    return AllocatorHarness(LotteryAllocator(chosen), chosen)


def fits(counts: Counter, expected: dict[str, float]) -> bool:
    """Whether the counts may come from these parts of the whole."""
    total = sum(counts.values())
    assert set(counts) <= set(expected), counts
    error = sum(
        (counts[key] - total * part) ** 2 / (total * part) for key, part in expected.items()
    )
    return error < CHANCE[len(expected) - 1]


def drawn(h: AllocatorHarness, rounds: int) -> Counter:
    """Who gets the agents that are there, each round all of them anew."""
    counts: Counter = Counter()
    for _ in range(rounds):
        for grant in h.cycle():
            counts[grant.framework_id] += 1
            h.give_back(grant)
    return counts


# ---- One drum -----------------------------------------------------------------


def orders(weights: list[float], rounds: int) -> Counter:
    entries = [Contender(str(number), "r") for number in range(len(weights))]
    drum = Drum(list(entries), weights)
    counts: Counter = Counter()
    for number in range(rounds):
        found = drum.draw(Dice(3, number))
        counts["".join(one.framework_id for one in found if isinstance(one, Contender))] += 1
    return counts


def chances(weights: list[float]) -> dict[str, float]:
    """Of each order, drawn one after the other without replacement."""
    found = {}
    for order in permutations(range(len(weights))):
        chance, left = 1.0, sum(weights)
        for number in order:
            chance *= weights[number] / left
            left -= weights[number]
        found["".join(map(str, order))] = chance
    return found


@pytest.mark.parametrize(
    "weights", [[1.0, 1.0, 1.0], [1.0, 2.0, 3.0], [0.1, 0.1, 0.8], [1.0, 1.0, 1.0, 1.0]]
)
def test_orders_are_those_of_drawing_one_after_the_other_without_replacement(weights):
    expected = chances(weights)
    assert math.isclose(sum(expected.values()), 1)
    assert fits(orders(weights, 20_000), expected)


@pytest.mark.parametrize("weights", [[5e-324, 1.7e308, 1.7e308], [5e-324, 1.0, 2.0], [1e-300] * 3])
def test_weights_at_the_ends_of_what_there_is_leave_nobody_out(weights):
    for order in orders(weights, 100):
        assert sorted(order) == ["0", "1", "2"]


def test_an_empty_drum_gives_nothing():
    assert list(Drum([], []).draw(Dice(1))) == []


# ---- The tree -----------------------------------------------------------------


@pytest.mark.long
def test_agents_go_to_roles_by_weight_and_to_the_frameworks_of_a_role_equally():
    h = harness(seed=1)
    h.rule("heavy", weight=3.0)
    for name, role in (("f", "heavy"), ("g", "heavy"), ("h", "light")):
        h.framework(name, role)
    h.agent("a")
    assert fits(drawn(h, 8000), {"f": 3 / 8, "g": 3 / 8, "h": 1 / 4})


@pytest.mark.long
def test_chances_multiply_down_the_tree():
    h = harness(seed=2)
    h.rule("a", weight=2.0)
    h.rule("a/x", weight=4.0)
    for name, role in (("own", "a"), ("x1", "a/x"), ("x2", "a/x"), ("deep", "a/y/z"), ("b", "b")):
        h.framework(name, role)
    h.agent("m")
    # a has 2 of 3; in it a/x has 4 of 6, a/y and the frameworks of a itself 1 each.
    expected = {"own": 1 / 9, "x1": 2 / 9, "x2": 2 / 9, "deep": 1 / 9, "b": 1 / 3}
    assert fits(drawn(h, 9000), expected)


def test_many_agents_of_one_cycle_are_drawn_each_by_itself():
    h = harness(seed=3)
    h.rule("heavy", weight=3.0)
    h.framework("f", "heavy")
    h.framework("g", "light")
    for number in range(2000):
        h.agent(f"a{number}")
    assert fits(drawn(h, 2), {"f": 0.75, "g": 0.25})


def test_no_agent_has_its_favourite():
    h = harness(seed=4)
    h.framework("f", "r")
    h.framework("g", "s")
    for number in range(100):
        h.agent(f"a{number}")
    got: dict[str, set[str]] = {}
    for _ in range(20):
        for grant in h.cycle():
            got.setdefault(grant.agent_id, set()).add(grant.framework_id)
            h.give_back(grant)
    assert all(names == {"f", "g"} for names in got.values())


def preferred_by_both(kind) -> Counter:
    """The heavy one holds much elsewhere, and both want the preferred agent always."""
    options = AllocatorOptions(policies={"heavy": RolePolicy(weight=3.0)}, seed=5)
    h = AllocatorHarness(kind(options), options)
    h.framework("heavy", "heavy")
    for number in range(40):
        h.agent(f"elsewhere{number}")
    assert len(h.cycle()) == 40
    h.framework("light", "light", constraints={"light": only_hosts("preferred")})
    h.agent("preferred")
    return drawn(h, 4000)


@pytest.mark.long
def test_a_preferred_agent_is_shared_by_weight_though_the_light_one_always_wants_it():
    assert fits(preferred_by_both(LotteryAllocator), {"heavy": 0.75, "light": 0.25})
    assert set(preferred_by_both(DrfAllocator)) == {"light"}


def test_tickets_of_those_who_cannot_use_an_agent_are_shared_by_the_others_by_weight():
    h = harness(seed=6)
    for role, weight in (("a", 1.0), ("b", 3.0), ("c", 20.0)):
        h.rule(role, weight=weight)
        h.framework(role.upper(), role)
    h.change_framework("C", constraints={"c": only_hosts("elsewhere")})
    h.agent("m")
    assert fits(drawn(h, 4000), {"A": 0.25, "B": 0.75})


@pytest.mark.long
def test_whoever_wakes_up_together_is_drawn_by_weight_too():
    h = harness(seed=7)
    h.rule("a", weight=3.0)
    counts: Counter = Counter()
    for name, role in (("A", "a"), ("B", "b"), ("other", "b")):
        h.framework(name, role, constraints={role: only_hosts("nowhere")})
    h.agent("m")
    for _ in range(3000):
        assert h.cycle() == []
        for name in ("A", "B"):
            h.change_framework(name, constraints={})
        (grant,) = h.cycle()
        counts[grant.framework_id] += 1
        for name, role in (("A", "a"), ("B", "b")):
            h.change_framework(name, constraints={role: only_hosts("nowhere")})
        h.give_back(grant)
    assert fits(counts, {"A": 0.75, "B": 0.25})


# ---- Repeatable ---------------------------------------------------------------


def history(seed: int) -> list[tuple[str, str]]:
    h = harness(seed=seed)
    got = []
    for number in range(10):
        h.framework(f"f{number}", f"r{number % 3}")
    for number in range(40):
        h.agent(f"a{number}")
        got += winners(h.cycle())
    return got


def test_the_same_seed_draws_the_same_and_another_does_not():
    assert history(1) == history(1)
    assert history(1) != history(2)


def test_explain_tells_what_the_next_cycle_draws():
    for seed in range(50):
        h = harness(seed=seed)
        for name in "fgh":
            h.framework(name, name)
        h.agent("a")
        told = {name: h.allocator.explain(name, h.cluster, h.now_s) for name in "fgh"}
        (grant,) = h.cycle()
        assert [name for name, skips in told.items() if not skips] == [grant.framework_id]
        (skip,) = next(skips for skips in told.values() if skips)
        assert skip.code == "outranked"
        assert skip.message.endswith("comes first: drawn by lot, for this agent and this time")


def test_the_order_of_a_set_plays_no_part():
    roster = Roster(AllocatorOptions())
    for number in range(30):
        roster.change(FrameworkRow(f"f{number}", "", (f"r{number % 4}",)))
    everybody = list(roster.everybody())
    drawn = []
    for only in (everybody, everybody[::-1], frozenset(everybody)):
        lottery = Lottery(roster, filled(roster), 1, 0)
        drawn.append([one.framework_id for one in lottery.walk(only, "a")])
    assert drawn[0] == drawn[1] == drawn[2]
    assert len(set(drawn[0])) == 30


def test_only_those_who_are_asked_for_and_contend_are_drawn():
    roster = Roster(AllocatorOptions())
    wanted = {("f", "a/b"), ("g", "a")}
    for name, active in (("f", True), ("g", False), ("h", True)):
        roster.change(FrameworkRow(name, "", ("a/b", "a"), active=active))
    only = [one for one in roster.everybody() if (one.framework_id, one.role) in wanted]
    assert len(only) == 2
    lottery = Lottery(roster, filled(roster), 1, 0)
    assert [(one.framework_id, one.role) for one in lottery.walk(only, "a")] == [("f", "a/b")]
    found = sorted((one.framework_id, one.role) for one in lottery.walk(None, "a"))
    assert found == [("f", "a"), ("f", "a/b"), ("h", "a"), ("h", "a/b")]


def test_what_is_left_of_an_agent_is_drawn_anew():
    roster = Roster(AllocatorOptions())
    for number in range(50):
        roster.change(FrameworkRow(f"f{number}", "", ("r",)))
    lottery = Lottery(roster, filled(roster), 1, 0)
    orders = [[one.framework_id for one in lottery.walk(None, "a")] for _ in range(3)]
    assert orders[0] != orders[1] != orders[2]
    lottery.charge(roster.contender("f1", "r"), None)  # type: ignore[arg-type]
    assert sorted(orders[0]) == sorted(orders[2])


def test_a_role_of_a_thousand_levels_costs_no_stack():
    h = harness()
    deep = "/".join("x" * 1000)
    h.framework("f", deep)
    h.framework("g", "x")
    h.agent("a")
    assert {grant.framework_id for _ in range(20) for grant in _and_back(h)} == {"f", "g"}


def _and_back(h: AllocatorHarness):
    grants = h.cycle()
    for grant in grants:
        h.give_back(grant)
    return grants


@pytest.mark.long
def test_a_weight_that_changes_counts_from_the_next_draw():
    h = harness(seed=8)
    h.framework("f", "r")
    h.framework("g", "s")
    h.agent("a")
    assert fits(drawn(h, 2000), {"f": 0.5, "g": 0.5})
    h.rule("r", weight=9.0)
    assert fits(drawn(h, 2000), {"f": 0.9, "g": 0.1})
    h.rule("r")
    assert fits(drawn(h, 2000), {"f": 0.5, "g": 0.5})


def test_a_role_that_appears_and_one_that_goes():
    h = harness(seed=9)
    h.framework("f", "r")
    h.agent("a")
    assert drawn(h, 10) == {"f": 10}
    h.framework("g", "r/below")
    assert fits(drawn(h, 2000), {"f": 0.5, "g": 0.5})
    h.framework("h", "s")
    assert fits(drawn(h, 2000), {"f": 0.25, "g": 0.25, "h": 0.5})
    h.remove_framework("f")
    h.suppress("h")
    assert drawn(h, 10) == {"g": 10}
