"""The two long-lived streams: schedulers and agents.

Both work alike: one task reads batches and hands each call to the core, the
handler itself yields whatever the core has put into the link's queue.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, TypeAlias

import grpc
import grpc.aio

from master.api.links import Link, Links
from master.api.shell import Shell
from mesos_py import logs, rpc
from mesos_py.clock import Now
from mesos_py.errors import Unavailable
from mesos_py.v1 import agent_pb2, agent_pb2_grpc, scheduler_pb2, scheduler_pb2_grpc

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
        batch: Callable[[list[Any]], Any],
    ) -> None:
        self._name = name
        self._shell = shell
        self._links = links
        self._on_call = on_call
        self._on_end = on_end
        self._batch = batch

    async def serve(self, requests: AsyncIterator[Any], context: Context) -> AsyncIterator[Any]:
        """The events for one peer, until the stream ends from either side."""
        handler = asyncio.current_task()
        assert handler is not None
        link = self._links.open(context.peer(), handler.cancel)
        reader = asyncio.create_task(self._read(requests, link))
        try:
            async for events in link.queue.batches(MAX_BATCH_ITEMS, MAX_BATCH_BYTES):
                yield self._batch(events)
        except Unavailable as error:
            await rpc.abort(context, error)
        finally:
            reader.cancel()
            self._links.forget(link)
            shell = self._shell
            shell.guarded(f"{self._name} left", self._on_end, link.number, shell.now())
            shell.rearm()

    async def _read(self, requests: AsyncIterator[Any], link: Link) -> None:
        shell = self._shell
        try:
            async for message in requests:
                now = shell.now()
                for call in message.calls:
                    if not shell.guarded(
                        f"{self._name} call", self._on_call, link.number, call, now
                    ):
                        link.queue.close("a call could not be carried out; see the master's log")
                        return
                shell.rearm()
        except Exception:
            # A message that cannot be read, or the peer's sudden end.
            log.warning("stream broken", link=link.number, peer=link.peer, kind=self._name)
        link.queue.close("the peer ended the stream", drain=False)


class SchedulerService(scheduler_pb2_grpc.SchedulerServiceServicer):
    """SchedulerService of scheduler.proto."""

    def __init__(self, shell: Shell, links: Links) -> None:
        core = shell.core
        self._stream = Stream(
            "framework",
            shell,
            links,
            core.framework_call,
            core.framework_disconnected,
            lambda events: scheduler_pb2.Events(events=events),
        )

    async def Subscribe(
        self,
        request_iterator: AsyncIterator[scheduler_pb2.Calls],
        context: Context,
    ) -> AsyncIterator[scheduler_pb2.Events]:
        # Itself an async generator: grpc.aio takes any other function for a blocking one.
        async for events in self._stream.serve(request_iterator, context):
            yield events


class AgentService(agent_pb2_grpc.AgentServiceServicer):
    """AgentService of agent.proto."""

    def __init__(self, shell: Shell, links: Links, epoch: int) -> None:
        core = shell.core
        self._stream = Stream(
            "agent",
            shell,
            links,
            core.agent_call,
            core.agent_disconnected,
            lambda events: agent_pb2.Events(events=events, epoch=epoch),
        )

    async def Connect(
        self,
        request_iterator: AsyncIterator[agent_pb2.Calls],
        context: Context,
    ) -> AsyncIterator[agent_pb2.Events]:
        # Itself an async generator: grpc.aio takes any other function for a blocking one.
        async for events in self._stream.serve(request_iterator, context):
            yield events
