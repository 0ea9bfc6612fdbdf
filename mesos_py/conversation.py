"""One exchange of calls and events with a peer, seen from the client's side.

Who owns the decisions (a session) gives what to send and takes what arrives; a conversation
moves it.  What all of them share is here: the wish to write, the watch over silence, and an
orderly or a quick end.  `stream.py` has them over gRPC, `http/conversation.py` over HTTP.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from mesos_py.errors import MesosPyError, Unavailable

Calls = TypeVar("Calls")
Events = TypeVar("Events")

# When the watch comes this late, the process itself was stopped or starved: what the
# peer has said meanwhile still waits to be read, and silence proves nothing.
LATE_S = 1.0
# So many times is looked for something, evenly spread, before there is silence.  A machine
# that stands still, however long, costs one of these looks.
LOOKS = 4


class Conversation(ABC, Generic[Calls, Events]):
    """From its opening message to its end.

    `opening` is written first; `take` is asked for the next batch (None: nothing now)
    whenever `wake` was called; `receive` gets each batch that arrives and may wait,
    which holds the peer back.  The first answer is due within `answer_s`; after
    `expect(silence_s)` the stream is cut when nothing was heard for that long.

    All methods are for the event loop's thread.
    """

    def __init__(
        self,
        peer: str,
        *,
        opening: Calls,
        take: Callable[[], Calls | None],
        receive: Callable[[Events], Awaitable[None]],
        answer_s: float,
    ) -> None:
        self._peer = peer
        self._opening = opening
        self._take = take
        self._receive = receive
        self._answer_s = answer_s
        self._silence_s: float | None = None
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._cut: MesosPyError | None = None
        self._over = False
        self._finishing = False
        self._timer: asyncio.TimerHandle | None = None
        self._heard = self._loop.time()
        self._held = False
        self._watch: asyncio.TimerHandle | None = None
        # Since when, and in how many looks, nothing was heard.
        self._since = self._heard
        self._quiet = 0
        # The first answer did not come in time.
        self.unanswered = False

    def wake(self) -> None:
        """There may be something for `take` to give."""
        self._wake.set()

    def expect(self, silence_s: float | None) -> None:
        """The peer says something at least every `silence_s`, or it is gone (None: not)."""
        self._silence_s = silence_s
        if self._watch is not None:
            self._watch.cancel()
        if silence_s is not None:
            self._watch_from(self._loop.time())

    def finish(self, within_s: float) -> None:
        """Write what is left, close our side, and give the peer `within_s` to end the stream."""
        if self._finishing:
            return
        self._finishing = True
        late = Unavailable(f"{self._peer} did not end the stream in {within_s:g} s")
        self._timer = self._loop.call_later(within_s, self.cut, late)
        self._wake.set()

    def cut(self, error: MesosPyError | None) -> None:
        """End at once; `run` returns `error`.  The first cut counts."""
        if self._over:
            return
        self._over = True
        self._cut = error
        self._break()

    @abstractmethod
    async def run(self) -> MesosPyError | None:
        """Hold the conversation; return why it ended (None: in order, or cut without a reason)."""

    @abstractmethod
    def _break(self) -> None:
        """Let what `run` waits for end at once, if it has begun."""

    # ---- For those who make it ---------------------------------------------------

    def _begin_watch(self) -> None:
        self._watch_from(self._heard)

    async def _hear(self, batch: Events) -> None:
        """Hand over what has arrived."""
        self._heard = self._loop.time()
        self._held = True
        await self._receive(batch)
        self._held = False
        self._heard = self._loop.time()

    def _end_watch(self) -> None:
        self._over = True
        for timer in (self._watch, self._timer):
            if timer is not None:
                timer.cancel()

    @property
    def _limit_s(self) -> float:
        return self._answer_s if self._silence_s is None else self._silence_s

    def _watch_from(self, since: float) -> None:
        self._since, self._quiet = since, 0
        self._look_after(since)

    def _look_after(self, moment: float) -> None:
        when = moment + self._limit_s / LOOKS
        self._watch = self._loop.call_at(when, self._look, when)

    def _look(self, planned: float) -> None:
        now = self._loop.time()
        if self._held or now - planned > LATE_S:
            self._watch_from(now)
            return
        if self._heard > self._since:
            self._watch_from(self._heard)
            return
        self._quiet += 1
        if self._quiet < LOOKS:
            self._look_after(now)
            return
        self.unanswered = self._silence_s is None
        what, limit = "no answer" if self.unanswered else "silence", self._limit_s
        self.cut(Unavailable(f"{what} from {self._peer} for {limit:g} s", address=self._peer))


def closed_by(peer: str) -> Unavailable:
    """The peer has ended what was under way."""
    return Unavailable(f"{peer} closed the link", address=peer)


__all__ = ["Conversation", "closed_by"]
