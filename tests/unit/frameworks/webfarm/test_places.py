"""Where agents are, without a master that answers."""

import pytest

from frameworks.webfarm.places import Places
from mesos_py.errors import Unavailable

NOBODY = "127.0.0.1:1"


async def test_a_name_that_means_something_will_do():
    assert await Places(NOBODY).address("agent-1", "localhost") in ("127.0.0.1", "::1")
    assert await Places(NOBODY).address("agent-1", "10.0.0.7") == "10.0.0.7"


async def test_a_name_that_means_nothing_is_said():
    with pytest.raises(Unavailable, match=r"'no such host\.invalid' has no address"):
        await Places(NOBODY).address("agent-1", "no such host.invalid")


async def test_without_a_master_there_are_no_reasons():
    assert await Places(NOBODY).reasons("framework-1") == []
