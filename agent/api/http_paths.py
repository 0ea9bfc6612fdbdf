"""What an HTTP path asks for: a sandbox, and a file or directory in it.  Pure."""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes

from agent.containers import sandbox
from mesos_py.errors import InvalidValue
from mesos_py.ids import check_id

PREFIX: Final = "/files/"
LATEST: Final = sandbox.LATEST
_MAX_PATH: Final = 8192


class Location(NamedTuple):
    """`run` is the container's id, or LATEST; `parts` are names beneath its sandbox."""

    framework_id: str
    executor_id: str
    run: str
    parts: tuple[str, ...]


def location_of(raw_path: str) -> Location:
    """The place that an undecoded path names: /files/FRAMEWORK/EXECUTOR/RUN[/NAME...].

    Each name is decoded by itself, so that no %2f makes two of one; a slash at the end is
    nothing.  Raises InvalidValue unless all names lead downwards.
    """
    if len(raw_path) > _MAX_PATH:
        raise InvalidValue("path", raw_path, f"must have at most {_MAX_PATH} characters")
    if not raw_path.startswith(PREFIX):
        raise InvalidValue("path", raw_path, f"must begin with {PREFIX}")
    names = raw_path.removeprefix(PREFIX).split("/")
    if names[-1] == "":
        names.pop()
    try:
        decoded = [sandbox.check_part(_decoded(name)) for name in names]
    except ValueError:
        raise InvalidValue(
            "path", raw_path, "must not have empty parts, '.', '..' or null characters"
        ) from None
    if len(decoded) < 3:
        raise InvalidValue("path", raw_path, f"must be {PREFIX}FRAMEWORK/EXECUTOR/RUN/...")
    framework_id, executor_id, run, *parts = decoded
    check_id("framework_id", framework_id)
    check_id("executor_id", executor_id)
    check_id("run", run)
    return Location(framework_id, executor_id, run, tuple(parts))


def _decoded(name: str) -> str:
    # As file names are: bytes that are no text stay what they are.
    return unquote_to_bytes(name).decode("utf-8", "surrogateescape")


def offset_of(text: str | None) -> int:
    """Where to begin: from the start, or (negative) from the end.  Raises InvalidValue."""
    if text is None:
        return 0
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 18:
        raise InvalidValue("offset", text, "is not a whole number")
    return int(text)
