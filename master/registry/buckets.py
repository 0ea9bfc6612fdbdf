"""Records in buckets, as ZooKeeper holds them: which record is where, and what to write.

A node for each record would be tens of thousands to read when a leadership begins; one
node for all is too small, and would have to be written anew for each change.  So a
bucket holds neighbours: all records from one key on, up to where the next one begins.
One that has grown is split in the middle, one that is empty is removed.  A change thus
writes a few kilobytes however many records there are, and small clusters have a single
node.  Agents that come together have ids that are neighbours, and share a bucket: a
flood of them is written once, and not once for each.

Pure: nothing here knows of ZooKeeper but its limit.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import zstandard
from google.protobuf.message import DecodeError

from master.registry.base import Operation, fold, size_of
from mesos_py.errors import InvalidValue, TooLarge, shown
from mesos_py.v1 import registry_pb2

# Bytes of one transaction.  Servers drop whoever sends more than 1 MB at once.
MAX_TRANSACTION: Final = 768 * 1024
# A bucket with more than this is split, compressed as it is: an operation may touch
# about a hundred of them.  Records of agents of one kind shrink to a tenth.
SPLIT_BYTES: Final = 8 * 1024
# For the path and the frame of each step.
_STEP_BYTES: Final = 256
# Fast rather than small: higher levels gain next to nothing on these records.
_LEVEL: Final = 1


@dataclass(frozen=True, slots=True)
class Bucket:
    """What one node holds, and how long that is when it is encoded."""

    # The smallest key that may be here; that of the first bucket is the empty text.
    begin: str
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


class Buckets:
    """All buckets, as they are stored."""

    def __init__(self, buckets: Mapping[str, Bucket] | None = None) -> None:
        self._buckets = dict(buckets or {})
        self._arrange()

    def _arrange(self) -> None:
        self._names = sorted(self._buckets, key=lambda name: self._buckets[name].begin)
        self._begins = [self._buckets[name].begin for name in self._names]

    def __len__(self) -> int:
        return len(self._buckets)

    @property
    def sizes(self) -> dict[str, int]:
        """Bytes by node."""
        return {name: bucket.size for name, bucket in self._buckets.items()}

    def records(self) -> dict[str, bytes]:
        return {
            key: value for name in self._names for key, value in self._buckets[name].records.items()
        }

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

    def plan(self, operations: Sequence[Operation]) -> Plan:
        """What does all of `operations`.  Changes nothing here."""
        changed: dict[str, dict[str, bytes]] = {}
        for key, value in fold(operations).items():
            name = self._name_of(key)
            if name not in changed:
                changed[name] = dict(self._buckets[name].records) if name in self._buckets else {}
            if value is None:
                changed[name].pop(key, None)
            else:
                changed[name][key] = value
        return self._written(changed)

    def adopt(self, plan: Plan) -> None:
        """The plan has been carried out."""
        for name in plan.removed:
            del self._buckets[name]
        self._buckets.update(plan.buckets)
        self._arrange()

    def after(self, plan: Plan) -> int:
        """How many buckets there are when the plan has been carried out."""
        return len(self._buckets) + len(plan.created) - len(plan.removed)

    # ---- Parts -----------------------------------------------------------------------

    def _name_of(self, key: str) -> str:
        """The bucket that a record is in, or is to be made for it."""
        if not self._names:
            return _name(0)
        return self._names[bisect.bisect_right(self._begins, key) - 1]

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
            for name in names:
                size += _STEP_BYTES + (self._buckets[name].size if name in self._buckets else 0)
            if size > MAX_TRANSACTION and count:
                return count
        return len(operations)

    def _written(self, changed: Mapping[str, dict[str, bytes]]) -> Plan:
        """The plan that makes these buckets hold these records."""
        created: dict[str, bytes] = {}
        replaced: dict[str, bytes] = {}
        removed: set[str] = set()
        buckets: dict[str, Bucket] = {}
        free = itertools.count(1 + max((int(name) for name in self._buckets), default=0))
        for name, records in changed.items():
            known = self._buckets.get(name)
            if records == (known.records if known else {}):
                continue
            begin = known.begin if known else ""
            if begin and not records:
                # What comes there later belongs to the one before it.
                removed.add(name)
                continue
            parts = _split(begin, dict(sorted(records.items())))
            for part, (bucket, data) in zip(_names(name, free), parts, strict=False):
                (replaced if part in self._buckets else created)[part] = data
                buckets[part] = bucket
        return Plan(created, replaced, frozenset(removed), buckets)


def decoded(nodes: Iterable[tuple[str, bytes]]) -> Buckets:
    """Buckets from what the nodes hold.  Raises InvalidValue for one that is damaged."""
    found: dict[str, Bucket] = {}
    expander = zstandard.ZstdDecompressor()
    for name, data in nodes:
        message = registry_pb2.Bucket()
        try:
            int(name)
            message.ParseFromString(expander.decompress(data))
        except (ValueError, zstandard.ZstdError, DecodeError) as error:
            raise _damaged(name, str(error)) from None
        records = {each.key: each.value for each in message.records}
        found[name] = Bucket(message.begin, records, len(data))
    buckets = Buckets(found)
    ends: list[str | None] = [*buckets._begins[1:], None]
    # strict=False: of no buckets there is no end either.
    for name, end in zip(buckets._names, ends, strict=False):
        begin = found[name].begin
        if (begin == "") != (name == buckets._names[0]) or begin == end:
            raise _damaged(name, f"it begins at {shown(begin)}")
        for key in found[name].records:
            if key < begin or (end is not None and key >= end):
                raise _damaged(name, f"{shown(key)} is not its record")
    return buckets


def _damaged(name: str, why: str) -> InvalidValue:
    return InvalidValue("registry", name, f"is damaged: {why}")


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


def _name(number: int) -> str:
    return f"{number:06}"


def _names(first: str, free: Iterator[int]) -> Iterator[str]:
    yield first
    yield from map(_name, free)


def _split(begin: str, records: dict[str, bytes]) -> Iterator[tuple[Bucket, bytes]]:
    """The bucket, or those that it becomes, and what their nodes hold."""
    data = _encoded(begin, records)
    if len(data) <= SPLIT_BYTES or len(records) < 2:
        yield Bucket(begin, records, len(data)), data
        return
    keys = list(records)
    middle = len(keys) // 2
    yield from _split(begin, {key: records[key] for key in keys[:middle]})
    yield from _split(keys[middle], {key: records[key] for key in keys[middle:]})


def _encoded(begin: str, records: Mapping[str, bytes]) -> bytes:
    message = registry_pb2.Bucket(
        begin=begin,
        records=[registry_pb2.Record(key=key, value=value) for key, value in records.items()],
    )
    compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
    return compressor.compress(message.SerializeToString())
