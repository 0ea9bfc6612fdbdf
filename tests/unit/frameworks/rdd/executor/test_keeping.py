"""What happens while blocks move: nothing is closed that is another's."""

from __future__ import annotations

import asyncio
import os
import pickle
from typing import Any

import pytest

from frameworks.rdd.backend import Head
from frameworks.rdd.executor import packets, shared
from frameworks.rdd.executor.keeping import Keeper
from frameworks.rdd.executor.orders import Reserve
from frameworks.rdd.executor.settings import Settings
from frameworks.rdd.executor.store import Block
from frameworks.rdd.messages import Forget
from mesos_py.errors import Unavailable

BLOCK = ("rdd", 1, 0)


class Driver:
    """As an Uplink: knows two executors that have everything."""

    def __init__(self) -> None:
        self.said: list = []

    def send(self, message) -> None:
        self.said.append(message)

    async def where(self, wanted, has=()) -> dict:
        return dict.fromkeys(wanted, ("one", "two"))


class Peers:
    """As Peers: of `content`."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    async def fetch_from_any(self, addresses, block, take) -> int:
        # The first has broken off.
        take(b"longer than that of the second", 0)
        take(self.content, 0)
        return len(self.content)


def keeper_in(directory, content: bytes = b"") -> Keeper:
    settings = Settings("e", "d:1", str(directory), 1, 100, "here", "127.0.0.1")
    uplink: Any = Driver()
    peers: Any = Peers(content)
    return Keeper(settings, uplink, peers)


def in_memory(data: bytes, **how) -> Block:
    fd = packets.memory_file("test")
    packets.write_all(fd, data, 0)
    return Block(BLOCK, len(data), fd, **how)


def test_a_block_that_is_made_again_while_its_predecessor_goes_to_disk_is_left_alone(tmp_path):
    async def scenario() -> None:
        keeper = keeper_in(tmp_path)
        old = in_memory(b"o" * 90, spill=True)
        keeper.store.put(old)
        making = asyncio.create_task(keeper.reserve(1, Reserve(("rdd", 2, 0), 50)))
        # It begins with this; what the thread has done is only seen after the next wait.
        await asyncio.sleep(0)
        assert old.moving
        keeper.forget(Forget(rdds=(1,)))
        new = in_memory(b"n" * 10)
        assert keeper.store.put(new)
        assert await making
        assert new.in_memory
        assert keeper.store.memory_bytes == 10
        assert keeper.store.disk_bytes == 0
        assert packets.read_all(new.fd, 10) == b"n" * 10
        assert list((tmp_path / "blocks").iterdir()) == []
        keeper.close()

    asyncio.run(scenario())


def test_a_block_ends_where_the_one_that_gave_all_of_it_ends(tmp_path):
    async def scenario() -> None:
        fd = await keeper_in(tmp_path, b"short").get(BLOCK)
        assert os.fstat(fd).st_size == 5
        os.close(fd)

    asyncio.run(scenario())


def test_a_broadcast_that_is_destroyed_as_it_comes_is_not_given(tmp_path):
    async def scenario() -> None:
        uplink: Any = Driver()
        peers: Any = Peers(pickle.dumps(Head(0, 0)))
        broadcasts = shared.Broadcasts("d:1", uplink, peers)
        getting = asyncio.create_task(broadcasts.get(1))
        await asyncio.sleep(0)
        # Called after what wakes the one who waits, and before it runs.
        broadcasts._tasks[1].add_done_callback(lambda _: broadcasts.forget(1))
        with pytest.raises(Unavailable, match="destroyed"):
            await getting
        await broadcasts.close()

    asyncio.run(scenario())
