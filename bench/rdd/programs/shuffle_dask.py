"""The same with a Dask bag in processes.

A bag cannot be sorted; what comes nearest to a partitioning by key is `groupby`.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from functools import partial
from typing import Any

import dask
import dask.bag

from bench.rdd.programs import frame, records


def main() -> None:
    parser = frame.parser(what=str, records=int, keys=int, parts=int, width=int)
    given = parser.parse_args()
    bag: Any = dask.bag
    first = operator.itemgetter(0)
    watch = frame.Watch()
    parts = bag.from_sequence(range(given.parts), npartitions=given.parts)
    with dask.config.set(scheduler="processes", num_workers=given.width):
        if given.what == "reduceByKey":
            pairs = partial(
                records.pairs_of_part, parts=given.parts, records=given.records, keys=given.keys
            )
            sums = parts.map(pairs).flatten().foldby(first, _add_pair, 0, operator.add, 0)
            found = [records.told_of_sums(sums.compute())]
        else:
            make = partial(records.of_part, parts=given.parts, records=given.records)
            groups = parts.map(make).flatten().groupby(first, npartitions=given.parts)
            found = groups.map_partitions(_told_of_groups).compute()
    watch.lap()
    frame.write(given.out, laps_s=watch.laps_s, summary=records.summary(found))


def _add_pair(total: int, pair: records.Pair) -> int:
    return total + pair[1]


def _told_of_groups(groups: Iterable[tuple[int, list[records.Record]]]) -> list[records.Told]:
    return [records.told(record for _, group in groups for record in group)]


if __name__ == "__main__":
    main()
