"""Docker containers through a real agent: statuses, executors, the agent's own end."""

import sys
from pathlib import Path

import pytest

from mesos_py.resources import Resources
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import CAPABILITY, command, framework_info
from tests.kit.agent_master import AgentProcess, eventually, running_agent, until_gone
from tests.kit.cluster import Cluster
from tests.kit.docker_tasks import Docker, container_info, docker_task
from tests.kit.dockerd import IMAGE, NEEDS

pytestmark = pytest.mark.needs(*NEEDS)

REPOSITORY = Path(__file__).parents[3]


async def test_a_task_runs_in_its_image_beside_one_that_has_none(master, agent, dockerd):
    script = "echo out; echo err >&2; pwd > $MESOS_SANDBOX/here; cat /proc/self/cgroup; env; exit 3"
    master.run(docker_task("t", script), command("plain", "echo plain"))
    ended = await master.status("t", pb.TASK_FAILED)
    assert master.states("t") == ["STARTING", "RUNNING", "FAILED"]
    assert (ended.exit_status.exit_code, ended.message) == (3, "Command exited with status 3")
    output = agent.output("t")
    assert output.startswith("out\n")
    assert (agent.sandbox("t") / "stderr").read_text() == "err\n"
    assert (agent.sandbox("t") / "here").read_text() == "/\n"
    container_id = ended.container_status.container_id.value
    assert "\nMESOS_SANDBOX=/mnt/mesos/sandbox\n" in output
    assert f"\nMESOS_CONTAINER_NAME=mesos-{container_id}\n" in output
    assert f":/{dockerd.group}/agents/A1/" in output
    await master.status("plain", pb.TASK_FINISHED)
    assert agent.output("plain") == "plain\n"
    await eventually(lambda: not dockerd.ids(agent_id="A1"))


async def test_it_carries_full_ids_runs_as_its_user_and_is_killed_with_grace(
    master, agent, dockerd
):
    master.framework = framework_info(CAPABILITY.TASK_KILLING_STATE)
    task = docker_task("t", "trap '' TERM; id -u; while :; do sleep 1; done")
    task.command.user = "nobody"
    master.run(task)
    running = await master.status("t", pb.TASK_RUNNING)
    container_id = running.container_status.container_id.value
    found = dockerd.inspect(agent_id="A1")
    assert found["Name"] == f"/mesos-{container_id}"
    assert found["State"]["Pid"] == running.container_status.executor_pid
    labels = {key: v for key, v in found["Config"]["Labels"].items() if "sandbox" not in key}
    assert labels == {
        "mesos_py.agent_id": "A1",
        "mesos_py.framework_id": "F1",
        "mesos_py.executor_id": "t",
        "mesos_py.container_id": container_id,
    }
    await eventually(lambda: agent.output("t") == "65534\n")
    master.kill("t", grace_s=0.5)
    killed = await master.status("t", pb.TASK_KILLED)
    assert master.states("t") == ["STARTING", "RUNNING", "KILLING", "KILLED"]
    assert killed.exit_status.signal == 9


async def test_reasons_reach_the_framework(master, agent):
    container = container_info(Docker.BRIDGE)
    container.docker.port_mappings.add(host_port=80, container_port=80)
    master.run(
        docker_task("memory", "tr '\\0' x </dev/zero | head -c 200m | grep y"),
        docker_task("port", container=container),
        docker_task("program", command=pb.CommandInfo(shell=False, value="echo", arguments=["$A"])),
    )
    memory = await master.status("memory", pb.TASK_FAILED)
    assert memory.reason == pb.TaskStatus.REASON_CONTAINER_LIMITATION_MEMORY
    assert memory.limitation.resources[0].name == "mem"
    port = await master.status("port", pb.TASK_FAILED)
    assert port.reason == pb.TaskStatus.REASON_CONTAINER_LAUNCH_FAILED
    assert "container.docker.port_mappings[0].host_port: 80: is not among" in port.message
    await master.status("program", pb.TASK_FINISHED)
    assert agent.output("program") == "$A\n"


async def test_a_custom_executor_in_a_container_works_and_its_tasks_die_with_it(
    master, agent, dockerd
):
    """Field case: kill -9 the executor, and its container is gone."""
    container = container_info()
    # The image has no Python of its own.
    for path in {"/usr", sys.base_prefix, sys.prefix, str(REPOSITORY)}:
        container.volumes.add(host_path=path, container_path=path, mode=pb.Volume.RO)
    script = f"cd $MESOS_SANDBOX; exec {sys.executable} {REPOSITORY}/tests/kit/echo_executor.py"
    executor = pb.ExecutorInfo(
        executor_id=pb.ExecutorID(value="ex"),
        command=pb.CommandInfo(value=script),
        container=container,
        resources=Resources.of(cpus=0.5, mem=200).to_proto(),
    )
    variables = executor.command.environment.variables
    variables.add(name="PYTHONPATH", value=str(REPOSITORY))
    tasks = []
    for task_id, data in (("t1", b"run"), ("t2", b"finish")):
        resources = Resources.of(cpus=1, mem=32).to_proto()
        task = pb.TaskInfo(name=task_id, executor=executor, data=data, resources=resources)
        task.task_id.value = task_id
        tasks.append(task)
    master.run(*tasks)
    await master.status("t2", pb.TASK_FINISHED)
    await master.status("t1", pb.TASK_RUNNING)

    def limit() -> int:
        return int(dockerd.inspect(executor_id="ex")["HostConfig"]["Memory"])

    # The executor's, and that of the one task that is left.
    await eventually(lambda: limit() == 232 << 20)
    dockerd.kill_process(dockerd.ids(executor_id="ex")[0], "echo_executor")
    await master.status("t1", pb.TASK_FAILED)
    await eventually(lambda: not dockerd.ids(), 10)


async def test_an_agent_that_is_stopped_ends_its_containers(master, agent, dockerd):
    master.run(docker_task("t", "sleep 1000"))
    await master.status("t", pb.TASK_RUNNING)
    await agent.stop()
    await master.status("t", pb.TASK_KILLED)
    assert not dockerd.ids()


async def test_after_kill_9_of_the_agent_containers_go_on_and_ends_are_told_once(
    master, dockerd, tmp_path
):
    stranger = dockerd.run_stranger({"mesos_py.agent_id": "A11"})
    flags = (*dockerd.flags, "--tasks-on-exit", "keep")
    async with running_agent(master, tmp_path / "agent", *flags) as agent:
        master.run(docker_task("runs", "echo on; sleep 1000"))
        master.run(docker_task("ends", "sleep 1; exit 7"))
        await master.status("runs", pb.TASK_RUNNING)
        await master.status("ends", pb.TASK_RUNNING)
        agent.process.kill()
        await until_gone(agent.process.pid)
        (ends,) = dockerd.ids(executor_id="ends")
        await eventually(lambda: not dockerd.running(ends))
        pid = dockerd.inspect(executor_id="runs")["State"]["Pid"]
        async with running_agent(master, tmp_path / "agent", *flags) as again:
            failed = await master.status("ends", pb.TASK_FAILED)
            assert failed.exit_status.exit_code == 7
            assert dockerd.inspect(executor_id="runs")["State"]["Pid"] == pid
            master.kill("runs", grace_s=5)
            await master.status("runs", pb.TASK_KILLED)
            # What was not acknowledged comes again, and is the same update.
            uuids = {update.uuid: update.state for update in master.updates("ends")}
            assert list(uuids.values()) == [pb.TASK_STARTING, pb.TASK_RUNNING, pb.TASK_FAILED]
            assert again.output("runs") == "on\n"
            await eventually(lambda: not dockerd.ids(agent_id="A1"))
    assert dockerd.running(stranger)
    dockerd.client.remove_container(stranger, force=True)


async def test_cleanup_ends_the_containers_of_an_agent_that_is_gone(master, dockerd, tmp_path):
    flags = (*dockerd.flags, "--tasks-on-exit", "keep")
    agent = AgentProcess(master.address, tmp_path / "agent", *flags)
    await master.registered()
    master.run(docker_task("t", "sleep 1000"))
    await master.status("t", pb.TASK_RUNNING)
    agent.process.kill()
    await until_gone(agent.process.pid)
    agent.process.wait()
    plain = AgentProcess(master.address, tmp_path / "agent")
    assert plain.process.wait(30) != 0
    assert "containerizers: 'posix': must have docker" in plain.log.read_text()
    ended = AgentProcess(master.address, tmp_path / "agent", *flags, "--recover", "cleanup")
    assert ended.process.wait(30) == 0
    assert not dockerd.ids()


async def test_an_agent_without_dockerd_says_so_and_does_not_start(master, tmp_path):
    flags = ("--containerizers", "posix,docker", "--docker-socket", str(tmp_path / "none"))
    agent = AgentProcess(master.address, tmp_path / "agent", *flags)
    assert agent.process.wait(30) != 0
    assert "dockerd does not answer: No such file or directory" in agent.log.read_text()


def test_run_takes_an_image(tmp_path, dockerd):
    with Cluster(tmp_path) as cluster:
        flags = dict(zip(dockerd.flags[::2], dockerd.flags[1::2], strict=True))
        names = {name.removeprefix("--").replace("-", "_"): v for name, v in flags.items()}
        cluster.start_agent(**names)
        ended = cluster.cli("run", "--image", IMAGE, "-e", "A=b", "echo $A; ls /usr; exit 5")
        assert (ended.code, ended.out) == (5, b"b\n")
        ended = cluster.cli("run", "--image", IMAGE, "--", "echo", "$A", "c d")
        assert (ended.code, ended.out) == (0, b"$A c d\n")
