"""Messages as JSON text at once, for those that are written thousands of times a second.

The text is that of `json.dumps` for what `jsonpb.as_object` gives, to the letter; without the
dicts between the two it takes a third of the time.  Resources are alike on many agents and in
many offers, so the text of each is kept.
"""

from __future__ import annotations

import base64
import math
import threading
from collections.abc import Callable
from json.encoder import encode_basestring_ascii as _quoted
from operator import attrgetter
from typing import Any, Final, TypeAlias

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from mesos_py.http.fields import OURS, Field, fields_of
from mesos_py.v1 import types_pb2 as pb

Write: TypeAlias = Callable[[Any], str]

# Messages whose texts are kept.
_KEPT: Final = frozenset({pb.Resource.DESCRIPTOR, pb.Attribute.DESCRIPTOR})
# So many of each kind, then all are forgotten; and none of more bytes than that.
MAX_KEPT: Final = 2_000
MAX_KEPT_BYTES: Final = 512


class _Plan:
    """How messages of one kind are written.  Made once."""

    __slots__ = ("always", "kept", "writers")

    def __init__(self, kept: bool) -> None:
        # By number: the member's name, quoted and with its colon, how its value is written,
        # and whether it is one of `always`.
        self.writers: dict[int, tuple[str, Write, bool]] = {}
        # What is there also when it is not set: the number, and the member as text.
        self.always: list[tuple[int, str]] = []
        # By the message's bytes: its text.  None: not kept.
        self.kept: dict[bytes, str] | None = {} if kept else None


# By the messages' descriptor, and whether our own fields are written.
_Made: TypeAlias = dict[tuple[Any, bool], _Plan]
_PLANS: Final[_Made] = {}
_MAKING: Final = threading.Lock()


def text_of(message: Message, *, ours: bool = False) -> str:
    """The message on one line, in ASCII.  Fields that only we know are left out, unless `ours`."""
    return _text(message, _plan(message.DESCRIPTOR, ours))


def _plan(descriptor: Any, ours: bool) -> _Plan:
    plan = _PLANS.get((descriptor, ours))
    if plan is None:
        # Some are written beside the event loop: nobody is to meet half a plan.
        with _MAKING:
            made: _Made = {}
            plan = _planned(descriptor, ours, made)
            _PLANS.update(made)
    return plan


def _planned(descriptor: Any, ours: bool, made: _Made) -> _Plan:
    """The plan that is known, or a new one in `made`."""
    plan = _PLANS.get((descriptor, ours)) or made.get((descriptor, ours))
    if plan is None:
        # Known before it is complete: a message may have others of its kind in it.
        plan = made[descriptor, ours] = _Plan(descriptor in _KEPT)
        fields = fields_of(descriptor)
        for of, value in fields.written:
            member = f"{_quoted(of.name)}:{_single(of, ours, made)(value)}"
            plan.always.append((of.number, member))
        always = {number for number, _ in plan.always}
        for of in fields.by_number.values():
            if ours or of.number < OURS:
                writer = _writer(of, ours, made)
                plan.writers[of.number] = f"{_quoted(of.name)}:", writer, of.number in always
    return plan


def _text(message: Message, plan: _Plan) -> str:
    writers, always = plan.writers, plan.always
    parts, given = [], 0
    for descriptor, value in message.ListFields():
        known = writers.get(descriptor.number)
        if known is not None:
            head, write, counts = known
            parts.append(head + write(value))
            given += counts
    if given < len(always):
        there = {each.number for each, _ in message.ListFields() if each.number in writers}
        parts += [member for number, member in always if number not in there]
    return "{" + ",".join(parts) + "}"


def _kept_text(message: Message, plan: _Plan, kept: dict[bytes, str]) -> str:
    data = message.SerializeToString()
    text = kept.get(data)
    if text is None:
        text = _text(message, plan)
        if len(data) <= MAX_KEPT_BYTES:
            if len(kept) >= MAX_KEPT:
                kept.clear()
            kept[data] = text
    return text


def _writer(of: Field, ours: bool, made: _Made) -> Write:
    write = _single(of, ours, made)
    if of.repeated:
        return lambda items: "[" + ",".join([write(item) for item in items]) + "]"
    if of.key is not None:

        def members(items: Any) -> str:
            parts = [f"{_quoted(str(key))}:{write(items[key])}" for key in items]
            return "{" + ",".join(parts) + "}"

        return members
    return write


def _single(of: Field, ours: bool, made: _Made) -> Write:
    """How one value of the field is written."""
    if of.message is not None:
        lone = _lone(of.message)
        if lone is not None:
            return lone
        plan = _planned(of.message, ours, made)
        kept = plan.kept
        if kept is None:
            return lambda message: _text(message, plan)
        return lambda message: _kept_text(message, plan, kept)
    match of.type:
        case FieldDescriptor.TYPE_ENUM:
            names = {number: _quoted(name) for number, name in of.enum_names.items()}
            # A number that has no name here came from a peer that is newer.
            return lambda number: names[number] if number in names else int.__repr__(number)
        case FieldDescriptor.TYPE_BYTES:
            return lambda data: f'"{base64.b64encode(data).decode()}"'
        case FieldDescriptor.TYPE_DOUBLE | FieldDescriptor.TYPE_FLOAT:
            return _double
        case FieldDescriptor.TYPE_BOOL:
            return lambda value: "true" if value else "false"
        case FieldDescriptor.TYPE_STRING:
            return _quoted
    return int.__repr__


def _lone(descriptor: Any) -> Write | None:
    """How a message is written that has one field, which is always there: an id, say."""
    fields = fields_of(descriptor)
    if len(fields.by_number) != 1:
        return None
    of = next(iter(fields.by_number.values()))
    if not of.required or of.repeated or of.message is not None or of.key is not None:
        return None
    head, write, value_of = f"{{{_quoted(of.name)}:", _single(of, False, {}), attrgetter(of.name)
    return lambda message: f"{head}{write(value_of(message))}}}"


def _double(value: float) -> str:
    if math.isfinite(value):
        return float.__repr__(value)
    return '"NaN"' if math.isnan(value) else ('"Infinity"' if value > 0 else '"-Infinity"')


__all__ = ["MAX_KEPT", "MAX_KEPT_BYTES", "text_of"]
