"""What frameworks give the SDK, checked before anything is sent."""

import pytest

from mesos_py.errors import InvalidValue
from mesos_py.scheduler import checks
from mesos_py.testing.builders import make_framework, make_offer
from mesos_py.v1 import scheduler_pb2 as pb
from mesos_py.v1.types_pb2 import Filters, FrameworkInfo, OfferID

INFINITY = float("inf")
Capability = FrameworkInfo.Capability


def completed(**fields):
    return checks.complete_framework(make_framework(**fields), "user-1", "host-1")


def test_framework_gets_our_defaults_and_the_given_one_is_untouched():
    given = make_framework("n")
    info = checks.complete_framework(given, "user-1", "host-1")
    assert (info.user, info.hostname, info.failover_timeout) == ("user-1", "host-1", 3600)
    assert not given.user


def test_what_the_framework_says_stays():
    info = completed(user="u", hostname="h", failover_timeout=0.0, role="r")
    assert (info.user, info.hostname, info.failover_timeout) == ("u", "h", 0)
    assert checks.roles_of(info) == ("r",)


def test_roles_bring_their_capability_once():
    info = completed(roles=["a", "b"])
    again = checks.complete_framework(info, "u", "h")
    assert [item.type for item in again.capabilities] == [Capability.MULTI_ROLE]
    assert checks.roles_of(again) == ("a", "b")
    assert checks.roles_of(completed()) == ("*",)


@pytest.mark.parametrize(
    "fields",
    [
        {"name": ""},
        {"id": "a/b"},
        {"failover_timeout": -1.0},
        {"failover_timeout": INFINITY},
        {"failover_timeout": float("nan")},
        {"roles": ["a"], "role": "b"},
    ],
)
def test_bad_framework_is_an_error_naming_the_field(fields):
    with pytest.raises(InvalidValue, match=r"framework\."):
        completed(**fields)


def test_filters_are_seconds_or_a_message_and_are_capped():
    assert checks.filters_of(None) is None
    assert checks.filters_of(1.5) == Filters(refuse_seconds=1.5)
    assert checks.filters_of(Filters()) == Filters()
    year = Filters(refuse_seconds=checks.MAX_REFUSE_S)
    assert checks.filters_of(INFINITY) == year
    assert checks.filters_of(Filters(refuse_seconds=1e12)) == year


@pytest.mark.parametrize("value", [-1, float("nan"), "5", True, Filters(refuse_seconds=-1)])
def test_bad_refuse_seconds_are_an_error(value):
    with pytest.raises(InvalidValue, match="refuse_seconds"):
        checks.filters_of(value)


def test_offers_are_named_in_any_form():
    offers: list[checks.OfferLike] = [make_offer("o1"), OfferID(value="o2"), "o3"]
    assert checks.offer_ids_of(offers) == ["o1", "o2", "o3"]
    assert checks.offer_ids_of("o1") == checks.offer_ids_of(make_offer("o1")) == ["o1"]


def test_kill_grace_must_be_finite():
    assert checks.kill_policy_of(None) is None
    with pytest.raises(InvalidValue, match="finite"):
        checks.kill_policy_of(INFINITY)


def test_hosts_and_constraints_must_both_hold():
    exists = pb.AttributeConstraint(
        selector=pb.AttributeConstraint.Selector(attribute_name="rack"),
        predicate=pb.AttributeConstraint.Predicate(
            exists=pb.AttributeConstraint.Predicate.Exists()
        ),
    )
    given = checks.RoleConstraints()
    given.groups.add(attribute_constraints=[exists])
    both = checks.role_constraints_of(["h1", "h2"], given)
    assert both is not None
    checks.check_constraints(both)
    assert [len(group.attribute_constraints) for group in both.groups] == [2, 2]
    assert checks.role_constraints_of(None, given) is given
    assert checks.role_constraints_of(None, None) is None


def test_no_alternatives_of_min_free_mean_anything_at_all():
    filters = checks.min_free_of([])
    assert filters.HasField("min_allocatable_resources")
    assert not filters.min_allocatable_resources.quantities


def test_bad_constraints_are_an_error():
    with pytest.raises(InvalidValue, match="at least one group"):
        checks.check_constraints(checks.RoleConstraints())
