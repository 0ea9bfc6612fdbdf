"""Which texts may be ids and roles, and the form of ids that a master makes."""

import pytest

from mesos_py.errors import InvalidValue
from mesos_py.ids import MasterIds, check_id, check_role


@pytest.mark.parametrize("value", ["a", "t-1", "...", "über", "a b", "x" * 255, "ü" * 127, "a:b"])
def test_an_id_may_be(value):
    assert check_id("task_id", value) == value


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("", "must not be empty"),
        (".", "must not be '.'"),
        ("..", "must not be '.'"),
        ("x" * 256, "longer than 255 bytes"),
        ("ü" * 128, "longer than 255 bytes"),
        ("a/b", "slash"),
        ("a\\b", "slash"),
        ("a\nb", "control"),
        ("a\0b", "control"),
        ("a\x7fb", "control"),
        ("\ud800" * 100, "longer than 255 bytes"),
    ],
)
def test_an_id_may_not_be(value, why):
    with pytest.raises(InvalidValue, match=why) as caught:
        check_id("task_id", value)
    assert caught.value.field == "task_id"
    assert caught.value.value == value


@pytest.mark.parametrize(
    "value", ["*", "web", "a/b/c", "web.prod", "a-b", "ü", "...", "/".join("a" * 128)]
)
def test_a_role_may_be(value):
    assert check_role("role", value) == value


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("", "must not be empty"),
        ("/a", "slash"),
        ("a/", "slash"),
        ("a//b", "slash"),
        ("a/./b", "component"),
        ("..", "component"),
        ("a/*", "component"),
        ("-a", "starts with '-'"),
        ("a/-b", "starts with '-'"),
        ("a b", "white space"),
        ("a\tb", "white space"),
        ("a\u00a0b", "white space"),
        ("a\x7fb", "white space"),
        ("a\x01b", "white space"),
        ("/".join("a" * 128) + "b", "longer than 255 bytes"),
    ],
)
def test_a_role_may_not_be(value, why):
    with pytest.raises(InvalidValue, match=why):
        check_role("role", value)


def test_a_masters_ids_have_the_form_of_mesos():
    ids = MasterIds("m", lambda: b"u" * 16)
    assert [ids.framework_id(), ids.framework_id()] == ["m-0000", "m-0001"]
    assert [ids.agent_id(), ids.agent_id()] == ["m-S0", "m-S1"]
    assert [ids.offer_id(), ids.offer_id()] == ["m-O0", "m-O1"]
    assert ids.uuid() == b"u" * 16
