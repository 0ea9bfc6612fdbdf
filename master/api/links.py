"""Streams as numbered links: the core's outbox over bounded queues."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from google.protobuf.message import Message

from master.api.frames import entry
from mesos_py import logs
from mesos_py.errors import MesosPyError
from mesos_py.outbox import Outbox
from mesos_py.v1 import agent_pb2, scheduler_pb2

log = logs.get("master.links")


@dataclass(slots=True)
class Link:
    """One open stream: its number, its peer, and the entries of batches to send."""

    number: int
    peer: str
    queue: Outbox[bytes]

    def put(self, event: Message) -> None:
        """Queue an event as this stream sends it."""
        framed = entry(event)
        self.queue.put(framed, len(framed))


L = TypeVar("L", bound=Link)
MakeLink: TypeAlias = Callable[[int, str, Outbox[bytes]], L]


class Links:
    """The core's Outbox.  All calls from the event loop's thread."""

    def __init__(self, max_items: int, max_bytes: int) -> None:
        self._max_items = max_items
        self._max_bytes = max_bytes
        self._links: dict[int, Link] = {}
        self._numbers = itertools.count(1)
        self.overflows = 0
        self._none = asyncio.Event()
        self._none.set()
        # Why all streams were ended at once.
        self.ended: MesosPyError | None = None
        # What the core has written to the registry and nobody has taken yet, and who is
        # told that there is something.
        self.writes: deque[tuple[int, Mapping[str, bytes | None]]] = deque()
        self.on_store: Callable[[], None] = lambda: None
        # Who learns that an agent has obeyed a later leadership than ours.
        self.on_newer_epoch: Callable[[int], None] = lambda epoch: None

    def __len__(self) -> int:
        return len(self._links)

    def open(self, peer: str, cut: Callable[[], object]) -> Link:
        """A link for a new stream; `cut` is called when its peer reads too slowly."""
        return self.open_as(Link, peer, cut)

    def open_as(self, make: MakeLink[L], peer: str, cut: Callable[[], object]) -> L:
        """The same for a stream that sends events in a form of its own."""
        number = next(self._numbers)

        def overflowed(reason: str) -> None:
            self.overflows += 1
            log.warning("peer cut off", link=number, peer=peer, reason=reason)
            # Not at once: the core may be in the middle of writing to it.
            asyncio.get_running_loop().call_soon(cut)

        queue: Outbox[bytes] = Outbox(self._max_items, self._max_bytes, overflowed)
        link = self._links[number] = make(number, peer, queue)
        self._none.clear()
        return link

    def get(self, number: int) -> Link | None:
        """The open stream of that number."""
        return self._links.get(number)

    def forget(self, link: Link) -> None:
        self._links.pop(link.number, None)
        if not self._links:
            self._none.set()

    async def gone(self) -> None:
        """Until there is no link."""
        await self._none.wait()

    def end(self, error: MesosPyError, *, drain: bool) -> None:
        """End all streams with `error`, with `drain` after what is queued has been sent.

        The first error stays.
        """
        if self.ended is None:
            self.ended = error
        for link in self._links.values():
            link.queue.close(error.message, drain=drain)

    # ---- Outbox of the core ------------------------------------------------

    def to_framework(self, link: int, event: scheduler_pb2.Event) -> None:
        self._put(link, event)

    def to_agent(self, link: int, event: agent_pb2.Event) -> None:
        self._put(link, event)

    def _put(self, link: int, event: Message) -> None:
        to = self._links.get(link)
        if to is not None:
            to.put(event)

    def close(self, link: int, reason: str) -> None:
        to = self._links.get(link)
        if to is not None:
            log.info("link closed", link=link, peer=to.peer, reason=reason)
            to.queue.close(reason)

    def store(self, number: int, changes: Mapping[str, bytes | None]) -> None:
        self.writes.append((number, changes))
        self.on_store()

    def newer_epoch(self, epoch: int) -> None:
        log.error("an agent knows a newer leadership", epoch=epoch)
        # Not at once: the core is in the middle of a step.
        asyncio.get_running_loop().call_soon(self.on_newer_epoch, epoch)

    def dropped(self, reason: str, **ids: object) -> None:
        log.warning("dropped", reason=reason, **ids)
