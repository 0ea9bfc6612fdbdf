"""Records in buckets, as ZooKeeper holds them: which record is where, and what to write.

A node for each record would be tens of thousands to read when a leadership begins; one
node for all would have to be written anew for each change, and is too small.  So a
bucket holds the records of one *kind* (what stands before the first slash of a key)
whose keys' hashes begin with the same bits.  It begins with none, and a bucket that has
grown is split by the next bit: `agent` into `agent.0` and `agent.1`, and so on.  Thus a
change writes a few kilobytes however many records there are, and small clusters have
hardly a handful of nodes.  Buckets are never joined again.

Pure: nothing here knows of ZooKeeper but its limit.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import zstandard
from google.protobuf.message import DecodeError

from master.registry.base import Operation, fold, size_of
from mesos_py.errors import InternalError, InvalidValue, TooLarge, shown
from mesos_py.v1 import registry_pb2

# Bytes of one transaction.  Servers drop whoever sends more than 1 MB at once.
MAX_TRANSACTION: Final = 768 * 1024
# A bucket with more than this is split, compressed as it is: an operation may touch
# about a hundred of them.  Records of agents of one kind shrink to a tenth.
SPLIT_BYTES: Final = 8 * 1024
MAX_DEPTH: Final = 32
# For the path and the frame of each step.
_STEP_BYTES: Final = 256
_KIND: Final = re.compile(r"[a-z][a-z0-9_-]{0,31}")
# Fast rather than small: higher levels gain next to nothing on these records.
_LEVEL: Final = 1


@dataclass(frozen=True, slots=True)
class Bucket:
    """What one node holds, and how long that is when it is encoded."""

    records: Mapping[str, bytes]
    size: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What one transaction does: nodes to make, to replace, to remove, by name."""

    created: Mapping[str, bytes]
    replaced: Mapping[str, bytes]
    removed: frozenset[str]
    # All buckets as they are afterwards, of those that change.
    buckets: Mapping[str, Bucket]

    @property
    def size(self) -> int:
        data = (*self.created.values(), *self.replaced.values())
        return sum(map(len, data)) + _STEP_BYTES * (len(data) + len(self.removed))

    @property
    def empty(self) -> bool:
        return not (self.created or self.replaced or self.removed)


class Buckets:
    """All buckets, as they are stored."""

    def __init__(self, buckets: Mapping[str, Bucket] | None = None) -> None:
        self._buckets = dict(buckets or {})

    def __len__(self) -> int:
        return len(self._buckets)

    @property
    def sizes(self) -> dict[str, int]:
        """Bytes by node."""
        return {name: bucket.size for name, bucket in self._buckets.items()}

    def records(self) -> dict[str, bytes]:
        return {
            key: value for bucket in self._buckets.values() for key, value in bucket.records.items()
        }

    def _fitting(self, operations: Sequence[Operation]) -> int:
        """How many operations, from the first on, are likely to fit into a transaction.

        At least one, and a plan of them may be too large for all that.
        """
        touched: set[str] = set()
        size = 0
        for count, operation in enumerate(operations):
            names = {self._name_of(key) for key in operation} - touched
            touched |= names
            size += size_of([operation])
            size += sum(_STEP_BYTES + self._size(name) for name in names)
            if size > MAX_TRANSACTION and count:
                return count
        return len(operations)

    def plan(self, operations: Sequence[Operation]) -> Plan:
        """What does all of `operations`.  Changes nothing here."""
        changed: dict[str, dict[str, bytes]] = {}
        for key, value in fold(operations).items():
            name = self._name_of(key)
            if name not in changed:
                changed[name] = dict(self._records(name))
            if value is None:
                changed[name].pop(key, None)
            else:
                changed[name][key] = value
        created: dict[str, bytes] = {}
        replaced: dict[str, bytes] = {}
        removed: set[str] = set()
        buckets: dict[str, Bucket] = {}
        for name, records in changed.items():
            if records == self._records(name):
                continue
            parts = {part: (inside, data) for part, inside, data in _split(name, records)}
            if name in self._buckets and name not in parts:
                removed.add(name)
            for part, (inside, data) in parts.items():
                (replaced if part in self._buckets else created)[part] = data
                buckets[part] = Bucket(inside, len(data))
        return Plan(created, replaced, frozenset(removed), buckets)

    def next_plan(self, operations: Sequence[Operation]) -> tuple[int, Plan]:
        """A plan for the first few operations that fits a transaction, and their number.

        Raises TooLarge if the first does not fit by itself.
        """
        count = self._fitting(operations)
        while (plan := self.plan(operations[:count])).size > MAX_TRANSACTION:
            if count == 1:
                raise _too_large(operations[0], plan.size)
            count //= 2
        return count, plan

    def adopt(self, plan: Plan) -> None:
        """The plan has been carried out."""
        for name in plan.removed:
            del self._buckets[name]
        self._buckets.update(plan.buckets)

    def after(self, plan: Plan) -> int:
        """How many buckets there are when the plan has been carried out."""
        return len(self._buckets) + len(plan.created) - len(plan.removed)

    # ---- Which bucket ----------------------------------------------------------------

    def _name_of(self, key: str) -> str:
        """The bucket that a record is in, or is to be made for it."""
        kind = key.partition("/")[0]
        if not _KIND.fullmatch(kind):
            raise InternalError(f"the key of a record begins with its kind, not {shown(key)}")
        if kind in self._buckets:
            return kind
        bits = _bits(key)
        for depth in range(1, MAX_DEPTH + 1):
            name = f"{kind}.{bits[:depth]}"
            if name in self._buckets:
                return name
        return kind

    def _records(self, name: str) -> Mapping[str, bytes]:
        bucket = self._buckets.get(name)
        return {} if bucket is None else bucket.records

    def _size(self, name: str) -> int:
        bucket = self._buckets.get(name)
        return 0 if bucket is None else bucket.size


def decoded(nodes: Iterable[tuple[str, bytes]]) -> Buckets:
    """Buckets from what the nodes hold.  Raises InvalidValue for one that is damaged."""
    found: dict[str, Bucket] = {}
    expander = zstandard.ZstdDecompressor()
    for name, data in nodes:
        message = registry_pb2.Bucket()
        try:
            message.ParseFromString(expander.decompress(data))
        except (zstandard.ZstdError, DecodeError) as error:
            raise InvalidValue("registry", name, f"is damaged: {error}") from None
        found[name] = Bucket({each.key: each.value for each in message.records}, len(data))
    for name, bucket in found.items():
        kind, _, prefix = name.partition(".")
        for key in bucket.records:
            if key.partition("/")[0] != kind or (prefix and not _bits(key).startswith(prefix)):
                raise InvalidValue("registry", name, f"is damaged: {shown(key)} is not its record")
    return Buckets(found)


def _too_large(operation: Operation, size: int) -> TooLarge:
    key, largest = max(
        ((key, len(value or b"")) for key, value in operation.items()), key=lambda each: each[1]
    )
    return TooLarge(
        f"registry: record {shown(key)} of {largest} bytes, with {len(operation) - 1} more, makes"
        f" a transaction of {size} bytes; one of ZooKeeper has at most {MAX_TRANSACTION}",
        record=key,
        bytes=size,
        limit=MAX_TRANSACTION,
    )


def _bits(key: str) -> str:
    digest = hashlib.blake2b(key.encode(), digest_size=MAX_DEPTH // 8).digest()
    return f"{int.from_bytes(digest, 'big'):0{MAX_DEPTH}b}"


def _split(name: str, records: dict[str, bytes]) -> Iterator[tuple[str, dict[str, bytes], bytes]]:
    """The bucket, or those that it becomes: names, records, and what the nodes hold."""
    kind, _, prefix = name.partition(".")
    data = _encoded(records)
    depth = len(prefix)
    if len(data) <= SPLIT_BYTES or len(records) < 2 or depth == MAX_DEPTH:
        yield name, records, data
        return
    halves: tuple[dict[str, bytes], dict[str, bytes]] = ({}, {})
    for key, value in records.items():
        halves[_bits(key)[depth] == "1"][key] = value
    for bit, half in zip("01", halves, strict=True):
        yield from _split(f"{kind}.{prefix}{bit}", half)


def _encoded(records: Mapping[str, bytes]) -> bytes:
    message = registry_pb2.Bucket(
        records=[registry_pb2.Record(key=key, value=records[key]) for key in sorted(records)]
    )
    compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
    return compressor.compress(message.SerializeToString())
