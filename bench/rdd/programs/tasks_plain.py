"""Empty tasks of a pool of processes, each sent by itself."""

from __future__ import annotations

import multiprocessing

from bench.rdd.programs import frame


def main() -> None:
    given = frame.parser(tasks=int, runs=int, width=int).parse_args()
    with multiprocessing.Pool(given.width) as pool:
        pool.map(_nothing, range(10), chunksize=1)
        watch = frame.Watch()
        for _ in range(given.runs):
            pool.map(_nothing, range(given.tasks), chunksize=1)
            watch.lap()
    frame.write(given.out, laps_s=watch.laps_s)


def _nothing(_: int) -> None:
    pass


if __name__ == "__main__":
    main()
