"""The documented behaviour of every operator, on real executors: `local[2]`, one context for
all; the same is tested on a plain runner in tests/unit/frameworks/rdd/test_conformance.py."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from frameworks.rdd import InheritableThread, SparkContext
from frameworks.rdd.errors import JobCancelled
from tests.kit.rdd.actions import ActionsContract
from tests.kit.rdd.elements import ElementsContract
from tests.kit.rdd.files import FilesContract
from tests.kit.rdd.numbers import FiguresContract, SamplingContract, SortingContract
from tests.kit.rdd.pairs import PairsContract
from tests.kit.rdd.sharing import SharingContract
from tests.kit.waiting import until


@pytest.fixture(scope="module")
def sc() -> Iterator[SparkContext]:
    with SparkContext("local[2]", "tests") as context:
        # Now all is open that stays so: the first test's look at what it leaves is a fair one.
        context.range(2).count()
        yield context


class TestElements(ElementsContract):
    pass


class TestActions(ActionsContract):
    pass


class TestPairs(PairsContract):
    pass


class TestSorting(SortingContract):
    pass


class TestSampling(SamplingContract):
    pass


class TestFigures(FiguresContract):
    pass


class TestFiles(FilesContract):
    pass


class TestSharing(SharingContract):
    pass


def test_jobs_with_a_tag_are_cancelled(sc, tmp_path):
    errors = []

    def endless(split, elements):
        (tmp_path / f"began-{split}").touch()
        while True:
            yield from elements

    def run():
        try:
            sc.parallelize([[1], [2]], 2).mapPartitionsWithIndex(endless).count()
        except JobCancelled as error:
            errors.append(error)

    sc.addJobTag("slow")
    thread = InheritableThread(target=run)
    thread.start()
    sc.clearJobTags()
    until(lambda: len(list(tmp_path.glob("began-*"))) == 2)
    sc.cancelJobsWithTag("fast")
    sc.cancelJobsWithTag("slow")
    thread.join()
    assert len(errors) == 1
    assert sc.range(4).sum() == 6


KEYS = """[
    "a", "", "gr\u00f6\u00dfe", b"a", None, 1, 1.5, -7, 10**40, True, float("nan"), (1, "a", None),
    ((("deep",),), 2), frozenset({"a", "b", 3}), frozenset(), E.ONE, P("x", 2), int,
    datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 1, 2), uuid.UUID(int=7),
    pathlib.PurePosixPath("/a/b"), decimal.Decimal("1.50"), fractions.Fraction(1, 3), range(3),
]"""

HASHES = f"""
import dataclasses, datetime, decimal, enum, fractions, pathlib, uuid
from frameworks.rdd.hashing import portable_hash

E = enum.Enum("E", "ONE TWO")
P = dataclasses.make_dataclass("P", ["a", "b"], frozen=True)
print([portable_hash(each) for each in {KEYS}])
"""


def test_hashes_are_the_same_in_every_process():
    """Python's own for texts, None and much else are not: each process has its own seed."""
    found = {
        subprocess.run(
            [sys.executable, "-c", HASHES],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "42", "random")
    }
    assert len(found) == 1
    assert found.pop().count(",") == 24


def test_texts_have_the_same_hashes_in_all_executors(sc):
    """Or sets of them come in another order where a partition is made again."""
    seeds = sc.range(2, numSlices=2).map(lambda _: os.environ["PYTHONHASHSEED"]).collect()
    assert seeds == [os.environ.get("PYTHONHASHSEED", "0")] * 2
