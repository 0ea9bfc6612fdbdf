"""Messages as protobuf bodies that proto2 peers can read.

Our messages are proto3, which leaves out what is zero; a proto2 peer then misses what
its definition requires.  So each message type has a twin of the same name that knows
what is required, in a pool of its own.  What comes in is held against it as well.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from functools import cache
from typing import Any, Final, TypeVar

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.message import DecodeError, Message

from mesos_py.errors import InvalidValue
from mesos_py.http.presence import REQUIRED

M = TypeVar("M", bound=Message)

_POOL: Final = descriptor_pool.DescriptorPool()
_ADDED: Final[set[str]] = set()
_ADDING: Final = threading.Lock()


def dumps(message: Message) -> bytes:
    """The message with all that a proto2 peer requires."""
    data = message.SerializeToString()
    twin = _twin(message.DESCRIPTOR)
    if not _needs(twin):
        return data
    made: Any = message_factory.GetMessageClass(twin)()
    made.MergeFromString(data)
    if made.IsInitialized():
        return data
    _complete(made)
    # Not all that is required can be made up, such as a message within.
    return bytes(made.SerializePartialToString())


def loads(kind: type[M], data: bytes, where: str = "body") -> M:
    """The message of a body.  Raises InvalidValue naming what is missing."""
    try:
        message = kind.FromString(data)
        made: Any = message_factory.GetMessageClass(_twin(kind.DESCRIPTOR))()
        made.MergeFromString(data)
    except DecodeError as error:
        reason = f"is no {kind.DESCRIPTOR.name}: {error}"
        raise InvalidValue(where, f"{len(data)} bytes", reason) from None
    missing = made.FindInitializationErrors()
    if missing:
        raise InvalidValue(missing[0], "", "is missing")
    return message


def _complete(message: Any) -> None:
    needs = _needs(message.DESCRIPTOR)
    made_up = False
    for name, value in needs.scalars:
        if not message.HasField(name):
            setattr(message, name, value)
            made_up = True
    # Often that was all, and to look for it in Python takes longer.
    if made_up and message.IsInitialized():
        return
    for name in needs.one:
        if message.HasField(name):
            child = getattr(message, name)
            if not child.IsInitialized():
                _complete(child)
    for name in needs.many:
        for item in getattr(message, name):
            _complete(item)
    for name in needs.maps:
        for item in getattr(message, name).values():
            _complete(item)


class _Needs:
    """What of a message may have to be made up."""

    def __init__(self) -> None:
        self.scalars: list[tuple[str, Any]] = []
        # Fields with messages in which there may be something.
        self.one: list[str] = []
        self.many: list[str] = []
        self.maps: list[str] = []

    def __bool__(self) -> bool:
        return bool(self.scalars or self.one or self.many or self.maps)


@cache
def _needs(descriptor: Descriptor) -> _Needs:
    needs = _Needs()
    for field in descriptor.fields:
        message = field.message_type
        if message is None:
            if field.is_required:
                needs.scalars.append((field.name, field.default_value))
        elif message.GetOptions().map_entry:
            value = message.fields_by_name["value"].message_type
            if value is not None and _lacking(value):
                needs.maps.append(field.name)
        elif _lacking(message):
            (needs.many if field.is_repeated else needs.one).append(field.name)
    return needs


@cache
def _lacking(descriptor: Descriptor) -> bool:
    """Whether such a message, or one within it, has a scalar that is required."""
    seen: set[Descriptor] = set()
    waiting = [descriptor]
    while waiting:
        each = waiting.pop()
        if each in seen:
            continue
        seen.add(each)
        for field in each.fields:
            if field.message_type is not None:
                waiting.append(field.message_type)
            elif field.is_required:
                return True
    return False


# ---- Twins -----------------------------------------------------------------------------


@cache
def _twin(descriptor: Descriptor) -> Descriptor:
    # Some are written beside the event loop.
    with _ADDING:
        _add(descriptor.file)
    return _POOL.FindMessageTypeByName(descriptor.full_name)


def _add(file: FileDescriptor) -> None:
    if file.name in _ADDED:
        return
    _ADDED.add(file.name)
    for each in file.dependencies:
        _add(each)
    proto = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(proto)
    if file.package.startswith("mesos_py"):
        proto.syntax = "proto2"
        del proto.service[:]
        _as_proto2(proto.message_type, f"{file.package}.")
    _POOL.Add(proto)


def _as_proto2(messages: Iterable[descriptor_pb2.DescriptorProto], prefix: str) -> None:
    for message in messages:
        required = REQUIRED.get(prefix + message.name, ())
        # The one-field oneofs that stand for `optional` in proto3 come last.
        alone = {f.oneof_index for f in message.field if f.proto3_optional}
        for field in message.field:
            if field.proto3_optional:
                field.ClearField("proto3_optional")
                field.ClearField("oneof_index")
            if field.name in required:
                field.label = descriptor_pb2.FieldDescriptorProto.LABEL_REQUIRED
        kept = [each for at, each in enumerate(message.oneof_decl) if at not in alone]
        del message.oneof_decl[:]
        message.oneof_decl.extend(kept)
        _as_proto2(message.nested_type, f"{prefix}{message.name}.")


__all__ = ["dumps", "loads"]
