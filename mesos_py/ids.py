"""Ids: which texts may be one, and who makes new ones.

The core never makes up an id by itself: it is given an `IdSource`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from mesos_py.errors import InvalidValue

MAX_ID_BYTES = 255  # NAME_MAX: ids name directories on the agents
UUID_BYTES = 16
# Nearly all ids; whatever is not one of these is looked at closely.
_PLAIN_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@+-]{0,254}", re.ASCII)


def check_id(field: str, value: str) -> str:
    """Return `value` if it may be an id, else raise InvalidValue naming `field`.

    The rule is that of Mesos (src/common/validation.cpp): not empty, at most 255
    bytes, not "." or "..", no control character, no slash or backslash.
    """
    if _PLAIN_ID.fullmatch(value):
        return value
    if not value:
        raise InvalidValue(field, value, "must not be empty")
    if value in (".", ".."):
        raise InvalidValue(field, value, "must not be '.' or '..'")
    if len(value.encode("utf-8", "surrogatepass")) > MAX_ID_BYTES:
        raise InvalidValue(field, value, f"is longer than {MAX_ID_BYTES} bytes")
    for char in value:
        if char in "/\\":
            raise InvalidValue(field, value, "must not contain a slash or backslash")
        if ord(char) < 0x20 or ord(char) == 0x7F:
            raise InvalidValue(field, value, "must not contain control characters")
    return value


def check_text(field: str, value: object) -> str:
    """Return `value` if it is text that a message can have, else raise InvalidValue."""
    if not isinstance(value, str):
        raise InvalidValue(field, value, "must be text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        reason = f"has {value[error.start]!a}, which is no character"
        raise InvalidValue(field, value, reason) from None
    return value


def check_role(field: str, value: str) -> str:
    """Return `value` if it may be a role name, else raise InvalidValue.

    The rule is that of Mesos (src/common/roles.cpp): "*", or components between
    single slashes, none empty, ".", ".." or "*", none starting with "-", no white
    space, slash at the ends or delete character.  Ours: not longer than an id, since
    each level is a node in the tree of roles, whose share changes with each grant.
    """
    if value == "*":
        return value
    if not value:
        raise InvalidValue(field, value, "must not be empty")
    if any(char.isspace() or ord(char) == 0x7F or ord(char) < 0x20 for char in value):
        raise InvalidValue(field, value, "must not contain white space or control characters")
    if len(value.encode("utf-8", "surrogatepass")) > MAX_ID_BYTES:
        raise InvalidValue(field, value, f"is longer than {MAX_ID_BYTES} bytes")
    for part in value.split("/"):
        if not part:
            raise InvalidValue(field, value, "must not start or end with a slash or double one")
        if part in (".", "..", "*"):
            raise InvalidValue(field, value, f"must not have {part!r} as a component")
        if part.startswith("-"):
            raise InvalidValue(field, value, "must not have a component that starts with '-'")
    return value


class IdSource(Protocol):
    """Where new ids come from; the shell's is unique over all time."""

    def framework_id(self) -> str: ...

    def agent_id(self) -> str: ...

    def offer_id(self) -> str: ...

    def uuid(self) -> bytes:
        """16 bytes of an RFC 4122 UUID: names one status update."""
        ...


class MasterIds:
    """Ids in the form of Mesos: `<master>-NNNN`, `<master>-S<n>`, `<master>-O<n>`.

    `master_id` must be unique for each run of a master; `make_uuid` returns 16
    random bytes with the version bits of RFC 4122 set.
    """

    def __init__(self, master_id: str, make_uuid: Callable[[], bytes]) -> None:
        self._master_id = master_id
        self._make_uuid = make_uuid
        self._frameworks = 0
        self._agents = 0
        self._offers = 0

    def framework_id(self) -> str:
        self._frameworks += 1
        return f"{self._master_id}-{self._frameworks - 1:04d}"

    def agent_id(self) -> str:
        self._agents += 1
        return f"{self._master_id}-S{self._agents - 1}"

    def offer_id(self) -> str:
        self._offers += 1
        return f"{self._master_id}-O{self._offers - 1}"

    def uuid(self) -> bytes:
        return self._make_uuid()
