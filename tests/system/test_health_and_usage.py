"""Probes in control groups and networks of tasks, and what the kernel counts for them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from mesos_py import rpc
from mesos_py.address import Address
from mesos_py.resources import Resources
from mesos_py.tasks import health_command, health_http
from mesos_py.v1 import agent_operator_pb2_grpc
from mesos_py.v1 import types_pb2 as pb
from mesos_py.v1.agent_operator_pb2 import Call, Response
from tests.kit import cgroup_host
from tests.kit.agent_core import command
from tests.kit.agent_master import AgentProcess, FakeMaster, eventually, processes_of, running_agent
from tests.kit.networks import Machine
from tests.kit.waiting import LIMIT_S

GROUPS = ("--isolation", "cgroups", "--cgroups-root", cgroup_host.ROOT)
NETWORK = ("--isolation", "network", "--resources", "ports:[31000-31099]")
SOON: dict[str, Any] = {"delay_s": 0, "interval_s": 0.1, "grace_s": 60, "failures": 1}


@pytest.fixture
async def agent(lacking, tmp_path: Path) -> AsyncIterator[tuple[FakeMaster, AgentProcess]]:
    """With control groups."""
    if (what := cgroup_host.lacks()) is not None:
        lacking(what)
    async with FakeMaster() as master, running_agent(master, tmp_path / "agent", *GROUPS) as made:
        yield master, made
    assert cgroup_host.remove_all() == []


def task(name: str, script: str, **more) -> pb.TaskInfo:
    made = command(name, script, **more)
    del made.resources[:]
    made.resources.extend(Resources.of(cpus=0.5, mem=64).to_proto())
    return made


def names_of(task_id: str) -> list[str]:
    """What its processes are called; those that end meanwhile are left out."""
    found = []
    for pid in processes_of(task_id):
        with contextlib.suppress(OSError):
            found.append(Path(f"/proc/{pid}/comm").read_text().strip())
    return found


async def healthy(master: FakeMaster, task_id: str) -> None:
    await master.until(lambda: any(s.healthy for s in master.updates(task_id)))


async def containers(agent: AgentProcess) -> list[Response.GetContainers.Container]:
    async with rpc.open_channel(Address("127.0.0.1", agent.port)) as channel:
        stub: agent_operator_pb2_grpc.AgentOperatorServiceAsyncStub = (
            agent_operator_pb2_grpc.AgentOperatorServiceStub(channel)
        )
        answer = await stub.Execute(Call(type=Call.GET_CONTAINERS))
        return list(answer.get_containers.containers)


async def test_a_command_check_is_in_the_control_groups_of_its_task(agent):
    master, made = agent
    check = 'grep -q "/${MESOS_CONTAINER_ID%.health}$" /proc/self/cgroup'
    health = health_command(f"{check} && touch begun && exec sleep 1000", **SOON)
    quick = health_command(check, **SOON)
    script = "while ! test -e begun; do sleep 0.02; done; exit 7"
    # One ends while it is being looked at: nothing of its groups stays.
    master.run(
        task("quick", "exec sleep 1000", health_check=quick),
        task("ends", script, health_check=health),
    )
    await healthy(master, "quick")
    ended = await master.status("ends", pb.TASK_FAILED)
    assert ended.exit_status.exit_code == 7
    await eventually(lambda: not processes_of("ends"))
    async with asyncio.timeout(LIMIT_S):
        while len(left := await containers(made)) > 1:  # noqa: ASYNC110 (it tells nobody)
            await asyncio.sleep(0.05)
    assert [each.executor_id.value for each in left] == ["quick"]
    gone = ended.container_status.container_id.value
    await eventually(lambda: not cgroup_host.groups_named(gone))


async def test_what_control_groups_count_is_shown(agent):
    master, made = agent
    master.run(task("t", "head -c 30M /dev/zero | tail; exec sleep 1000"))
    await master.status("t", pb.TASK_RUNNING)

    async def statistics() -> pb.ResourceStatistics:
        (container,) = await containers(made)
        return container.resource_statistics

    # Its shell is the only one before it has begun, too.
    await eventually(lambda: names_of("t") == ["sleep"])
    found = await statistics()
    assert found.mem_limit_bytes == 64 * 2**20
    assert 30 * 2**20 < found.mem_peak_bytes <= 64 * 2**20
    assert found.mem_total_bytes < found.mem_peak_bytes
    assert found.processes == 1
    assert found.cpus_user_time_secs + found.cpus_system_time_secs > 0
    assert not found.other


async def test_an_http_check_looks_into_the_network_of_its_task(here: Machine, tmp_path):
    async with FakeMaster() as master, running_agent(master, tmp_path / "agent", *NETWORK) as made:
        serve = "exec python3 -m http.server --bind 127.0.0.1 $PORT0"
        web = command("web", serve, health_check=health_http(31000, **SOON))
        web.resources.extend(Resources.of(ports=[(31000, 31000)]).to_proto())
        web.container.type = pb.ContainerInfo.MESOS
        web.container.network_infos.add()
        master.run(web)
        await healthy(master, "web")
        (container,) = await containers(made)
        assert container.resource_statistics.HasField("net_rx_bytes")
