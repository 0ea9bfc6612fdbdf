"""Connections that are kept, and when they go."""

from __future__ import annotations

from typing import cast

import grpc.aio
import pytest

from frameworks.rdd.channels import Channels
from mesos_py.errors import NotFound, Unavailable


class Channel:
    def __init__(self, address: str) -> None:
        self.address = address
        self.closed = False

    async def close(self) -> None:
        assert not self.closed
        self.closed = True


class Network:
    def __init__(self) -> None:
        self.opened: list[Channel] = []

    def open(self, address: str) -> grpc.aio.Channel:
        self.opened.append(Channel(address))
        return cast(grpc.aio.Channel, self.opened[-1])

    def open_ones(self) -> list[str]:
        return [each.address for each in self.opened if not each.closed]


@pytest.fixture
def network() -> Network:
    return Network()


async def use(channels: Channels, *addresses: str) -> None:
    for address in addresses:
        async with channels.used(address):
            pass


async def test_who_was_used_longest_ago_goes_when_there_are_many(network):
    channels = Channels(network.open, 2)
    await use(channels, "a", "b", "a", "c")
    assert network.open_ones() == ["a", "c"]
    await use(channels, "a", "c", "a")
    assert len(network.opened) == 3
    await channels.close()
    assert network.open_ones() == []


async def test_those_in_use_stay(network):
    channels = Channels(network.open, 0)
    channels.held("driver")
    async with channels.used("a") as first, channels.used("a") as again:
        assert first is again
        await use(channels, "b", "driver")
        assert network.open_ones() == ["driver", "a"]
    assert network.open_ones() == ["driver"]
    await channels.close()
    assert network.open_ones() == []


async def test_who_is_gone_is_forgotten_when_its_last_user_is(network):
    channels = Channels(network.open)
    async with channels.used("a"):
        await channels.forget("a")
        await use(channels, "a")
        assert network.open_ones() == ["a", "a"]
    assert [each.closed for each in network.opened] == [True, False]
    await channels.forget("a")
    await channels.forget("a")
    assert network.open_ones() == []


async def test_who_cannot_be_reached_is_forgotten_and_who_lacks_a_block_is_not(network):
    channels = Channels(network.open)
    held = channels.held("driver")
    for error in (NotFound("block", "x"), Unavailable("is gone")):
        for address in ("a", "driver"):
            with pytest.raises(type(error)):
                async with channels.used(address):
                    raise error
    assert network.open_ones() == ["driver"]
    assert channels.held("driver") is not held
    await channels.close()
    assert network.open_ones() == []
