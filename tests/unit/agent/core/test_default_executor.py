"""The agent's own executor for groups: started, ended with its last task, refused in words."""

import pytest

from agent.core.journal import Kind
from agent.core.records import Place
from mesos_py.v1 import agent_pb2, checkpoint_pb2, executor_pb2
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import AgentWorld, executor_info, for_executor, status

PROGRAM = ("/usr/bin/python", "-m", "program")
DEFAULT = executor_info(type=pb.ExecutorInfo.DEFAULT)
DEFAULT.ClearField("command")


def group(*task_ids, **more):
    return [
        for_executor(task_id, DEFAULT, command=pb.CommandInfo(value="run"), **more)
        for task_id in task_ids
    ]


@pytest.fixture
def world():
    return AgentWorld(default_executor=PROGRAM, python_path="/modules")


def running(world, *task_ids):
    world.run_group(*group(*task_ids))
    world.started("ex")
    world.subscribe("ex")
    return world


def shut_down(world):
    return world.told_types("ex").count("SHUTDOWN")


def test_it_is_started_as_the_agent_with_a_sandbox_for_the_frameworks_user(world):
    world.run_group(*group("a"))
    (spec,) = world.specs()
    assert (spec.executable, tuple(spec.argv)) == (PROGRAM[0], PROGRAM)
    assert (spec.as_agent, spec.user) == (True, "root")
    assert spec.environment["PYTHONPATH"] == "/modules"
    assert spec.environment["MESOS_EXECUTOR_ID"] == "ex"


def test_an_agent_without_one_says_so():
    world = AgentWorld()
    world.run_group(*group("a", "b"))
    assert world.last("b").state == pb.TASK_ERROR
    assert "no executor of its own" in world.last("a").message


def test_it_ends_with_its_last_task_and_takes_no_group_any_more(world):
    running(world, "a", "b")
    world.report("ex", status("a", pb.TASK_FINISHED))
    assert shut_down(world) == 0
    world.report("ex", status("b", pb.TASK_FINISHED))
    # What it has said is acknowledged before.
    assert world.told_types("ex")[-2:] == ["ACKNOWLEDGED", "SHUTDOWN"]
    world.run_group(*group("c"), new=())
    assert world.last("c").reason == pb.TaskStatus.REASON_EXECUTOR_TERMINATED
    world.ended("ex")
    assert len(world.calls(agent_pb2.Call.EXECUTOR_EXITED)) == 1
    world.run_group(*group("d"))
    assert len(world.specs()) == 2


def test_a_custom_executor_without_tasks_stays():
    world = AgentWorld()
    world.run_group(for_executor("a"))
    world.started("ex")
    world.subscribe("ex")
    world.report("ex", status("a", pb.TASK_FINISHED))
    assert shut_down(world) == 0


def test_one_that_comes_back_without_tasks_is_told_to_end(world):
    running(world, "a")
    world.restart()
    last = executor_pb2.Call.Update(status=status("a", pb.TASK_FINISHED))
    world.subscribe("ex", unacknowledged_updates=[last])
    assert world.told_types("ex") == ["SUBSCRIBED", "ACKNOWLEDGED", "SHUTDOWN"]


def test_each_task_has_a_directory_in_its_sandbox(world):
    running(world, "a", "b")
    sandbox = world.specs()[0].sandbox
    place = world.core.find_task(("F1", "a"))
    assert place == Place(sandbox, started=True, ended=False, inner=("tasks", "a"))
    world.report("ex", status("a", pb.TASK_FINISHED))
    world.acknowledge("a")
    ended = Place(sandbox, started=True, ended=True, inner=("tasks", "a"))
    assert world.core.find_task(("F1", "a")) == ended
    world.report("ex", status("b", pb.TASK_FINISHED))
    world.restart()
    assert world.core.find_task(("F1", "b")).inner == ("tasks", "b")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (
            {"container": pb.ContainerInfo(volumes=[pb.Volume(container_path="v")])},
            "container.volumes[0]: 'neither': must have either a host_path or a source "
            "(asked by task 'b')",
        ),
        (
            {"container": pb.ContainerInfo(network_infos=[pb.NetworkInfo(name="n")])},
            "nothing of their own but a sandbox (asked by task 'b'): network_infos",
        ),
        (
            {"container": pb.ContainerInfo(linux_info=pb.LinuxInfo(share_pid_namespace=False))},
            "share all that their executor has (asked by task 'b'): linux_info.share_pid_namespace",
        ),
        (
            {"container": pb.ContainerInfo(linux_info=pb.LinuxInfo(shm_size=1))},
            "share all that their executor has (asked by task 'b'): linux_info.shm_size",
        ),
    ],
)
def test_what_it_cannot_give_one_task_keeps_the_group_from_starting(world, asked, words):
    world.run_group(*group("a"), *group("b", **asked))
    for task_id in ("a", "b"):
        assert world.last(task_id).state == pb.TASK_FAILED
        assert words in world.last(task_id).message
    assert world.specs() == []


def test_a_container_that_asks_for_nothing_is_fine(world):
    plain = pb.ContainerInfo(
        type=pb.ContainerInfo.MESOS,
        mesos=pb.ContainerInfo.MesosInfo(),
        # The network of the group, as any that has no name.
        network_infos=[pb.NetworkInfo()],
    )
    plain.linux_info.share_cgroups = plain.linux_info.share_pid_namespace = True
    world.run_group(*group("a", container=plain))
    assert len(world.specs()) == 1


def with_directory(task_id):
    volume = pb.Volume(container_path="ours", mode=pb.Volume.RW)
    volume.source.type = pb.Volume.Source.SANDBOX_PATH
    volume.source.sandbox_path.type = pb.Volume.Source.SandboxPath.PARENT
    volume.source.sandbox_path.path = "data"
    return group(task_id, container=pb.ContainerInfo(volumes=[volume]))


def test_a_task_may_have_a_directory_of_its_executors_sandbox(world):
    world.run_group(*with_directory("a"))
    assert len(world.specs()) == 1


def test_so_may_further_ones_after_a_restart_of_the_agent(world):
    running(world, "a")
    world.restart()
    world.register()
    world.subscribe("ex")
    world.run_group(*with_directory("b"), new=())
    assert world.told_types("ex")[-1] == "LAUNCH_GROUP"


def test_an_executor_that_an_older_agent_has_started_is_given_nobody_with_volumes(world):
    running(world, "a")
    (record,) = [each for each in world.records if each[0] is Kind.CONTAINER]
    saved = checkpoint_pb2.Container.FromString(world.records[record])
    saved.ClearField("knows_volumes")
    world.records[record] = saved.SerializeToString()
    for _ in range(2):  # what is written down anew says the same
        world.restart()
        world.register()
        world.subscribe("ex")
    world.run_group(*group("b"), *with_directory("c"), new=())
    for task_id in ("b", "c"):
        last = world.last(task_id)
        failed = (pb.TASK_FAILED, pb.TaskStatus.REASON_CONTAINER_LAUNCH_FAILED)
        assert (last.state, last.reason) == failed
        assert last.message == (
            "executor 'ex' is of an agent before an upgrade, and shows no volumes"
            " (asked by task 'c'): another executor does"
        )
    world.run_group(*group("d"), new=())
    assert world.told_types("ex")[-1] == "LAUNCH_GROUP"


def test_the_logs_of_its_tasks_are_looked_after_as_its_own_are(world):
    running(world, "a", "b")
    world.report("ex", status("a", pb.TASK_FINISHED))
    (executor,) = world.core.state.executors.values()
    name, sandbox = executor.container_id, executor.sandbox
    assert list(executor.log_places()) == [
        (name, sandbox),
        (f"{name}/b", (*sandbox, "tasks", "b")),
    ]
