"""kill -9 and restart of a real agent: what runs goes on, what ended is told once."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agent.checkpoint import store
from agent.core.journal import Change, Kind
from mesos_py.tasks import health_command
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import types_pb2 as pb
from tests.kit import faces
from tests.kit.agent_core import FRAMEWORK, command, executor_info, for_executor
from tests.kit.agent_host import Host, clean_up, told, warden_of
from tests.kit.agent_master import (
    FakeMaster,
    children_of,
    eventually,
    processes_of,
    until_gone,
)

Call = agent_pb2.Call
ECHO = Path(__file__).parents[1] / "kit/echo_executor.py"


@pytest.fixture
async def master() -> AsyncIterator[FakeMaster]:
    async with FakeMaster() as made:
        yield made


@pytest.fixture
async def host(master: FakeMaster, tmp_path: Path) -> AsyncIterator[Host]:
    made = Host(master, tmp_path / "agent")
    try:
        yield made
    finally:
        await made.close()


def counting(path: Path) -> str:
    """A command that notes each of its starts, and runs until `path`.go is there."""
    return f"echo x >> {path}; while [ ! -e {path}.go ]; do sleep 0.02; done; exit 7"


def go(path: Path) -> None:
    path.with_name(f"{path.name}.go").touch()


@pytest.mark.parametrize("how", ["kill", "leave"])
async def test_what_runs_keeps_its_pid_and_is_told_with_its_true_end(master, host, tmp_path, how):
    await host.start()
    starts = tmp_path / "starts"
    master.run(command("t", counting(starts)))
    running = await master.status("t", pb.TASK_RUNNING)
    await getattr(host, how)()
    agent = await host.start()
    [task] = master.registrations[-1].tasks
    assert (task.task_id.value, task.state) == ("t", pb.TASK_RUNNING)
    assert running.container_status.executor_pid in processes_of("t")
    go(starts)
    ended = await master.status("t", pb.TASK_FAILED)
    assert ended.exit_status.exit_code == 7
    assert told(master, "t") == ["STARTING", "RUNNING", "FAILED"]
    assert starts.read_text() == "x\n"
    assert agent.process.poll() is None


@pytest.mark.parametrize("others", [True, False], ids=["warden_lives", "warden_has_left_word"])
async def test_a_task_that_ends_meanwhile_is_told_once_with_its_status(
    master, host, tmp_path, others
):
    agent = await host.start()
    starts = tmp_path / "starts"
    master.run(command("t", counting(starts)))
    if others:
        master.run(command("other", "sleep 600"))
        await master.status("other", pb.TASK_RUNNING)
    pid = (await master.status("t", pb.TASK_RUNNING)).container_status.executor_pid
    warden = warden_of(agent)
    await host.kill()
    go(starts)
    await until_gone(pid)
    if not others:
        await until_gone(warden)
    await host.start()
    ended = await master.status("t", pb.TASK_FAILED)
    assert ended.exit_status.exit_code == 7
    await host.kill()
    await host.start()
    master.run(command("last"))
    await master.status("last", pb.TASK_FINISHED)
    assert told(master, "t") == ["STARTING", "RUNNING", "FAILED"]
    assert starts.read_text() == "x\n"
    assert not (host.work_dir / "warden.ends").exists()


async def test_a_signal_is_told_from_an_exit_code_also_over_a_restart(master, host):
    await host.start()
    master.run(command("a", "exec sleep 600"), command("b", "sleep 1; exit 137"))
    pid = (await master.status("a", pb.TASK_RUNNING)).container_status.executor_pid
    other = (await master.status("b", pb.TASK_RUNNING)).container_status.executor_pid
    await host.kill()
    os.kill(pid, signal.SIGKILL)
    await until_gone(other)
    await host.start()
    assert (await master.status("a", pb.TASK_FAILED)).exit_status.signal == signal.SIGKILL
    assert (await master.status("b", pb.TASK_FAILED)).exit_status.exit_code == 137


async def test_updates_that_were_not_acknowledged_come_again_in_order(master, host):
    master.acks = False
    await host.start()
    master.run(command("t", "exit 3"))
    first = await master.status("t", pb.TASK_STARTING)
    await master.until(
        lambda: any(
            call.type == Call.UPDATE and call.update.latest_state == pb.TASK_FAILED
            for call in master.calls
        )
    )
    await host.kill()
    master.acks = True
    await host.start()
    await master.status("t", pb.TASK_FAILED)
    assert told(master, "t") == ["STARTING", "RUNNING", "FAILED"]
    assert [status.uuid for status in master.updates("t")].count(first.uuid) >= 2


async def test_a_kill_works_after_the_restart_and_reaches_all_processes(master, host):
    await host.start()
    master.run(command("t", "sleep 600 & (setsid sleep 600 &); wait"))
    await master.status("t", pb.TASK_RUNNING)
    await eventually(lambda: len(processes_of("t")) == 3)
    await host.kill()
    await host.start()
    master.kill("t", grace_s=5)
    await master.status("t", pb.TASK_KILLED)
    assert processes_of("t") == []


@pytest.mark.parametrize("over", [{}, faces.OVER_HTTP], ids=faces.FACES)
async def test_an_executor_comes_back_with_its_tasks(master, host, over):
    await host.start()
    master.framework.checkpoint = True
    executor = executor_info(command=pb.CommandInfo(value=f"exec {sys.executable} {ECHO}"))
    own = {name: os.environ.get(name, "") for name in ("PYTHONPATH", "VIRTUAL_ENV")}
    for name, value in {**own, **over}.items():
        executor.command.environment.variables.add(name=name, value=value)
    master.run(for_executor("a", executor, data=b"run"))
    await master.status("a", pb.TASK_RUNNING)
    [pid] = processes_of("ex")
    await host.kill()
    await host.start()
    master.run(for_executor("b", executor, data=b"finish"))
    await master.status("b", pb.TASK_FINISHED)
    assert processes_of("ex") == [pid]
    master.kill("a")
    await master.status("a", pb.TASK_KILLED)
    assert told(master, "a") == ["RUNNING", "KILLED"]


async def test_one_damaged_record_settles_that_task_alone(master, host, tmp_path):
    """Field case: A ends, B runs on, C's log and D's checkpoint are damaged meanwhile."""
    await host.start()
    starts = tmp_path / "starts"
    master.run(
        command("a", counting(starts)),
        command("b", "exec sleep 600"),
        command("c", "exec sleep 600"),
        command("d", "exec sleep 600"),
    )
    pids = {}
    for name in "abcd":
        running = await master.status(name, pb.TASK_RUNNING)
        pids[name] = running.container_status.executor_pid
    log = host.agent.sandbox("c") / "stdout"
    await host.kill()
    go(starts)
    log.unlink()
    with contextlib.closing(sqlite3.connect(host.work_dir / store.NAME)) as db, db:
        where = "kind = 'task' AND key LIKE ?"
        db.execute(f"UPDATE records SET data = x'beef' WHERE {where}", [f"{FRAMEWORK}/d/%"])
    agent = await host.start()
    assert (await master.status("a", pb.TASK_FAILED)).exit_status.exit_code == 7
    assert starts.read_text() == "x\n"
    damaged = await master.status("d", pb.TASK_FAILED)
    assert "damaged" in damaged.message
    await until_gone(pids["d"])
    assert (processes_of("b"), processes_of("c")) == ([pids["b"]], [pids["c"]])
    assert "damaged record" in agent.log.read_text()


async def test_a_container_that_only_the_warden_knows_is_ended(master, host):
    await host.start()
    master.run(command("t", "exec sleep 600"))
    pid = (await master.status("t", pb.TASK_RUNNING)).container_status.executor_pid
    await host.kill()
    with contextlib.closing(sqlite3.connect(host.work_dir / store.NAME)) as db, db:
        db.execute("DELETE FROM records WHERE kind <> 'agent'")
    await host.start()
    await until_gone(pid)


async def test_after_another_boot_nothing_is_looked_for(master, host):
    await host.start()
    master.run(command("t", "sleep 600"))
    await master.status("t", pb.TASK_RUNNING)
    await host.kill()
    checkpoint = store.Checkpoint(host.work_dir)
    [own] = [each for each in checkpoint.read() if each.kind is Kind.AGENT]
    assert own.data is not None
    other = own.data.replace(store.boot_id().encode(), store.boot_id()[::-1].encode())
    checkpoint.write([Change(own.kind, own.key, other)])
    checkpoint.close()
    await host.start()
    lost = await master.status("t", pb.TASK_LOST)
    assert lost.reason == pb.TaskStatus.REASON_AGENT_RESTARTED
    assert master.registrations[-1].agent_info.id.value == "A1"


async def test_flags_that_do_not_fit_what_runs_are_refused_and_nothing_is_lost(master, host):
    await host.start()
    master.run(command("t", "exec sleep 600", cpus=4))
    pid = (await master.status("t", pb.TASK_RUNNING)).container_status.executor_pid
    await host.kill()
    refused = host.launch("--resources", "cpus:2;mem:1024;disk:1024")
    assert await refused.ended() != 0
    assert "running tasks hold 4 of cpus, and 2 would be offered" in refused.log.read_text()
    await host.start("--resources", "cpus:16;mem:1024;disk:1024", "--attributes", "rack:r9")
    assert processes_of("t") == [pid]
    assert [a.name for a in master.registrations[-1].agent_info.attributes] == ["rack"]


@pytest.mark.parametrize("damaged", [False, True], ids=["whole", "unreadable"])
async def test_cleanup_ends_everything_and_forgets_the_agent(master, host, damaged):
    agent = await host.start()
    master.run(command("t", "trap '' TERM; sleep 600 & wait"))
    await master.status("t", pb.TASK_RUNNING)
    warden = warden_of(agent)
    await host.kill()
    if damaged:
        store.forget_all(host.work_dir)
        (host.work_dir / store.NAME).write_bytes(b"rubbish")
        refused = host.launch()
        assert await refused.ended() != 0
        assert "--recover" in refused.log.read_text()
        unkept = clean_up(host.work_dir)
        assert unkept.returncode != 0
        assert "--recover forget" in unkept.stderr
    assert clean_up(host.work_dir, "forget" if damaged else "cleanup").returncode == 0
    await until_gone(warden)
    assert processes_of("t") == []
    await host.start()
    assert not master.registrations[-1].agent_info.id.value
    assert not master.registrations[-1].tasks


async def test_cleanup_does_nothing_beside_a_running_agent(master, host):
    await host.start()
    master.run(command("t", "exec sleep 600"))
    pid = (await master.status("t", pb.TASK_RUNNING)).container_status.executor_pid
    refused = clean_up(host.work_dir)
    assert refused.returncode != 0
    assert "in use" in refused.stderr
    assert processes_of("t") == [pid]


async def test_an_agent_that_was_asked_to_end_its_tasks_is_a_new_one_next_time(master, host):
    agent = await host.start()
    master.run(command("t", "exec sleep 600"))
    await master.status("t", pb.TASK_RUNNING)
    agent.process.send_signal(signal.SIGUSR1)
    await master.status("t", pb.TASK_KILLED)
    assert (await master.call(Call.UNREGISTER)).unregister.message
    assert await agent.ended() == 0
    assert processes_of("t") == []
    await host.start()
    assert not master.registrations[-1].agent_info.id.value


async def test_two_agents_of_one_machine_leave_each_others_tasks_alone(master, host, tmp_path):
    await host.start()
    master.run(*[command(f"a{number}", "exec sleep 600") for number in range(3)])
    for number in range(3):
        await master.status(f"a{number}", pb.TASK_RUNNING)
    async with FakeMaster() as second_master:
        other = Host(second_master, tmp_path / "agent-2")
        try:
            await other.start()
            second_master.run(*[command(f"b{number}", "exec sleep 600") for number in range(3)])
            for number in range(3):
                await second_master.status(f"b{number}", pb.TASK_RUNNING)
            names = ("a0", "a1", "a2", "b0", "b1", "b2")
            # A shell in the middle of its exec shows no environment.
            await eventually(lambda: all(len(processes_of(name)) == 1 for name in names))
            before = {name: processes_of(name) for name in names}
            for _ in range(3):
                await host.kill()
                await host.start()
            assert {name: processes_of(name) for name in before} == before
        finally:
            await other.close()
    assert children_of(os.getpid())


# ---- Checks -----------------------------------------------------------------------------


def healths(master: FakeMaster, task_id: str) -> list[bool]:
    different = {s.uuid: s.healthy for s in master.updates(task_id) if s.HasField("healthy")}
    return list(different.values())


@pytest.mark.parametrize("how", ["kill", "leave"])
async def test_checks_of_a_task_go_on_after_a_restart(master, host, how):
    agent = await host.start()
    times: dict[str, Any] = {"delay_s": 0, "interval_s": 0.05, "grace_s": 60, "failures": 1}
    # Most of the time one is under way; it needs the task's environment.
    check = health_command('test -f "$MARK" && sleep 0.3', **times)
    given = [pb.Environment.Variable(name="MARK", value="up")]
    info = pb.CommandInfo(
        value="touch up; exec sleep 1000", environment=pb.Environment(variables=given)
    )
    master.run(command("t", command=info, health_check=check))
    await master.until(lambda: healths(master, "t") == [True])
    await getattr(host, how)()
    agent = await host.start()
    await master.until(lambda: healths(master, "t") == [True, True])
    (agent.sandbox("t") / "up").unlink()
    ended = await master.status("t", pb.TASK_KILLED)
    assert ended.healthy is False
    assert told(master, "t")[-2:] == ["RUNNING", "KILLED"]
    await eventually(lambda: not processes_of("t"))


async def test_a_probe_that_has_lost_agent_and_warden_is_ended_and_its_task_goes_on(master, host):
    agent = await host.start()
    check = health_command("touch begun; exec sleep 1000", delay_s=0, timeout_s=0)
    master.run(command("t", "exec sleep 1000", health_check=check))
    running = await master.status("t", pb.TASK_RUNNING)
    await eventually((agent.sandbox("t") / "begun").exists)
    warden = warden_of(agent)
    agent.process.send_signal(signal.SIGSTOP)
    os.kill(warden, signal.SIGKILL)
    await host.kill()
    await eventually(lambda: len(processes_of("t")) == 2)
    agent = await host.start()
    await eventually(lambda: processes_of("t") == [running.container_status.executor_pid])
    # How it was started nobody knows any more: that is not held against it.
    await eventually(lambda: "probe was lost" in agent.log.read_text())
    assert healths(master, "t") == []


# ---- Leaderships -----------------------------------------------------------------------------


async def test_orders_of_an_older_leadership_are_refused_after_a_restart_too(master, host):
    master.epoch = 5
    await host.start()
    master.run(command("t"))
    await master.status("t", pb.TASK_FINISHED)
    await host.kill()
    master.epoch = 4
    # It leaves as soon as it hears of that epoch: what is said to it is said together.
    master.greeting = master.run_order(command("u"))
    await host.start()
    await master.registered(len(master.registrations) + 1)
    master.greeting = None
    assert {each.epoch for each in master.registrations[1:]} == {5}
    master.epoch = 5
    await master.registered(len(master.registrations) + 1)
    master.run(command("v"))
    await master.status("v", pb.TASK_FINISHED)
    assert not master.updates("u")
