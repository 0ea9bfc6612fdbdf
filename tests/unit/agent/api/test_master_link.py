"""What is queued for the master, and how much of it is one message."""

import asyncio
from typing import Any

from agent.api.master_link import MasterLink
from mesos_py.address import Address
from mesos_py.election import Backoff, StandaloneDetector
from mesos_py.rpc import MAX_MESSAGE_BYTES
from mesos_py.v1 import agent_pb2

Call = agent_pb2.Call


class Talk:
    """A conversation that goes on."""

    def wake(self) -> None: ...


def test_operations_are_counted_as_large_as_they_are():
    """A thousand of them, taken for 512 bytes each, were more than one message may be."""
    someone: Any = None
    link = MasterLink(someone, someone, Backoff(1, 1, lambda: 0.5), "this run")
    link._conversation, link._registered = Talk(), True  # type: ignore[assignment]
    told = Call(type=Call.UPDATE_OPERATION)
    told.update_operation.operation.info.id.value = "x" * 100_000
    count = 2 * MAX_MESSAGE_BYTES // told.ByteSize()
    for _ in range(count):
        assert link.send(told)
    batches = []
    while (batch := link._take()) is not None:
        batches.append(batch)
    assert sum(len(batch.calls) for batch in batches) == count
    assert max(batch.ByteSize() for batch in batches) < MAX_MESSAGE_BYTES


class Asked(StandaloneDetector):
    """Nobody leads; whether anybody has asked who does."""

    def __init__(self) -> None:
        super().__init__([Address("127.0.0.1", 1)])
        self.asked = asyncio.Event()

    async def leader(self) -> Address:
        self.asked.set()
        return await asyncio.Future()


class Unready:
    """An agent that has something to write down first."""

    def __init__(self) -> None:
        self.waited_for, self.ready = asyncio.Event(), asyncio.Event()

    async def may_register(self) -> None:
        self.waited_for.set()
        await self.ready.wait()


async def test_no_master_is_looked_for_before_the_agent_may_register():
    detector, agent = Asked(), Unready()
    link = MasterLink(detector, agent, Backoff(1, 1, lambda: 0.5), "this run")  # type: ignore[arg-type]
    running = asyncio.create_task(link.run())
    await agent.waited_for.wait()
    await asyncio.sleep(0)
    assert not detector.asked.is_set()
    agent.ready.set()
    await detector.asked.wait()
    running.cancel()
    await asyncio.wait([running])
