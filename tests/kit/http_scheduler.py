"""A master in this process, schedulers over raw HTTP, and agents that the test plays.

::

    async with serving() as master, master.client() as client:
        agent = master.agent("a")
        async with client.subscribed() as stream:
            offers = await stream.event("OFFERS")
            ...

Events and calls are the JSON of the wire, whichever form is spoken.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import uuid
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from master.api.links import Link
from master.app import MasterDaemon
from master.flags import MasterFlags
from master.term import Term
from mesos_py.http import binary, jsonpb
from mesos_py.http.media import Media
from mesos_py.http.recordio import Reader
from mesos_py.http.server import HttpServer
from mesos_py.resources import Resources
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.raw_http import PATIENCE_S, Connection, Head, connected, request

PATH = "/api/v1/scheduler"
INFO = {"user": "nobody", "name": "f"}
ACall = agent_pb2.Call


class HttpMaster:
    """Used from the event loop it runs in."""

    def __init__(self, daemon: MasterDaemon) -> None:
        self.daemon = daemon
        # The links of agents that are played, which nobody ends by himself.
        self.played: list[Link] = []

    @property
    def port(self) -> int:
        return self.daemon.http_port

    @property
    def server(self) -> HttpServer:
        front = self.daemon.http
        assert front is not None
        return front.server

    @property
    def term(self) -> Term:
        leadership = self.daemon._leadership
        assert leadership is not None
        assert leadership.term is not None
        return leadership.term

    def agent(self, hostname: str, resources: str = "cpus:4;mem:4096") -> PlayedAgent:
        """A registered agent."""
        return PlayedAgent(self, hostname, resources).register()

    async def gone(self) -> None:
        """Until no stream is left: who has closed one is known to have gone."""
        async with asyncio.timeout(PATIENCE_S):
            await self.term.links.gone()

    @contextlib.asynccontextmanager
    async def client(self, media: Media = Media.JSON, **headers: str) -> AsyncIterator[Client]:
        """A scheduler with a connection for its calls."""
        async with connected(self.port) as connection:
            yield Client(self.port, connection, media, headers)


@contextlib.asynccontextmanager
async def serving(**flags: Any) -> AsyncIterator[HttpMaster]:
    """A master that leads.  Offers do not expire, and no heartbeat comes by itself."""
    own = {"port": 0, "http_port": 0, "offer_timeout_s": 0.0, "heartbeat_s": 1000.0}
    daemon = MasterDaemon(MasterFlags(**{**own, **flags}))
    await daemon.start()
    master = HttpMaster(daemon)
    try:
        yield master
    finally:
        for link in master.played:
            master.term.links.forget(link)
        await daemon.stop()


class PlayedAgent:
    """An agent's side of its stream, without a stream."""

    def __init__(self, master: HttpMaster, hostname: str, resources: str) -> None:
        self.master = master
        self.info = pb.AgentInfo(
            hostname=hostname,
            ip="127.0.0.1",
            port=10_000,
            resources=Resources.parse(resources).to_proto(),
        )
        self.link: Link | None = None

    @property
    def id(self) -> str:
        return self.info.id.value

    def register(self) -> Self:
        self.link = self.master.term.links.open(self.info.hostname, lambda: None)
        self.master.played.append(self.link)
        capability = pb.AgentInfo.Capability(type=pb.AgentInfo.Capability.AGENT_DRAINING)
        asked = ACall.Register(
            agent_info=self.info,
            version="0.1.0",
            protocol_version=1,
            capabilities=[capability],
        )
        self._tell(ACall(type=ACall.REGISTER, register=asked))
        (registered,) = self.take(agent_pb2.Event.REGISTERED)
        self.info.id.CopyFrom(registered.registered.agent_id)
        return self

    def _tell(self, call: ACall) -> None:
        assert self.link is not None
        assert self.master.term.streams.agents.hand_in_one(self.link.number, call)
        self.master.term.shell.rearm()

    def take(self, kind: int) -> list[agent_pb2.Event]:
        """What the master sent since the last time, of one kind."""
        assert self.link is not None
        events = agent_pb2.Events.FromString(b"".join(self.link.queue.take())).events
        return [event for event in events if event.type == kind]

    def disconnect(self) -> None:
        assert self.link is not None
        self.master.term.links.forget(self.link)
        self.master.term.streams.agents.left(self.link.number)
        self.master.term.shell.rearm()

    def report(self, framework_id: str, task_id: str, state: int, **fields: Any) -> bytes:
        """Send a status update; its uuid."""
        status = pb.TaskStatus(
            task_id=pb.TaskID(value=task_id),
            agent_id=self.info.id,
            state=state,  # type: ignore[arg-type]
            source=pb.TaskStatus.SOURCE_AGENT,
            uuid=uuid.uuid4().bytes,
            timestamp=1.5,
            **fields,
        )
        update = ACall.Update(
            framework_id=pb.FrameworkID(value=framework_id),
            status=status,
            latest_state=status.state,
        )
        self._tell(ACall(type=ACall.UPDATE, update=update))
        return status.uuid


@dataclass
class Stream:
    """The events of one subscription."""

    connection: Connection
    head: Head
    media: Media
    framework_id: str = ""
    # Those that came and were not asked for yet.
    kept: list[dict[str, Any]] = field(default_factory=list)

    @property
    def id(self) -> str:
        return self.head.headers["mesos-stream-id"]

    async def next(self) -> dict[str, Any] | None:
        """The next event; None: the stream has ended."""
        if self.kept:
            return self.kept.pop(0)
        chunk = await self.connection.chunk()
        if not chunk:
            return None
        # One record per chunk.
        (record,) = Reader().feed(chunk)
        return self._event(record)

    async def event(self, kind: str) -> dict[str, Any]:
        """The next event of that kind, others passed over."""
        while (event := await self.next()) is not None:
            if event["type"] == kind:
                return event
        raise AssertionError(f"the stream has ended without {kind}")

    def _event(self, record: bytes) -> dict[str, Any]:
        event: dict[str, Any]
        if self.media is Media.JSON:
            assert b"\n" not in record
            assert record.isascii()
            event = json.loads(record)
        else:
            # Nothing is missing that a proto2 peer requires.
            event = jsonpb.as_object(binary.loads(sched.Event, record), ours=True)
        return event


class Client:
    """One scheduler."""

    def __init__(
        self, port: int, connection: Connection, media: Media, headers: Mapping[str, str]
    ) -> None:
        self.port, self.connection, self.media = port, connection, media
        self.headers = dict(headers)

    def body(self, call: Mapping[str, Any]) -> bytes:
        data = json.dumps(call).encode()
        if self.media is Media.JSON:
            return data
        return binary.dumps(jsonpb.loads(sched.Call, data))

    def head(self, **more: str | None) -> dict[str, str]:
        """The headers of a request; None leaves one out."""
        given: dict[str, str | None] = {
            "Content-Type": self.media.value,
            "Accept": self.media.value,
            **self.headers,
        }
        given.update({name.replace("_", "-"): value for name, value in more.items()})
        return {name: value for name, value in given.items() if value is not None}

    @contextlib.asynccontextmanager
    async def subscribed(
        self, headers: Mapping[str, str | None] | None = None, **info: Any
    ) -> AsyncIterator[Stream]:
        """A stream, whose head has come."""
        framework_info = {**INFO, **info}
        call: dict[str, Any] = {"type": "SUBSCRIBE"}
        call["subscribe"] = {"framework_info": framework_info}
        if "id" in framework_info:
            call["framework_id"] = framework_info["id"]
        async with self.subscribed_by(call, headers) as stream:
            yield stream

    @contextlib.asynccontextmanager
    async def subscribed_by(
        self, call: Mapping[str, Any], headers: Mapping[str, str | None] | None = None
    ) -> AsyncIterator[Stream]:
        async with connected(self.port) as connection:
            head = self.head(**(headers or {}))
            await connection.send(request("POST", PATH, head, self.body(call)))
            answer = await connection.head()
            assert answer.status == 200, await connection.body(answer)
            accept = Media(answer.headers["content-type"])
            yield Stream(connection, answer, accept)

    async def ask(
        self, call: Mapping[str, Any], method: str = "POST", path: str = PATH, **headers: str | None
    ) -> tuple[Head, bytes]:
        """A call on the connection for calls."""
        return await self.connection.ask(method, path, self.head(**headers), self.body(call))

    async def call(self, stream: Stream, kind: str, **parts: Any) -> tuple[int, bytes]:
        """A call of a subscribed framework; status and body."""
        call: dict[str, Any] = {"type": kind, **parts}
        if stream.framework_id:
            call["framework_id"] = {"value": stream.framework_id}
        head, body = await self.ask(call, Mesos_Stream_Id=stream.id)
        return head.status, body


async def welcomed(stream: Stream) -> Stream:
    """The stream once SUBSCRIBED and the first heartbeat have come; it knows its id."""
    event = await stream.next()
    assert event is not None
    assert event["type"] == "SUBSCRIBED", event
    stream.framework_id = event["subscribed"]["framework_id"]["value"]
    assert (await stream.next()) == {"type": "HEARTBEAT"}
    return stream


async def offered(stream: Stream) -> dict[str, Any]:
    """The first offer of the next OFFERS."""
    event = await stream.event("OFFERS")
    offer: dict[str, Any] = event["offers"]["offers"][0]
    return offer


async def status_of(stream: Stream) -> dict[str, Any]:
    """The status in the next UPDATE."""
    status: dict[str, Any] = (await stream.event("UPDATE"))["update"]["status"]
    return status
