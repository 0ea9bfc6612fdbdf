"""The programs of examples/rdd, each next to the same without a cluster."""

import re
from collections import Counter

import numpy as np
import pytest

from examples.rdd import als, kmeans, logistic_regression, pagerank, triangles, wordsearch
from frameworks.rdd import SparkContext

SEED = 20261128


@pytest.fixture
def random():
    return np.random.default_rng(SEED)


@pytest.fixture(scope="module")
def sc():
    with SparkContext("local[2]", "examples") as made:
        # All connections that there will be are made now, and are no leak of a test's.
        made.parallelize([bytes(4 << 20)], 1).count()
        made.parallelize([bytes(4 << 20)], 1).collect()
        yield made


def test_logistic_regression_has_the_weights_of_plain_numpy(sc):
    blocks = [logistic_regression.block(index, 500, 4) for index in range(3)]
    plain = np.zeros(4)
    for _ in range(10):
        plain = plain - 0.001 * sum(logistic_regression.gradient(plain, each) for each in blocks)
    found = logistic_regression.train(sc.parallelize(blocks, 3).cache(), 4, 10, 0.001)
    np.testing.assert_allclose(found, plain, rtol=1e-12)
    x, y = blocks[0]
    assert (np.sign(x @ found) == y).mean() > 0.8


def test_pagerank_has_the_ranks_of_the_power_method(sc, random):
    count = 30
    edges = {(a, b) for a, b in random.integers(0, count, (90, 2)).tolist() if a != 7}  # 7 is stuck
    pages = sorted({page for edge in edges for page in edge})
    index = {page: number for number, page in enumerate(pages)}
    size = len(pages)
    matrix = np.zeros((size, size))
    for a, b in edges:
        matrix[index[b], index[a]] = 1
    totals = matrix.sum(axis=0)
    matrix[:, totals == 0] = 1
    matrix /= matrix.sum(axis=0)
    plain = np.full(size, 1 / size)
    for _ in range(8):
        plain = (1 - pagerank.DAMPING) / size + pagerank.DAMPING * (matrix @ plain)
    links = sc.parallelize([(str(a), str(b)) for a, b in edges], 3)
    found = dict(pagerank.ranks(links, 8, 2).collect())
    assert sum(found.values()) == pytest.approx(1)
    np.testing.assert_allclose([found[str(page)] for page in pages], plain, rtol=1e-9)


def test_kmeans_ends_where_plain_lloyd_ends(sc, random):
    points = np.concatenate([random.normal(at, 1, (60, 2)) for at in (0, 6, 12)])
    random.shuffle(points)
    plain = points[:3]
    while True:
        nearest = ((points[:, None] - plain[None]) ** 2).sum(axis=2).argmin(axis=1)
        moved = np.array([points[nearest == one].mean(axis=0) for one in range(3)])
        if np.allclose(moved, plain, rtol=1e-14):
            break
        plain = moved
    blocks = sc.parallelize(np.array_split(points, 4), 4).cache()
    found, rounds = kmeans.cluster(blocks, points[:3], most=100)
    assert 0 < rounds < 100
    np.testing.assert_allclose(found, plain, rtol=1e-9)


def test_triangles_are_those_of_the_adjacency_matrix(sc, random):
    size = 25
    edges = random.integers(0, size, (140, 2)).tolist()
    matrix = np.zeros((size, size), dtype=int)
    for a, b in edges:
        if a != b:
            matrix[a, b] = matrix[b, a] = 1
    plain = int(np.trace(matrix @ matrix @ matrix)) // 6
    assert plain > 10
    found = triangles.triangles(sc.parallelize([(str(a), str(b)) for a, b in edges], 3), 2)
    assert found == plain


def test_als_has_the_factors_of_the_same_without_a_cluster(sc, random):
    users, items, rank = 12, 9, 3
    truth = random.random((users, rank)) @ random.random((rank, items))
    ratings = [
        (f"u{user}", f"i{item}", float(truth[user, item]))
        for user in range(users)
        for item in range(items)
        if (user + item) % 4
    ]
    plain_items = {f"i{item}": als.first_factors(f"i{item}", rank) for item in range(items)}
    plain_users = {}
    for _ in range(5):
        plain_users = _solved(ratings, 0, 1, plain_items, rank)
        plain_items = _solved(ratings, 1, 0, plain_users, rank)
    found_users, found_items = als.factorise(sc.parallelize(ratings, 3), rank, 5, 0.001)
    for plain, found in ((plain_users, found_users), (plain_items, found_items)):
        assert found.keys() == plain.keys()
        for name, factors in plain.items():
            np.testing.assert_allclose(found[name], factors, rtol=1e-5)
    assert als.error(ratings, found_users, found_items) < 0.1


def _solved(ratings, mine, theirs, others, rank):
    names = {each[mine] for each in ratings}
    return {
        name: als.solve(
            [(others[each[theirs]], each[2]) for each in ratings if each[mine] == name],
            rank,
            0.001,
        )
        for name in names
    }


def test_text_is_searched_as_by_a_plain_loop(sc, tmp_path):
    texts = ["an error\nall is well\nERROR here: error\n", "no newline at the end: error 7"]
    for number, text in enumerate(texts):
        (tmp_path / f"log-{number}.txt").write_text(text)
    lines = "\n".join(text.rstrip("\n") for text in texts).split("\n")
    patterns = ["error", r"\d$", "absent"]
    found = wordsearch.search(sc, f"{tmp_path}/log-*.txt", patterns)
    assert found == {p: [line for line in lines if re.search(p, line)] for p in patterns}
    words = Counter(word for line in lines for word in re.findall(r"[a-z']+", line.lower()))
    plain = sorted(words.items(), key=lambda pair: (-pair[1], pair[0]))[:5]
    assert wordsearch.common_words(sc, f"{tmp_path}/log-*.txt", 5) == plain
