"""Partitions: which reduce a line goes to.

Lines with the same key (with "key-field": with the same named parts of the key) are in the same
partition, on all machines and at all times: the hash (`hashing.py`) modulo the number of reduces.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from frameworks.mapreduce import conf as properties
from frameworks.mapreduce.data import hashing, keyparts
from frameworks.mapreduce.data.blocks import Lines, Positions, positions
from frameworks.mapreduce.data.keyparts import KeyPart
from frameworks.mapreduce.data.keys import Keys, separator
from frameworks.mapreduce.data.ordering import Groups, gathered
from frameworks.mapreduce.job import JobSpec
from mesos_py.errors import InvalidValue

HASH: Final = "hash"
KEY_FIELD: Final = "key-field"


@dataclass(frozen=True, slots=True)
class Partitioner:
    """count: how many partitions.  parts: of the key; () is all of it."""

    keys: Keys
    count: int
    parts: tuple[KeyPart, ...] = ()

    @classmethod
    def of(cls, spec: JobSpec) -> Partitioner:
        """Raises InvalidValue that names the property."""
        parts: tuple[KeyPart, ...] = ()
        if spec.partitioner not in (HASH, KEY_FIELD):
            raise InvalidValue("partitioner", spec.partitioner, f"is not {HASH} or {KEY_FIELD}")
        if spec.partitioner == KEY_FIELD:
            parts = _chosen_parts(spec.conf)
            separator(properties.KEY_SEPARATOR, spec.conf)
        return cls(Keys.of(spec.conf), max(spec.reduces, 1), parts)

    def of_key(self, key: bytes) -> int:
        if not self.parts:
            return hashing.of_bytes(key) % self.count
        parts = [part.of(key, self.keys.part_separator) for part in self.parts]
        return hashing.of_parts(parts) % self.count

    def numbers(self, lines: Lines, ends: Positions) -> Groups:
        """The partition of each line, of which the ends of the keys are given."""
        if self.count == 1:
            return np.zeros(len(lines), np.uint32)
        hashes = hashing.of_spans(lines.padded, self._spans(lines, ends))
        return (hashes % np.uint64(self.count)).astype(np.uint32)

    def _spans(self, lines: Lines, ends: Positions) -> list[tuple[Positions, Positions]]:
        if not self.parts:
            return [(lines.starts, ends)]
        between = self.keys.part_separator
        found = positions(lines.data, between)
        return [part.spans(found, len(between), lines.starts, ends) for part in self.parts]

    def divide(self, block: bytes) -> list[bytes]:
        """The lines of each partition, in the order in which they come."""
        lines = Lines.of(block)
        numbers = self.numbers(lines, self.keys.ends(lines))
        order = np.argsort(numbers, kind="stable")
        edges = np.searchsorted(numbers[order], np.arange(self.count + 1))
        return [
            b"".join(gathered(lines, order[first:last]))
            for first, last in itertools.pairwise(edges.tolist())
        ]


def _chosen_parts(conf: Mapping[str, str]) -> tuple[KeyPart, ...]:
    """By the one property or the older one, that only counts fields.  Raises InvalidValue."""
    options, older = properties.PARTITION_FIELDS, properties.PARTITION_KEY_FIELDS
    parts = keyparts.parse(options.name, options.of(conf))
    count = older.of(conf)
    if not count:
        return parts
    counted = keyparts.parse(older.name, f"-k1,{count}")
    if parts not in ((), counted):
        raise InvalidValue(older.name, str(count), f"contradicts {options.name}={options.of(conf)}")
    return counted
