"""PageRank: links stay in memory, partitioned once; ranks go to where the links are.

    mesos-py rdd submit --master local[2] examples/rdd/pagerank.py links.txt 20

Each line of the file is a page and one that it links to, separated by a space.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Sequence

from frameworks.rdd import RDD, SparkContext

DAMPING = 0.85


def ranks(links: RDD[tuple[str, str]], iterations: int, partitions: int) -> RDD[tuple[str, float]]:
    """Of all pages that link or are linked to: probabilities that sum up to 1, of a surfer who
    follows a link with DAMPING and else goes anywhere (Brin and Page, 1998).  One who is at a
    page without links goes anywhere."""
    pages = links.flatMap(lambda pair: pair).distinct(partitions).cache()
    count = pages.count()
    # Every page is here, also those without links.
    outgoing = (
        links.distinct()
        .union(pages.map(lambda page: (page, None)))
        .groupByKey(partitions)
        .mapValues(lambda found: [page for page in found if page is not None])
        .cache()
    )
    ranked = outgoing.mapValues(lambda _: 1.0 / count)
    for _ in range(iterations):
        joined = outgoing.join(ranked, partitions).cache()
        stuck = joined.values().filter(lambda each: not each[0]).map(lambda each: each[1]).sum()
        shared = (1 - DAMPING) / count + DAMPING * stuck / count
        given = joined.flatMap(_give)
        total = given.reduceByKey(lambda a, b: a + b, partitions)
        ranked = total.mapValues(functools.partial(_with, shared))
    return ranked


def _with(base: float, rank: float) -> float:
    return base + DAMPING * rank


def _give(page: tuple[str, tuple[list[str], float]]) -> Iterable[tuple[str, float]]:
    name, (targets, rank) = page
    # So that it is there also if nobody links to it.
    yield name, 0.0
    for target in targets:
        yield target, rank / len(targets)


def main(argv: Sequence[str]) -> None:
    path, iterations = argv[0], int(argv[1])
    with SparkContext(appName="PageRank") as sc:
        links = sc.textFile(path).map(lambda line: (line.split()[0], line.split()[1]))
        found = ranks(links, iterations, sc.defaultParallelism)
        for page, rank in found.takeOrdered(10, key=lambda pair: (-pair[1], pair[0])):
            print(f"{rank:.6f} {page}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1:])
