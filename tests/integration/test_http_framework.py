"""A framework of Apache Mesos, all of it over HTTP: its scheduler at the master, its executor,
a process that knows nothing of ours, at a real agent."""

from __future__ import annotations

import base64
import contextlib
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.agent_host import clean_up
from tests.kit.agent_master import AgentProcess, eventually, processes_of
from tests.kit.http_scheduler import (
    Client,
    HttpMaster,
    Stream,
    serving,
    welcomed,
)

PROGRAM = Path(__file__).parents[1] / "kit/plain_http_executor.py"
EXECUTOR = {
    "executor_id": {"value": "ex"},
    "name": "plain",
    "command": {
        "shell": False,
        "value": sys.executable,
        "arguments": [sys.executable, "-IS", str(PROGRAM)],
    },
    "resources": [
        {"name": "cpus", "type": "SCALAR", "scalar": {"value": 0.1}},
        {"name": "mem", "type": "SCALAR", "scalar": {"value": 32}},
    ],
}


@pytest.fixture
async def master() -> AsyncIterator[HttpMaster]:
    async with serving() as made:
        yield made


@pytest.fixture
def work_dir(tmp_path: Path) -> Iterator[Path]:
    """Of an agent; what that leaves running ends with the test."""
    made = tmp_path / "agent"
    yield made
    assert clean_up(made).returncode == 0


@contextlib.asynccontextmanager
async def agent_of(master: HttpMaster, work_dir: Path, *flags: str) -> AsyncIterator[AgentProcess]:
    agent = AgentProcess(f"127.0.0.1:{master.daemon.port}", work_dir, *flags)
    try:
        yield agent
        await agent.stop()
    finally:
        if agent.process.poll() is None:
            agent.process.kill()
            agent.process.wait()


class Framework:
    """A scheduler that acknowledges what it is told."""

    def __init__(self, client: Client, stream: Stream) -> None:
        self._client, self._stream = client, stream
        self._waiting: list[dict[str, Any]] = []
        self._uuids: set[str] = set()

    async def event(self, kind: str) -> dict[str, Any]:
        """The part of the next event of that type; others wait."""
        while True:
            for event in self._waiting:
                if event["type"] == kind:
                    self._waiting.remove(event)
                    part: dict[str, Any] = event[kind.lower()]
                    return part
            news = await self._stream.next()
            assert news is not None
            self._waiting.append(news)

    async def call(self, kind: str, **parts: Any) -> None:
        status, body = await self._client.call(self._stream, kind, **parts)
        assert status == 202, body

    async def launch(self, task_id: str, data: bytes) -> dict[str, Any]:
        """On the next offer, which is returned."""
        offer: dict[str, Any] = (await self.event("OFFERS"))["offers"][0]
        task = {
            "name": task_id,
            "task_id": {"value": task_id},
            "agent_id": offer["agent_id"],
            "resources": [{"name": "cpus", "type": "SCALAR", "scalar": {"value": 0.1}}],
            "executor": EXECUTOR,
            "data": base64.b64encode(data).decode(),
        }
        operation = {"type": "LAUNCH", "launch": {"task_infos": [task]}}
        accept = {"offer_ids": [offer["id"]], "operations": [operation]}
        await self.call("ACCEPT", accept={**accept, "filters": {"refuse_seconds": 0}})
        return offer

    async def told(self, task_id: str, state: str) -> dict[str, Any]:
        """The next status, which must be this one; acknowledged.  One that comes again, as it
        may when its acknowledgement was lost, is only that."""
        status: dict[str, Any] = {}
        while status.get("uuid", "") in {"", *self._uuids}:
            status = (await self.event("UPDATE"))["status"]
            await self._acknowledge(status)
        self._uuids.add(status["uuid"])
        assert (status["task_id"], status["state"]) == ({"value": task_id}, state), status
        return status

    async def _acknowledge(self, status: dict[str, Any]) -> None:
        acknowledge = {name: status[name] for name in ("agent_id", "task_id", "uuid")}
        await self.call("ACKNOWLEDGE", acknowledge=acknowledge)


async def test_tasks_messages_kills_and_the_end_of_an_executor(master, work_dir):
    async with (
        master.client() as client,
        client.subscribed(user="root") as stream,
        agent_of(master, work_dir),
    ):
        framework = Framework(client, await welcomed(stream))
        offer = await framework.launch("a", b"hold")
        running = await framework.told("a", "TASK_RUNNING")
        assert running["source"] == "SOURCE_EXECUTOR"
        assert running["executor_id"] == {"value": "ex"}
        (network,) = running["container_status"]["network_infos"]
        assert network["ip_addresses"] == [{"protocol": "IPv4", "ip_address": "127.0.0.1"}]
        there = {"agent_id": offer["agent_id"], "executor_id": {"value": "ex"}}
        await framework.call("MESSAGE", message={**there, "data": "YWJj"})
        said = await framework.event("MESSAGE")
        assert (said["data"], said["executor_id"]) == ("Y2Jh", {"value": "ex"})
        # A second task goes to the executor that is there.
        await framework.launch("b", b"finish")
        await framework.told("b", "TASK_RUNNING")
        await framework.told("b", "TASK_FINISHED")
        assert len(processes_of("ex")) == 1
        await framework.call("KILL", kill={"task_id": {"value": "a"}})
        await framework.told("a", "TASK_KILLED")
        await framework.call("SHUTDOWN", shutdown=there)
        failure = await framework.event("FAILURE")
        assert failure == {**there, "status": 0}


async def test_an_executor_that_outlives_its_agent_goes_on_with_the_next(master, work_dir):
    keep = ("--tasks-on-exit", "keep")
    async with (
        master.client() as client,
        client.subscribed(user="root", checkpoint=True) as stream,
    ):
        framework = Framework(client, await welcomed(stream))
        async with agent_of(master, work_dir, *keep):
            await framework.launch("a", b"hold")
            await framework.told("a", "TASK_RUNNING")
        pids = processes_of("ex")
        async with agent_of(master, work_dir):
            # Whenever it comes: it reaches the executor through the agent that is there then.
            await framework.call("KILL", kill={"task_id": {"value": "a"}})
            await framework.told("a", "TASK_KILLED")
            assert processes_of("ex") == pids
        await eventually(lambda: not processes_of("ex"))
