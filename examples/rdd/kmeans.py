"""k-means by Lloyd's algorithm: points stay in memory, centres are sent to them.

    mesos-py rdd submit --master local[2] examples/rdd/kmeans.py points.txt 3

Each line of the file is a point, its numbers separated by spaces.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from frameworks.rdd import RDD, Broadcast, SparkContext

Points = npt.NDArray[np.float64]


def cluster(blocks: RDD[Points], centres: Points, most: int) -> tuple[Points, int]:
    """Centres that no longer move, or after `most` rounds; and after how many.  A centre without
    points stays where it is."""
    for done in range(most):
        here = blocks.context.broadcast(centres)
        sums = dict(
            blocks.flatMap(functools.partial(_sums, here))
            .reduceByKey(lambda a, b: (a[0] + b[0], a[1] + b[1]))
            .collect()
        )
        moved = centres.copy()
        for index, (total, count) in sums.items():
            moved[index] = total / count
        here.destroy()
        if np.array_equal(moved, centres):
            return centres, done
        centres = moved
    return centres, most


def _sums(sent: Broadcast[Points], block: Points) -> Iterable[tuple[int, tuple[Points, int]]]:
    centres = sent.value
    distances = ((block[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
    nearest = distances.argmin(axis=1)
    for index in np.unique(nearest):
        mine = block[nearest == index]
        yield int(index), (mine.sum(axis=0), len(mine))


def as_block(lines: Iterator[str]) -> Iterator[Points]:
    """The points of a partition, as one array."""
    rows = [[float(word) for word in line.split()] for line in lines]
    if rows:
        yield np.array(rows)


def main(argv: Sequence[str]) -> None:
    path, count = argv[0], int(argv[1])
    with SparkContext(appName="k-means") as sc:
        blocks = sc.textFile(path).mapPartitions(as_block).cache()
        first = np.concatenate(blocks.map(lambda block: block[:count]).collect())[:count]
        centres, rounds = cluster(blocks, first, most=100)
        print(f"after {rounds} rounds:")
        for centre in centres:
            print(" ".join(f"{number:.4f}" for number in centre))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1:])
