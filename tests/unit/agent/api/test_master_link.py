"""What is queued for the master, and how much of it is one message."""

from typing import Any

from agent.api.master_link import MasterLink
from mesos_py.election import Backoff
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
