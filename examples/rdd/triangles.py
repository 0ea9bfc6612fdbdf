"""How many triangles a graph has: of three vertices each is linked with the others.

    mesos-py rdd submit --master local[2] examples/rdd/triangles.py edges.txt

Each line of the file is an edge: two vertices, separated by a space.  Directions, loops and
edges that come twice do not count.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Sequence

from frameworks.rdd import RDD, SparkContext

Edge = tuple[str, str]


def triangles(edges: RDD[Edge], partitions: int) -> int:
    """Each edge goes from the vertex with fewer neighbours, so that none has very many that are
    after it, and each triangle is seen from one of its corners only (Suri and Vassilvitskii,
    "Counting triangles and the curse of the last reducer", 2011)."""
    once = (
        edges.filter(lambda edge: edge[0] != edge[1])
        .map(lambda edge: (min(edge), max(edge)))
        .distinct(partitions)
        .cache()
    )
    degrees = once.flatMap(lambda edge: edge).map(lambda vertex: (vertex, 1))
    degrees = degrees.reduceByKey(lambda a, b: a + b, partitions).cache()
    ranked = (
        once.join(degrees, partitions)
        .map(lambda pair: (pair[1][0], (pair[0], pair[1][1])))
        .join(degrees, partitions)
        .map(lambda pair: _directed((pair[1][0][1], pair[1][0][0]), (pair[1][1], pair[0])))
        .cache()
    )
    open_ones = ranked.groupByKey(partitions).flatMap(_pairs)
    closed = ranked.map(lambda edge: (_unordered(edge[0], edge[1]), None)).join(
        open_ones, partitions
    )
    return closed.count()


def _directed(first: tuple[int, str], second: tuple[int, str]) -> Edge:
    low, high = sorted((first, second))
    return low[1], high[1]


def _pairs(vertex: tuple[str, Iterable[str]]) -> Iterable[tuple[Edge, str]]:
    name, after = vertex
    for one, other in itertools.combinations(sorted(after), 2):
        yield _unordered(one, other), name


def _unordered(one: str, other: str) -> Edge:
    return (one, other) if one < other else (other, one)


def main(argv: Sequence[str]) -> None:
    with SparkContext(appName="triangles") as sc:
        edges = sc.textFile(argv[0]).map(lambda line: (line.split()[0], line.split()[1]))
        print(triangles(edges, sc.defaultParallelism))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1:])
