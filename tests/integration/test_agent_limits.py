"""Limits of processes, disk quotas and a task's own ports, in a real agent."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import command
from tests.kit.agent_master import AgentProcess, FakeMaster, processes_of, running_agent

RLimit = pb.RLimitInfo.RLimit


@pytest.fixture
async def master() -> AsyncIterator[FakeMaster]:
    async with FakeMaster() as made:
        yield made


@pytest.fixture
async def agent(master: FakeMaster, tmp_path: Path) -> AsyncIterator[AgentProcess]:
    flags = ["--isolation", "rlimits,disk", "--container-disk-watch-interval", "50ms"]
    flags += ["--enforce-container-disk-quota", "--resources", "ports:[31000-31999]"]
    async with running_agent(master, tmp_path / "agent", *flags) as made:
        yield made


def limited(task_id: str, script: str, *limits: pb.RLimitInfo.RLimit) -> pb.TaskInfo:
    container = pb.ContainerInfo(
        type=pb.ContainerInfo.MESOS, rlimit_info=pb.RLimitInfo(rlimits=limits)
    )
    return command(task_id, script, container=container)


async def test_limits_hold_in_the_task_and_in_what_it_starts(master, agent):
    limits = [RLimit(type=RLimit.RLMT_NOFILE, soft=70, hard=80), RLimit(type=RLimit.RLMT_CORE)]
    master.run(limited("t", "sh -c 'ulimit -n; ulimit -Hn; ulimit -c'", *limits))
    await master.status("t", pb.TASK_FINISHED)
    assert agent.output("t") == "70\n80\nunlimited\n"


async def test_a_limit_ends_the_task_that_exceeds_it(master, agent):
    limit = RLimit(type=RLimit.RLMT_FSIZE, soft=1000, hard=1000)
    master.run(limited("t", "exec dd if=/dev/zero of=big bs=1001 count=1", limit))
    failed = await master.status("t", pb.TASK_FAILED)
    assert failed.exit_status.signal == 25  # SIGXFSZ


async def test_a_wrong_limit_fails_the_launch_by_name_and_value(master, agent):
    master.run(limited("t", "true", RLimit(type=RLimit.RLMT_NPROC, soft=9, hard=8)))
    failed = await master.status("t", pb.TASK_FAILED)
    assert failed.reason == pb.TaskStatus.REASON_CONTAINER_LAUNCH_FAILED
    assert failed.message == (
        "container.rlimit_info.RLMT_NPROC: '9:8': has a soft limit above the hard one"
    )


async def test_a_task_that_stores_too_much_is_killed_with_its_numbers(master, agent):
    task = command("t", "dd if=/dev/zero of=big bs=1M count=3 2>&1; exec sleep 1000")
    task.resources.extend(Resources.of(disk=2).to_proto())
    master.run(task)
    failed = await master.status("t", pb.TASK_FAILED)
    assert failed.reason == pb.TaskStatus.REASON_CONTAINER_LIMITATION_DISK
    assert failed.source == pb.TaskStatus.SOURCE_AGENT
    assert failed.message.startswith("Disk usage (")
    assert failed.message.endswith(" MB) exceeds quota (2.0 MB)")
    assert Resources.from_proto("limitation", failed.limitation.resources) == Resources.of(disk=2)
    assert not processes_of("t")


async def test_a_task_finds_its_ports_in_its_environment(master, agent):
    task = command("t", "echo $MESOS_PORTS $PORT $PORT1")
    task.resources.extend(Resources.of(ports=[(31000, 31000), (31005, 31005)]).to_proto())
    master.run(task)
    await master.status("t", pb.TASK_FINISHED)
    assert agent.output("t") == "31000,31005 31000 31005\n"


async def test_without_the_isolator_a_task_with_limits_is_refused_in_words(master, tmp_path):
    async with running_agent(master, tmp_path / "agent"):
        master.run(limited("t", "true", RLimit(type=RLimit.RLMT_CORE)))
        failed = await master.status("t", pb.TASK_FAILED)
        assert failed.message == "this agent sets no rlimits (--isolation rlimits)"


async def test_ports_that_the_kernel_gives_to_anybody_are_warned_of_at_the_start(master, tmp_path):
    flags = ["--resources", "ports:[1024-65535]"]
    async with running_agent(master, tmp_path / "agent", *flags) as agent:
        assert "offered ports are also given to any process" in agent.log.read_text()


async def test_to_enforce_a_quota_that_nobody_measures_is_refused(master, tmp_path):
    agent = AgentProcess(master.address, tmp_path / "agent", "--enforce-container-disk-quota")
    assert await agent.ended() == 2
    assert "enforce-container-disk-quota: 'true'" in agent.log.read_text()
