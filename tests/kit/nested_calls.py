"""Calls about containers within others, to a real agent by HTTP."""

from __future__ import annotations

from typing import Any

import aiohttp

from tests.kit.agent_master import FakeMaster


class NestedCalls:
    """async with NestedCalls(master) as calls: ...  Of the agent that registered last."""

    def __init__(self, master: FakeMaster) -> None:
        self._master = master
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> NestedCalls:
        self._session = aiohttp.ClientSession()
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._session is not None
        await self._session.close()

    def url(self) -> str:
        port = self._master.registrations[-1].agent_info.http_port
        return f"http://127.0.0.1:{port}/api/v1"

    @property
    def session(self) -> aiohttp.ClientSession:
        assert self._session is not None
        return self._session

    async def call(self, kind: str, names: tuple[str, ...] = (), **member: Any) -> tuple[int, Any]:
        """The status, and the answer's own member or its text.  `names`: from the outermost
        container on."""
        async with self.session.post(self.url(), json=body(kind, names, **member)) as answer:
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

    async def _shown(self, task_id: str) -> Any:
        _, found = await self.call("GET_CONTAINERS")
        (mine,) = (each for each in found["containers"] if each["executor_id"]["value"] == task_id)
        return mine


def body(kind: str, names: tuple[str, ...] = (), **member: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in names:
        found = {"value": name, "parent": found} if found else {"value": name}
    own = {"container_id": found, **member} if names else member
    return {"type": kind, kind.lower(): own}


__all__ = ["NestedCalls", "body"]
