"""The documented behaviour of every operator, on a plain runner of one process; the same is
tested on real executors in tests/integration/test_rdd_conformance.py."""

from collections.abc import Iterator

import pytest

from frameworks.rdd import SparkContext
from tests.kit.rdd.actions import ActionsContract
from tests.kit.rdd.elements import ElementsContract
from tests.kit.rdd.files import FilesContract
from tests.kit.rdd.numbers import FiguresContract, SamplingContract, SortingContract
from tests.kit.rdd.pairs import PairsContract
from tests.kit.rdd.plain import PlainRunner
from tests.kit.rdd.sharing import SharingContract


@pytest.fixture
def sc() -> Iterator[SparkContext]:
    with SparkContext("local[2]", "tests", runner=PlainRunner()) as context:
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
