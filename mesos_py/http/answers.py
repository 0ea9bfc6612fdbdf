"""Our errors as statuses of HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mesos_py import errors


class HttpRefusal(errors.Refused):
    """A request is refused with a status that HTTP has a meaning of its own for."""

    code = "http-refused"

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message, status=status)
        self.status = status
        self.headers = dict(headers or {})

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.status, self.message, self.headers))


# The most specific class wins.
STATUS_OF: Final[dict[type[errors.MesosPyError], int]] = {
    errors.InvalidValue: 400,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.Refused: 403,
    errors.UnsupportedProtocol: 400,
    errors.Superseded: 503,
    errors.NotLeader: 503,
    errors.Unavailable: 503,
    errors.TooLarge: 413,
    errors.MesosPyError: 503,
}


def status_of(error: errors.MesosPyError) -> int:
    """The status that says what `error` says."""
    if isinstance(error, HttpRefusal):
        return error.status
    return next(STATUS_OF[cls] for cls in type(error).__mro__ if cls in STATUS_OF)


def not_allowed(method: str, *allowed: str) -> HttpRefusal:
    """The error for a method that a path does not have."""
    names = ", ".join(allowed)
    return HttpRefusal(405, f"method: {method!r}: must be {names}", {"Allow": names})


__all__ = ["STATUS_OF", "HttpRefusal", "not_allowed", "status_of"]
