"""Tasks with networks of their own, in a real agent, on a machine made for the test."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.isolation.network import names
from agent.isolation.network.nat import Nat
from agent.isolation.network.rules import Entry
from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import command
from tests.kit.agent_master import AgentProcess, FakeMaster, eventually, running_agent
from tests.kit.cluster import Cluster
from tests.kit.networks import ADDRESS, Machine, beside, device_names, greet

pytestmark = pytest.mark.needs("root")

PLAIN = {"lo", "eth0"}
FLAGS = ("--isolation", "network,rlimits", "--resources", "ports:[31000-31099]")
# Answers each connection with its name, after it has said that it is ready.
SERVE = """
import os, socket, sys
listening = socket.create_server(("0.0.0.0", int(sys.argv[1])))
print("ready", os.environ.get("MESOS_CONTAINER_IP"), flush=True)
while True:
    connection, _ = listening.accept()
    connection.sendall(sys.argv[2].encode())
    connection.close()
"""


@pytest.fixture
async def master(here: Machine) -> AsyncIterator[FakeMaster]:
    async with FakeMaster() as made:
        yield made


@pytest.fixture
async def agent(master: FakeMaster, tmp_path: Path) -> AsyncIterator[AgentProcess]:
    async with running_agent(master, tmp_path / "agent", *FLAGS) as made:
        yield made


def server(task_id: str, tmp_path: Path, *ports: int, inside: int = 0, **network) -> pb.TaskInfo:
    """A task that answers at its port with its id."""
    script = tmp_path / "serve.py"
    script.write_text(SERVE)
    port = str(inside) if inside else "$PORT0"
    task = command(task_id, f"exec python3 {script} {port} {task_id}")
    task.resources.extend(Resources.of(ports=[(each, each) for each in ports]).to_proto())
    task.container.type = pb.ContainerInfo.MESOS
    task.container.network_infos.add(**network)
    return task


async def ready(agent: AgentProcess, task_id: str) -> str:
    """Wait until the server listens; its address."""
    await eventually(lambda: agent.output(task_id).endswith("\n"))
    return agent.output(task_id).split()[1]


async def test_a_task_is_reached_at_its_port_and_leaves_nothing(here, master, agent, tmp_path):
    master.run(server("web", tmp_path, 31000))
    assert await ready(agent, "web") == "10.213.0.2"
    running = await master.status("web", pb.TASK_RUNNING)
    (network,) = running.container_status.network_infos
    assert [each.ip_address for each in network.ip_addresses] == ["10.213.0.2"]
    assert here.outside(lambda: greet(ADDRESS, 31000)) == "web"
    master.kill("web")
    await master.status("web", pb.TASK_KILLED)
    await eventually(lambda: device_names() == {*PLAIN, names.bridge("A1")})
    assert mapped_ports() == []
    await agent.stop()
    assert device_names() == PLAIN


async def test_two_tasks_listen_on_the_same_port_each_in_its_own_network(
    here, master, agent, tmp_path
):
    for task_id, port in (("one", 31000), ("two", 31001)):
        mapping = pb.NetworkInfo.PortMapping(host_port=port, container_port=8080)
        master.run(server(task_id, tmp_path, port, inside=8080, port_mappings=[mapping]))
        await ready(agent, task_id)
    assert here.outside(lambda: greet(ADDRESS, 31000)) == "one"
    assert here.outside(lambda: greet(ADDRESS, 31001)) == "two"


async def test_a_port_is_free_for_the_next_task_as_soon_as_the_last_one_has_ended(
    here, master, agent, tmp_path
):
    for number in range(4):
        task_id = f"t{number}"
        master.run(server(task_id, tmp_path, 31000))
        await ready(agent, task_id)
        assert here.outside(lambda: greet(ADDRESS, 31000)) == task_id
        master.kill(task_id)
        await master.status(task_id, pb.TASK_KILLED)


async def test_what_cannot_be_fails_the_task_with_field_and_value(here, master, agent, tmp_path):
    mapping = pb.NetworkInfo.PortMapping(host_port=31050, container_port=80)
    master.run(server("t", tmp_path, 31000, inside=80, port_mappings=[mapping]))
    failed = await master.status("t", pb.TASK_FAILED)
    assert failed.reason == pb.TaskStatus.REASON_CONTAINER_LAUNCH_FAILED
    assert failed.message == (
        "container.network_infos.port_mappings.host_port: 31050: is not among the ports that the "
        "task was given: [31000-31000]"
    )


async def test_after_a_kill_of_the_agent_its_next_run_removes_what_is_left(
    here, master, agent, tmp_path
):
    master.run(server("web", tmp_path, 31000, labels=pb.Labels(labels=[RATE])))
    await ready(agent, "web")
    agent.process.send_signal(signal.SIGKILL)
    await agent.ended()
    # Its warden ends the tasks, and with them their namespaces and devices go.
    await eventually(lambda: names.veth("A1", container_id(agent)) not in device_names())
    assert names.shaper("A1", container_id(agent)) in device_names()
    async with running_agent(master, tmp_path / "again", *FLAGS) as again:
        master.run(server("next", tmp_path, 31000))
        await ready(again, "next")
        assert here.outside(lambda: greet(ADDRESS, 31000)) == "next"
        assert names.shaper("A1", container_id(agent)) not in device_names()
        assert {entry.host_port for entry in mapped_ports()} == {31000}
    assert device_names() == PLAIN


RATE = pb.Label(key="egress", value="100mbit")


@beside
def mapped_ports() -> list[Entry]:
    return Nat(names.table("A1")).ports()


def container_id(agent: AgentProcess) -> str:
    return os.path.basename(agent.sandbox("web"))  # noqa: PTH119


async def test_a_task_goes_on_in_its_network_while_its_agent_is_away_and_is_taken_up(
    here, master, tmp_path
):
    flags = (*FLAGS, "--tasks-on-exit", "keep")
    first = AgentProcess(master.address, tmp_path / "agent", *flags)
    await master.registered()
    master.run(server("web", tmp_path, 31000, labels=pb.Labels(labels=[RATE])))
    assert await ready(first, "web") == "10.213.0.2"
    first.process.send_signal(signal.SIGKILL)
    await first.ended()
    assert here.outside(lambda: greet(ADDRESS, 31000)) == "web"
    async with running_agent(master, tmp_path / "agent", *flags) as second:
        # A new one gets another address, and its own port.
        master.run(server("more", tmp_path, 31001))
        assert await ready(second, "more") == "10.213.0.3"
        assert here.outside(lambda: greet(ADDRESS, 31000)) == "web"
        assert here.outside(lambda: greet(ADDRESS, 31001)) == "more"
        master.kill("web")
        killed = await master.status("web", pb.TASK_KILLED)
        (network,) = killed.container_status.network_infos
        assert network.ip_addresses[0].ip_address == "10.213.0.2"
        await eventually(lambda: {each.host_port for each in mapped_ports()} == {31001})
        second.process.send_signal(signal.SIGINT)
        await second.ended()
    assert device_names() == PLAIN


async def test_a_clean_up_removes_all_that_is_left_of_the_agent(here, master, tmp_path):
    flags = (*FLAGS, "--tasks-on-exit", "keep")
    agent = AgentProcess(master.address, tmp_path / "agent", *flags)
    await master.registered()
    master.run(server("web", tmp_path, 31000, labels=pb.Labels(labels=[RATE])))
    await ready(agent, "web")
    agent.process.send_signal(signal.SIGKILL)
    await agent.ended()
    cleaning = AgentProcess(master.address, tmp_path / "agent", *FLAGS, "--recover", "cleanup")
    assert await cleaning.ended() == 0
    assert device_names() == PLAIN
    assert mapped_ports() == []


async def test_without_forwarding_the_agent_does_not_start_and_says_what_to_do(
    here, master, tmp_path
):
    here.forward(False)
    agent = AgentProcess(master.address, tmp_path / "agent", *FLAGS)
    assert await agent.ended() != 0
    assert "sysctl -w net.ipv4.ip_forward=1" in agent.log.read_text()


def test_run_asks_for_a_network_and_limits_on_the_command_line(here, tmp_path):
    with Cluster(tmp_path) as cluster:
        cluster.start_agent("a", isolation="network,rlimits")
        options = ["--own-network", "--ports", "1", "--rlimit", "nofile=77"]
        done = cluster.cli("run", *options, "echo $MESOS_CONTAINER_IP $PORT0; ulimit -n")
        assert done.out == b"10.213.0.2 21000\n77\n", done
    assert device_names() == PLAIN
