"""What the farm asks of a balancer: slots that servers are put into, and a count of sessions.

Another balancer than haproxy is a class with these methods; nothing else of the farm knows of
haproxy.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol


class Mode(Enum):
    """What a slot does."""

    # Nobody is in it.
    FREE = "free"
    # Its server is looked at, and gets no new session.
    HELD = "held"
    # Its server gets sessions while it is well.
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Slot:
    """
    sessions: open at this moment.  total: since the balancer began.
    well: whether the last look at the server was good; of one just put in: not yet.
    """

    name: str
    mode: Mode
    address: str
    port: int
    sessions: int = 0
    total: int = 0
    well: bool = False

    @property
    def at(self) -> str:
        """The server's place, as `Endpoint` texts have it."""
        return f"{self.address}:{self.port}"


@dataclass(frozen=True, slots=True)
class Reading:
    """
    epoch: names this life of the balancer: its counters begin anew in another one.
    sessions: that came in since it began, those that no server took included.
    errors: answers 500 and above that users got, for want of a server or from one.
    retries: attempts at a server that were repeated, unseen by users.
    """

    epoch: str
    sessions: int
    errors: int
    retries: int
    slots: tuple[Slot, ...]


class Balancer(Protocol):
    """All raise Unavailable when the balancer does not answer, and InternalError when it
    answers what it should not; the farm then tries again in its next round.  All may be
    repeated."""

    async def start(self) -> bool:
        """Have it run, as it was before if it has run before: whether it ran already."""

    async def read(self) -> Reading: ...

    async def put(self, slot: str, address: str, port: int) -> None:
        """A server into a free slot, HELD."""

    async def open(self, slot: str) -> None:
        """Give it sessions, from now on."""

    async def hold(self, slot: str) -> None:
        """Give it no new ones; those it has go on."""

    async def free(self, slot: str) -> None:
        """Forget the server.  What is still open there is not cut."""

    async def close(self) -> None:
        """Take nothing new, let what is open end (for a while), and end."""

    async def died(self) -> None:
        """Returns when it has ended by itself."""


__all__ = ["Balancer", "Mode", "Reading", "Slot"]
