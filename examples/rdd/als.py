"""Alternating least squares: ratings as the product of what users and items are like.

    mesos-py rdd submit --master local[2] examples/rdd/als.py ratings.txt 8 10

Each line of the file is a user, an item and a rating, separated by spaces.  Ratings are sent
to users and to items once, and stay there in memory; in each round only factors travel
(Zhou et al., "Large-scale parallel collaborative filtering for the Netflix prize", 2008).
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from frameworks.rdd import RDD, SparkContext

Factors = npt.NDArray[np.float64]
Rating = tuple[str, str, float]


def factorise(
    ratings: RDD[Rating], rank: int, rounds: int, weight: float
) -> tuple[dict[str, Factors], dict[str, Factors]]:
    """Factors of users and of items, so many numbers each; `weight` is of the regularisation, per
    rating.  It begins with items that are told by their names, so that it is repeatable."""
    by_user = ratings.map(lambda each: (each[0], (each[1], each[2]))).groupByKey()
    by_item = ratings.map(lambda each: (each[1], (each[0], each[2]))).groupByKey()
    by_user, by_item = by_user.mapValues(list).cache(), by_item.mapValues(list).cache()
    items = {name: first_factors(name, rank) for name in by_item.keys().collect()}
    users: dict[str, Factors] = {}
    for _ in range(rounds):
        users = _solved(by_user, items, rank, weight)
        items = _solved(by_item, users, rank, weight)
    return users, items


def first_factors(name: str, rank: int) -> Factors:
    return np.random.default_rng(zlib.crc32(name.encode())).random(rank)


def solve(ratings: Iterable[tuple[Factors, float]], rank: int, weight: float) -> Factors:
    """The factors that fit these ratings best, given those of the other side."""
    listed = list(ratings)
    others = np.array([factors for factors, _ in listed])
    values = np.array([value for _, value in listed])
    square = others.T @ others + weight * len(listed) * np.eye(rank)
    solved: Factors = np.linalg.solve(square, others.T @ values)
    return solved


def _solved(
    grouped: RDD[tuple[str, list[tuple[str, float]]]],
    others: dict[str, Factors],
    rank: int,
    weight: float,
) -> dict[str, Factors]:
    shared = grouped.context.broadcast(others)
    try:
        return dict(
            grouped.mapValues(
                lambda found: solve(
                    ((shared.value[name], value) for name, value in found), rank, weight
                )
            ).collect()
        )
    finally:
        shared.destroy()


def error(ratings: Iterable[Rating], users: dict[str, Factors], items: dict[str, Factors]) -> float:
    """The root of the mean square of what the product misses."""
    missed = [value - float(users[user] @ items[item]) for user, item, value in ratings]
    return float(np.sqrt(np.mean(np.square(missed))))


def main(argv: Sequence[str]) -> None:
    path, rank, rounds = argv[0], int(argv[1]), int(argv[2])
    with SparkContext(appName="ALS") as sc:
        ratings = sc.textFile(path).map(_rating).cache()
        users, items = factorise(ratings, rank, rounds, weight=0.05)
        print(f"root mean square error {error(ratings.collect(), users, items):.4f}")


def _rating(line: str) -> Rating:
    user, item, value = line.split()
    return user, item, float(value)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(sys.argv[1:])
