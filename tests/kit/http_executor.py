"""An executor that is the test itself: it speaks to an agent over raw sockets.

async with HttpExecutor(port) as executor:
    await executor.subscribe()
    launch = await executor.event("LAUNCH")
    assert (await executor.update("t", "TASK_RUNNING")).status == 202
"""

from __future__ import annotations

import base64
import json
import uuid
from contextlib import AsyncExitStack
from typing import Any, Final, NamedTuple, Self

from mesos_py.http.recordio import Reader
from tests.kit.agent_core import FRAMEWORK
from tests.kit.raw_http import Connection, Head, connected, request

PATH: Final = "/api/v1/executor"
JSON: Final = "application/json"
PROTOBUF: Final = "application/x-protobuf"


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


def uuid_text() -> str:
    """A new one, as it stands in JSON."""
    return base64.b64encode(uuid.uuid4().bytes).decode()


class HttpExecutor:
    """See the module's docstring.  Its calls go over one connection, its stream over another."""

    def __init__(self, port: int, executor_id: str = "ex", framework_id: str = FRAMEWORK) -> None:
        self.port = port
        self.ids: dict[str, Any] = {
            "framework_id": {"value": framework_id},
            "executor_id": {"value": executor_id},
        }
        self._stack = AsyncExitStack()
        self._calls: Connection | None = None
        self.stream: Connection | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    # ---- Calls -----------------------------------------------------------------------

    async def ask(
        self,
        body: dict[str, Any] | bytes,
        *,
        method: str = "POST",
        path: str = PATH,
        media: str | None = JSON,
        **headers: str,
    ) -> Reply:
        """One request; headers have underscores in place of dashes."""
        if self._calls is None:
            self._calls = await self._stack.enter_async_context(connected(self.port))
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if media is not None:
            named["Content-Type"] = media
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        await self._calls.send(request(method, path, named, data))
        head = await self._calls.head()
        return Reply(head.status, head.headers, await self._rest(self._calls, head, method))

    async def _rest(self, connection: Connection, head: Head, method: str) -> bytes:
        return b"" if method == "HEAD" else await connection.body(head)

    async def call(self, kind: str, **parts: Any) -> Reply:
        return await self.ask({**self.ids, "type": kind, **parts})

    def status(self, task_id: str, state: str, **more: Any) -> dict[str, Any]:
        known = {"task_id": {"value": task_id}, "state": state, "source": "SOURCE_EXECUTOR"}
        return {**known, "uuid": uuid_text(), **more}

    async def update(self, task_id: str, state: str, **more: Any) -> Reply:
        return await self.call("UPDATE", update={"status": self.status(task_id, state, **more)})

    # ---- The stream ------------------------------------------------------------------

    async def subscribe(self, accept: str = JSON, **subscribe: Any) -> Head:
        """Begin a stream; `event` gives what comes."""
        body = json.dumps({**self.ids, "type": "SUBSCRIBE", "subscribe": subscribe}).encode()
        self.stream = await self._stack.enter_async_context(connected(self.port))
        headers = {"Content-Type": JSON, "Accept": accept, "Connection": "close"}
        await self.stream.send(request("POST", PATH, headers, body))
        head = await self.stream.head()
        assert head.status == 200, await self.stream.body(head)
        return head

    async def record(self) -> bytes:
        """The next record: each is one chunk."""
        assert self.stream is not None
        records = Reader().feed(await self.stream.chunk())
        assert len(records) == 1
        return records[0]

    async def event(self, kind: str) -> dict[str, Any]:
        """The next event, which must be of this type; its part."""
        event: dict[str, Any] = json.loads(await self.record())
        assert event["type"] == kind, event
        part: dict[str, Any] = event.get(kind.lower(), {})
        return part

    async def hang_up(self) -> None:
        assert self.stream is not None
        await self.stream.close()
        self.stream = None
