"""What is known of the fields of each message, gathered once.

`presence.py` says what Mesos says of them; the descriptors say the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from mesos_py.http.presence import DEFAULTS, REQUIRED

# Fields from this number on are ours: clients of Mesos do not know them.
OURS: Final = 1000

_INTEGERS: Final[dict[int, tuple[int, int]]] = {
    FieldDescriptor.TYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.TYPE_UINT64: (0, 2**64 - 1),
}


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message."""

    name: str
    number: int
    # FieldDescriptor.TYPE_...; of a map: of its values.
    type: int
    repeated: bool
    required: bool
    # Only of maps: how a key is read from a member's name.
    key: Callable[[str], Any] | None
    # Of integers: the least and the greatest.
    bounds: tuple[int, int] | None
    enum_names: dict[int, str]
    enum_numbers: dict[str, int]
    # Of messages (of a map: of its values).
    message: Descriptor | None


@dataclass(slots=True)
class Fields:
    """The fields of a message."""

    by_name: dict[str, Field] = field(default_factory=dict)
    by_number: dict[int, Field] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    # What is written where a field is not set: the field and its value in Python.
    written: tuple[tuple[Field, Any], ...] = ()


_KNOWN: Final[dict[Descriptor, Fields]] = {}


def fields_of(descriptor: Any) -> Fields:
    """The fields of the messages with this descriptor."""
    known = _KNOWN.get(descriptor)
    if known is None:
        known = _KNOWN[descriptor] = _gathered(descriptor)
    return known


def _gathered(descriptor: Descriptor) -> Fields:
    required = REQUIRED.get(descriptor.full_name, ())
    defaults = DEFAULTS.get(descriptor.full_name, {})
    fields = Fields()
    written: list[tuple[Field, Any]] = []
    for each in descriptor.fields:
        made = _field(each, each.name in required)
        fields.by_name[made.name] = fields.by_number[made.number] = made
        if made.name in defaults:
            written.append((made, _value(made, defaults[made.name])))
        elif made.required and made.message is None:
            written.append((made, each.default_value))
    fields.required = tuple(name for name in required if name in fields.by_name)
    fields.written = tuple(written)
    return fields


def _field(of: FieldDescriptor, required: bool) -> Field:
    key, value = None, of
    message = of.message_type
    if message is not None and message.GetOptions().map_entry:
        key = _key(message.fields_by_name["key"])
        value = message.fields_by_name["value"]
    enum = value.enum_type
    return Field(
        name=of.name,
        number=of.number,
        type=value.type,
        repeated=of.is_repeated and key is None,
        required=required,
        key=key,
        bounds=_INTEGERS.get(value.type),
        enum_names={v.number: v.name for v in enum.values} if enum is not None else {},
        enum_numbers={v.name: v.number for v in enum.values} if enum is not None else {},
        message=value.message_type,
    )


def _key(of: FieldDescriptor) -> Callable[[str], Any]:
    return str if of.type == FieldDescriptor.TYPE_STRING else int


def _value(of: Field, text: str) -> Any:
    """A default as it is said in presence.py."""
    if of.type == FieldDescriptor.TYPE_BOOL:
        return text == "true"
    if of.type == FieldDescriptor.TYPE_ENUM:
        return of.enum_numbers[text]
    return int(text) if of.bounds is not None else float(text)


__all__ = ["OURS", "Field", "Fields", "fields_of"]
