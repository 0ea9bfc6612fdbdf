"""Empty tasks of Dask in processes."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from typing import Any

import dask

from bench.rdd.programs import frame


def main() -> None:
    given = frame.parser(tasks=int, runs=int, width=int).parse_args()
    # Its functions have no types.
    untyped: Any = dask
    with ProcessPoolExecutor(given.width) as pool:

        def run(tasks: int) -> None:
            # Pure ones of equal arguments would be one task.
            untyped.compute(
                *[untyped.delayed(_nothing)(at) for at in range(tasks)],
                scheduler="processes",
                pool=pool,
            )

        run(10)
        watch = frame.Watch()
        for _ in range(given.runs):
            run(given.tasks)
            watch.lap()
    frame.write(given.out, laps_s=watch.laps_s)


def _nothing(_: int) -> None:
    pass


if __name__ == "__main__":
    main()
