"""Containers within those of tasks: in the groups, as the user and with the limits of the task."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mesos_py.v1 import types_pb2 as pb
from tests.kit import cgroup_host
from tests.kit.agent_core import command
from tests.kit.agent_master import AgentProcess, FakeMaster, eventually, running_agent
from tests.kit.nested_calls import NestedCalls

FLAGS = ("--isolation", "cgroups,rlimits", "--cgroups-root", cgroup_host.ROOT)


@pytest.fixture(autouse=True)
async def host(lacking) -> AsyncIterator[None]:
    if (what := cgroup_host.lacks()) is not None:
        lacking(what)
    yield
    assert cgroup_host.remove_all() == []


@pytest.fixture
async def master() -> AsyncIterator[FakeMaster]:
    async with FakeMaster() as made:
        yield made


@pytest.fixture
async def agent(master: FakeMaster, tmp_path: Path) -> AsyncIterator[AgentProcess]:
    async with running_agent(master, tmp_path / "agent", *FLAGS) as made:
        yield made


async def test_it_shares_what_the_task_was_given(master, agent):
    kind = pb.RLimitInfo.RLimit.RLMT_NOFILE
    limits = pb.RLimitInfo(rlimits=[pb.RLimitInfo.RLimit(type=kind, soft=70, hard=80)])
    container = pb.ContainerInfo(type=pb.ContainerInfo.MESOS, rlimit_info=limits)
    script = "cat /proc/self/cgroup; echo end; exec sleep 1000"
    given = pb.CommandInfo(value=script, user="nobody")
    async with NestedCalls(master) as calls:
        master.run(command("t1", command=given, container=container))
        await master.status("t1", pb.TASK_RUNNING)
        outermost = await calls.container_of("t1")
        script = "cat /proc/self/cgroup; id -un >&2; ulimit -n >&2"
        assert await calls.launch((outermost, "a"), script) == (200, "")
        assert await calls.wait((outermost, "a")) == 0
        assert await calls.launch((outermost, "b"), "exec sleep 1000") == (200, "")
        await eventually(lambda: agent.output("t1").endswith("end\n"))
        master.kill("t1")
        await master.status("t1", pb.TASK_KILLED)
    groups = agent.output("t1").removesuffix("end\n")
    assert outermost in groups
    directory = agent.sandbox("t1") / "containers" / "a"
    assert (directory / "stdout").read_text() == groups
    assert (directory / "stderr").read_text() == "nobody\n70\n"
