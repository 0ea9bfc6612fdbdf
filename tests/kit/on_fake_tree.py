"""The registry's ZooKeeper storage on a tree in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from master.registry.zookeeper import ZooKeeperStorage
from tests.kit.fake_tree import FakeTree, Fault, World, no_faults

PATH = "/cluster/mesos-registry"


class OnFake(ZooKeeperStorage):
    """A storage on a connection of its own, which does not pause between its tries."""

    def __init__(
        self, world: World, fault: Callable[[str], Fault] = no_faults, limit_s: float = 30.0
    ) -> None:
        self.fake = FakeTree(world, fault)
        # Not set: stands still at the next pause.
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()
        super().__init__(self.fake, PATH, limit_s, self._no_pause)

    async def _no_pause(self, seconds: float) -> None:
        await asyncio.sleep(0)
        await self.may_go_on.wait()
