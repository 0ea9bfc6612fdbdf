import pytest

from master.allocator.drf import DrfAllocator
from master.allocator.lottery import LotteryAllocator
from master.allocator.priority import PriorityAllocator
from mesos_py.allocation import Need, Standing
from mesos_py.resources import Resources
from mesos_py.testing.allocator_harness import AllocatorHarness

KINDS = [DrfAllocator, LotteryAllocator, PriorityAllocator]


def standing(h: AllocatorHarness, role: str, framework_id: str = "", view=None) -> Standing:
    found = [
        each
        for each in h.allocator.standings(view or h.cluster)
        if (each.role, each.framework_id) == (role, framework_id)
    ]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("kind", KINDS)
def test_all_roles_and_frameworks_are_told_of_the_tree_in_order(kind):
    h = AllocatorHarness(kind())
    h.framework("g", "a/b/c")
    h.framework("f", "a/b/c", "a", active=False)
    h.rule("z", weight=2.0)
    told = [(each.role, each.framework_id) for each in h.allocator.standings(h.cluster)]
    assert told == [
        ("a", ""),
        ("a", "f"),
        ("a/b", ""),
        ("a/b/c", ""),
        ("a/b/c", "f"),
        ("a/b/c", "g"),
        ("z", ""),
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_shares_and_what_is_held_are_told(kind):
    h = AllocatorHarness(kind())
    h.framework("f", "a/b", priority=4)
    h.agent("x", "cpus:4;mem:1000")
    h.use(h.cycle()[0], "cpus:1;mem:500", seconds=60)
    h.rule("a", weight=2.0, priority=7, guarantee={"cpus": 500}, limit={"mem": 9000})
    assert standing(h, "a") == Standing(
        role="a",
        framework_id="",
        share=0.5,
        weighted_share=0.25,
        weight=2.0,
        position=1,
        contenders=1,
        priority=7,
        held={"cpus": 1000, "mem": 500_000},
        # Of mem, of which its policy says nothing, a fair share: all of it.
        guarantee={"cpus": 500, "mem": 1_000_000},
        limit={"mem": 9000},
    )
    assert standing(h, "a/b", "f") == Standing(
        role="a/b",
        framework_id="f",
        share=0.5,
        weighted_share=0.5,
        weight=1.0,
        position=1,
        contenders=1,
        priority=4,
        held={"cpus": 1000, "mem": 500_000},
        guarantee={"cpus": 500, "mem": 1_000_000},
    )
    assert h.allocator.shares(h.cluster) == {"a/b": 0.5, "a": 0.25}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_lacking_of_needs_is_told(kind):
    h = AllocatorHarness(kind())
    h.framework("f", "a", needs=(Need("a", Resources.of(cpus=2, mem=10), 3),))
    h.agent("x", "cpus:4;mem:1000")
    h.use(h.cycle()[0], "cpus:1;mem:500", seconds=60)
    assert standing(h, "a", "f").lacking == {"cpus": 5000}


@pytest.mark.parametrize("kind", KINDS)
def test_whoever_does_not_compete_has_no_position_among_those_who_do(kind):
    h = AllocatorHarness(kind())
    h.framework("f", "a")
    h.framework("g", "a", "b", active=False)
    h.framework("h", "a/x")
    h.rule("a/y", weight=3.0)
    assert (standing(h, "a").position, standing(h, "a").contenders) == (1, 1)
    assert (standing(h, "b").position, standing(h, "b").contenders) == (0, 1)
    assert (standing(h, "a", "g").position, standing(h, "a", "g").contenders) == (0, 1)
    # a/x and the frameworks of a itself.
    assert (standing(h, "a/y").position, standing(h, "a/y").contenders) == (0, 2)


def test_positions_follow_the_order():
    for kind, first in ((DrfAllocator, "b"), (PriorityAllocator, "a")):
        h = AllocatorHarness(kind())
        h.framework("f", "a")
        h.agent("x")
        h.cycle()
        h.framework("g", "b")
        h.rule("a", priority=1)
        assert standing(h, first).position == 1
        assert standing(h, {"a": "b", "b": "a"}[first]).position == 2


def test_in_a_lottery_those_with_equal_tickets_stand_side_by_side():
    h = AllocatorHarness(LotteryAllocator())
    for number, weight in enumerate((1.0, 3.0, 1.0)):
        h.framework(f"f{number}", f"r{number}")
        h.framework(f"g{number}", f"r{number}")
        h.rule(f"r{number}", weight=weight)
    places = [standing(h, f"r{number}") for number in range(3)]
    assert [(each.position, each.contenders) for each in places] == [(2, 3), (1, 3), (2, 3)]
    assert {standing(h, "r0", name).position for name in ("f0", "g0")} == {1}


@pytest.mark.parametrize("kind", KINDS)
def test_whoever_cannot_be_told_of_is_left_out_and_nobody_else(kind):
    class Flaky:
        def __init__(self, cluster):
            self.cluster = cluster

        def held(self, framework_id, role):
            if framework_id == "bad":
                raise OSError("not now")
            return self.cluster.held(framework_id, role)

        def held_under(self, role):
            if role == "worse":
                raise OSError("not now")
            return self.cluster.held_under(role)

        def __getattr__(self, name):
            return getattr(self.cluster, name)

    h = AllocatorHarness(kind())
    h.framework("bad", "r")
    h.framework("good", "r")
    h.framework("g", "worse")
    told = {(each.role, each.framework_id) for each in h.allocator.standings(Flaky(h.cluster))}
    assert told == {("r", ""), ("r", "good"), ("worse", "g")}
    assert h.allocator.failures() == {}


@pytest.mark.parametrize("kind", KINDS)
def test_asking_changes_nothing(kind):
    def played(asking: bool) -> list[str]:
        h = AllocatorHarness(kind())
        for number, role in enumerate(("a", "a/b", "c")):
            h.framework(f"f{number}", role)
        got = []
        for number in range(30):
            h.agent(f"x{number}")
            if asking:
                h.allocator.standings(h.cluster)
            got += [grant.framework_id for grant in h.cycle()]
        return got

    assert played(asking=True) == played(asking=False)
