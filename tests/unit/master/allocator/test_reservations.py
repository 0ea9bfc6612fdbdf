import pytest

from master.allocator.reservations import Reservations, may_use
from mesos_py.allocation import AgentRow
from mesos_py.constraints import Host
from mesos_py.policy import RolePolicy
from mesos_py.resources import Resources

AGENT = AgentRow("id-1", Host("box", {}), Resources.of(cpus=1))


@pytest.mark.parametrize("name", ["id-1", "box"])
def test_an_agent_is_named_by_its_id_or_its_host(name):
    reservations = Reservations({"r": RolePolicy(agents=frozenset({name, "elsewhere"}))})
    assert reservations
    assert reservations.owners(AGENT) == {"r"}


def test_several_roles_may_own_an_agent_under_both_its_names():
    reservations = Reservations(
        {"r": RolePolicy(agents=frozenset({"id-1"})), "s": RolePolicy(agents=frozenset({"box"}))}
    )
    assert reservations.owners(AGENT) == {"r", "s"}


def test_an_agent_named_by_a_role_and_one_above_it_is_the_lower_ones():
    named = RolePolicy(agents=frozenset({"box"}))
    assert Reservations({"r": named, "r/x": named}).owners(AGENT) == {"r/x"}


def test_an_agent_that_nobody_named_is_everybodys():
    assert Reservations({}).owners(AGENT) == frozenset()
    assert not Reservations({"r": RolePolicy(weight=2.0)})
    other = Reservations({"r": RolePolicy(agents=frozenset({"other"}))})
    assert other.owners(AGENT) == frozenset()


@pytest.mark.parametrize(
    ("role", "may"), [("r", True), ("r/x/y", True), ("rr", False), ("*", False), ("s", True)]
)
def test_owners_and_the_roles_below_them_may_use_it(role, may):
    assert may_use(role, {"r", "s"}) is may
