"""The agent daemon and command tasks: run, fail, kill, stop."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mesos_py.v1 import agent_pb2
from mesos_py.v1 import types_pb2 as pb
from tests.integration.test_agent_warden import POLITE, RUDE
from tests.kit.agent_core import CAPABILITY, command, framework_info
from tests.kit.agent_master import (
    AgentProcess,
    FakeMaster,
    children_of,
    eventually,
    parent_of,
    processes_of,
    running_agent,
    until_gone,
)

Event = agent_pb2.Event


@pytest.fixture
async def master() -> AsyncIterator[FakeMaster]:
    async with FakeMaster() as made:
        yield made


@pytest.fixture
async def agent(master: FakeMaster, tmp_path: Path) -> AsyncIterator[AgentProcess]:
    async with running_agent(master, tmp_path / "agent") as made:
        yield made


async def test_it_says_what_it_has_and_is_ready_when_it_is_registered(master, tmp_path):
    flags = ("--attributes", "rack:r1", "--hostname", "h1")
    async with running_agent(master, tmp_path / "agent", *flags) as agent:
        info = master.registrations[0].agent_info
        assert (info.hostname, info.ip) == ("h1", "127.0.0.1")
        amounts = {r.name: r.scalar.value for r in info.resources if r.type == pb.Value.SCALAR}
        assert amounts == {"cpus": 8, "mem": 1024, "disk": 1024}
        assert [a.text.value for a in info.attributes] == ["r1"]
        await eventually(agent.port_file.exists)
        assert info.port == agent.port
    assert not agent.port_file.exists()


async def test_a_task_runs_and_reports_its_end_with_its_output_in_the_sandbox(master, agent):
    master.run(command("t", "echo out; echo err >&2; env; exit 3"))
    ended = await master.status("t", pb.TASK_FAILED)
    assert master.states("t") == ["STARTING", "RUNNING", "FAILED"]
    assert ended.exit_status.exit_code == 3
    assert ended.message == "Command exited with status 3"
    assert (agent.sandbox("t") / "stderr").read_text() == "err\n"
    lines = agent.output("t").splitlines()
    assert lines[0] == "out"
    assert f"MESOS_SANDBOX={agent.sandbox('t')}" in lines
    assert {line.partition("=")[0] for line in lines[1:]} == {
        *("PATH", "PWD", "MESOS_FRAMEWORK_ID", "MESOS_EXECUTOR_ID", "MESOS_TASK_ID"),
        *("MESOS_AGENT_ID", "MESOS_SLAVE_ID", "MESOS_DIRECTORY", "MESOS_SANDBOX"),
        *("MESOS_ALLOCATION_ROLE", "MESOS_CONTAINER_ID", "MESOS_PY_FILES_URL"),
    }


async def test_the_pid_that_it_reports_is_that_of_the_process(master, agent):
    master.run(command("t", "echo $$; exec sleep 1000"))
    running = await master.status("t", pb.TASK_RUNNING)
    pid = running.container_status.executor_pid
    await eventually(lambda: agent.output("t") == f"{pid}\n")
    # One process per task, below the one helper of the agent.
    assert parent_of(parent_of(pid)) == agent.pid
    assert len(children_of(agent.pid)) == 1


async def test_a_hundred_tasks_at_once_all_end(master, agent):
    names = [f"t{n}" for n in range(100)]
    master.run(*(command(name, f"exit {n % 3}") for n, name in enumerate(names)))
    for n, name in enumerate(names):
        await master.status(name, pb.TASK_FINISHED if n % 3 == 0 else pb.TASK_FAILED)
        assert master.states(name)[:2] == ["STARTING", "RUNNING"]


@pytest.mark.parametrize(
    ("info", "words"),
    [
        (pb.CommandInfo(shell=False, value="/no/such/thing"), "/no/such/thing"),
        (pb.CommandInfo(value="true", user="no-such-user"), "no-such-user"),
    ],
)
async def test_what_cannot_be_started_failed_with_the_reason(master, agent, info, words):
    master.run(command("t", command=info), command("good"))
    failed = await master.status("t", pb.TASK_FAILED)
    assert failed.reason == pb.TaskStatus.REASON_CONTAINER_LAUNCH_FAILED
    assert failed.source == pb.TaskStatus.SOURCE_AGENT
    assert words in failed.message
    await master.status("good", pb.TASK_FINISHED)


@pytest.mark.needs("root")
async def test_a_task_runs_as_the_user_that_it_asks_for(master, agent, tmp_path):
    for directory in [tmp_path, *tmp_path.parents][:4]:
        directory.chmod(directory.stat().st_mode | 0o011)
    info = pb.CommandInfo(value="id -un; touch mine", user="nobody")
    master.run(command("t", command=info))
    await master.status("t", pb.TASK_FINISHED)
    assert agent.output("t") == "nobody\n"
    assert (agent.sandbox("t") / "mine").owner() == "nobody"


# ---- Kill ---------------------------------------------------------------------------


def shell_started(program: str) -> pb.TaskInfo:
    """The field case: a shell runs the real program and would do more after it."""
    script = f"cat > srv.py <<'END'\n{program}\nEND\n{sys.executable} srv.py; echo x"
    return command("t", script)


async def test_kill_grace_did_nothing_for_shell_started_commands(master, agent):
    master.framework = framework_info(CAPABILITY.TASK_KILLING_STATE)
    master.run(shell_started(POLITE))
    await master.status("t", pb.TASK_RUNNING)
    await eventually((agent.sandbox("t") / "ready").exists)
    master.kill("t", grace_s=60)
    killed = await master.status("t", pb.TASK_KILLED)
    assert (agent.sandbox("t") / "polite").read_text() == "said goodbye"
    assert master.states("t") == ["STARTING", "RUNNING", "KILLING", "KILLED"]
    assert killed.exit_status.signal == signal.SIGTERM
    assert not processes_of("t")


async def test_at_the_end_of_the_grace_the_whole_group_is_killed(master, agent):
    master.framework = framework_info(CAPABILITY.TASK_KILLING_STATE)
    master.run(shell_started(RUDE))
    await master.status("t", pb.TASK_RUNNING)
    await eventually((agent.sandbox("t") / "ready").exists)
    began = asyncio.get_running_loop().time()
    master.kill("t", grace_s=1)
    await master.status("t", pb.TASK_KILLING)
    await master.status("t", pb.TASK_KILLED)
    assert asyncio.get_running_loop().time() - began >= 1
    assert not processes_of("t")


async def test_a_task_that_exceeds_its_time_failed_for_that(master, agent):
    limit = pb.DurationInfo(nanoseconds=200_000_000)
    master.run(command("t", "trap '' TERM; sleep 1000", max_completion_time=limit))
    failed = await master.status("t", pb.TASK_FAILED)
    assert failed.reason == pb.TaskStatus.REASON_MAX_COMPLETION_TIME_REACHED
    assert not processes_of("t")


async def test_a_removed_framework_leaves_no_process(master, agent):
    master.run(command("t", "sleep 1000 & sleep 1000"))
    await master.status("t", pb.TASK_RUNNING)
    order = Event.ShutdownFramework(framework_id=master.framework.id)
    master.send(Event(type=Event.SHUTDOWN_FRAMEWORK, shutdown_framework=order))
    settled = await master.status("t", pb.TASK_KILLED)
    assert not settled.HasField("uuid")
    assert not processes_of("t")


# ---- The end of the agent -----------------------------------------------------------


async def test_a_stopped_agent_kills_its_tasks_reports_them_and_says_goodbye(master, tmp_path):
    async with running_agent(master, tmp_path / "agent") as agent:
        master.run(command("a", "sleep 1000"), command("b", "(setsid sleep 1000 &) ; sleep 1000"))
        for name in ("a", "b"):
            await master.status(name, pb.TASK_RUNNING)
        agent.process.send_signal(signal.SIGTERM)
        assert await agent.ended() == 0
    for name in ("a", "b"):
        await master.status(name, pb.TASK_KILLED)
        assert not processes_of(name)
    assert master.calls[-1].type == agent_pb2.Call.UNREGISTER


async def test_a_second_signal_ends_it_at_once(master, tmp_path):
    flags = ("--executor-shutdown-grace-period", "60s")
    async with running_agent(master, tmp_path / "agent", *flags) as agent:
        master.run(command("t", "trap '' TERM; echo up; sleep 1000"))
        await master.status("t", pb.TASK_RUNNING)
        await eventually(lambda: agent.output("t") == "up\n")
        agent.process.send_signal(signal.SIGTERM)
        await eventually(lambda: "agent stopping" in agent.log.read_text())
        agent.process.send_signal(signal.SIGTERM)
        assert await agent.ended() == 0
    assert not processes_of("t")


async def test_a_killed_agent_takes_its_tasks_with_it(master, tmp_path):
    async with running_agent(master, tmp_path / "agent") as agent:
        master.run(command("t", "(setsid sleep 1000 &); sleep 1000"))
        running = await master.status("t", pb.TASK_RUNNING)
        (warden,) = children_of(agent.pid)
        await eventually(lambda: len(processes_of("t")) == 3)
        agent.process.kill()
        await agent.ended()
        await until_gone(running.container_status.executor_pid)
        await until_gone(warden)
        assert not processes_of("t")


# ---- The loss of the warden -----------------------------------------------------------


async def test_the_loss_of_the_warden_costs_no_running_task_and_new_ones_start(master, agent):
    master.run(
        command("runs", "while [ ! -e go ]; do sleep 0.05; done; exit 7"),
        command("killed", "sleep 1000 & sleep 1000"),
    )
    pids = [
        (await master.status(name, pb.TASK_RUNNING)).container_status.executor_pid
        for name in ("runs", "killed")
    ]
    (warden,) = children_of(agent.pid)
    signal_to(warden)
    master.run(command("new", "exit 0"))
    await master.status("new", pb.TASK_FINISHED)
    assert set(pids) < set(children_of(agent.pid))
    master.kill("killed")
    await master.status("killed", pb.TASK_KILLED)
    assert not processes_of("killed")
    (agent.sandbox("runs") / "go").touch()
    ended = await master.status("runs", pb.TASK_FAILED)
    # The true status: the agent had become its parent.
    assert ended.exit_status.exit_code == 7
    await eventually(lambda: len(children_of(agent.pid)) == 1)


async def test_wardens_that_are_lost_again_and_again_are_replaced(master, agent):
    for number in range(4):
        (warden,) = children_of(agent.pid)
        signal_to(warden)
        master.run(command(f"t{number}", "exit 0"))
        await master.status(f"t{number}", pb.TASK_FINISHED)


def signal_to(pid: int) -> None:
    import os

    os.kill(pid, signal.SIGKILL)
