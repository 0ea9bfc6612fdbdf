"""One leadership: all that begins with it and ends with it.

A master that leads again begins with nothing but the registry: no state of an earlier
leadership can come on top of what agents and schedulers tell it.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from master.allocation_flags import allocator_options, require_consistent
from master.allocator.base import Allocator
from master.api.agents import AgentChannels, UsageRelay
from master.api.certainty import Certainty
from master.api.files import LogRelay
from master.api.links import Links
from master.api.operator import OperatorService, Tenure
from master.api.shell import Shell
from master.api.streams import Streams
from master.api.turns import Turns
from master.core.master import Master
from master.flags import MasterFlags, options_of, parse_weights
from master.registry.base import Claimed
from mesos_py import mesos_flags, plugins
from mesos_py.clock import SystemClock
from mesos_py.errors import MesosPyError
from mesos_py.ids import MasterIds
from mesos_py.policy import RolePolicy
from mesos_py.v1 import types_pb2 as pb

ALLOCATORS: Final = {
    "drf": "master.allocator.drf:DrfAllocator",
    "lottery": "master.allocator.lottery:LotteryAllocator",
    "priority": "master.allocator.priority:PriorityAllocator",
}
MAX_PEER_ITEMS: Final = 200_000
# How long streams may take to send what they have, at a polite end.
DRAIN_S: Final = 1.0


def make_allocator(flags: MasterFlags, weights: Mapping[str, float]) -> Allocator:
    """The allocator that the flags name.  Raises InvalidValue naming the flag."""
    factory = plugins.resolve("mesos_py.allocators", ALLOCATORS, flags.allocator, "allocator")
    require_consistent(flags, flags.allocator, flags.offer_timeout_s)
    policies = {role: RolePolicy(weight=weight) for role, weight in weights.items()}
    allocator: Allocator = factory(allocator_options(flags, policies))
    return allocator


@dataclass(frozen=True, slots=True)
class Mandate:
    """What a leadership rests on."""

    info: pb.MasterInfo
    claimed: Claimed
    certainty: Certainty


class Term:
    """The core of one leadership and its services, ready to serve.

    Made on the event loop; over after `end`.
    """

    def __init__(
        self,
        flags: MasterFlags,
        mandate: Mandate,
        channels: AgentChannels,
        started_wall_s: float,
        *,
        durable: bool,
        turns: Turns | None = None,
    ) -> None:
        clock = SystemClock()
        now = clock.now()
        self.info = mandate.info
        self.epoch = mandate.claimed.epoch
        self.certainty = mandate.certainty
        self.links = Links(max_items=MAX_PEER_ITEMS, max_bytes=flags.max_peer_queue_bytes)
        weights = parse_weights(flags.weights)
        core = Master(
            options_of(flags, durable=durable),
            mandate.info,
            MasterIds(mandate.info.id, lambda: uuid.uuid4().bytes),
            self.links,
            make_allocator(flags, weights),
            self.epoch,
        )
        self.shell = Shell(core, clock, mandate.certainty, turns)
        for role, weight in weights.items():
            core.set_weight(role, weight, now)
        core.recover(mandate.claimed.records, now)
        self.streams = Streams(self.shell, self.links, self.epoch)
        self.operator = OperatorService(
            self.shell,
            LogRelay(channels),
            UsageRelay(channels),
            mesos_flags.as_texts(flags),
            Tenure(started_wall_s, now.wall_s, self.epoch),
        )
        self.shell.rearm()

    def stored(self, number: int) -> None:
        """The registry has everything up to this write of the core."""
        # What follows from one write fails for itself: the rest of the batch is waited for.
        while not self.shell.guarded("stored", self.shell.core.stored, number, self.shell.now()):
            pass
        self.shell.rearm()

    def raise_epoch(self, epoch: int) -> None:
        """The leadership goes on under a higher number."""
        self.epoch = epoch
        self.shell.core.raise_epoch(epoch)
        self.streams.set_epoch(epoch)
        self.operator.tenure = self.operator.tenure._replace(epoch=epoch)

    async def drain(self, error: MesosPyError) -> None:
        """Tell all peers that it ends, after what is queued for them, and let them go."""
        self.links.end(error, drain=True)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                await self.links.gone()

    def end(self, error: MesosPyError) -> None:
        """From now on nothing of it acts or speaks.  Idempotent."""
        self.certainty.end()
        self.shell.stop()
        self.operator.end()
        self.links.end(error, drain=False)


__all__ = ["DRAIN_S", "Mandate", "Term", "make_allocator"]
