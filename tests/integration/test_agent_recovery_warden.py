"""The agent is started again, and its warden was lost, hangs, or has waited in vain."""

from __future__ import annotations

import asyncio
import os
import select
import shutil
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.containers import warden_client
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import command
from tests.kit.agent_host import Host, warden_of
from tests.kit.agent_master import FakeMaster, eventually, processes_of, until_gone


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


async def test_when_the_warden_dies_too_its_tasks_are_watched_to_their_end(master, host):
    agent = await host.start()
    master.run(command("t", "sleep 600 & exec sleep 600"), command("u", "exec sleep 600"))
    await master.status("t", pb.TASK_RUNNING)
    pid = (await master.status("u", pb.TASK_RUNNING)).container_status.executor_pid
    await eventually(lambda: len(processes_of("t")) == 2)
    warden = warden_of(agent)
    await host.kill()
    os.kill(warden, signal.SIGKILL)
    await until_gone(warden)
    await host.start()
    # New ones start as ever, and what runs goes on.
    master.run(command("new"))
    await master.status("new", pb.TASK_FINISHED)
    assert processes_of("u") == [pid]
    os.kill(pid, signal.SIGTERM)
    ended = await master.status("u", pb.TASK_FAILED)
    assert "exit status unknown" in ended.message
    master.kill("t", grace_s=0)
    await master.status("t", pb.TASK_KILLED)
    assert processes_of("t") == []


async def test_a_warden_that_was_found_may_be_lost_in_turn(master, host):
    agent = await host.start()
    master.run(command("t", "exec sleep 600"))
    pid = (await master.status("t", pb.TASK_RUNNING)).container_status.executor_pid
    warden = warden_of(agent)
    await host.kill()
    await host.start()
    os.kill(warden, signal.SIGKILL)
    master.run(command("new"))
    await master.status("new", pb.TASK_FINISHED)
    assert processes_of("t") == [pid]
    master.kill("t", grace_s=0)
    await master.status("t", pb.TASK_KILLED)
    assert processes_of("t") == []


async def test_a_warden_that_hangs_is_ended_and_its_tasks_go_on(master, host, monkeypatch):
    agent = await host.start()
    master.run(command("t", "exec sleep 600"))
    pid = (await master.status("t", pb.TASK_RUNNING)).container_status.executor_pid
    warden = warden_of(agent)
    await host.kill()
    os.kill(warden, signal.SIGSTOP)
    monkeypatch.setattr(warden_client, "_ANSWER_S", 0.2)
    assert await asyncio.to_thread(warden_client.attach, str(host.work_dir)) is None
    await until_gone(warden)
    await host.start()
    assert processes_of("t") == [pid]


async def test_a_warden_that_ends_just_then_is_none(tmp_path):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "warden.sock"))
    listener.listen()
    found = asyncio.create_task(asyncio.to_thread(warden_client.attach, str(tmp_path)))
    await eventually(lambda: select.select([listener], [], [], 0)[0])
    listener.close()
    assert await found is None


async def test_a_start_that_fails_late_ends_nothing(master, host):
    await host.start()
    master.run(command("t", "exec sleep 600"))
    pid = (await master.status("t", pb.TASK_RUNNING)).container_status.executor_pid
    await host.kill()
    (host.work_dir / "executors.sock").unlink()
    (host.work_dir / "executors.sock").mkdir()
    assert await host.launch().ended() != 0
    assert processes_of("t") == [pid]
    (host.work_dir / "executors.sock").rmdir()
    await host.start()
    master.kill("t", grace_s=0)
    await master.status("t", pb.TASK_KILLED)


async def test_nobody_comes_back_and_the_tasks_end(master, host):
    agent = await host.start("--recovery-timeout", "300ms")
    master.run(command("t", "trap '' TERM; sleep 600 & wait"))
    await master.status("t", pb.TASK_RUNNING)
    warden = warden_of(agent)
    await host.kill()
    await until_gone(warden)
    assert processes_of("t") == []
    await host.start()
    assert (await master.status("t", pb.TASK_FAILED)).exit_status.signal == signal.SIGKILL


async def test_a_warden_whose_work_directory_was_removed_ends_with_its_tasks(master, host):
    """It could not leave word of how they had ended, and tried for ever."""
    agent = await host.start()
    master.run(command("t", "exec sleep 600"))
    pid = (await master.status("t", pb.TASK_RUNNING)).container_status.executor_pid
    warden = warden_of(agent)
    await host.kill()
    shutil.rmtree(host.work_dir)
    os.kill(pid, signal.SIGKILL)
    await until_gone(warden)
