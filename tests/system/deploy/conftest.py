"""A dockerd of the folder's own, with the project's image built in it."""

from collections.abc import Iterator

import pytest

from tests.kit import images
from tests.kit.dockerd import PrivateDockerd


@pytest.fixture(scope="package")
def dockerd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateDockerd]:
    directory = tmp_path_factory.mktemp("deploy")
    with PrivateDockerd(directory / "dockerd") as made:
        images.import_base(made.client, directory)
        images.import_zookeeper(made.client, directory)
        images.build(made.client, directory)
        yield made
