"""Logistic regression with Dask in one process: blocks are kept, threads compute.

Threads would read the text one after the other (numpy's reader keeps Python's lock), so
processes read it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask

from bench.rdd.programs import frame, gradient


def main() -> None:
    parser = frame.parser(text=Path, iterations=int, width=int)
    parser.add_argument("--readers", choices=["processes", "threads"], default="processes")
    given = parser.parse_args()
    # Its functions have no types.
    untyped: Any = dask
    watch = frame.Watch()
    blocks = [untyped.delayed(_read)(file) for file in sorted(given.text.iterdir())]
    blocks = untyped.persist(*blocks, scheduler=given.readers, num_workers=given.width)
    weights = gradient.beginning()
    for _ in range(given.iterations):
        parts = [untyped.delayed(gradient.part)(block, weights) for block in blocks]
        parts = untyped.compute(*parts, scheduler="threads", num_workers=given.width)
        weights = gradient.step(weights, sum(parts))
        watch.lap()
    frame.write(given.out, laps_s=watch.laps_s, weights=weights.tolist())


def _read(file: Path) -> gradient.Array:
    return gradient.block_of_text(file.read_bytes())


if __name__ == "__main__":
    main()
