import pytest

from master.allocator.drf import DrfAllocator
from master.allocator.lottery import LotteryAllocator
from master.allocator.priority import PriorityAllocator
from mesos_py.allocation import AllocatorOptions, Tenant
from mesos_py.resources import Resources
from mesos_py.testing.allocator_harness import AllocatorHarness, winners


def harness(**options) -> AllocatorHarness:
    chosen = AllocatorOptions(**options)
    return AllocatorHarness(PriorityAllocator(chosen), chosen)


def names(grants) -> list[str]:
    return [name for name, _ in winners(grants)]


def slots(h: AllocatorHarness, *numbers: int) -> None:
    for number in numbers:
        h.agent(f"a{number}", "cpus:1;mem:100")


def tenant(framework_id: str, role: str) -> Tenant:
    return Tenant(framework_id, role, "task", Resources.of(cpus=1), 0.0)


def outranks_in(h: AllocatorHarness):
    assert isinstance(h.allocator, PriorityAllocator)
    return h.allocator.outranks


def test_the_role_of_the_highest_priority_takes_all_that_it_can_use():
    h = harness()
    h.framework("low", "l")
    h.framework("high", "h")
    h.rule("h", priority=1)
    slots(h, *range(8))
    assert names(h.cycle()) == ["high"] * 8


def test_what_the_high_ones_do_not_take_is_for_the_low_ones():
    h = harness()
    h.rule("l", priority=-3)
    h.framework("low", "l")
    h.framework("high", "h")
    slots(h, 1, 2)
    for grant in h.cycle():
        h.decline(grant, seconds=60)
    assert names(h.cycle()) == ["low", "low"]


def test_a_framework_of_higher_priority_comes_first_in_its_role_and_nowhere_else():
    h = harness()
    h.framework("f", "r", priority=5)
    h.framework("g", "r")
    h.framework("other", "s", priority=-5)
    slots(h, *range(8))
    got = names(h.cycle())
    assert got.count("f") == got.count("other") == 4


def test_inside_a_level_shares_are_fair_by_weight():
    h = harness()
    for role, priority, weight in (("a", 1, 3.0), ("b", 1, 1.0), ("c", 0, 100.0)):
        h.rule(role, priority=priority, weight=weight)
        h.framework(role.upper(), role)
    slots(h, *range(8))
    got = names(h.cycle())
    assert (got.count("A"), got.count("B"), got.count("C")) == (6, 2, 0)


def test_frameworks_of_one_priority_share_equally():
    h = harness()
    for name, priority in (("f", 2), ("g", 2), ("h", 1)):
        h.framework(name, "r", priority=priority)
    slots(h, *range(8))
    got = names(h.cycle())
    assert (got.count("f"), got.count("g"), got.count("h")) == (4, 4, 0)


def test_only_siblings_are_compared_by_priority():
    h = harness()
    h.rule("a/x", priority=100)
    h.rule("b", priority=1)
    h.framework("ax", "a/x")
    h.framework("ay", "a/y")
    h.framework("b", "b")
    slots(h, 1)
    assert names(h.cycle()) == ["b"]
    h.suppress("b")
    slots(h, 2, 3)
    assert names(h.cycle()) == ["ax", "ax"]


def test_a_roles_own_frameworks_stand_at_priority_0_among_those_below():
    h = harness()
    h.rule("a", priority=9)
    h.rule("a/below", priority=-1)
    h.rule("a/above", priority=1)
    h.framework("own", "a", priority=-7)
    for role in ("below", "above"):
        h.framework(role, f"a/{role}")
    order = []
    for number in range(3):
        slots(h, number)
        (grant,) = h.cycle()
        order.append(grant.framework_id)
        h.suppress(grant.framework_id)
    assert order == ["above", "own", "below"]


def test_a_changed_priority_counts_from_the_next_cycle():
    h = harness()
    h.framework("f", "r")
    h.framework("g", "s")
    h.rule("s", priority=1)
    slots(h, 1, 2)
    assert names(h.cycle()) == ["g", "g"]
    h.rule("r", priority=2)
    slots(h, 3, 4)
    assert names(h.cycle()) == ["f", "f"]
    h.rule("r")
    h.framework("f2", "s", priority=1)
    slots(h, 5)
    assert names(h.cycle()) == ["f2"]
    h.change_framework("g", priority=2)
    slots(h, 6)
    assert names(h.cycle()) == ["g"]


def test_where_nobody_says_priorities_grants_are_those_of_drf():
    def played(kind) -> list[tuple[str, str]]:
        h = AllocatorHarness(kind())
        for number, role in enumerate(("a", "a/b", "c", "a/d")):
            h.framework(f"f{number}", role)
        got = []
        for number in range(20):
            h.agent(f"a{number}", f"cpus:{1 + number % 3};mem:100")
            got += winners(h.cycle())
        return got

    assert played(PriorityAllocator) == played(DrfAllocator)


def test_it_is_told_that_the_priority_decides():
    h = harness()
    h.rule("h", priority=2)
    h.framework("low", "l")
    h.framework("high", "h")
    h.framework("higher", "h", priority=7)
    slots(h, 1)
    (skip,) = h.allocator.explain("low", h.cluster, h.now_s)
    assert skip.code == "outranked"
    assert "in role 'h' comes first: priority 2 before 0" in skip.message
    (skip,) = h.allocator.explain("high", h.cluster, h.now_s)
    assert "comes first: priority 7 before 0" in skip.message


@pytest.mark.parametrize(
    ("one", "other", "outranks"),
    [
        # In one role the frameworks' own priorities count.
        (("f", "a"), ("g", "a"), True),
        (("f", "a"), ("f", "a"), False),
        # Between roles those of the roles where the paths part, and nothing else.
        (("g", "b"), ("f", "a"), True),
        (("g", "a/x"), ("f", "a"), True),
        (("f", "a"), ("g", "a/y"), True),
        (("g", "a/x/deep"), ("f", "a/y/deep"), True),
        (("g", "b"), ("g", "a/x"), True),
        (("g", "c"), ("f", "a"), False),
        # Whoever left, and roles of which nothing is known, stand at 0.
        (("f", "a"), ("left", "a"), True),
        (("left", "a"), ("g", "a"), False),
        (("f", "never/heard"), ("g", "never/of"), False),
        (("f", "never/heard"), ("g", "never"), False),
    ],
)
def test_who_outranks_whom(one, other, outranks):
    h = harness()
    h.rule("b", priority=1)
    h.rule("a/x", priority=1)
    h.rule("a/y", priority=-1)
    h.framework("f", "a", priority=3)
    h.framework("g", "a", "b", "a/x")
    assert outranks_in(h)(tenant(*one), tenant(*other)) is outranks
    if outranks:
        assert not outranks_in(h)(tenant(*other), tenant(*one))


def test_a_contender_outranks_a_tenant():
    h = harness()
    h.framework("f", "a", priority=3)
    assert isinstance(h.allocator, PriorityAllocator)
    contender = h.allocator.roster.contender("f", "a")
    assert contender is not None
    assert h.allocator.outranks(contender, tenant("gone", "a"))


@pytest.mark.parametrize("kind", [DrfAllocator, LotteryAllocator])
def test_with_the_others_nobody_outranks_anybody(kind):
    allocator = kind()
    h = AllocatorHarness(allocator)
    h.rule("a", priority=9)
    h.framework("f", "a", priority=3)
    h.framework("g", "b")
    assert not allocator.outranks(tenant("f", "a"), tenant("g", "b"))
