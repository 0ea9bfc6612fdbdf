"""`--env NAME[=VALUE]`: variables for a command; and what texts of it can be sent."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from mesos_py.errors import InvalidValue

if TYPE_CHECKING:
    from mesos_py.v1.types_pb2 import Environment

HELP: Final = "A variable for the command; without a value, that of this environment.  Repeatable."
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NO_VARIABLE: Final = (
    "must be NAME=VALUE, the NAME of letters (A to Z), digits and _, and without a digit in front"
)


def variables_of(items: Iterable[str]) -> list[Environment.Variable]:
    """In the form of the wire.  Raises InvalidValue for what is none, or is not there."""
    from mesos_py.v1.types_pb2 import Environment

    made = []
    for item in items:
        name, equals, value = item.partition("=")
        if not _NAME.fullmatch(name):
            raise InvalidValue("--env", item, _NO_VARIABLE)
        if not equals:
            if name not in os.environ:
                raise InvalidValue("--env", item, "is not in this environment; give NAME=VALUE")
            value = os.environ[name]
        require_text("--env", f"{name}={value}")
        made.append(Environment.Variable(name=name, type=Environment.Variable.VALUE, value=value))
    return made


def require_text(field: str, value: str) -> None:
    """Raises InvalidValue for what is not UTF-8, as all text on the wire is: a shell's words
    and variables may have any bytes."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidValue(field, value, "must be UTF-8") from None
