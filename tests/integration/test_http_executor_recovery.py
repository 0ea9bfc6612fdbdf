"""An executor of Apache Mesos as a process: how it is started, and what it lives through."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from mesos_py.v1 import agent_pb2
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import FRAMEWORK, executor_info, for_executor
from tests.kit.agent_host import Host, told
from tests.kit.agent_master import FakeMaster, eventually, processes_of
from tests.kit.http_executor import HttpExecutor

PROGRAM = Path(__file__).parents[1] / "kit/plain_http_executor.py"
ARGUMENTS = [sys.executable, "-IS", str(PROGRAM)]
EXECUTOR = executor_info(
    command=pb.CommandInfo(
        shell=False,
        value=sys.executable,
        arguments=ARGUMENTS,
        environment=pb.Environment(variables=[pb.Environment.Variable(name="OWN", value="x")]),
    )
)


@pytest.fixture
async def master() -> AsyncIterator[FakeMaster]:
    async with FakeMaster() as made:
        made.framework.checkpoint = True
        yield made


@pytest.fixture
async def host(master: FakeMaster, tmp_path: Path) -> AsyncIterator[Host]:
    made = Host(master, tmp_path / "agent")
    try:
        yield made
    finally:
        await made.close()


def port_of(master: FakeMaster) -> int:
    return master.registrations[-1].agent_info.http_port


def run(master: FakeMaster, task_id: str, data: bytes = b"hold", **more: Any) -> None:
    agent_id = pb.AgentID(value="A1")
    master.run(for_executor(task_id, EXECUTOR, data=data, agent_id=agent_id, **more))


async def test_it_finds_the_environment_that_mesos_gives(master, host):
    agent = await host.start()
    run(master, "a", b"finish")
    await master.status("a", pb.TASK_FINISHED)
    first, second = agent.output("ex").splitlines()[:2]
    found, sandbox = json.loads(first), str(agent.sandbox("ex"))
    # Python's own; and ours, for tasks that know us.
    for name in ("LC_CTYPE", "MESOS_PY_FILES_URL", "MESOS_PY_EXECUTOR_ENDPOINT"):
        found.pop(name, None)
    assert found == {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "OWN": "x",
        "LIBPROCESS_PORT": "0",
        "MESOS_AGENT_ENDPOINT": f"127.0.0.1:{port_of(master)}",
        "MESOS_AGENT_ID": "A1",
        "MESOS_ALLOCATION_ROLE": "*",
        "MESOS_CHECKPOINT": "1",
        "MESOS_CONTAINER_ID": agent.sandbox("ex").name,
        "MESOS_DIRECTORY": sandbox,
        "MESOS_EXECUTOR_ID": "ex",
        "MESOS_EXECUTOR_SHUTDOWN_GRACE_PERIOD": "5secs",
        "MESOS_FRAMEWORK_ID": FRAMEWORK,
        "MESOS_HTTP_COMMAND_EXECUTOR": "0",
        "MESOS_RECOVERY_TIMEOUT": "15mins",
        "MESOS_SANDBOX": sandbox,
        "MESOS_SLAVE_ID": "A1",
        "MESOS_SLAVE_PID": f"slave(1)@127.0.0.1:{port_of(master)}",
        "MESOS_SUBSCRIPTION_BACKOFF_MAX": "2secs",
    }
    # In its sandbox, and in a session and group of its own.
    assert second.split() == [sandbox, "True", "True"]


@pytest.mark.parametrize("how", ["kill", "leave"])
async def test_it_comes_back_to_an_agent_that_is_started_again(master, host, how):
    await host.start()
    run(master, "a")
    running = await master.status("a", pb.TASK_RUNNING)
    port = port_of(master)
    await getattr(host, how)()
    agent = await host.start()
    assert port_of(master) == port
    await eventually(lambda: agent.output("ex").count("SUBSCRIBED") == 2)
    run(master, "b", b"finish")
    await master.status("b", pb.TASK_FINISHED)
    assert running.container_status.executor_pid in processes_of("ex")
    assert agent.output("ex").count("LAUNCH") == 2
    assert told(master, "a") == ["RUNNING"]
    master.kill("a")
    await master.status("a", pb.TASK_KILLED)


async def test_after_a_restart_nobody_is_subscribed_until_he_has(master, host, tmp_path):
    """The executor is stopped, so that it cannot be the one who comes back."""
    agent = await host.start()
    silent = executor_info(command=pb.CommandInfo(value="echo here; exec sleep 1000"))
    master.run(for_executor("a", silent, agent_id=pb.AgentID(value="A1")))
    await eventually(lambda: agent.output("ex"))
    async with HttpExecutor(port_of(master)) as executor:
        await executor.subscribe()
        await executor.event("SUBSCRIBED")
        await executor.event("LAUNCH")
        status = executor.status("a", "TASK_RUNNING")
        assert (await executor.call("UPDATE", update={"status": status})).status == 202
        await executor.event("ACKNOWLEDGED")
    await master.status("a", pb.TASK_RUNNING)
    await host.kill()
    await host.start("--executor-reregistration-timeout", "100s")
    async with HttpExecutor(port_of(master)) as executor:
        late = executor.status("a", "TASK_RUNNING", message="meanwhile")
        assert (await executor.call("UPDATE", update={"status": late})).status == 403
        # Both may be unheard of; one of them the agent has written down.
        await executor.subscribe(
            unacknowledged_updates=[{"status": each} for each in (status, late)]
        )
        await executor.event("SUBSCRIBED")
        for each in (status, late):
            assert (await executor.event("ACKNOWLEDGED"))["uuid"] == each["uuid"]
        await master.until(lambda: any(u.message == "meanwhile" for u in master.updates("a")))
        assert (await executor.update("a", "TASK_FINISHED")).status == 202
        await master.status("a", pb.TASK_FINISHED)
    assert told(master, "a") == ["RUNNING", "RUNNING", "FINISHED"]


async def test_one_that_does_not_come_back_in_time_is_ended(master, host):
    agent = await host.start()
    silent = executor_info(command=pb.CommandInfo(value="echo here; exec sleep 1000"))
    master.run(for_executor("a", silent, agent_id=pb.AgentID(value="A1")))
    await eventually(lambda: agent.output("ex"))
    async with HttpExecutor(port_of(master)) as executor:
        await executor.subscribe()
        await executor.event("SUBSCRIBED")
        await executor.event("LAUNCH")
        assert (await executor.update("a", "TASK_RUNNING")).status == 202
        await master.status("a", pb.TASK_RUNNING)
    await host.kill()
    await host.start("--executor-reregistration-timeout", "100ms")
    lost = await master.status("a", pb.TASK_LOST)
    assert lost.reason == pb.TaskStatus.REASON_EXECUTOR_REREGISTRATION_TIMEOUT
    await master.call(agent_pb2.Call.EXECUTOR_EXITED)
    assert not processes_of("ex")


async def test_one_that_is_not_to_wait_ends_with_its_agent(master, host):
    master.framework.checkpoint = False
    agent = await host.start()
    run(master, "a")
    await master.status("a", pb.TASK_RUNNING)
    assert '"MESOS_CHECKPOINT": "0"' in agent.output("ex")
    await host.kill()
    await eventually(lambda: not processes_of("ex"))
    assert agent.sandbox("ex").is_dir()
