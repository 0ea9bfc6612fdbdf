"""A dockerd of the folder's own, a master that is a fake, and agents that are not."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.kit.agent_master import AgentProcess, FakeMaster, running_agent
from tests.kit.dockerd import PrivateDockerd


@pytest.fixture(scope="package")
def dockerd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivateDockerd]:
    with PrivateDockerd(tmp_path_factory.mktemp("dockerd")) as made:
        yield made


@pytest.fixture(autouse=True)
def containers_are_gone(dockerd: PrivateDockerd) -> Iterator[None]:
    """No container outlives its test."""
    yield
    left = [row["Names"] for row in dockerd.client.containers(all=True)]
    if left:
        dockerd.remove_all()
    assert not left


@pytest.fixture
async def master() -> AsyncIterator[FakeMaster]:
    async with FakeMaster() as made:
        yield made


@pytest.fixture
async def agent(master, dockerd, tmp_path) -> AsyncIterator[AgentProcess]:
    async with running_agent(master, tmp_path / "agent", *dockerd.flags) as made:
        yield made
