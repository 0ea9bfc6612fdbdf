"""`--env NAME[=VALUE]`: variables for a command."""

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


def variables_of(items: Iterable[str]) -> list[Environment.Variable]:
    """In the form of the wire.  Raises InvalidValue for what is none, or is not there."""
    from mesos_py.v1.types_pb2 import Environment

    made = []
    for item in items:
        name, equals, value = item.partition("=")
        if not _NAME.fullmatch(name):
            raise InvalidValue("--env", item, "must be NAME=VALUE")
        if not equals:
            if name not in os.environ:
                raise InvalidValue("--env", item, "is not in this environment; give NAME=VALUE")
            value = os.environ[name]
        made.append(Environment.Variable(name=name, type=Environment.Variable.VALUE, value=value))
    return made
