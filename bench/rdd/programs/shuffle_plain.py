"""The same by hand: a pool of processes, a file for each pair of parts, and pickle.

No partition is larger than memory here, and no machine fails.
"""

from __future__ import annotations

import multiprocessing
import pickle
import tempfile
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from bench.rdd.programs import frame, records

# So many records are pickled together.
_BATCH: Final = 1000
# Pieces of the range of all keys, which are spread evenly: there is nothing to sample.
_KEY_BITS: Final = 63


def main() -> None:
    parser = frame.parser(what=str, records=int, keys=int, parts=int, width=int)
    given = parser.parse_args()
    with (
        multiprocessing.Pool(given.width) as pool,
        tempfile.TemporaryDirectory(dir=given.out.parent) as directory,
    ):
        # Its workers have started then.
        pool.map(_nothing, range(10), chunksize=1)
        watch = frame.Watch()
        work = (Path(directory), given.what, given.records, given.keys, given.parts)
        pool.map(partial(_write, *work), range(given.parts), chunksize=1)
        found = pool.map(partial(_read, *work), range(given.parts), chunksize=1)
        watch.lap()
    frame.write(given.out, laps_s=watch.laps_s, summary=records.summary(found))


def _nothing(_: int) -> None:
    pass


def _write(directory: Path, what: str, count: int, keys: int, parts: int, part: int) -> None:
    targets: list[list[Any]] = [[] for _ in range(parts)]
    files = [(directory / f"{part}-{target}").open("wb") for target in range(parts)]
    try:
        elements = _elements(what, count, keys, parts, part)
        width = (1 << _KEY_BITS) // parts + 1
        for element in elements:
            key = element[0]
            target = key // width if what == "sortByKey" else key % parts
            batch = targets[target]
            batch.append(element)
            if len(batch) >= _BATCH:
                pickle.dump(batch, files[target], protocol=5)
                batch.clear()
        for batch, file in zip(targets, files, strict=True):
            pickle.dump(batch, file, protocol=5)
    finally:
        for file in files:
            file.close()


def _elements(what: str, count: int, keys: int, parts: int, part: int) -> Iterable[Any]:
    if what != "reduceByKey":
        return records.of_part(part, parts, count)
    sums: dict[int, int] = {}
    for key, value in records.pairs_of_part(part, parts, count, keys):
        sums[key] = sums.get(key, 0) + value
    return sums.items()


def _read(
    directory: Path, what: str, _count: int, _keys: int, parts: int, part: int
) -> records.Told:
    elements = _read_all(directory, parts, part)
    if what == "reduceByKey":
        sums: dict[int, int] = {}
        for key, value in elements:
            sums[key] = sums.get(key, 0) + value
        return records.told_of_sums(sums.items())
    return records.told(sorted(elements) if what == "sortByKey" else elements)


def _read_all(directory: Path, parts: int, part: int) -> Iterator[Any]:
    for source in range(parts):
        with (directory / f"{source}-{part}").open("rb") as file:
            while True:
                try:
                    yield from pickle.load(file)
                except EOFError:
                    break


if __name__ == "__main__":
    main()
