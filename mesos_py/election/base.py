"""Who leads: the interfaces.

A `Detector` tells clients and agents which master to talk to; a `Contender` makes
a master the leader.  Both have a standalone twin (`standalone.py`), so that code
written against them does not ask which one it has.
"""

from __future__ import annotations

import asyncio
import enum
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable
from typing import Final

from mesos_py.address import Address
from mesos_py.v1 import types_pb2

# All peers of a master hear of its successor at once; they come within this time.
NEWS_SPREAD_S: Final = 0.25


class Detector(ABC):
    """Finds the master that leads.  Used from one event loop."""

    @abstractmethod
    async def leader(self) -> Address:
        """The address to connect to now; waits while none is known.

        Call it again before each attempt: the answer changes with time, with
        `hint` and with `failed`.  It is a belief; the master itself says
        whether it leads.
        """

    @abstractmethod
    def watch(self) -> AsyncIterator[Address | None]:
        """Yield the present leader as soon as one is known, then each other one.

        None: nobody is known to lead any more.  That alone is no reason to give a link
        up that works.  Never ends by itself.  Changes that come while the caller is busy
        are folded: it gets the newest.
        """

    async def news(self, left: Address) -> None:
        """Wait until an election has named a leader after `left`, if `left` is believed to
        lead, or else until there is one at all.

        It ends a pause between attempts: whoever waits need not wait on.  What is only
        tried, not known, is no news: where nobody tells of elections this never returns.
        """
        await asyncio.get_running_loop().create_future()

    # The two that follow do nothing by default on purpose: a detector that is
    # told of elections needs no help from connection attempts.

    def hint(self, address: Address) -> None:  # noqa: B027
        """A master that does not lead named `address` as the leader."""

    def failed(self, address: Address) -> None:  # noqa: B027
        """A connection to `address` could not be made, or was lost.

        May be called for any address and any number of times.
        """

    async def close(self) -> None:  # noqa: B027
        """Let go of what the detector holds.  Idempotent."""


class Standing(enum.Enum):
    """How sure a contender is of its leadership."""

    LEADING = "leading"
    # Whether others lead cannot be known at the moment: hold offers and writes back,
    # and neither go on nor step down.
    DOUBTFUL = "doubtful"
    # Somebody else may lead from now on: step down at once.
    LOST = "lost"


class Contender(ABC):
    """Makes this master the leader.  Used from one event loop, for one term.

    After LOST it is over: to stand again, make a new one.
    """

    @abstractmethod
    async def elected(self, info: types_pb2.MasterInfo) -> None:
        """Stand for election as this master; wait until elected.  Called once.

        Raises Refused when standing is not permitted.
        """

    @abstractmethod
    def watch(self) -> AsyncIterator[Standing]:
        """Yield the standing after `elected`, then each change; ends after LOST."""

    @abstractmethod
    def certain_until_s(self) -> float:
        """Until when nobody else can have been elected, on the monotonic clock.

        Infinite where there is nobody else, minus infinity while this master does not
        lead.  A write is safe if it is done before that moment, whatever `watch` has
        said so far: a process that was stopped for a while hears late of everything.
        """

    @abstractmethod
    async def resign(self) -> None:
        """Give the leadership (or the wish for it) up.  Idempotent; `watch` then ends."""


class Backoff:
    """Growing waits between attempts, with jitter so that many peers spread out.

    The n-th wait lies between half and all of `first_s * 2**n`, at most `cap_s`.
    Never less than half: an unlucky draw must not hammer a master that is coming
    up.  `random` returns a number in [0, 1), such as `random.random`.
    """

    def __init__(self, first_s: float, cap_s: float, random: Callable[[], float]) -> None:
        if not 0 < first_s <= cap_s < float("inf"):
            raise ValueError(f"need 0 < first_s <= cap_s, not {first_s} and {cap_s}")
        self._first_s = first_s
        self._cap_s = cap_s
        self._random = random
        self._ceiling_s = first_s

    def next(self) -> float:
        """How long to wait before the next attempt, in seconds."""
        ceiling_s = self._ceiling_s
        self._ceiling_s = min(self._cap_s, ceiling_s * 2)
        return ceiling_s * (0.5 + 0.5 * self._random())

    def part_of(self, width_s: float) -> float:
        """Some wait of at most `width_s`."""
        return width_s * self._random()

    def reset(self) -> None:
        """An attempt has succeeded, and lasted: start again from `first_s`."""
        self._ceiling_s = self._first_s


class Patience:
    """How long to wait for the first answer on a link: longer after each time that was
    not long enough.

    A master that has thousands of links to answer answers all of them late.  If all came
    again after the same time, it would be busy for ever with links that were given up.
    """

    def __init__(self, first_s: float, cap_s: float) -> None:
        self._first_s = first_s
        self._cap_s = max(first_s, cap_s)
        self.now_s = first_s

    def answered(self) -> None:
        self.now_s = self._first_s

    def exhausted(self) -> None:
        """The peer is there, and did not answer in time."""
        self.now_s = min(self._cap_s, 2 * self.now_s)


async def rest(detector: Detector, left: Address, pause_s: float, backoff: Backoff) -> None:
    """Wait for the next attempt after one with `left`: so long, or until there is news.

    With news the attempts begin anew, the first one without such a pause.
    """
    if not pause_s:
        return
    try:
        async with asyncio.timeout(pause_s):
            await detector.news(left)
    except TimeoutError:
        return
    backoff.reset()
    await asyncio.sleep(backoff.part_of(NEWS_SPREAD_S))
