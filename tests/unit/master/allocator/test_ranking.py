import pytest

from master.allocator.ranking import Ranking, Shares, dominant
from master.allocator.roles import Contender, Roster
from mesos_py.allocation import AllocatorOptions, FrameworkRow, Grant
from mesos_py.policy import RolePolicy
from mesos_py.resources import Resources
from mesos_py.testing.allocator_harness import BookedCluster

TOTAL = Resources.parse("cpus:100;mem:1000;disk:10")


class Stage:
    """A roster and a cluster, from which rankings are made."""

    def __init__(self, unfair: frozenset[str] = frozenset(), **weights: float) -> None:
        self.roster = Roster(
            AllocatorOptions(policies={r: RolePolicy(weight=w) for r, w in weights.items()})
        )
        self.cluster = BookedCluster()
        self.cluster.add_agent("a", TOTAL)
        self.unfair = unfair
        self.failed: dict[str, Exception] = {}

    def framework(self, framework_id: str, *roles: str) -> None:
        self.roster.change(FrameworkRow(framework_id, framework_id, roles or ("*",)))

    def holds(self, framework_id: str, text: str, role: str = "*") -> None:
        self.cluster.hold(Grant(framework_id, role, "a", Resources.parse(text)))

    def contender(self, framework_id: str, role: str = "*") -> Contender:
        found = self.roster.contender(framework_id, role)
        assert found is not None
        return found

    def ranking(self) -> Ranking:
        shares = Shares(self.cluster.cluster_total(), self.unfair)
        on_failure = self.failed.__setitem__
        return Ranking(self.roster.root, self.cluster, shares, 1000, on_failure)


def order(ranking: Ranking, only: list[Contender] | None = None) -> list[str]:
    return [contender.framework_id for contender in ranking.walk(only)]


def test_a_dominant_share_is_the_largest_of_the_parts():
    shares = Shares({"cpus": 10_000, "mem": 1_000_000}, ())
    assert shares.of({"cpus": 2_000, "mem": 500_000}) == 0.5
    assert shares.of({"cpus": 2_000, "mem": 500_000}, weight=2.0) == 0.25
    assert shares.of({}) == 0.0


def test_names_that_the_cluster_does_not_have_do_not_count():
    shares = Shares({"cpus": 10_000, "gone": 0}, ())
    assert shares.of({"gone": 5, "other": 7, "cpus": 1_000}) == 0.1


def test_unfair_names_are_left_out():
    shares = Shares({"cpus": 10_000, "gpus": 1_000}, {"gpus"})
    assert shares.of({"cpus": 1_000, "gpus": 1_000}) == 0.1


def test_weighted_shares_that_are_equal_compare_equal():
    # 0.3 / 3 is not 0.1 in floats; 3 / (10 * 3) and 1 / 10 are the same number.
    shares = Shares({"cpus": 10_000}, ())
    assert shares.of({"cpus": 3_000}, weight=3.0) == shares.of({"cpus": 1_000})


def test_dominant_of_nothing_is_zero():
    assert dominant({}, {"cpus": 1.0}) == 0.0


def test_the_lowest_share_comes_first():
    stage = Stage()
    for name, text in (("f", "cpus:20"), ("g", "mem:100"), ("h", "cpus:1;mem:300")):
        stage.framework(name)
        stage.holds(name, text)
    assert order(stage.ranking()) == ["g", "f", "h"]


def test_roles_come_first_and_frameworks_within_them():
    stage = Stage()
    for name, role, text in (
        ("f", "r", "cpus:1"),
        ("g", "r", "cpus:50"),
        ("h", "s", "cpus:30"),
        ("i", "s", "cpus:10"),
    ):
        stage.framework(name, role)
        stage.holds(name, text, role)
    assert order(stage.ranking()) == ["i", "h", "f", "g"]


def test_weights_divide_the_shares_of_roles():
    stage = Stage(r=10.0)
    for name, role, text in (("f", "r", "cpus:50"), ("g", "s", "cpus:6")):
        stage.framework(name, role)
        stage.holds(name, text, role)
    ranking = stage.ranking()
    assert order(ranking) == ["f", "g"]
    why = ranking.why_behind(stage.contender("g", "s"), stage.contender("f", "r"))
    assert why == "share 0.050 against 0.060"


def test_what_frameworks_that_left_hold_counts_for_the_role():
    stage = Stage()
    stage.framework("f", "r")
    stage.framework("g", "s")
    stage.holds("left", "cpus:10", "r")
    stage.holds("g", "cpus:5", "s")
    assert order(stage.ranking()) == ["g", "f"]


def test_a_framework_in_several_roles_is_there_once_for_each():
    stage = Stage()
    stage.framework("f", "r", "s")
    stage.holds("f", "cpus:10", "r")
    assert [one.role for one in stage.ranking().walk()] == ["s", "r"]


def test_among_equals_the_decliners_come_last_then_the_longest_waiting_then_names_decide():
    stage = Stage()
    for name in ("a", "b", "c", "d", "e"):
        stage.framework(name)
    stage.contender("a").declined = True
    stage.contender("b").granted_at = 7
    stage.contender("c").granted_at = 3
    assert order(stage.ranking()) == ["d", "e", "c", "b", "a"]


def test_among_equal_roles_one_where_all_declined_comes_last_then_the_longest_waiting():
    stage = Stage()
    for name, roles in (("a", "r"), ("b", "r"), ("c", "s"), ("d", "t"), ("e", "u")):
        stage.framework(name, roles)
    stage.contender("a", "r").declined = True
    stage.contender("c", "s").declined = True
    stage.roster.roles["r"].granted_at = 9
    stage.roster.roles["u"].granted_at = 5
    assert order(stage.ranking()) == ["d", "e", "b", "a", "c"]


def test_a_charge_moves_the_framework_and_its_role_back():
    stage = Stage()
    for name, role in (("f", "r"), ("g", "r"), ("h", "s")):
        stage.framework(name, role)
    ranking = stage.ranking()
    assert order(ranking) == ["f", "g", "h"]
    ranking.charge(stage.contender("f", "r"), Resources.of(cpus=10))
    assert order(ranking) == ["h", "g", "f"]
    ranking.charge(stage.contender("h", "s"), Resources.of(cpus=5))
    ranking.charge(stage.contender("h", "s"), Resources.of(mem=200))
    assert order(ranking) == ["g", "f", "h"]
    why = ranking.why_behind(stage.contender("h", "s"), stage.contender("f", "r"))
    assert why == "share 0.100 against 0.200"
    why = ranking.why_behind(stage.contender("f", "r"), stage.contender("g", "r"))
    assert why == "share 0.000 against 0.100"


def test_a_charge_that_changes_no_share_makes_one_wait_behind_its_equals():
    stage = Stage()
    for name in ("f", "g"):
        stage.framework(name)
    ranking = stage.ranking()
    ranking.charge(stage.contender("f"), Resources.of(ports=[(1, 9)]))
    assert order(ranking) == ["g", "f"]
    ranking.charge(stage.contender("g"), Resources.of(ports=[(10, 19)]))
    assert order(ranking) == ["f", "g"]


def test_charges_change_neither_the_view_nor_the_contenders():
    stage = Stage()
    stage.framework("f")
    stage.holds("f", "cpus:10")
    before = dict(stage.cluster.held("f", "*"))
    stage.ranking().charge(stage.contender("f"), Resources.of(cpus=10))
    assert stage.cluster.held("f", "*") == before
    assert stage.cluster.held_under("*") == before
    assert stage.contender("f").granted_at == 0


@pytest.mark.parametrize("others", [2, 100])
def test_only_some_are_walked_in_the_same_order(others):
    stage = Stage()
    for name, role in (("f", "r"), ("g", "s"), ("h", "r"), ("i", "s")):
        stage.framework(name, role)
    for number in range(others):
        stage.framework(f"other{number}", "s")
    stage.holds("f", "cpus:3", "r")
    stage.holds("g", "cpus:2", "s")
    wanted = [stage.contender(*pair) for pair in (("f", "r"), ("g", "s"), ("h", "r"), ("i", "s"))]
    assert order(stage.ranking(), wanted) == ["i", "g", "h", "f"]
    assert order(stage.ranking(), wanted[:1]) == ["f"]


def tree(*members: str, **weights: float) -> Stage:
    """Frameworks, each as "name role" or "name role what-it-holds"; weights of roles
    with "_" for a slash."""
    stage = Stage()
    for role, weight in weights.items():
        stage.roster.rule(role.replace("_", "/"), RolePolicy(weight=weight))
    for member in members:
        name, role, *held = member.split()
        stage.framework(name, role)
        for text in held:
            stage.holds(name, text, role)
    return stage


def test_only_siblings_compete():
    # b/x holds less than a/x and a/y do, but b more than a.
    stage = tree("f a/x cpus:10", "g a/y cpus:12", "h b/x cpus:1", "i b/y cpus:29")
    assert order(stage.ranking()) == ["f", "g", "h", "i"]


def test_what_is_held_below_counts_for_all_above():
    stage = tree("f a/b/c cpus:3", "g a/b/d cpus:3", "h a/e cpus:5", "i z cpus:10")
    assert order(stage.ranking()) == ["i", "h", "f", "g"]


def test_weights_count_among_siblings_only_also_of_roles_without_frameworks():
    stage = tree("f a/x cpus:30", "g b/y cpus:20", "h b/z cpus:1", a=2.0, b_y=100.0)
    assert order(stage.ranking()) == ["f", "g", "h"]


def test_a_roles_own_frameworks_compete_with_those_below_as_one_more_of_weight_1():
    stage = tree("f a cpus:4", "g a cpus:2", "h a/b cpus:5", "i a/c cpus:7", a=50.0)
    assert order(stage.ranking()) == ["h", "g", "f", "i"]


def test_without_anybody_below_that_contends_a_roles_own_frameworks_are_by_themselves():
    stage = tree("f a cpus:4", "g a cpus:2", "h b cpus:20")
    stage.holds("left", "cpus:10", "a/gone")
    assert order(stage.ranking()) == ["g", "f", "h"]


def test_a_charge_moves_all_roles_on_the_path_back():
    stage = tree("f a/b/c", "g a/b/d", "h a/e", "i z")
    ranking = stage.ranking()
    assert order(ranking) == ["f", "g", "h", "i"]
    ranking.charge(stage.contender("f", "a/b/c"), Resources.of(cpus=10))
    assert order(ranking) == ["i", "h", "g", "f"]
    ranking.charge(stage.contender("i", "z"), Resources.of(cpus=15))
    assert order(ranking) == ["h", "g", "f", "i"]
    ranking.charge(stage.contender("h", "a/e"), Resources.of(cpus=4))
    assert order(ranking) == ["h", "g", "f", "i"]
    ranking.charge(stage.contender("h", "a/e"), Resources.of(cpus=1))
    assert order(ranking) == ["i", "h", "g", "f"]


def test_a_charge_to_one_that_was_not_walked_to_counts():
    stage = tree("f a/b", "g a/c", "h z cpus:5")
    ranking = stage.ranking()
    ranking.charge(stage.contender("f", "a/b"), Resources.of(cpus=10))
    assert order(ranking) == ["h", "g", "f"]


def test_ties_inside_the_tree_are_broken_by_what_happened_below():
    stage = tree("f a/x/1", "g a/y/1", "h a/z/1", "i a/z/2", "j a")
    stage.contender("f", "a/x/1").declined = True
    stage.contender("h", "a/z/1").declined = True
    stage.roster.granted(stage.contender("g", "a/y/1"), 5)
    stage.roster.granted(stage.contender("i", "a/z/2"), 3)
    assert order(stage.ranking()) == ["j", "i", "h", "g", "f"]


def test_a_role_of_a_thousand_levels_costs_no_stack():
    stage = tree("f " + "/".join("x" * 1000) + " cpus:1", "g x", "h z cpus:1")
    ranking = stage.ranking()
    assert order(ranking) == ["g", "f", "h"]
    contender = stage.contender("f", "/".join("x" * 1000))
    ranking.charge(contender, Resources.of(cpus=1))
    assert order(ranking) == ["h", "g", "f"]


@pytest.mark.parametrize("others", [2, 200])
def test_only_some_of_a_tree_are_walked_in_the_same_order(others):
    members = ["f a/b/c cpus:3", "g a/b cpus:5", "h a cpus:1", "i z cpus:10", "j a/b/d cpus:1"]
    stage = tree(*members, *(f"other{number} a/b/c cpus:0.001" for number in range(others)))
    pairs = [member.split()[:2] for member in members]
    wanted = [stage.contender(*pair) for pair in pairs]
    assert order(stage.ranking(), wanted) == ["i", "h", "j", "f", "g"]


@pytest.mark.parametrize(
    ("mine", "theirs", "why"),
    [
        (("f", "a/x"), ("g", "a/y"), "share 0.020 against 0.100"),
        (("f", "a/x"), ("h", "b/x"), "share 0.050 against 0.120, of role 'b' and role 'a'"),
        (("g", "a/y"), ("i", "b/y"), "share 0.050 against 0.120, of role 'b' and role 'a'"),
        (("f", "a/x"), ("j", "a"), "share 0.000 against 0.100"),
        (("h", "b/x"), ("k", "b/x"), "share 0.000 against 0.050"),
        (("i", "b/y"), ("l", "b/y"), "the same share, 0.000, and waiting longer"),
    ],
)
def test_why_one_comes_first_is_told_where_their_paths_part(mine, theirs, why):
    members = ("f a/x cpus:10", "g a/y cpus:2", "h b/x cpus:5", "i b/y", "j a", "k b/x", "l b/y")
    stage = tree(*members)
    assert stage.ranking().why_behind(stage.contender(*mine), stage.contender(*theirs)) == why


def test_positions_are_among_siblings():
    stage = tree("f a/x cpus:10", "g a/y cpus:2", "h b", "i a cpus:1", "j a cpus:2")
    stage.framework("k", "c")
    stage.roster.change(FrameworkRow("k", "k", ("c",), active=False))
    assert stage.ranking().positions() == {
        ("b", ""): (1, 2),
        ("a", ""): (2, 2),
        ("a/y", ""): (1, 3),
        ("a/x", ""): (3, 3),
        ("a", "i"): (1, 2),
        ("a", "j"): (2, 2),
        ("a/x", "f"): (1, 1),
        ("a/y", "g"): (1, 1),
        ("b", "h"): (1, 1),
    }


def test_a_role_in_the_tree_whose_holdings_cannot_be_told_takes_only_those_below_along():
    stage = tree("f a/b/c", "g a/b", "h a", "i a/d", "j z")
    stage.cluster.held_under = _raising_for(  # type: ignore[method-assign]
        "a/b", stage.cluster.held_under
    )
    assert order(stage.ranking()) == ["h", "i", "j"]
    assert sorted(stage.failed) == ["f", "g"]
    for pair in (("f", "a/b/c"), ("g", "a/b")):
        ranking = stage.ranking()
        ranking.charge(stage.contender(*pair), Resources.of(cpus=1))
        assert order(ranking) == ["h", "i", "j"]
        why = ranking.why_behind(stage.contender(*pair), stage.contender("h", "a"))
        assert why == "its record can be used"


def test_own_frameworks_of_a_role_whose_holdings_cannot_be_told_are_left_out_alone():
    stage = tree("f a/b", "g a", "h z")
    stage.cluster.held_by_role = _raising_for(  # type: ignore[method-assign]
        "a", stage.cluster.held_by_role
    )
    assert order(stage.ranking()) == ["f", "h"]
    assert list(stage.failed) == ["g"]


def test_one_whose_holdings_cannot_be_told_is_left_out():
    stage = Stage()
    for name in "fghijklmnop":
        stage.framework(name)
    stage.cluster.held = _raising_for("f", stage.cluster.held)  # type: ignore[method-assign]
    assert order(stage.ranking()) == list("ghijklmnop")
    assert order(stage.ranking(), [stage.contender("f")]) == []
    assert list(stage.failed) == ["f"]


def test_a_role_whose_holdings_cannot_be_told_is_left_out():
    stage = Stage()
    for name in ("f", "g"):
        stage.framework(name, name)
    stage.cluster.held_under = _raising_for(  # type: ignore[method-assign]
        "f", stage.cluster.held_under
    )
    ranking = stage.ranking()
    assert order(ranking) == ["g"]
    for number in range(20):
        stage.framework(f"other{number}", "g")
    assert order(stage.ranking(), [stage.contender("f", "f")]) == []
    assert list(stage.failed) == ["f"]


def _raising_for(name, method):
    def held(first, *rest):
        if first == name:
            raise OSError("not now")
        return method(first, *rest)

    return held
