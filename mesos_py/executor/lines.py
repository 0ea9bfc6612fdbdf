"""How an executor talks to its agent: over gRPC, or over the HTTP API of Mesos.

The text that names the agent decides which of the two.  Only who uses HTTP pays for
loading it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

import grpc.aio

from mesos_py import rpc
from mesos_py.conversation import Conversation
from mesos_py.executor.environment import HTTP, ExecutorEnvironment
from mesos_py.stream import RpcConversation
from mesos_py.v1 import executor_pb2 as pb
from mesos_py.v1.executor_pb2_grpc import ExecutorServiceStub
from mesos_py.version import VERSION

Take: TypeAlias = Callable[[], pb.Calls | None]
Receive: TypeAlias = Callable[[pb.Events], Awaitable[None]]

PATH: Final = "/api/v1/executor"


class Line(ABC):
    """To the agent, for one conversation."""

    @abstractmethod
    def converse(
        self, opening: pb.Calls, take: Take, receive: Receive, answer_s: float
    ) -> Conversation[pb.Calls, pb.Events]: ...

    @abstractmethod
    async def close(self) -> None: ...


class RpcLine(Line):
    """To an agent of ours, on the same machine.

    Without keepalive: a stopped or starved agent must not cost its executors the link,
    and one that is gone has closed its socket.
    """

    def __init__(self, endpoint: str) -> None:
        options = [
            (name, value)
            for name, value in rpc.channel_options()
            if not name.startswith("grpc.keepalive_time")
        ]
        self._endpoint = endpoint
        self._channel: grpc.aio.Channel = grpc.aio.insecure_channel(endpoint, options=options)

    def converse(
        self, opening: pb.Calls, take: Take, receive: Receive, answer_s: float
    ) -> Conversation[pb.Calls, pb.Events]:
        return RpcConversation(
            ExecutorServiceStub(self._channel).Subscribe,
            f"the agent at {self._endpoint}",
            opening=opening,
            take=take,
            receive=receive,
            answer_s=answer_s,
        )

    async def close(self) -> None:
        await self._channel.close()


class HttpLine(Line):
    def __init__(self, url: str, token: str) -> None:
        """`token`: what an agent that asks for one has given; may be empty."""
        from mesos_py.http import conversation

        self._url = url
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._connections = conversation.Connections(f"mesos-py/{VERSION}")

    def converse(
        self, opening: pb.Calls, take: Take, receive: Receive, answer_s: float
    ) -> Conversation[pb.Calls, pb.Events]:
        from mesos_py.http.conversation import Api, HttpConversation

        api: Api[Any, Any] = Api(
            url=f"{self._url}{PATH}",
            event=pb.Event,
            events=lambda events: pb.Events(events=events),
            refused=_refused,
            ends=lambda call: False,
            headers=self._headers,
            # As above: one that is stopped answers later, one that is gone at once.
            patient=True,
        )
        return HttpConversation(
            self._connections.http,
            api,
            f"the agent at {self._url}",
            opening=opening,
            take=take,
            receive=receive,
            answer_s=answer_s,
        )

    async def close(self) -> None:
        await self._connections.close()


def _refused(_call: pb.Call, why: str) -> pb.Event:
    """What an agent says on a stream of gRPC, and by HTTP in its answer to the call."""
    return pb.Event(type=pb.Event.ERROR, error=pb.Event.Error(message=why))


def dial(environment: ExecutorEnvironment) -> Line:
    """The line to the agent that has started this executor.  On the loop that uses it."""
    endpoint = environment.agent_endpoint
    if endpoint.startswith(HTTP):
        return HttpLine(endpoint, environment.token)
    return RpcLine(endpoint)


__all__ = ["HttpLine", "Line", "RpcLine", "dial"]
