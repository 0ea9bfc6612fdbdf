"""What tests of the whole system share."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.kit.networks import Machine, machine


@pytest.fixture
def here(lacking) -> Iterator[Machine]:
    """A machine of the test's own, in network namespaces."""
    with ExitStack() as stack:
        try:
            made = stack.enter_context(machine())
        except PermissionError:
            lacking("network namespaces")
        yield made
