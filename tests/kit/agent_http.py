"""The HTTP side of an agent over a core that is alone: no master, no processes.

async with served(tmp_path) as agent:
    status, body = await agent.ask({"type": "GET_HEALTH"})
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Final

from agent.api.http.flags import HttpFlags
from agent.api.http.sandboxes import SandboxFiles
from agent.api.http.server import AgentHttp
from agent.api.older.pages import About, Pages
from agent.api.operator import AgentOperator
from agent.api.virtual_files import VirtualFiles
from agent.sandboxes.logfile import Cuts
from agent.sandboxes.removals import Removals
from agent.usage.collector import UsageCollector
from mesos_py.http.jsonpb import as_object
from mesos_py.metrics import Metrics
from tests.kit.agent_core import AgentWorld
from tests.kit.nested import Host, within
from tests.kit.raw_http import Connection, connected, request

JSON: Final = {"Content-Type": "application/json"}
# Of the one task that has left a sandbox.
SANDBOX: Final = "/frameworks/F1/executors/t1/runs/latest"


class ServedAgent:
    """Asked over one connection."""

    def __init__(self, work_dir: Path) -> None:
        self.world = AgentWorld()
        self.sandbox = work_dir / "agents/A1/frameworks/F1/executors/t1/runs/c1"
        self.sandbox.mkdir(parents=True)
        (self.sandbox / "stdout").write_text("hello")
        (self.sandbox.parent / "latest").symlink_to("c1")
        (work_dir / "sandboxes").mkdir()
        removals = Removals(work_dir / "sandboxes" / "removed")
        self.sandboxes = SandboxFiles(
            str(work_dir), lambda: "A1", lambda _: False, removals, _not_followed, Metrics()
        )
        self.http = AgentHttp(work_dir, self.sandboxes, HttpFlags(http_max_body_bytes=2048))
        self.usage = UsageCollector(self.world.core.state, _used, self.world.clock)
        self.files = VirtualFiles(str(work_dir), lambda: "A1", self.sandboxes.open)
        # As the launcher of containers within others.
        self.host = Host()
        self.operator = AgentOperator(
            self.world.core.state,
            self.usage,
            _numbers,
            {"work_dir": "/w"},
            self.files,
            within(self.world, self.host),
        )
        self.connection: Connection | None = None

    def open(self) -> None:
        """It has recovered."""
        state = self.world.core.state
        pages = Pages(state, About("1.11.0", 1.0), self.usage.collect, as_object)
        self.http.operator.open(self.operator)
        self.http.older.open(pages, _numbers)
        self.http.files.open(self.files, state)

    async def ask(
        self,
        body: Mapping[str, Any] | bytes,
        headers: Mapping[str, str] = JSON,
        method: str = "POST",
        path: str = "/api/v1",
    ) -> tuple[int, bytes]:
        """The status and the body of the answer."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        assert self.connection is not None
        await self.connection.send(request(method, path, headers, content))
        head = await self.connection.head()
        return head.status, await self.connection.body(head)

    async def get(self, path: str) -> tuple[int, bytes]:
        return await self.ask(b"", {}, "GET", path)

    async def close(self) -> None:
        self.operator.close()
        await self.usage.close()
        await self.http.close()


@contextlib.asynccontextmanager
async def served(work_dir: Path) -> AsyncIterator[ServedAgent]:
    """An agent that has not recovered yet (`open`)."""
    made = ServedAgent(work_dir)
    await made.http.serve("127.0.0.1", 0)
    try:
        async with connected(made.http.port) as connection:
            made.connection = connection
            yield made
    finally:
        await made.close()


async def _used(_: str) -> dict[str, float]:
    return {"memory_rss_bytes": 1.0, "memory_cache_bytes": 2.0}


def _numbers() -> dict[str, float]:
    return {"slave/b": 2.0, "a": 1.0}


def _not_followed(container_id: str, name: str, directory: int) -> Cuts:
    raise AssertionError("nobody follows")
