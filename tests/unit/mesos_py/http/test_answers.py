"""Every error of ours has a status, and none of them is a 500."""

import pytest

from mesos_py import errors
from mesos_py.http.answers import HttpRefusal, not_allowed, status_of


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.InvalidValue("field", 1, "why"), 400),
        (errors.InvalidResources("field", 1, "why"), 400),
        (errors.NotFound("task", "t"), 404),
        (errors.InsufficientResources("no"), 409),
        (errors.Refused("no"), 403),
        (errors.NotLeader(None), 503),
        (errors.TooLarge("no"), 413),
        (errors.InternalError("no"), 503),
        (HttpRefusal(501, "no"), 501),
    ],
)
def test_statuses(error: errors.MesosPyError, status: int) -> None:
    assert status_of(error) == status


def test_a_method_that_is_not_there_names_those_that_are() -> None:
    error = not_allowed("GET", "POST")
    assert (error.status, error.headers) == (405, {"Allow": "POST"})
