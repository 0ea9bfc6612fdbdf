"""Logistic regression with MapReduce: a job for each iteration, whose maps read all text anew.

It has no reduces, which would only add to what a job takes: the few parts are summed here.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np

from bench.rdd.programs import frame, gradient, logistic_map
from frameworks import mapreduce

ROOT = Path(__file__).parents[3]


def main() -> None:
    parser = frame.parser(text=str, iterations=int, width=int)
    parser.add_argument("--tracker", help="Of a cluster; without it jobs run in this machine.")
    given = parser.parse_args()
    output = given.out.with_suffix(".output")
    watch = frame.Watch()
    weights = gradient.beginning()
    for _ in range(given.iterations):
        mapreduce.run(
            tracker=given.tracker,
            local=None if given.tracker else given.width,
            mapper=f"{sys.executable} -m {logistic_map.__name__}",
            inputs=given.text,
            output=str(output),
            env={
                "PYTHONPATH": str(ROOT),
                "OPENBLAS_NUM_THREADS": "1",
                logistic_map.WEIGHTS: " ".join(map(repr, weights.tolist())),
            },
            conf={"mapreduce.map.speculative": False},
        )
        weights = gradient.step(weights, _total(output))
        shutil.rmtree(output)
        watch.lap()
    frame.write(given.out, laps_s=watch.laps_s, weights=weights.tolist())


def _total(output: Path) -> gradient.Array:
    total = np.zeros(gradient.FEATURES + 1)
    for part in output.glob("part-*"):
        total += np.loadtxt(part)
    return total


if __name__ == "__main__":
    main()
