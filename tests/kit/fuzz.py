"""Messages that are wrong in every way that a message can be: made up, or valid ones altered.

No text in them does anything when a shell is given it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any, Final, TypeAlias, TypeVar

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

M = TypeVar("M", bound=Message)
# The stubs know two kinds of descriptors, of which no field is always there.
Field: TypeAlias = Any

WORDS: Final = (
    *("", "x", "true", "exit 3", "cpus", "mem", "ports", "*", "a/b", "..", ".", "-x", "a b"),
    *("\0", "\n", "ä€😀", "x" * 300, "(", "[a-z]+", "nobody", "root", "raw", "0", "%s%n"),
)
_FLOATS: Final = (0.0, 1.0, 0.1, -1.0, 1e-9, 0.0004, 1e18, 1e300, math.nan, math.inf, -math.inf)
_INTS: Final = (0, 1, 2, 7, 100, 31000, -1, 2**31 - 1, -(2**31), 2**32 - 1, 2**63 - 1, -(2**63))
_BYTES: Final = (b"", b"x", b"x" * 16, bytes(range(16)), b"\xff" * 17, b"x" * 5000)
_DEPTH: Final = 5

_BOUNDS: Final = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}


class Fuzz:
    """Values by the dice; `ids` are words too, and come often."""

    def __init__(self, dice: random.Random, ids: Sequence[str] = ()) -> None:
        self._dice = dice
        self._ids = [word for word in ids if word]

    # ---- Altered messages --------------------------------------------------

    def altered(self, valid: M, times: int | None = None) -> M:
        """A copy in which a few fields, anywhere in it, have become something else."""
        copy = type(valid)()
        copy.CopyFrom(valid)
        for _ in range(self._dice.randint(1, 4) if times is None else times):
            self._alter(copy)
        return copy

    def _alter(self, message: Message) -> None:
        dice = self._dice
        while True:
            inner = [
                part
                for field, value in _present(message)
                if field.message_type is not None and not _is_map(field)
                for part in (value if field.is_repeated else [value])
            ]
            if not inner or dice.random() < 0.25:
                break
            message = dice.choice(inner)
        fields: list[Field] = list(message.DESCRIPTOR.fields)
        if not fields:
            return
        field = dice.choice(fields)
        if dice.random() < 0.25:
            message.ClearField(field.name)
        else:
            self._set(message, field, _DEPTH - 2)

    # ---- Made up messages --------------------------------------------------

    def made_up(self, kind: type[M], density: float = 0.3) -> M:
        """Any fields with any values."""
        message = kind()
        self._fill(message, density, _DEPTH)
        return message

    def _fill(self, message: Message, density: float, depth: int) -> None:
        for field in message.DESCRIPTOR.fields:
            if self._dice.random() < density:
                self._set(message, field, depth - 1)

    def _set(self, message: Message, field: Field, depth: int) -> None:
        if depth < 0:
            return
        if _is_map(field):
            self._set_map(message, field, depth)
        elif field.is_repeated:
            items = getattr(message, field.name)
            for _ in range(self._dice.choice((1, 1, 2, 3))):
                if field.message_type is not None:
                    self._fill(items.add(), 0.5, depth)
                else:
                    items.append(self._scalar(field))
        elif field.message_type is not None:
            part = getattr(message, field.name)
            part.SetInParent()
            self._fill(part, 0.5, depth)
        else:
            setattr(message, field.name, self._scalar(field))

    def _set_map(self, message: Message, field: Field, depth: int) -> None:
        value = field.message_type.fields_by_name["value"]
        key = self._scalar(field.message_type.fields_by_name["key"])
        entries = getattr(message, field.name)
        if value.message_type is not None:
            self._fill(entries[key], 0.7, depth)
        else:
            entries[key] = self._scalar(value)

    def _scalar(self, field: Field) -> Any:
        dice, kind = self._dice, field.cpp_type
        if kind == FieldDescriptor.CPPTYPE_ENUM:
            known = [value.number for value in field.enum_type.values]
            return dice.choice([*known, 4711])
        if kind in _BOUNDS:
            low, high = _BOUNDS[kind]
            return dice.choice([number for number in _INTS if low <= number <= high])
        if kind in (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT):
            return dice.choice(_FLOATS)
        if kind == FieldDescriptor.CPPTYPE_BOOL:
            return dice.random() < 0.5
        if field.type == FieldDescriptor.TYPE_BYTES:
            return dice.choice(_BYTES)
        return dice.choice(self._ids if self._ids and dice.random() < 0.5 else WORDS)


def _present(message: Message) -> list[tuple[Field, Any]]:
    return list(message.ListFields())


def _is_map(field: Field) -> bool:
    kind = field.message_type
    return kind is not None and bool(kind.GetOptions().map_entry)
