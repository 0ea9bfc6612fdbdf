import math

import pytest

from mesos_py.errors import InvalidResources, InvalidValue
from mesos_py.policy import (
    DEFAULT_POLICY,
    RolePolicy,
    ancestors,
    is_under,
    parse_amounts,
    policy_from_proto,
    policy_to_proto,
)
from mesos_py.v1 import types_pb2 as pb


def test_what_went_over_the_wire_is_what_it_was():
    policy = RolePolicy(
        weight=0.25,
        priority=-(2**31),
        guarantee={"cpus": 1},
        limit={"cpus": 10**15, "mem": 0},
        need_limit={"gpus": 2000},
        agents=frozenset({"b", "a"}),
    )
    policy.check("web")
    assert policy_from_proto("policy", policy_to_proto(policy)) == policy
    assert list(policy_to_proto(policy).agents) == ["a", "b"]


def test_what_says_nothing_is_the_default():
    assert policy_from_proto("policy", pb.RolePolicy()) == DEFAULT_POLICY
    assert policy_from_proto("policy", pb.RolePolicy(weight=0.0)).weight == 0.0


@pytest.mark.parametrize("value", [-1, math.nan, math.inf, 1e13, 0.0001])
@pytest.mark.parametrize("what", ["guarantees", "limits", "need_limits"])
def test_an_amount_that_is_none_is_named(what, value):
    message = pb.RolePolicy()
    getattr(message, what)["cpus"].value = value
    with pytest.raises(InvalidValue) as caught:
        policy_from_proto("policy", message)
    assert caught.value.field == f"policy.{what}.cpus"


@pytest.mark.parametrize("host", ["", "a b", "a\n", "a\0", "x" * 256])
def test_a_host_that_is_none_is_named(host):
    with pytest.raises(InvalidValue, match=r"policy\.agents"):
        policy_from_proto("policy", pb.RolePolicy(agents=["good", host]))


@pytest.mark.parametrize(
    ("text", "amounts"),
    [
        ("cpus:10;mem:2048", {"cpus": 10_000, "mem": 2_048_000}),
        (" cpus : 0.5 ; ", {"cpus": 500}),
        ("cpus:0", {"cpus": 0}),
        ("cpus:0.00;mem:1", {"cpus": 0, "mem": 1000}),
    ],
)
def test_amounts_as_people_write_them(text, amounts):
    assert parse_amounts("limit", text) == amounts


@pytest.mark.parametrize(
    "text",
    [
        *("", ";", "cpus", "cpus:", "cpus:.", "cpus:-1", "cpus:0.0.0", "cpus:1;cpus:0"),
        *("ports:[1-2]", "names:{a}", "c:d:0", ":0", "cpus:x", "cpus:0.0001"),
    ],
)
def test_texts_that_are_no_amounts(text):
    with pytest.raises(InvalidResources, match="limit"):
        parse_amounts("limit", text)


def test_roles_above_and_below():
    assert ancestors("a/b/c") == ("a/b/c", "a/b", "a")
    assert is_under("a", "a")
    assert is_under("a/b", "a")
    assert not is_under("ab", "a")
    assert not is_under("a", "a/b")
