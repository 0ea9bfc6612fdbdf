import math
from dataclasses import replace

import pytest

from master.allocator.roles import GRANTS_KEPT, Contender, Roster
from mesos_py.allocation import AllocatorOptions, FrameworkRow
from mesos_py.constraints import Constraint, Host
from mesos_py.errors import InvalidValue
from mesos_py.policy import RolePolicy
from mesos_py.resources import Resources
from mesos_py.testing.allocator_harness import only_hosts

ROW = FrameworkRow("f", "name", ("r", "s"))


@pytest.fixture
def roster() -> Roster:
    return Roster(AllocatorOptions())


def roles(contenders) -> list[str]:
    return [contender.role for contender in contenders]


def test_a_new_framework_competes_in_each_role(roster):
    assert roles(roster.change(ROW).woken) == ["r", "s"]
    assert list(roster.roles) == ["r", "s"]


def test_a_role_that_is_named_twice_counts_once(roster):
    assert roles(roster.change(replace(ROW, roles=("r", "r"))).woken) == ["r"]
    assert roles(roster.remove("f").silenced) == ["r"]


def test_the_same_row_again_wakes_nobody(roster):
    roster.change(replace(ROW, constraints={"r": only_hosts("a")}))
    shift = roster.change(replace(ROW, constraints={"r": only_hosts("a")}))
    assert (shift.woken, shift.silenced) == ([], [])


@pytest.mark.parametrize(
    ("changes", "woken"),
    [
        ({"constraints": {"r": only_hosts("a")}}, ["r"]),
        ({"min_free": {"s": [Resources.of(cpus=1)]}}, ["s"]),
        ({"gpu_capable": True}, ["r", "s"]),
        ({"roles": ("r", "s", "t")}, ["t"]),
        ({"name": "another"}, []),
    ],
)
def test_a_changed_row_wakes_those_for_whom_more_may_be_usable(roster, changes, woken):
    roster.change(ROW)
    shift = roster.change(replace(ROW, **changes))
    assert roles(shift.woken) == woken
    assert shift.silenced == []


def test_changes_of_one_that_does_not_compete_wake_nobody(roster):
    roster.change(replace(ROW, active=False))
    shift = roster.change(replace(ROW, active=False, gpu_capable=True))
    assert (shift.woken, shift.silenced) == ([], [])
    assert roles(roster.change(replace(ROW, gpu_capable=True)).woken) == ["r", "s"]


def test_suppression_is_by_role(roster):
    roster.change(ROW)
    assert roles(roster.change(replace(ROW, suppressed=frozenset({"s"}))).silenced) == ["s"]
    assert list(roster.roles["r"].contending) == ["f"]
    assert list(roster.roles["s"].contending) == []
    assert roles(roster.change(ROW).woken) == ["s"]


def test_coming_back_forgets_the_decline_but_not_the_last_grant(roster):
    roster.change(ROW)
    contender = roster.contender("f", "r")
    contender.declined = True
    contender.granted_at = 9
    roster.change(replace(ROW, active=False))
    roster.change(ROW)
    assert roster.contender("f", "r") is contender
    assert (contender.declined, contender.granted_at) == (False, 9)


def test_dropped_roles_and_removed_frameworks_leave_nothing(roster):
    roster.change(ROW)
    assert roles(roster.change(replace(ROW, roles=("s",))).silenced) == ["r"]
    assert list(roster.roles) == ["s"]
    assert roles(roster.remove("f").silenced) == ["s"]
    assert roster.roles == {}
    assert roster.row("f") is None
    assert list(roster.everybody()) == []
    assert roster.remove("f").silenced == []


def test_a_dropped_contender_competes_no_more(roster):
    roster.change(ROW)
    contender = roster.contender("f", "r")
    roster.remove("f")
    assert not contender.contending


def test_roles_with_a_weight_stay():
    roster = Roster(AllocatorOptions(policies={"r": RolePolicy(weight=3.0)}))
    roster.change(ROW)
    assert roster.roles["r"].weight == 3.0
    roster.remove("f")
    assert list(roster.roles) == ["r"]
    assert roster.roles["r"].weight == 3.0


@pytest.mark.parametrize("weight", [0.0, -1.0, math.nan, math.inf])
def test_an_impossible_weight_is_refused_when_the_allocator_is_made(weight):
    with pytest.raises(InvalidValue, match=r"weights\[r\]"):
        Roster(AllocatorOptions(policies={"r": RolePolicy(weight=weight)}))


def test_a_role_has_declined_when_all_who_compete_in_it_have(roster):
    roster.change(ROW)
    roster.change(FrameworkRow("g", "g", ("r",)))
    roster.change(FrameworkRow("h", "h", ("r",), active=False))
    roster.contender("f", "r").declined = True
    assert not roster.roles["r"].declined()
    roster.contender("g", "r").declined = True
    assert roster.roles["r"].declined()


def test_a_constraint_is_evaluated_once_per_host_until_either_changes(roster):
    asked = []

    class Asked(Constraint):
        def allows(self, host):
            asked.append(host.hostname)
            return True

    host = Host("a", {})
    roster.change(replace(ROW, constraints={"r": Asked(())}))
    contender = roster.contender("f", "r")
    assert contender.allows("a", host)
    assert contender.allows("a", host)
    assert asked == ["a"]
    assert contender.allows("a", Host("renamed", {}))
    assert asked == ["a", "renamed"]
    roster.change(replace(ROW, constraints={"r": only_hosts("b")}))
    assert not contender.allows("a", host)


def test_a_removed_agent_leaves_nothing_behind(roster):
    roster.change(replace(ROW, constraints={"r": only_hosts("a")}))
    contender = roster.contender("f", "r")
    contender.allows("a", Host("a", {}))
    contender.granted["a"] = Resources.of(cpus=1)
    contender.forget_agent("a")
    assert contender.granted == {}
    assert contender._allowed == {}  # memory shows nowhere else


def test_roles_stand_below_those_that_their_names_say_named_or_not(roster):
    roster.change(replace(ROW, roles=("a/b/c", "a")))
    assert list(roster.roles) == ["a/b/c", "a"]
    assert list(roster.tree) == ["a", "a/b", "a/b/c"]
    node = roster.tree["a/b/c"]
    assert (node.parent.name, node.parent.parent.name) == ("a/b", "a")
    assert node.parent.parent.parent is roster.root
    assert roster.tree["a"] is roster.roles["a"]


def test_each_node_knows_how_many_contend_in_it_and_below(roster):
    roster.change(replace(ROW, roles=("a", "a/b/c")))
    roster.change(FrameworkRow("g", "g", ("a/b/c",)))
    roster.change(FrameworkRow("h", "h", ("a/b",), active=False))

    def competing():
        return {name: node.competing for name, node in roster.tree.items()}

    assert competing() == {"a": 3, "a/b": 2, "a/b/c": 2}
    assert roster.root.competing == 3
    roster.change(replace(ROW, roles=("a", "a/b/c"), suppressed=frozenset({"a/b/c"})))
    assert competing() == {"a": 2, "a/b": 1, "a/b/c": 1}
    roster.remove("g")
    roster.remove("h")
    assert competing() == {"a": 1, "a/b": 0, "a/b/c": 0}
    roster.remove("f")
    assert roster.root.competing == 0


def test_a_role_branches_only_while_somebody_below_it_contends(roster):
    roster.change(replace(ROW, roles=("a", "a/b")))
    assert roster.tree["a"].branches
    roster.change(replace(ROW, roles=("a", "a/b"), suppressed=frozenset({"a/b"})))
    assert not roster.tree["a"].branches
    assert not roster.tree["a/b"].branches


def test_a_role_that_goes_takes_the_unnamed_ones_above_it_along(roster):
    roster.change(replace(ROW, roles=("a/b/c", "a/d")))
    roster.change(replace(ROW, roles=("a/d",)))
    assert list(roster.tree) == ["a", "a/d"]
    roster.remove("f")
    assert (roster.tree, roster.root.children) == ({}, {})


def test_a_policy_of_one_above_stays_and_is_no_framework(roster):
    roster.rule("a", RolePolicy(weight=2.0))
    roster.change(replace(ROW, roles=("a/b",)))
    assert roster.tree["a/b"].parent.weight == 2.0
    roster.rule("a", RolePolicy())
    assert list(roster.roles) == ["a/b"]
    assert list(roster.tree) == ["a", "a/b"]
    roster.rule("a", RolePolicy(weight=3.0))
    roster.remove("f")
    assert list(roster.tree) == ["a"]


def test_a_grant_is_noted_all_along_the_path(roster):
    roster.change(replace(ROW, roles=("a", "a/b", "a/c")))
    contender = roster.contender("f", "a/b")
    contender.declined = True
    roster.granted(contender, 7)
    assert (contender.granted_at, contender.declined) == (7, False)
    roster.granted(roster.contender("f", "a"), 9)
    numbers = {n: (node.granted_at, node.own_granted_at) for n, node in roster.tree.items()}
    assert numbers == {"a": (9, 9), "a/b": (7, 7), "a/c": (0, 0)}


def test_a_role_has_declined_when_all_below_it_have_too(roster):
    roster.change(replace(ROW, roles=("a", "a/b/c")))
    roster.contender("f", "a").declined = True
    assert roster.tree["a"].own_declined()
    assert not roster.tree["a"].declined()
    roster.contender("f", "a/b/c").declined = True
    assert roster.tree["a"].declined()


def test_a_name_of_a_thousand_levels_is_a_path_like_any_other(roster):
    deep = "/".join("x" * 1000)
    roster.change(replace(ROW, roles=(deep,)))
    assert roster.root.competing == 1
    assert not roster.tree["x"].declined()
    roster.remove("f")
    assert roster.tree == {}


def test_of_very_many_grants_the_latest_are_remembered():
    contender = Contender("f", "*")
    some = Resources.parse("cpus:1")
    for number in range(GRANTS_KEPT + 500):
        contender.was_granted(f"a{number}", some)
        contender.was_granted("often", some)
    assert len(contender.granted) == GRANTS_KEPT
    assert {"often", f"a{GRANTS_KEPT + 499}"} < contender.granted.keys()
    assert contender.granted_short == {}
