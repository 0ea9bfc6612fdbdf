"""Logistic regression with an RDD; if that is wanted, an executor is killed on the way."""

from __future__ import annotations

import operator
import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from bench.rdd.programs import frame, gradient

# As it is in the command of our executors.
_EXECUTOR: Final = b"frameworks.rdd.executor"


def main() -> None:
    parser = frame.engine_parser(text=str, iterations=int)
    parser.add_argument("--cache", action="store_true")
    parser.add_argument("--kill-after", type=int, default=0, help="So many iterations; 0: never.")
    given = parser.parse_args()
    context: Any
    with frame.context(given) as context:
        watch = frame.Watch()
        # A partition for each file.
        points = context.textFile(given.text, 1).mapPartitions(gradient.blocks)
        if given.cache:
            points.cache()
        weights = gradient.beginning()
        for number in range(1, given.iterations + 1):
            parts = points.map(partial(gradient.part, weights=weights))
            weights = gradient.step(weights, parts.reduce(operator.add))
            watch.lap()
            if number == given.kill_after:
                _kill_one(points)
    frame.write(given.out, laps_s=watch.laps_s, weights=weights.tolist())


def _kill_one(points: Any) -> None:
    """The executor that has the first partition, without a warning; it is on this machine."""
    worker = points.mapPartitions(_own_pid).first()
    executor = [pid for pid in _ancestors(worker) if _EXECUTOR in _command(pid)][-1]
    os.kill(executor, signal.SIGKILL)


def _own_pid(_: Iterator[object]) -> Iterator[int]:
    yield os.getpid()


def _ancestors(pid: int) -> Iterator[int]:
    """From the process itself up to the first of all."""
    while pid:
        yield pid
        stat = Path(f"/proc/{pid}/stat").read_text()
        pid = int(stat.rpartition(")")[2].split()[1])


def _command(pid: int) -> list[bytes]:
    return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")


if __name__ == "__main__":
    main()
