"""The two long-lived streams: schedulers and agents.

Both work alike: one task reads batches and hands each call to the core, the
handler itself writes whatever the core has put into the link's queue.

The handlers read and write by themselves, and what they write is bytes (frames.py).
As async generators of messages they would cost a third more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, Final, TypeAlias

import grpc
import grpc.aio

from master.api.links import Link, Links
from master.api.shell import Shell
from mesos_py import logs, rpc
from mesos_py.clock import Now
from mesos_py.errors import NotLeader, Unavailable
from mesos_py.v1 import agent_pb2, scheduler_pb2

log = logs.get("master.streams")

MAX_BATCH_ITEMS: Final = 5_000
MAX_BATCH_BYTES: Final = 4 * 1024 * 1024

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]
OnCall: TypeAlias = Callable[[int, Any, Now], None]
OnEnd: TypeAlias = Callable[[int, Now], None]
Serve: TypeAlias = Callable[[object, Context], Coroutine[Any, Any, None]]


class Stream:
    """Serves one kind of stream: reads calls, writes events, tells of the end."""

    def __init__(
        self,
        name: str,
        shell: Shell,
        links: Links,
        on_call: OnCall,
        on_end: OnEnd,
        parse: Callable[[bytes], Any],
    ) -> None:
        self.name = name
        self.shell = shell
        self.links = links
        # Calls from the bytes of a batch.
        self.parse = parse
        self._on_call = on_call
        self._on_end = on_end
        # Put after the entries of each batch: the other fields of its message.
        self.tail = b""
        self._on_call_step = f"{name} call"
        self._on_end_step = f"{name} left"

    async def serve(self, _requests: object, context: Context) -> None:
        """Talk to one peer until the stream ends from either side."""
        handler = asyncio.current_task()
        assert handler is not None
        links, certainty = self.links, self.shell.certainty
        self.shell.turns.hurry()
        link = links.open(context.peer(), handler.cancel)
        reader = asyncio.create_task(self._read(context, link))
        try:
            async for events in link.queue.batches(MAX_BATCH_ITEMS, MAX_BATCH_BYTES):
                # Also what was decided in time must not leave when it may be too late.
                if not certainty.certain() and not await certainty.wait():
                    break
                await context.write(b"".join(events) + self.tail)
            ended = links.ended
            if ended is None and certainty.over.is_set():
                ended = NotLeader(None)
            if ended is not None:
                await rpc.abort(context, ended)
        except Unavailable as error:
            await rpc.abort(context, error)
        finally:
            reader.cancel()
            self.links.forget(link)
            shell = self.shell
            # After the leadership the core decides nothing more.
            if not certainty.over.is_set():
                self.left(link.number)
                shell.rearm()

    async def _read(self, context: Context, link: Link) -> None:
        turns, certainty = self.shell.turns, self.shell.certainty
        try:
            while (message := await context.read()) is not grpc.aio.EOF:
                if not certainty.certain() and not await certainty.wait():
                    return
                if turns.free():
                    done = self._take(link, message)
                else:
                    done = await turns.take(partial(self._take, link, message))
                if not done:
                    link.queue.close("a call could not be carried out; see the master's log")
                    return
        except Exception:
            # A message that cannot be read, or the peer's sudden end.
            log.warning("stream broken", link=link.number, peer=link.peer, kind=self.name)
        link.queue.close("the peer ended the stream", drain=False)

    def _take(self, link: Link, message: Any) -> bool:
        """Hand the calls of one batch to the core.  False if one could not be carried out."""
        shell = self.shell
        if not shell.certainty.certain():
            # While it waited for its turn.  For the peer these calls went down with its link.
            link.queue.close("this master is not sure that it leads")
            return False
        done = self.hand_in(link.number, message)
        shell.rearm()
        return done

    def hand_in(self, link: int, message: Any) -> bool:
        """Tell the core of the calls of one batch.  False if one could not be carried out."""
        return self.shell.guarded(self._on_call_step, self._hand_in, link, message)

    def hand_in_one(self, link: int, call: Any) -> bool:
        """Tell the core of a call that has come alone.  False if it could not be carried out."""
        return self.shell.guarded(self._on_call_step, self._on_call, link, call, self.shell.now())

    def left(self, link: int) -> None:
        """Tell the core that the stream is no more."""
        self.shell.guarded(self._on_end_step, self._on_end, link, self.shell.now())

    def _hand_in(self, link: int, message: Any) -> None:
        now = self.shell.now()
        on_call = self._on_call
        for call in message.calls:
            on_call(link, call, now)


class Streams:
    """Both kinds of streams of one leadership."""

    def __init__(self, shell: Shell, links: Links, epoch: int) -> None:
        core = shell.core
        self.schedulers = Stream(
            "framework",
            shell,
            links,
            core.framework_call,
            core.framework_disconnected,
            scheduler_pb2.Calls.FromString,
        )
        self.agents = Stream(
            "agent",
            shell,
            links,
            core.agent_call,
            core.agent_disconnected,
            agent_pb2.Calls.FromString,
        )
        self.set_epoch(epoch)

    def set_epoch(self, epoch: int) -> None:
        """The leadership's number: it goes with all orders to agents from now on."""
        self.agents.tail = agent_pb2.Events(epoch=epoch).SerializeToString()


def add_streams(server: grpc.aio.Server, soon: Callable[[], Awaitable[Streams]]) -> None:
    """Serve SchedulerService and AgentService on `server`.

    `soon` gives those of the present leadership, or of one that is about to begin;
    raises NotLeader if there is none.
    """

    async def schedulers(requests: object, context: Context) -> None:
        await (await _leading(soon, context)).schedulers.serve(requests, context)

    async def agents(requests: object, context: Context) -> None:
        await (await _leading(soon, context)).agents.serve(requests, context)

    _add(server, scheduler_pb2, "SchedulerService", "Subscribe", schedulers)
    _add(server, agent_pb2, "AgentService", "Connect", agents)


async def _leading(soon: Callable[[], Awaitable[Streams]], context: Context) -> Streams:
    try:
        return await soon()
    except NotLeader as error:
        await rpc.abort(context, error)


def _add(server: grpc.aio.Server, module: Any, service: str, method: str, serve: Serve) -> None:
    # Not by the generated function, which has every answer serialized: ours are bytes.
    name = module.DESCRIPTOR.services_by_name[service].full_name
    handler: grpc.RpcMethodHandler[Any, Any] = grpc.stream_stream_rpc_method_handler(
        serve, request_deserializer=module.Calls.FromString
    )
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(name, {method: handler}),)
    )
