"""Streams as numbered links: the core's outbox over bounded queues."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from mesos_py import logs
from mesos_py.outbox import Outbox
from mesos_py.v1 import agent_pb2, scheduler_pb2

log = logs.get("master.links")

# What an event of a kind that can be large weighs at least, in bytes.
_SMALL: Final = 256
_OFFER: Final = 512
_LARGE: Final = frozenset(
    {
        agent_pb2.Event.RUN_TASKS,
        agent_pb2.Event.EXECUTOR_MESSAGE,
        agent_pb2.Event.RECONCILE,
        agent_pb2.Event.UPDATE_FRAMEWORK,
    }
)


@dataclass(slots=True)
class Link:
    """One open stream: its number, peer and queue of messages to send."""

    number: int
    peer: str
    queue: Outbox[Any]


class Links:
    """The core's Outbox.  All calls from the event loop's thread."""

    def __init__(self, max_items: int, max_bytes: int) -> None:
        self._max_items = max_items
        self._max_bytes = max_bytes
        self._links: dict[int, Link] = {}
        self._numbers = itertools.count(1)
        self.overflows = 0

    def __len__(self) -> int:
        return len(self._links)

    def open(self, peer: str, cut: Callable[[], object]) -> Link:
        """A link for a new stream; `cut` is called when its peer reads too slowly."""
        number = next(self._numbers)

        def overflowed(reason: str) -> None:
            self.overflows += 1
            log.warning("peer cut off", link=number, peer=peer, reason=reason)
            # Not at once: the core may be in the middle of writing to it.
            asyncio.get_running_loop().call_soon(cut)

        queue: Outbox[Any] = Outbox(self._max_items, self._max_bytes, overflowed)
        link = self._links[number] = Link(number, peer, queue)
        return link

    def forget(self, link: Link) -> None:
        self._links.pop(link.number, None)

    def close_all(self, reason: str) -> None:
        for link in self._links.values():
            link.queue.close(reason)

    # ---- Outbox of the core ------------------------------------------------

    def to_framework(self, link: int, event: scheduler_pb2.Event) -> None:
        to = self._links.get(link)
        if to is None:
            return
        size = _SMALL
        if event.type == scheduler_pb2.Event.UPDATE:
            # The ids and texts in it are as long as its sender liked.
            status = event.update.status
            size += len(status.data) + len(status.message) + len(status.task_id.value)
        elif event.type == scheduler_pb2.Event.OFFERS:
            size += _OFFER * len(event.offers.offers)
        elif event.type == scheduler_pb2.Event.MESSAGE:
            size += len(event.message.data)
        to.queue.put(event, size)

    def to_agent(self, link: int, event: agent_pb2.Event) -> None:
        to = self._links.get(link)
        if to is not None:
            to.queue.put(event, event.ByteSize() if event.type in _LARGE else _SMALL)

    def close(self, link: int, reason: str) -> None:
        to = self._links.get(link)
        if to is not None:
            log.info("link closed", link=link, peer=to.peer, reason=reason)
            to.queue.close(reason)

    def dropped(self, reason: str, **ids: object) -> None:
        log.warning("dropped", reason=reason, **ids)
