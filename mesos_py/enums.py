"""Names of enum values from the wire, where a newer peer may send numbers unknown here."""

from __future__ import annotations

from typing import Any, Protocol


class Names(Protocol):
    """An enum of a generated module, such as `types_pb2.TaskState`."""

    def Name(self, number: Any) -> str: ...


def name_of(names: Names, number: int) -> str:
    """The name of `number`, or the number itself as text if it has none here."""
    try:
        return names.Name(number)
    except ValueError:
        return str(number)
