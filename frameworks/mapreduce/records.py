"""Records of this package as JSON, and back."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from frameworks.mapreduce.messages import FromWorker, ToWorker
from mesos_py.errors import InvalidValue

T = TypeVar("T", bound=msgspec.Struct)


def encode(record: msgspec.Struct) -> bytes:
    return msgspec.json.encode(record)


def decode(kind: type[T], data: bytes, what: str) -> T:
    """Raises InvalidValue that names `what` and where in it the fault is."""
    found: T = _decode(kind, data, what)
    return found


def from_worker(data: bytes) -> FromWorker:
    """Raises InvalidValue."""
    found: FromWorker = _decode(FromWorker, data, "message of a worker")
    return found


def to_worker(data: bytes) -> ToWorker:
    """Raises InvalidValue."""
    found: ToWorker = _decode(ToWorker, data, "message of a tracker")
    return found


def _decode(kind: Any, data: bytes, what: str) -> Any:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError as error:
        raise InvalidValue(what, data[:100], str(error)) from None
