import pytest

from master.allocator.quota import Cap, Quota
from mesos_py.policy import RolePolicy


class View:
    def __init__(self, **held):
        self.held = held

    def held_under(self, role):
        found = self.held.get(role, {})
        if isinstance(found, Exception):
            raise found
        return found


def quota(free, policies, **held):
    made = Quota(policies)
    made.begin(View(**held), {"": {"cpus": free}} if isinstance(free, int) else free)
    return made


def test_nothing_is_capped_where_nothing_is_said():
    made = Quota({"r": RolePolicy(weight=2.0)})
    assert not made
    made.begin(View(), {})
    assert made.caps("r", own=False) == {}
    assert not made.owes


def test_a_role_may_have_what_is_guaranteed_to_it_and_the_surplus():
    policies = {"r": RolePolicy(guarantee={"cpus": 4})}
    made = quota(10, policies)
    assert made.caps("r", own=False) == {"cpus": Cap(10, "quota")}
    assert made.caps("s", own=False) == {"cpus": Cap(6, "quota")}
    assert made.owed("r/below") == {"cpus": 4}
    assert made.owed("s") == {}


def test_over_committed_guarantees_leave_nothing_to_others_and_to_each_its_own():
    policies = {role: RolePolicy(guarantee={"cpus": 8}) for role in "rs"}
    made = quota(10, policies)
    assert made.caps("x", own=False) == {"cpus": Cap(0, "quota")}
    assert made.caps("r", own=False) == {"cpus": Cap(8, "quota")}


def test_on_agents_of_its_own_guarantees_of_others_do_not_count():
    policies = {"r": RolePolicy(guarantee={"cpus": 9})}
    assert quota(10, policies).caps("s", own=True) == {}


def test_guarantees_below_are_kept_inside_the_limit():
    policies = {"r": RolePolicy(limit={"cpus": 10}), "r/x": RolePolicy(guarantee={"cpus": 4})}
    made = quota(100, policies, r={"cpus": 3})
    assert made.caps("r/y", own=False)["cpus"] == Cap(3, "limit", "r")
    assert made.caps("r/x", own=False)["cpus"] == Cap(7, "limit", "r")
    assert made.caps("r", own=False)["cpus"] == Cap(3, "limit", "r")


def test_a_limit_too_low_for_all_guarantees_below_it_still_lets_them_in():
    policies = {
        "r": RolePolicy(limit={"cpus": 2}),
        "r/x": RolePolicy(guarantee={"cpus": 2}),
        "r/y": RolePolicy(guarantee={"cpus": 2}),
    }
    made = quota(100, policies)
    assert made.surplus("cpus") == (100, 2)
    assert made.caps("r/x", own=False)["cpus"].most == 2
    assert made.caps("r/z", own=False)["cpus"].most == 0


def test_free_agents_of_its_own_are_had_by_the_role_and_those_above_it():
    policies = {
        "r": RolePolicy(guarantee={"cpus": 6}),
        "r/x": RolePolicy(guarantee={"cpus": 4}),
    }
    made = quota({"": {"cpus": 10}, "r/x": {"cpus": 3}}, policies)
    assert made.surplus("cpus") == (10, 3)
    made.charge("r/x", {"cpus": 2, "mem": 7}, "r/x")
    assert made.surplus("cpus") == (10, 3)
    made.charge("r/x", {"cpus": 1}, "")
    assert made.surplus("cpus") == (9, 2)


def test_what_cannot_be_told_of_a_role_stops_those_under_it_and_nobody_else():
    policies = {"r": RolePolicy(guarantee={"cpus": 4}), "s": RolePolicy(limit={"cpus": 4})}
    made = quota(10, policies, r=OSError("not now"))
    with pytest.raises(OSError, match="not now"):
        made.caps("r/x", own=False)
    assert made.caps("s", own=False)["cpus"].most == 4
    assert made.caps("t", own=False)["cpus"].most == 6, "all of it is kept"
