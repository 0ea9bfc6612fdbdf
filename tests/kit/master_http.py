"""A master's core behind its HTTP routes: a real server on loopback, time that stands still."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

from master.api.agents import AgentChannels, UsageRelay
from master.api.files import LogRelay
from master.api.front import Leading
from master.api.http.front import HttpFront
from master.api.http.operators import add_operators
from master.api.operator import OperatorService, Tenure
from master.api.shell import Shell
from mesos_py.address import Address, MasterAddress
from mesos_py.http.log_file import OwnLog
from mesos_py.http.server import Limits
from tests.kit.core import World
from tests.kit.raw_http import Connection, Head, connected, request

JSON = {"Content-Type": "application/json"}


class HttpMaster:
    """`world`: the core; `ask` and `call` go through the server."""

    def __init__(self, log: OwnLog | None) -> None:
        """`log`: what is shown as its own."""
        self.world = World()
        self.shell = Shell(self.world.core, self.world.clock)
        self.channels = AgentChannels()
        self.operator = OperatorService(
            self.shell,
            LogRelay(self.channels),
            UsageRelay(self.channels),
            {"port": "5050"},
            Tenure(4.0, 5.0, 3),
        )
        self.leading = Leading()
        self.leading.operator = self.operator
        front = HttpFront(self.leading, Limits())
        self.routes, self.server = front.routes, front.server
        flags = {"port": "5050"}
        body = self.server.body
        add_operators(self.routes, self.leading, body, flags, lambda: b"metrics 1\n", log)
        self.client: Connection

    def elsewhere(self) -> None:
        """Another master leads, at //head:5050."""
        self.leading.operator = None
        other = self.leading.detected = MasterAddress("10.0.0.2", 5060)
        other.http = Address("head", 5050)

    async def ask(
        self,
        path: str,
        body: bytes | None = None,
        headers: dict[str, str] | None = None,
        method: str | None = None,
    ) -> tuple[Head, bytes]:
        chosen = method or ("GET" if body is None else "POST")
        return await self.client.ask(chosen, path, headers, body)

    async def head(self, path: str, headers: dict[str, str]) -> Head:
        """That of an answer to GET that has no body."""
        await self.client.send(request("GET", path, headers))
        return await self.client.head()

    async def call(self, kind: str, **members: Any) -> tuple[int, Any]:
        """POST /api/v1 as JSON: the status, and what is in the answer."""
        body = json.dumps({"type": kind, **members}).encode()
        head, answer = await self.ask("/api/v1", body, JSON)
        if head.headers.get("content-type") == "application/json":
            return head.status, json.loads(answer)
        return head.status, answer.decode()

    async def page(self, path: str) -> Any:
        """What is at the path, which must be JSON."""
        head, answer = await self.ask(path)
        assert (head.status, head.headers["content-type"]) == (200, "application/json"), answer
        return json.loads(answer)


@contextlib.asynccontextmanager
async def http_master(log: OwnLog | None = None) -> AsyncIterator[HttpMaster]:
    """One that serves."""
    made = HttpMaster(log)
    await made.server.start("127.0.0.1", 0)
    try:
        async with connected(made.server.port) as made.client:
            yield made
    finally:
        await made.server.close()
        await made.channels.close()
        made.operator.end()
        made.shell.stop()
    made.world.check()
