"""Empty tasks of an RDD: what one costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.rdd.programs import frame


def main() -> None:
    given = frame.engine_parser(tasks=int, runs=int).parse_args()
    context: Any
    with frame.context(given) as context:
        # Its workers have started then.
        context.parallelize(range(10), 10).foreachPartition(_nothing)
        watch = frame.Watch()
        for _ in range(given.runs):
            context.parallelize(range(given.tasks), given.tasks).foreachPartition(_nothing)
            watch.lap()
    frame.write(given.out, laps_s=watch.laps_s)


def _nothing(_: Iterator[int]) -> None:
    pass


if __name__ == "__main__":
    main()
