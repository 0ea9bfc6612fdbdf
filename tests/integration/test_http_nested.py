"""Containers within those of tasks, launched by operators' calls, in a real agent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import command
from tests.kit.agent_host import Host
from tests.kit.agent_master import AgentProcess, FakeMaster, running_agent, until_gone
from tests.kit.nested_calls import NestedCalls

# It has no end of its own, and knows by a file that it was started.
FOREVER = "touch started; exec sleep 1000"


@pytest.fixture
async def master() -> AsyncIterator[FakeMaster]:
    async with FakeMaster() as made:
        yield made


@pytest.fixture
async def calls(master: FakeMaster) -> AsyncIterator[NestedCalls]:
    async with NestedCalls(master) as made:
        yield made


@pytest.fixture
async def agent(master: FakeMaster, tmp_path: Path) -> AsyncIterator[AgentProcess]:
    async with running_agent(master, tmp_path / "agent") as made:
        yield made


async def running(master: FakeMaster, calls: NestedCalls, task: pb.TaskInfo) -> str:
    """Its container."""
    master.run(task)
    await master.status(task.task_id.value, pb.TASK_RUNNING)
    return await calls.container_of(task.task_id.value)


async def test_what_is_launched_within_a_task_has_files_of_its_own_and_an_end(master, agent, calls):
    task = command("t1", FOREVER)
    task.command.environment.variables.add(name="TASKS", value="1")
    outermost = await running(master, calls, task)
    script = "pwd; echo $MESOS_SANDBOX; echo $TASKS$OWN; echo err >&2; exit 3"
    own = {"environment": {"variables": [{"name": "OWN", "value": "2"}]}}
    assert await calls.launch((outermost, "a"), script, **own) == (200, "")
    assert await calls.wait((outermost, "a")) == 3 << 8
    directory = agent.sandbox("t1").resolve() / "containers" / "a"
    assert (directory / "stdout").read_text() == f"{directory}\n{directory}\n2\n"
    assert (directory / "stderr").read_text() == "err\n"
    assert (await calls.call("REMOVE_CONTAINER", (outermost, "a")))[0] == 200
    assert not directory.exists()
    assert (await calls.call("WAIT_CONTAINER", (outermost, "a")))[0] == 404
    assert master.states("t1")[-1] == "RUNNING"


async def test_the_end_of_the_task_is_the_end_of_all_within_it(master, agent, calls):
    outermost = await running(master, calls, command("t1", FOREVER))
    names = [(outermost, "m"), (outermost, "m", "z"), (outermost, "b")]
    for each in names:
        assert await calls.launch(each, FOREVER) == (200, "")
    pids = [await calls.pid_of(each[-1]) for each in names]
    assert (await calls.call("KILL_CONTAINER", (outermost, "m"), signal=15))[0] == 200
    assert await calls.wait((outermost, "m")) == 15
    assert await calls.wait((outermost, "m", "z")) == 9
    master.kill("t1")
    await master.status("t1", pb.TASK_KILLED)
    for pid in pids:
        await until_gone(pid)
    assert (await calls.call("WAIT_CONTAINER", (outermost, "b")))[0] == 404


async def test_a_session_is_a_process_whose_input_and_output_are_the_clients(master, agent, calls):
    task = command("t1", FOREVER)
    task.command.environment.variables.add(name="TASKS", value="1")
    names = (await running(master, calls, task), "s")
    script = "echo $TASKS; cat; pwd >/dev/stderr; exit 3"
    content = b"x" * 300_000
    async with calls.session(names, script) as output:
        await output.until(b"1\n")
        assert await calls.write(names, content, b"end", b"") == 200
        found = await output.all()
    assert found["STDOUT"] == b"1\n" + content + b"end"
    assert found["STDERR"].decode() == f"{agent.sandbox('t1').resolve()}\n"
    assert await calls.wait(names) == 3 << 8


async def test_a_session_may_have_a_terminal(master, agent, calls):
    names = (await running(master, calls, command("t1", FOREVER)), "s")
    size = {"window_size": {"rows": 33, "columns": 77}}
    terminal = {"type": "MESOS", "tty_info": size}
    # /dev/tty is there only for who has the terminal for its own.
    script = "stty -echo; stty size </dev/tty >&2; exec cat"
    async with calls.session(names, script, container=terminal) as output:
        await output.until(b"33 77\r\n")
        assert await calls.write(names, b"typed\n", b"\x04") == 200
        found = await output.all()
    assert found == {"STDOUT": b"33 77\r\ntyped\r\n", "STDERR": b""}
    assert await calls.wait(names) == 0


async def test_a_session_ends_with_its_client_and_with_the_task(master, agent, calls):
    outermost = await running(master, calls, command("t1", FOREVER))
    async with calls.session((outermost, "s"), "echo 1; exec sleep 1000") as output:
        await output.until(b"1\n")
        pid = await calls.pid_of("s")
    assert await calls.wait((outermost, "s")) == 9
    await until_gone(pid)
    # Nobody reads what it writes: that keeps nothing from its end.
    async with calls.session((outermost, "b"), "exec yes") as output:
        await output.until(b"y\n")
        master.kill("t1")
        await master.status("t1", pb.TASK_KILLED)


async def test_a_restart_of_the_agent_ends_what_was_launched_and_not_the_task(
    master, calls, tmp_path
):
    host = Host(master, tmp_path / "agent")
    try:
        await host.start()
        outermost = await running(master, calls, command("t1", FOREVER))
        assert await calls.launch((outermost, "a"), FOREVER) == (200, "")
        pid = await calls.pid_of("a")
        await host.kill()
        await until_gone(pid)
        await host.start()
        assert (await calls.call("WAIT_CONTAINER", (outermost, "a")))[0] == 404
        assert await calls.launch((outermost, "b"), "exit 4") == (200, "")
        assert await calls.wait((outermost, "b")) == 4 << 8
        assert master.states("t1")[-1] == "RUNNING"
    finally:
        await host.close()
