"""What data sets are made of: what is in the driver, files, other data sets."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from frameworks.rdd import paths, reading
from frameworks.rdd.conf import SparkConf
from frameworks.rdd.elements import flat
from frameworks.rdd.jobs import Jobs
from frameworks.rdd.nodes import Node, Slices, Together, Union
from frameworks.rdd.places import place
from frameworks.rdd.rdd import RDD
from frameworks.rdd.slices import slices
from mesos_py.errors import InvalidValue

T = TypeVar("T")


class Sources(Jobs):
    """The part of a SparkContext that makes data sets.

    Files are looked for when the method is called: raises InvalidValue for a path where
    nothing is.  A path is one of any file system that fsspec knows; several are separated by
    commas; patterns and directories stand for the files that they have.
    """

    conf: SparkConf
    _batch: int

    def __init__(self) -> None:
        super().__init__()
        self._ids = itertools.count()
        self._shuffle_ids = itertools.count()

    def next_id(self) -> int:
        return next(self._ids)

    def next_shuffle_id(self) -> int:
        return next(self._shuffle_ids)

    def rdd(self, node: Node) -> RDD[Any]:
        """The data set that users see of a node."""
        context: Any = self
        return RDD(node, context)

    @property
    def defaultParallelism(self) -> int:
        """`spark.default.parallelism`, or how many tasks can run at once now, at least 2 on
        a cluster."""
        given = self.conf.number("spark.default.parallelism", 0, 0)
        return given or self.runner.slots or 2

    @property
    def defaultMinPartitions(self) -> int:
        return min(self.defaultParallelism, 2)

    # ---- From the driver -------------------------------------------------------------------

    def parallelize(self, c: Iterable[T], numSlices: int | None = None) -> RDD[T]:
        """The elements of `c`, pickled now.  Raises NotPicklable, naming the element."""
        count = _count("numSlices", numSlices, self.defaultParallelism)
        parts = slices(c, count, self._batch)
        made = self.rdd(Slices(self.next_id(), count, place=place(), slices=parts))
        return made.mapPartitions(flat) if isinstance(c, range) else made

    def range(
        self, start: int, end: int | None = None, step: int = 1, numSlices: int | None = None
    ) -> RDD[int]:
        """As Python's range: 0 to `start`, if no `end` is given."""
        numbers = range(start) if end is None else range(start, end, step)
        return self.parallelize(numbers, numSlices)

    def emptyRDD(self) -> RDD[Any]:
        """Without elements and without partitions."""
        return self.rdd(Slices(self.next_id(), 0, place=place(), slices=()))

    # ---- From others -----------------------------------------------------------------------

    def union(self, rdds: Sequence[RDD[Any]]) -> RDD[Any]:
        """All elements of all; the partitions of all, one after the other.  If all have
        placed their keys alike, each partition is those with its number of all."""
        if not rdds:
            raise InvalidValue("rdds", rdds, "must not be empty")
        parents = tuple(each.node for each in rdds)
        first = parents[0].partitioner
        if first is not None and all(each.partitioner == first for each in parents):
            count = first.partitions
            return self.rdd(
                Together(self.next_id(), count, parents, partitioner=first, place=place())
            )
        count = sum(each.partitions for each in parents)
        return self.rdd(Union(self.next_id(), count, parents, place=place()))

    # ---- From files ------------------------------------------------------------------------

    def textFile(
        self, name: str, minPartitions: int | None = None, use_unicode: bool = True
    ) -> RDD[Any]:
        """Its lines, without their ends.  Files are cut into at least `minPartitions` parts,
        but packed ones (.gz, .bz2, .xz, .zst) are not.  use_unicode: texts; otherwise bytes."""
        files = paths.listed(name)
        wanted = _count("minPartitions", minPartitions, self.defaultMinPartitions)
        read = reading.text if use_unicode else reading.lines
        return self._pieces(reading.split_evenly(files, wanted), read)

    def wholeTextFiles(
        self, path: str, minPartitions: int | None = None, use_unicode: bool = True
    ) -> RDD[Any]:
        """Pairs (path, all that is in the file), for many small files."""
        files = paths.listed(path)
        wanted = _count("minPartitions", minPartitions, self.defaultMinPartitions)
        read = reading.whole_text if use_unicode else reading.whole_bytes
        return self._pieces(reading.whole(files, wanted), read)

    def binaryFiles(self, path: str, minPartitions: int | None = None) -> RDD[tuple[str, bytes]]:
        """Pairs (path, all bytes of the file)."""
        files = paths.listed(path)
        wanted = _count("minPartitions", minPartitions, self.defaultMinPartitions)
        return self._pieces(reading.whole(files, wanted), reading.content_of)

    def binaryRecords(self, path: str, recordLength: int) -> RDD[bytes]:
        """The records of files that have nothing but such, each `recordLength` bytes."""
        size = _count("recordLength", recordLength, 1)
        files = paths.listed(path)
        pieces = reading.split_evenly(files, self.defaultMinPartitions, size)
        return self._pieces(pieces, partial(reading.records, size))

    def pickleFile(self, name: str, minPartitions: int | None = None) -> RDD[Any]:
        """What saveAsPickleFile has saved; a partition for each file."""
        return self._pieces(reading.each_alone(paths.listed(name)), reading.unpickled)

    def _pieces(
        self,
        pieces: Sequence[Sequence[reading.Piece]],
        read: Callable[[reading.Piece], Iterator[Any]],
    ) -> RDD[Any]:
        node = reading.Pieces(self.next_id(), len(pieces), place=place(), pieces=pieces, read=read)
        return self.rdd(node)


def _count(name: str, given: int | None, default: int) -> int:
    if given is None:
        return default
    if int(given) < 1:
        raise InvalidValue(name, given, "must be 1 or more")
    return int(given)
