"""Logistic regression by hand: processes that keep their blocks, and are sent the weights."""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from bench.rdd.programs import frame, gradient


def main() -> None:
    given = frame.parser(text=Path, iterations=int, width=int).parse_args()
    files = sorted(given.text.iterdir())
    workers = [_start(files[at :: given.width]) for at in range(given.width)]
    watch = frame.Watch()
    weights = gradient.beginning()
    for _ in range(given.iterations):
        for _, pipe in workers:
            pipe.send(weights)
        weights = gradient.step(weights, sum(pipe.recv() for _, pipe in workers))
        watch.lap()
    for process, pipe in workers:
        pipe.send(None)
        process.join()
    frame.write(given.out, laps_s=watch.laps_s, weights=weights.tolist())


def _start(files: Sequence[Path]) -> tuple[multiprocessing.Process, Connection]:
    here, there = multiprocessing.Pipe()
    process = multiprocessing.Process(target=_work, args=(files, there), daemon=True)
    process.start()
    there.close()
    return process, here


def _work(files: Sequence[Path], pipe: Connection) -> None:
    blocks: list[gradient.Array] = []
    while (weights := pipe.recv()) is not None:
        blocks = blocks or [gradient.block_of_text(file.read_bytes()) for file in files]
        pipe.send(sum(gradient.part(block, weights) for block in blocks))


if __name__ == "__main__":
    main()
