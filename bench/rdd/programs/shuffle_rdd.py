"""A shuffle of an RDD engine: records are made in tasks, and only told of at the end."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from bench.rdd.programs import frame, records


def main() -> None:
    given = frame.engine_parser(what=str, records=int, keys=int, parts=int).parse_args()
    context: Any
    with frame.context(given) as context:
        parts = context.parallelize(range(given.parts), given.parts)
        # Its workers have started then.
        parts.count()
        watch = frame.Watch()
        made = parts.flatMap(_source(given))
        told = records.told_of_sums if given.what == "reduceByKey" else records.told
        found = _shuffled(given, made).mapPartitions(partial(_alone, told)).collect()
        watch.lap()
    frame.write(given.out, laps_s=watch.laps_s, summary=records.summary(found))


def _source(given: Any) -> Any:
    if given.what == "reduceByKey":
        return partial(
            records.pairs_of_part, parts=given.parts, records=given.records, keys=given.keys
        )
    return partial(records.of_part, parts=given.parts, records=given.records)


def _shuffled(given: Any, made: Any) -> Any:
    if given.what == "partitionBy":
        return made.partitionBy(given.parts)
    if given.what == "sortByKey":
        return made.sortByKey(numPartitions=given.parts)
    return made.reduceByKey(operator.add, given.parts)


def _alone(told: Any, elements: Iterable[Any]) -> Iterator[records.Told]:
    yield told(elements)


if __name__ == "__main__":
    main()
