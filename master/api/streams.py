"""The two long-lived streams: schedulers and agents.

Both work alike: one task reads batches and hands each call to the core, the
handler itself writes whatever the core has put into the link's queue.

The handlers read and write by themselves, and what they write is bytes (frames.py).
As async generators of messages they would cost a third more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeAlias

import grpc
import grpc.aio

from master.api.links import Link, Links
from master.api.shell import Shell
from mesos_py import logs, rpc
from mesos_py.clock import Now
from mesos_py.errors import Unavailable
from mesos_py.v1 import agent_pb2, scheduler_pb2

log = logs.get("master.streams")

MAX_BATCH_ITEMS: Final = 5_000
MAX_BATCH_BYTES: Final = 4 * 1024 * 1024

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]
OnCall: TypeAlias = Callable[[int, Any, Now], None]
OnEnd: TypeAlias = Callable[[int, Now], None]


class Stream:
    """Serves one kind of stream: reads calls, writes events, tells of the end."""

    def __init__(
        self,
        name: str,
        shell: Shell,
        links: Links,
        on_call: OnCall,
        on_end: OnEnd,
        tail: bytes,
    ) -> None:
        """`tail` is put after the entries of each batch: the other fields of its message."""
        self._name = name
        self._shell = shell
        self._links = links
        self._on_call = on_call
        self._on_end = on_end
        self._tail = tail
        self._on_call_step = f"{name} call"
        self._on_end_step = f"{name} left"

    async def serve(self, _requests: object, context: Context) -> None:
        """Talk to one peer until the stream ends from either side."""
        handler = asyncio.current_task()
        assert handler is not None
        link = self._links.open(context.peer(), handler.cancel)
        reader = asyncio.create_task(self._read(context, link))
        try:
            async for events in link.queue.batches(MAX_BATCH_ITEMS, MAX_BATCH_BYTES):
                await context.write(b"".join(events) + self._tail)
        except Unavailable as error:
            await rpc.abort(context, error)
        finally:
            reader.cancel()
            self._links.forget(link)
            shell = self._shell
            shell.guarded(self._on_end_step, self._on_end, link.number, shell.now())
            shell.rearm()

    async def _read(self, context: Context, link: Link) -> None:
        turns = self._shell.turns
        try:
            while (message := await context.read()) is not grpc.aio.EOF:
                if turns.free():
                    done = self._take(link.number, message)
                else:
                    done = await turns.take(partial(self._take, link.number, message))
                if not done:
                    link.queue.close("a call could not be carried out; see the master's log")
                    return
        except Exception:
            # A message that cannot be read, or the peer's sudden end.
            log.warning("stream broken", link=link.number, peer=link.peer, kind=self._name)
        link.queue.close("the peer ended the stream", drain=False)

    def _take(self, link: int, message: Any) -> bool:
        """Hand the calls of one batch to the core.  False if one could not be carried out."""
        shell = self._shell
        done = shell.guarded(self._on_call_step, self._hand_in, link, message)
        shell.rearm()
        return done

    def _hand_in(self, link: int, message: Any) -> None:
        now = self._shell.now()
        on_call = self._on_call
        for call in message.calls:
            on_call(link, call, now)


def add_services(server: grpc.aio.Server, shell: Shell, links: Links, epoch: int) -> None:
    """Serve SchedulerService and AgentService on `server`."""
    core = shell.core
    schedulers = Stream(
        "framework", shell, links, core.framework_call, core.framework_disconnected, b""
    )
    agents = Stream(
        "agent",
        shell,
        links,
        core.agent_call,
        core.agent_disconnected,
        agent_pb2.Events(epoch=epoch).SerializeToString(),
    )
    _add(server, scheduler_pb2, "SchedulerService", "Subscribe", schedulers)
    _add(server, agent_pb2, "AgentService", "Connect", agents)


def _add(server: grpc.aio.Server, module: Any, service: str, method: str, stream: Stream) -> None:
    # Not by the generated function, which has every answer serialized: ours are bytes.
    name = module.DESCRIPTOR.services_by_name[service].full_name
    handler: grpc.RpcMethodHandler[Any, Any] = grpc.stream_stream_rpc_method_handler(
        stream.serve, request_deserializer=module.Calls.FromString
    )
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(name, {method: handler}),)
    )
