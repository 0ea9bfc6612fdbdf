"""The agent's operator API and older endpoints, as a client of Apache Mesos uses them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import FRAMEWORK, command
from tests.kit.agent_master import AgentProcess, FakeMaster, eventually, running_agent


class Client:
    def __init__(self, session: aiohttp.ClientSession, port: int) -> None:
        self._session = session
        self.url = f"http://127.0.0.1:{port}"

    async def get(self, route: str, **query: Any) -> Any:
        asked = {name: str(value) for name, value in query.items()}
        async with self._session.get(self.url + route, params=asked) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.json()

    async def raw(self, route: str, **query: Any) -> tuple[int, dict[str, str], bytes]:
        async with self._session.get(self.url + route, params=query) as answer:
            return answer.status, dict(answer.headers), await answer.read()

    async def call(self, name: str, **body: Any) -> Any:
        more = {name.lower(): body} if body else {}
        async with self._session.post(f"{self.url}/api/v1", json={"type": name, **more}) as answer:
            assert answer.status == 200, await answer.text()
            return (await answer.json())[name.lower()]


@pytest.fixture
async def master() -> AsyncIterator[FakeMaster]:
    async with FakeMaster() as made:
        yield made


@pytest.fixture
async def agent(master: FakeMaster, tmp_path: Path) -> AsyncIterator[AgentProcess]:
    async with running_agent(master, tmp_path / "agent") as made:
        yield made


@pytest.fixture
async def client(master: FakeMaster, agent: AgentProcess) -> AsyncIterator[Client]:
    async with aiohttp.ClientSession() as session:
        yield Client(session, master.registrations[-1].agent_info.http_port)


async def test_what_a_task_leaves_is_found_from_the_state_on(master, agent, client):
    master.run(command("t1", "echo hello; exec sleep 1000"), command("t2", "echo bye; exit 3"))
    await master.status("t1", pb.TASK_RUNNING)
    await master.status("t2", pb.TASK_FAILED)
    await eventually(lambda: agent.output("t1"))
    # A task is over for the agent once it knows its end to be acknowledged.
    await master.heard()
    state = await client.get("/slave(1)/state")
    port = client.url.rpartition(":")[2]
    assert (state["id"], state["pid"]) == ("A1", f"slave(1)@127.0.0.1:{port}")
    assert state["flags"]["work_dir"]
    (framework,) = state["frameworks"]
    (executor,) = framework["executors"]
    assert [task["state"] for task in executor["tasks"]] == ["TASK_RUNNING"]
    (ended,) = framework["completed_executors"]
    assert [task["state"] for task in ended["completed_tasks"]] == ["TASK_FAILED"]
    for directory, text in ((executor["directory"], "hello\n"), (ended["directory"], "bye\n")):
        listed = await client.get("/files/browse", path=directory)
        assert f"{directory}/stdout" in [each["path"] for each in listed]
        found = await client.get("/files/read", path=f"{directory}/stdout", offset=0)
        assert found == {"data": text, "offset": 0}
    short = f"/frameworks/{FRAMEWORK}/executors/t2/runs/latest"
    assert (await client.get("/files/debug"))[short] == ended["directory"]
    status, headers, body = await client.raw("/files/download", path=f"{short}/stdout")
    assert (status, body) == (200, b"bye\n")
    assert headers["Content-Disposition"] == 'attachment; filename="stdout"'
    assert headers["Content-Type"] == "application/octet-stream"
    assert (await client.raw("/files/download", path=short))[0] == 400
    assert (await client.raw("/files/browse", path="/etc"))[0] == 404


async def test_what_it_uses_and_how_it_does(master, agent, client):
    master.run(command("t1", "exec sleep 1000"), command("t2", "true"))
    await master.status("t1", pb.TASK_RUNNING)
    await master.status("t2", pb.TASK_FINISHED)
    await master.heard()
    (container,) = await client.get("/containers")
    assert container["executor_id"] == "t1"
    assert container["status"]["executor_pid"] == container_pid(await client.call("GET_CONTAINERS"))
    (used,) = await client.get("/monitor/statistics")
    assert used["statistics"]["mem_rss_bytes"] > 0
    assert used["statistics"]["cpus_soft_limit"] == 1.0
    numbers = await client.get("/metrics/snapshot")
    assert numbers["slave/tasks_running"] == numbers["slave/tasks_finished"] == 1.0
    assert (numbers["slave/registered"], numbers["slave/cpus_used"]) == (1.0, 1.0)
    metrics = await client.call("GET_METRICS", timeout={"nanoseconds": 1})
    names = {each["name"] for each in metrics["metrics"]}
    assert names >= {"slave/cpus_percent", "mesos_py_agent_tasks"}
    tasks = await client.call("GET_TASKS")
    assert [each["task_id"]["value"] for each in tasks["launched_tasks"]] == ["t1"]
    assert [each["task_id"]["value"] for each in tasks["completed_tasks"]] == ["t2"]
    assert (await client.get("/version"))["version"] == "1.11.0"
    assert (await client.raw("/health"))[0::2] == (200, b"")
    status, _, body = await client.raw("/flags", jsonp="cb")
    assert (status, body[:12]) == (200, b'cb({"flags":')


def container_pid(found: Any) -> int:
    (container,) = found["containers"]
    return int(container["container_status"]["executor_pid"])
