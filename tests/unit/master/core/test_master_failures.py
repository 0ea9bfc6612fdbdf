"""What the allocator could not use is said and counted; others are served."""

from __future__ import annotations

from collections.abc import Mapping

from master.allocator.base import AllocatorOptions
from master.allocator.drf import DrfAllocator
from mesos_py.allocation import Failure
from tests.kit.core import World


class Failing(DrfAllocator):
    """Says of one record that it raised, as often as `count`."""

    count = 1

    def failures(self) -> Mapping[str, Failure]:
        return {"f1": Failure(self.count, "KeyError: 'x'")}


def test_a_record_that_fails_is_said_once_for_each_time() -> None:
    allocator = Failing(AllocatorOptions())
    world = World(allocator=allocator)
    world.agent()
    assert world.framework("a").offers()
    world.agent()
    world.settle()
    failed = [ids for reason, ids in world.outbox.drops if reason == "allocator-record-failed"]
    assert failed == [{"record": "f1", "why": "KeyError: 'x'"}]
    allocator.count = 2
    world.agent()
    world.settle()
    assert world.cluster.counters["dropped/allocator-record-failed"] == 2
