"""Offer constraints: predicate by predicate, and what is refused."""

import pytest

from mesos_py.constraints import MAX_PATTERN_CHARS, Host, Term, from_proto, host_of, hosts_only
from mesos_py.errors import InvalidValue
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb

Attribute = sched.AttributeConstraint
Predicate = Attribute.Predicate
Role = sched.OfferConstraints.RoleConstraints

HOST = Host("web1", {"rack": "r1", "zone": "east"}, frozenset({"cores"}), region="eu", zone="z1")
BARE = Host("db1", {})


def predicate(kind, operand=""):
    match kind:
        case "exists":
            return Predicate(exists=Predicate.Exists())
        case "not_exists":
            return Predicate(not_exists=Predicate.NotExists())
        case "text_equals":
            return Predicate(text_equals=Predicate.TextEquals(value=operand))
        case "text_not_equals":
            return Predicate(text_not_equals=Predicate.TextNotEquals(value=operand))
        case "text_matches":
            return Predicate(text_matches=Predicate.TextMatches(regex=operand))
        case _:
            return Predicate(text_not_matches=Predicate.TextNotMatches(regex=operand))


def on(attribute, kind, operand=""):
    """One constraint on an attribute, or on a pseudo-attribute given by its number."""
    if isinstance(attribute, str):
        selector = Attribute.Selector(attribute_name=attribute)
    else:
        selector = Attribute.Selector(pseudoattribute_type=attribute)
    return Attribute(selector=selector, predicate=predicate(kind, operand))


def constraints(*groups, role="*"):
    wire = Role(groups=[Role.Group(attribute_constraints=group) for group in groups])
    return sched.OfferConstraints(role_constraints={role: wire})


def rule(*groups):
    return from_proto("offer_constraints", constraints(*groups), ("*",))["*"]


@pytest.mark.parametrize(
    ("kind", "operand", "on_host", "on_bare"),
    [
        ("exists", "", True, False),
        ("not_exists", "", False, True),
        ("text_equals", "r1", True, False),
        ("text_equals", "r2", False, False),
        ("text_not_equals", "r1", False, False),
        ("text_not_equals", "r2", True, False),
        ("text_matches", "r[0-9]", True, False),
        ("text_matches", "r", False, False),
        ("text_not_matches", "r[0-9]", False, False),
        ("text_not_matches", "r", True, False),
    ],
)
def test_a_predicate_on_a_text_attribute(kind, operand, on_host, on_bare):
    constraint = rule([on("rack", kind, operand)])
    assert constraint.allows(HOST) == on_host
    assert constraint.allows(BARE) == on_bare


@pytest.mark.parametrize("kind", ["exists", "text_equals", "text_not_equals", "text_matches"])
def test_an_attribute_that_is_no_text_passes_the_text_predicates(kind):
    assert rule([on("cores", kind, "no")]).allows(HOST)


def test_an_attribute_that_is_no_text_is_there():
    assert not rule([on("cores", "not_exists")]).allows(HOST)


@pytest.mark.parametrize(
    ("pseudo", "value"),
    [
        (Attribute.Selector.HOSTNAME, "web1"),
        (Attribute.Selector.REGION, "eu"),
        (Attribute.Selector.ZONE, "z1"),
    ],
)
def test_pseudo_attributes(pseudo, value):
    assert rule([on(pseudo, "text_equals", value)]).allows(HOST)
    assert not rule([on(pseudo, "text_equals", value)]).allows(BARE)


def test_an_attribute_named_like_a_pseudo_attribute_is_not_taken_for_it():
    assert rule([on("zone", "text_equals", "east")]).allows(HOST)
    assert not rule([on("hostname", "exists")]).allows(HOST)


def test_all_terms_of_one_group_must_hold():
    east, rack = on("zone", "text_equals", "east"), on("rack", "text_equals", "r9")
    assert not rule([east, rack]).allows(HOST)
    assert rule([east], [rack]).allows(HOST)


def test_a_constraint_says_what_it_asks():
    constraint = rule(
        [on("rack", "text_equals", "r1"), on("gpu", "not_exists")],
        [on(Attribute.Selector.HOSTNAME, "text_not_matches", "db.*")],
    )
    assert str(constraint) == "rack equals r1 and gpu not exists or hostname not matches db.*"


def test_only_these_hosts():
    wire = sched.OfferConstraints(role_constraints={"*": hosts_only(["web1", "web2"])})
    constraint = from_proto("offer_constraints", wire, ("*",))["*"]
    assert constraint.allows(HOST)
    assert not constraint.allows(BARE)


def test_a_pattern_matches_in_linear_time():
    constraint = rule([on("rack", "text_matches", "(a|aa)+b")])
    assert not constraint.allows(Host("h", {"rack": "a" * 5000}))


def test_a_term_without_a_pattern_matches_nothing():
    assert not Term(None, "rack", "text_matches", "r1").holds(HOST)


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (constraints([on("rack", "exists")], role="other"), "no such role"),
        (constraints(), "at least one group"),
        (constraints([]), "a group must not be empty"),
        (constraints([Attribute(predicate=predicate("exists"))]), "must name an attribute"),
        (constraints([on("", "exists")]), "must name an attribute"),
        (constraints([on(Attribute.Selector.UNKNOWN, "exists")]), "must name an attribute"),
        (constraints([on(77, "exists")]), "must name an attribute"),
        (
            constraints([Attribute(selector=Attribute.Selector(attribute_name="rack"))]),
            "predicate.*is missing",
        ),
        (constraints([on("rack", "text_matches", "(")]), "no usable pattern"),
        (constraints([on("rack", "text_matches", r"(a)\1")]), "no usable pattern"),
        (constraints([on("rack", "text_matches", "((a{99}){99}){99}")]), "no usable pattern"),
        (
            constraints([on("rack", "text_not_matches", "a" * (MAX_PATTERN_CHARS + 1))]),
            "at most 1000 characters",
        ),
    ],
)
def test_a_constraint_that_cannot_be_is_refused_with_its_place(message, why):
    with pytest.raises(InvalidValue, match=why) as caught:
        from_proto("offer_constraints", message, ("*",))
    assert caught.value.field.startswith("offer_constraints.role_constraints[")


def test_no_constraints_are_none():
    assert from_proto("offer_constraints", sched.OfferConstraints(), ("*",)) == {}


def test_what_constraints_see_of_an_agent():
    info = pb.AgentInfo(
        hostname="web1",
        attributes=[
            pb.Attribute(name="rack", type=pb.Value.TEXT, text=pb.Value.Text(value="r1")),
            pb.Attribute(name="cores", type=pb.Value.SCALAR, scalar=pb.Value.Scalar(value=4)),
        ],
    )
    assert host_of(info) == Host("web1", {"rack": "r1"}, frozenset({"cores"}))
    info.domain.fault_domain.region.name = "eu"
    info.domain.fault_domain.zone.name = "z1"
    assert (host_of(info).region, host_of(info).zone) == ("eu", "z1")
