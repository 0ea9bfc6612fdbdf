"""Health checks of docker tasks, and what dockerd measures of them."""

from typing import Any

import pytest

from mesos_py import rpc
from mesos_py.address import Address
from mesos_py.tasks import health_command, health_tcp
from mesos_py.v1 import agent_operator_pb2_grpc
from mesos_py.v1 import types_pb2 as pb
from mesos_py.v1.agent_operator_pb2 import Call
from tests.kit.agent_master import eventually
from tests.kit.docker_tasks import docker_task
from tests.kit.dockerd import NEEDS

pytestmark = pytest.mark.needs(*NEEDS)

SOON: dict[str, Any] = {"delay_s": 0, "interval_s": 0.1, "grace_s": 60, "failures": 1}


async def test_a_command_check_runs_in_the_container_and_kills_the_task_when_it_fails(
    master, agent
):
    given = [pb.Environment.Variable(name="MARK", value="/tmp/up")]
    info = pb.CommandInfo(
        value="touch $MARK; sleep 2; rm $MARK; sleep 1000",
        environment=pb.Environment(variables=given),
    )
    check = health_command('test -f "$MARK" || { echo gone; exit 3; }', **SOON)
    master.run(docker_task("t", command=info, health_check=check))
    await master.until(lambda: any(s.healthy for s in master.updates("t")))
    ended = await master.status("t", pb.TASK_KILLED)
    assert ended.healthy is False
    assert "the command exited with status 3: gone" in ended.message


async def test_a_probe_that_hangs_is_killed_with_its_time(master, agent, dockerd):
    check = health_command("sleep 1000", **{**SOON, "timeout_s": 0.3, "grace_s": 0})
    master.run(docker_task("t", "sleep 1000", health_check=check))
    ended = await master.status("t", pb.TASK_KILLED)
    assert "no answer within 0.3 s" in ended.message
    await eventually(lambda: not dockerd.ids(agent_id="A1"))


async def test_a_tcp_check_looks_into_the_network_of_the_container(master, agent):
    # The agent listens at this port; the container has a network of its own.
    port = master.registrations[-1].agent_info.port
    check = health_tcp(port, **{**SOON, "grace_s": 0})
    master.run(docker_task("t", "sleep 1000", health_check=check))
    ended = await master.status("t", pb.TASK_KILLED)
    assert f"port {port}: Connection refused" in ended.message


async def test_what_dockerd_measures_is_shown(master, agent):
    master.run(docker_task("t", "sleep 1000"))
    await master.status("t", pb.TASK_RUNNING)
    async with rpc.open_channel(Address("127.0.0.1", agent.port)) as channel:
        stub: agent_operator_pb2_grpc.AgentOperatorServiceAsyncStub = (
            agent_operator_pb2_grpc.AgentOperatorServiceStub(channel)
        )
        answer = await stub.Execute(Call(type=Call.GET_CONTAINERS))
    (container,) = answer.get_containers.containers
    assert container.resource_statistics.mem_limit_bytes == 64 * 2**20
    assert container.resource_statistics.processes >= 1
