"""The Executor API before there is an agent, and with executors that read too slowly."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.api.executor_streams import INTERNAL, ExecutorStreams
from agent.api.http.flags import HttpFlags
from agent.api.http.sandboxes import SandboxFiles
from agent.api.http.server import AgentHttp
from agent.core.effects import ExecutorKey
from agent.core.executors import Standing
from agent.sandboxes.logfile import Cuts
from agent.sandboxes.removals import Removals
from mesos_py.metrics import Metrics
from mesos_py.v1 import executor_pb2
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import FRAMEWORK
from tests.kit.http_executor import PATH, HttpExecutor

Event = executor_pb2.Event
KEY = (FRAMEWORK, "ex")


class Agent:
    """An agent's shell as its streams see it: all that is asked is allowed, or all refused."""

    def __init__(self) -> None:
        self.refusal: str | None = None
        self.standing = Standing.SUBSCRIBED
        self.updates: list[pb.TaskStatus] = []
        self.disconnected = asyncio.Event()
        self.streams = ExecutorStreams(self)

    def executor_standing(self, key: ExecutorKey) -> Standing:
        return self.standing

    def executor_subscribed(
        self, key: ExecutorKey, call: executor_pb2.Call.Subscribe
    ) -> str | None:
        if self.refusal is None:
            self.streams.send(key, Event(type=Event.SUBSCRIBED))
        return self.refusal

    def executor_update(self, key: ExecutorKey, status: pb.TaskStatus) -> str | None:
        self.updates.append(status)
        return self.refusal

    def executor_message(self, key: ExecutorKey, data: bytes) -> None: ...

    def executor_disconnected(self, key: ExecutorKey) -> None:
        self.disconnected.set()

    def executors_told(self) -> None: ...


def nothing_cut(run: str, name: str, directory: int) -> Cuts:
    raise AssertionError("nobody follows")


@pytest.fixture
async def http(tmp_path: Path) -> AsyncIterator[AgentHttp]:
    (tmp_path / "sandboxes").mkdir()
    removals = Removals(tmp_path / "sandboxes" / "removed")
    files = SandboxFiles(
        str(tmp_path), lambda: "A1", lambda _: False, removals, nothing_cut, Metrics()
    )
    made = AgentHttp(tmp_path, files, HttpFlags(http_max_body_bytes=2048))
    await made.serve("127.0.0.1", 0)
    yield made
    await made.close()


@pytest.fixture
async def executor(http: AgentHttp) -> AsyncIterator[HttpExecutor]:
    async with HttpExecutor(http.port) as made:
        yield made


async def test_an_agent_that_recovers_asks_for_patience_whatever_is_wanted(http, executor):
    for request in ({"body": b"", "method": "GET"}, {"body": b"{"}, {"body": executor.ids}):
        reply = await executor.ask(**request)
        assert (reply.status, reply.body) == (503, b"Agent has not finished recovery\n")
    http.executors.open(Agent().streams)
    assert (await executor.ask(b"", method="GET")).status == 405
    http.executors.close()
    assert (await executor.call("HEARTBEAT")).status == 503


async def test_one_that_reads_too_slowly_is_cut_off_and_others_are_not(http, executor):
    agent = Agent()
    http.executors.open(agent.streams)
    await executor.subscribe()
    await executor.event("SUBSCRIBED")
    async with HttpExecutor(http.port, "other") as other:
        await other.subscribe()
        await other.event("SUBSCRIBED")
        message = Event(type=Event.MESSAGE, message=Event.Message(data=b"x" * 1_000_000))
        # More than its socket and its queue hold.
        for _ in range(100):
            agent.streams.send(KEY, message)
            await asyncio.sleep(0)
        async with asyncio.timeout(90):
            await agent.disconnected.wait()
        agent.streams.send((FRAMEWORK, "other"), Event(type=Event.SHUTDOWN))
        await other.event("SHUTDOWN")


async def test_a_fault_of_ours_is_not_the_executors(http, executor):
    agent = Agent()
    http.executors.open(agent.streams)
    agent.refusal = INTERNAL
    assert (await executor.update("a", "TASK_RUNNING")).status == 503
    agent.refusal = "an executor may not report it"
    reply = await executor.update("a", "TASK_RUNNING")
    assert (reply.status, reply.body) == (400, b"an executor may not report it\n")
    subscribe = await executor.call("SUBSCRIBE", subscribe={})
    assert (subscribe.status, subscribe.body) == (400, b"an executor may not report it\n")


async def test_a_body_over_the_bound_is_refused(http, executor):
    agent = Agent()
    http.executors.open(agent.streams)
    assert (await executor.call("HEARTBEAT", more="x" * 4096)).status == 413
    assert (await executor.call("HEARTBEAT", more="x")).status == 202


async def test_what_is_answered_and_refused_is_counted(http, executor):
    metrics = Metrics()
    http.count(metrics)
    http.executors.open(Agent().streams)
    assert (await executor.call("HEARTBEAT")).status == 202
    assert (await executor.call("NONE")).status == 400
    assert (await executor.ask(b"", path="/none")).status == 404
    numbers = metrics.snapshot()
    assert (numbers["http_requests"], numbers["http_requests_refused"]) == (3, 2)
    assert (numbers["http_requests_failed"], numbers["http_crowded_out"]) == (0, 0)


async def test_only_what_there_is_has_a_path(http, executor):
    for path, method, status in (
        ("/", "GET", 404),
        ("/executor", "POST", 404),
        ("/metrics", "GET", 200),
        ("/metrics", "POST", 405),
        ("/slave(1)/metrics", "GET", 200),
        ("/files/F/E/latest/x", "DELETE", 405),
        ("/files/F/E/latest/x", "GET", 404),
        (PATH, "GET", 503),
    ):
        reply = await executor.ask(b"", path=path, method=method)
        assert (path, method, reply.status) == (path, method, status)
