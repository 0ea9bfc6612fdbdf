"""How a scheduler talks to a master: over gRPC, or over the HTTP API of Mesos.

The text that names the master decides which of the two.  Only who uses HTTP pays for
loading it.
"""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

import grpc.aio

from mesos_py import rpc
from mesos_py.address import Address, MasterAddress
from mesos_py.conversation import Conversation
from mesos_py.election import Detector, parse_master
from mesos_py.election.zookeeper.url import hide_credentials
from mesos_py.errors import InvalidValue, Refused
from mesos_py.scheduler.session import BATCH_CALLS
from mesos_py.stream import RpcConversation
from mesos_py.v1 import scheduler_pb2 as pb
from mesos_py.v1.scheduler_pb2_grpc import SchedulerServiceStub
from mesos_py.version import VERSION

Take: TypeAlias = Callable[[], pb.Calls | None]
Receive: TypeAlias = Callable[[pb.Events], Awaitable[None]]

HTTP: Final = "http://"
# The leader's HTTP is found through ZooKeeper.
HTTP_ZOOKEEPER: Final = "http+zk://"
PATH: Final = "/api/v1/scheduler"


class Line(ABC):
    """To one master, for one conversation."""

    # So many calls leave together; what is with the line has left, as far as a session knows.
    batch_calls: int = BATCH_CALLS

    @abstractmethod
    def converse(
        self, opening: pb.Calls, take: Take, receive: Receive, answer_s: float
    ) -> Conversation[pb.Calls, pb.Events]: ...

    @property
    @abstractmethod
    def is_up(self) -> bool:
        """Whether somebody is at the other end."""

    @abstractmethod
    async def close(self) -> None: ...


Dial: TypeAlias = Callable[[Address], Line]


class RpcLine(Line):
    def __init__(self, address: Address) -> None:
        self._address = address
        self._channel: grpc.aio.Channel = rpc.open_channel(address)

    def converse(
        self, opening: pb.Calls, take: Take, receive: Receive, answer_s: float
    ) -> Conversation[pb.Calls, pb.Events]:
        return RpcConversation(
            SchedulerServiceStub(self._channel).Subscribe,
            str(self._address),
            opening=opening,
            take=take,
            receive=receive,
            answer_s=answer_s,
        )

    @property
    def is_up(self) -> bool:
        return rpc.is_up(self._channel)

    async def close(self) -> None:
        await self._channel.close()


class HttpLine(Line):
    # A request takes one call.
    batch_calls = 1

    def __init__(self, address: Address, headers: Mapping[str, str]) -> None:
        from mesos_py.http import conversation

        # What ZooKeeper says of a master has both addresses in it.
        http = address.http if isinstance(address, MasterAddress) else None
        self._address = http or address
        self._headers = headers
        self._connections = conversation.Connections(f"mesos-py/{VERSION}")

    def converse(
        self, opening: pb.Calls, take: Take, receive: Receive, answer_s: float
    ) -> Conversation[pb.Calls, pb.Events]:
        from mesos_py.http.conversation import Api, HttpConversation

        api: Api[Any, Any] = Api(
            url=f"http://{self._address}{PATH}",
            event=pb.Event,
            events=lambda events: pb.Events(events=events),
            refused=_refused,
            ends=lambda call: call.type == pb.Call.TEARDOWN,
            headers=self._headers,
        )
        return HttpConversation(
            self._connections.http,
            api,
            str(self._address),
            opening=opening,
            take=take,
            receive=receive,
            answer_s=answer_s,
        )

    @property
    def is_up(self) -> bool:
        return self._connections.any

    async def close(self) -> None:
        await self._connections.close()


def _refused(call: pb.Call, why: str) -> pb.Event:
    """What a master of ours says on the stream, one of Mesos in its answer to the call."""
    event = pb.Event.Refused(call=call.type, code=Refused.code, message=why)
    return pb.Event(type=pb.Event.REFUSED, refused=event)


def parse(master: str | Detector) -> tuple[Detector, Dial]:
    """How to find the master that leads, and how to talk to it.

    `host:port`, `h1:p1,h2:p2` and `zk://h1:p1/path` are masters of ours, spoken to over gRPC,
    as is what a Detector finds; `http://[principal:secret@]h1:p1,h2:p2` and
    `http+zk://h1:p1/path` are spoken to over HTTP.  Raises InvalidValue, in which no secret
    is shown.
    """
    if not isinstance(master, str):
        return master, RpcLine
    text = master.strip()
    scheme = text.lower()
    if scheme.startswith(HTTP_ZOOKEEPER):
        return parse_master("zk://" + text[len(HTTP_ZOOKEEPER) :]), partial(HttpLine, headers={})
    if scheme.startswith("https://"):
        raise InvalidValue("master", hide_credentials(text), "must be http://: there is no TLS")
    if not scheme.startswith(HTTP):
        if "@" in text and not scheme.startswith("zk://"):
            # Whatever was meant, a secret may stand before it.
            reason = "must be host:port, http://..., zk://... or http+zk://..."
            raise InvalidValue("master", "...@" + text.rpartition("@")[2], reason)
        return parse_master(master), RpcLine
    credentials, at, places = text[len(HTTP) :].rpartition("@")
    headers: dict[str, str] = {}
    if at:
        if credentials.count(":") != 1 or credentials.startswith(":"):
            reason = "credentials must be principal:secret"
            raise InvalidValue("master", hide_credentials(text), reason)
        encoded = base64.b64encode(credentials.encode()).decode()
        headers["Authorization"] = f"Basic {encoded}"
    return parse_master(places.removesuffix("/")), partial(HttpLine, headers=headers)


__all__ = ["Dial", "HttpLine", "Line", "RpcLine", "parse"]
