"""A conversation over one bidirectional stream of gRPC.

One reader, one writer that drains all there is into one message.  The scheduler's link to
the master, the executor's to its agent and the agent's to the master are made of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import grpc
import grpc.aio

from mesos_py import rpc
from mesos_py.conversation import Conversation, closed_by
from mesos_py.errors import InternalError, MesosPyError

Calls = TypeVar("Calls")
Events = TypeVar("Events")

# What grpc.aio says of a write on a stream that the peer has ended.
_CORE_ERROR = "Internal error from Core"


class RpcConversation(Conversation[Calls, Events]):
    """See Conversation."""

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
        super().__init__(peer, opening=opening, take=take, receive=receive, answer_s=answer_s)
        self._method = method
        self._call: grpc.aio.StreamStreamCall[Calls, Events] | None = None

    async def run(self) -> MesosPyError | None:
        if self._over:
            return self._cut
        self._call = self._method(wait_for_ready=False)
        writer = asyncio.create_task(self._write(self._call))
        self._begin_watch()
        try:
            ended = await self._read(self._call)
        finally:
            self._end_watch()
            # A call that is dropped while it is under way leaks its tasks.
            self._call.cancel()
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)
        return ended

    def _break(self) -> None:
        if self._call is not None:
            self._call.cancel()

    async def _read(self, call: grpc.aio.StreamStreamCall[Calls, Events]) -> MesosPyError | None:
        try:
            # Not call.read(): once the status is there it no longer gives what was
            # sent before it, such as the ERROR that explains the end.
            async for batch in call:
                await self._hear(batch)
        except grpc.aio.AioRpcError as error:
            if self._over:
                return self._cut
            if error.code() is grpc.StatusCode.INTERNAL and error.details() == _CORE_ERROR:
                # A write that met the end of the stream has hidden its status.
                return closed_by(self._peer)
            return rpc.from_rpc_error(error, self._peer)
        except asyncio.CancelledError:
            # gRPC raises this for a cancelled call as well as asyncio for a cancelled task.
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return self._cut if self._over else closed_by(self._peer)
        if self._over:
            return self._cut
        return None if self._finishing else closed_by(self._peer)

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


__all__ = ["RpcConversation"]
