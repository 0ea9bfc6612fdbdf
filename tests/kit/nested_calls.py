"""Calls about containers within others, to a real agent by HTTP."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp

from mesos_py.http.recordio import Reader, framed
from tests.kit.agent_master import FakeMaster
from tests.kit.waiting import LIMIT_S


class NestedCalls:
    """async with NestedCalls(master) as calls: ...  Of the agent that registered last."""

    def __init__(self, master: FakeMaster) -> None:
        self._master = master
        self._http: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> NestedCalls:
        self._http = aiohttp.ClientSession()
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._http is not None
        await self._http.close()

    def url(self) -> str:
        port = self._master.registrations[-1].agent_info.http_port
        return f"http://127.0.0.1:{port}/api/v1"

    @property
    def http(self) -> aiohttp.ClientSession:
        assert self._http is not None
        return self._http

    async def call(self, kind: str, names: tuple[str, ...] = (), **member: Any) -> tuple[int, Any]:
        """The status, and the answer's own member or its text.  `names`: from the outermost
        container on."""
        async with self.http.post(self.url(), json=body(kind, names, **member)) as answer:
            if answer.content_type == "application/json":
                return answer.status, (await answer.json())[kind.lower()]
            return answer.status, await answer.text()

    async def launch(self, names: tuple[str, ...], script: str, **command: Any) -> tuple[int, Any]:
        given = {"value": script, **command}
        return await self.call("LAUNCH_NESTED_CONTAINER", names, command=given)

    async def wait(self, names: tuple[str, ...]) -> Any:
        """How it ended: its wait status, None if that is not known."""
        status, found = await self.call("WAIT_CONTAINER", names)
        assert status == 200, found
        return found.get("exit_status")

    async def container_of(self, task_id: str) -> str:
        """That of a command task."""
        return str((await self._shown(task_id))["container_id"]["value"])

    async def pid_of(self, name: str) -> int:
        """The first process of one within another, by its last name."""
        _, found = await self.call("GET_CONTAINERS", show_nested=True)
        (mine,) = (each for each in found["containers"] if each["container_id"]["value"] == name)
        return int(mine["container_status"]["executor_pid"])

    @contextlib.asynccontextmanager
    async def session(
        self, names: tuple[str, ...], script: str, **member: Any
    ) -> AsyncIterator[Output]:
        """What a command writes, as it comes; with the block it ends."""
        kind = "LAUNCH_NESTED_CONTAINER_SESSION"
        content = body(kind, names, command={"value": script}, **member)
        async with self.http.post(self.url(), json=content) as answer:
            assert answer.status == 200, await answer.text()
            yield Output(answer.content)

    async def write(self, names: tuple[str, ...], *texts: bytes) -> int:
        """Give a session some input, and its end; the status."""
        container_id = body("x", names)["x"]["container_id"]
        pieces = [{"type": "DATA", "data": {"type": "STDIN", "data": _base64(x)}} for x in texts]
        calls = [
            body("ATTACH_CONTAINER_INPUT", type="CONTAINER_ID", container_id=container_id),
            *(body("ATTACH_CONTAINER_INPUT", type="PROCESS_IO", process_io=io) for io in pieces),
        ]
        records = b"".join(framed(json.dumps(each).encode()) for each in calls)
        headers = {
            "Content-Type": "application/recordio",
            "Message-Content-Type": "application/json",
        }
        async with self.http.post(self.url(), data=records, headers=headers) as answer:
            return answer.status

    async def _shown(self, task_id: str) -> Any:
        _, found = await self.call("GET_CONTAINERS")
        (mine,) = (each for each in found["containers"] if each["executor_id"]["value"] == task_id)
        return mine


class Output:
    """What a session writes."""

    def __init__(self, content: aiohttp.StreamReader) -> None:
        self._content = content
        self._reader = Reader()
        self.text = {"STDOUT": b"", "STDERR": b""}

    async def until(self, text: bytes, kind: str = "STDOUT") -> None:
        """Until it has written so much."""
        async with asyncio.timeout(LIMIT_S):
            while not self.text[kind].startswith(text):
                assert await self._more(), self.text

    async def all(self) -> dict[str, bytes]:
        """Until its end."""
        async with asyncio.timeout(LIMIT_S):
            while await self._more():
                pass
        return self.text

    async def _more(self) -> bool:
        data = await self._content.readany()
        for each in self._reader.feed(data):
            io = json.loads(each)
            if io["type"] == "DATA":
                self.text[io["data"]["type"]] += base64.b64decode(io["data"]["data"])
        return bool(data)


def _base64(text: bytes) -> str:
    return base64.b64encode(text).decode()


def body(kind: str, names: tuple[str, ...] = (), **member: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in names:
        found = {"value": name, "parent": found} if found else {"value": name}
    own = {"container_id": found, **member} if names else member
    return {"type": kind, kind.lower(): own}


__all__ = ["NestedCalls", "body"]
