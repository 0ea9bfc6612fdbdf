"""The error tree: texts that are complete without the fields, errors that can travel."""

import pickle

import pytest

from mesos_py import errors
from mesos_py.errors import (
    Conflict,
    InsufficientResources,
    InvalidResources,
    InvalidValue,
    MesosPyError,
    NotFound,
    NotLeader,
    Superseded,
    TooLarge,
    shortened,
    shown,
)

EXAMPLES = [
    MesosPyError("plain", a=1),
    InvalidValue("task_id", "a/b", "must not contain a slash"),
    InvalidResources("resources.cpus", float("inf"), "must be a finite number"),
    NotFound("agent", "S1"),
    NotFound("agent", "S1", "not connected"),
    Conflict("clash", holder="me"),
    InsufficientResources("cpus: 2 wanted, 1 there", name="cpus"),
    NotLeader("10.0.0.1:5050"),
    NotLeader(None),
    Superseded(3, 5),
    TooLarge("5 MB", field="task"),
]


@pytest.mark.parametrize("error", EXAMPLES, ids=repr)
def test_an_error_survives_pickling(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (str(again), again.fields, again.message) == (str(error), error.fields, error.message)


def test_every_error_has_its_own_code():
    found = [e for e in vars(errors).values() if isinstance(e, type)]
    codes = [error.code for error in found if issubclass(error, MesosPyError)]
    # InvalidResources is an InvalidValue, and says so more precisely.
    assert len(codes) == len(set(codes)) > 10


def test_an_invalid_value_says_where_what_and_why():
    error = InvalidValue("kill_policy.grace_period", -5, "must not be negative")
    assert str(error) == "kill_policy.grace_period: -5: must not be negative"
    assert (error.field, error.value, error.reason) == (
        "kill_policy.grace_period",
        -5,
        "must not be negative",
    )


def test_under_puts_the_field_below_another_and_keeps_the_kind():
    error = InvalidResources("cpus", "x", "must be a number").under("resources")
    assert isinstance(error, InvalidResources)
    assert str(error) == "resources.cpus: 'x': must be a number"


def test_repr_shows_the_fields():
    assert repr(Conflict("clash", holder="me")) == "Conflict('clash', holder='me')"


def test_no_leader_is_said_to_be_not_known():
    assert str(NotLeader(None)).endswith("the leader is not known")
    assert NotLeader("h:1").leader == "h:1"


@pytest.mark.parametrize(
    ("value", "text"),
    [("a\nb", r"'a\nb'"), (b"\0", r"b'\x00'"), (5, "5"), ("x" * 300, "'" + "x" * 198 + "…")],
)
def test_shown_quotes_and_shortens(value, text):
    assert shown(value) == text


def test_shortened_keeps_to_its_limit():
    assert shortened("x" * 500) == "x" * 500
    assert shortened("x" * 501) == "x" * 499 + "…"
    assert shortened(5, 1) == "5"
