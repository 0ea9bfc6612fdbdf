"""One bidirectional stream of batches, seen from the client's side.

Who owns the decisions (a session) gives what to send and takes what arrives; this
module moves it: one reader, one writer that drains all there is into one message, a
watch over silence, and an orderly or a quick end.  The scheduler's link to the master
and the executor's link to its agent are both made of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import grpc
import grpc.aio

from mesos_py import rpc
from mesos_py.errors import InternalError, MesosPyError, Unavailable

Calls = TypeVar("Calls")
Events = TypeVar("Events")

# When the watch comes this late, the process itself was stopped or starved: what the
# peer has said meanwhile still waits to be read, and silence proves nothing.
LATE_S = 1.0
# What grpc.aio says of a write on a stream that the peer has ended.
_CORE_ERROR = "Internal error from Core"


class Conversation(Generic[Calls, Events]):
    """One stream, from its opening message to its end.

    `opening` is written first; `take` is asked for the next batch (None: nothing now)
    whenever `wake` was called; `receive` gets each batch that arrives and may wait,
    which holds the peer back.  The first answer is due within `answer_s`; after
    `expect(silence_s)` the stream is cut when nothing was heard for that long.

    All methods are for the event loop's thread.
    """

    def __init__(
        self,
        method: grpc.aio.StreamStreamMultiCallable[Calls, Events],
        peer: str,
        *,
        opening: Calls,
        take: Callable[[], Calls | None],
        receive: Callable[[Events], Awaitable[None]],
        answer_s: float,
    ) -> None:
        self._method = method
        self._peer = peer
        self._opening = opening
        self._take = take
        self._receive = receive
        self._answer_s = answer_s
        self._silence_s: float | None = None
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._call: grpc.aio.StreamStreamCall[Calls, Events] | None = None
        self._cut: MesosPyError | None = None
        self._over = False
        self._finishing = False
        self._timer: asyncio.TimerHandle | None = None
        self._heard = self._loop.time()
        self._held = False
        self._watch: asyncio.TimerHandle | None = None
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
            self._set_watch(self._loop.time() + silence_s)

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
        if self._call is not None:
            self._call.cancel()

    async def run(self) -> MesosPyError | None:
        """Hold the conversation; return why it ended (None: in order, or cut without a reason)."""
        if self._over:
            return self._cut
        self._call = self._method(wait_for_ready=False)
        writer = asyncio.create_task(self._write(self._call))
        self._set_watch(self._heard + self._answer_s)
        try:
            ended = await self._read(self._call)
        finally:
            self._over = True
            for timer in (self._watch, self._timer):
                if timer is not None:
                    timer.cancel()
            # A call that is dropped while it is under way leaks its tasks.
            self._call.cancel()
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)
        return ended

    async def _read(self, call: grpc.aio.StreamStreamCall[Calls, Events]) -> MesosPyError | None:
        try:
            # Not call.read(): once the status is there it no longer gives what was
            # sent before it, such as the ERROR that explains the end.
            async for batch in call:
                self._heard = self._loop.time()
                self._held = True
                await self._receive(batch)
                self._held = False
                self._heard = self._loop.time()
        except grpc.aio.AioRpcError as error:
            if self._over:
                return self._cut
            if error.code() is grpc.StatusCode.INTERNAL and error.details() == _CORE_ERROR:
                # A write that met the end of the stream has hidden its status.
                return _cut_off(self._peer)
            return rpc.from_rpc_error(error, self._peer)
        except asyncio.CancelledError:
            # gRPC raises this for a cancelled call as well as asyncio for a cancelled task.
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return self._cut if self._over else _cut_off(self._peer)
        if self._over:
            return self._cut
        return None if self._finishing else _cut_off(self._peer)

    async def _write(self, call: grpc.aio.StreamStreamCall[Calls, Events]) -> None:
        try:
            await call.write(self._opening)
            while True:
                await self._wake.wait()
                self._wake.clear()
                while (batch := self._take()) is not None:
                    await call.write(batch)
                if self._finishing:
                    await call.done_writing()
                    return
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError, asyncio.CancelledError):
            return  # the reader learns why the call has ended
        except Exception as error:
            broken = InternalError(f"cannot write to {self._peer}: {error!r}")
            broken.__cause__ = error
            self.cut(broken)

    def _set_watch(self, when: float) -> None:
        self._watch = self._loop.call_at(when, self._look, when)

    def _look(self, planned: float) -> None:
        now = self._loop.time()
        limit = self._answer_s if self._silence_s is None else self._silence_s
        if self._held or now - planned > LATE_S:
            self._set_watch(now + limit)
        elif now - self._heard < limit:
            self._set_watch(self._heard + limit)
        else:
            self.unanswered = self._silence_s is None
            what = "no answer" if self.unanswered else "silence"
            self.cut(Unavailable(f"{what} from {self._peer} for {limit:g} s", address=self._peer))


def _cut_off(peer: str) -> Unavailable:
    return Unavailable(f"{peer} closed the link", address=peer)


__all__ = ["Conversation"]
