"""Custom executors with real processes: they connect back, work, come back, end."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.api.executor_service import MAX_SOCKET_PATH
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import executor_info, for_executor
from tests.kit.agent_master import (
    AgentProcess,
    FakeMaster,
    eventually,
    processes_of,
    running_agent,
)

Event = agent_pb2.Event

# A small executor without our SDK: what it does with a task is in the task's data.
PROGRAM = """
import os, queue, sys, uuid, grpc
from mesos_py.v1 import executor_pb2 as e, types_pb2 as pb
from mesos_py.v1.executor_pb2_grpc import ExecutorServiceStub

C, E = e.Call, e.Event
print(os.environ["MESOS_EXECUTOR_SHUTDOWN_GRACE_PERIOD"], flush=True)

def say(kind, **part):
    out.put(C(type=kind, framework_id=pb.FrameworkID(value=os.environ["MESOS_FRAMEWORK_ID"]),
              executor_id=pb.ExecutorID(value=os.environ["MESOS_EXECUTOR_ID"]), **part))

def report(task_id, state, repeat=1):
    status = pb.TaskStatus(task_id=task_id, state=state, uuid=uuid.uuid4().bytes)
    for _ in range(repeat):
        say(C.UPDATE, update=C.Update(status=status))

def calls(mine):
    while (call := mine.get()) is not None:
        yield e.Calls(calls=[call])

def connect():
    global out
    out, leave = queue.Queue(), False
    channel = grpc.insecure_channel(os.environ["MESOS_PY_EXECUTOR_ENDPOINT"])
    say(C.SUBSCRIBE, subscribe=C.Subscribe(protocol_version=int(os.environ.get("SPEAKS", "1"))))
    for events in ExecutorServiceStub(channel).Subscribe(calls(out)):
        for event in events.events:
            print(E.Type.Name(event.type), event.error.message, flush=True)
            if event.type == E.LAUNCH:
                task = event.launch.task
                report(task.task_id, pb.TASK_RUNNING, repeat=3)
                if task.data == b"finish":
                    report(task.task_id, pb.TASK_FINISHED)
                elif task.data == b"exit":
                    os._exit(9)
                elif task.data == b"stage":
                    report(task.task_id, pb.TASK_STAGING)
                leave = task.data == b"reconnect"
            elif event.type == E.ACKNOWLEDGED and leave:
                out.put(None)
                channel.close()
                return True
            elif event.type == E.KILL and "DEAF" not in os.environ:
                report(event.kill.task_id, pb.TASK_KILLED)
            elif event.type == E.MESSAGE:
                say(C.MESSAGE, message=C.Message(data=event.message.data[::-1]))
            elif event.type == E.SHUTDOWN and "RUDE" not in os.environ:
                sys.exit(0)
    return False

again = True
while again:
    try:
        again = connect()
    except (grpc.RpcError, ValueError):
        again = True
"""


def executor(**environment: str) -> pb.ExecutorInfo:
    variables = [pb.Environment.Variable(name=n, value=v) for n, v in environment.items()]
    root = str(Path(__file__).parents[2])
    variables.append(pb.Environment.Variable(name="PYTHONPATH", value=root))
    info = pb.CommandInfo(
        shell=False,
        value=sys.executable,
        arguments=[sys.executable, "-c", PROGRAM],
        environment=pb.Environment(variables=variables),
    )
    return executor_info(command=info)


@pytest.fixture
async def master() -> AsyncIterator[FakeMaster]:
    async with FakeMaster() as made:
        yield made


@pytest.fixture
async def agent(master: FakeMaster, tmp_path: Path) -> AsyncIterator[AgentProcess]:
    # Enough for an executor on a machine that stands still for a while.
    flags = ("--executor-shutdown-grace-period", "20s")
    async with running_agent(master, tmp_path / "agent", *flags) as made:
        yield made


def shut_down(master: FakeMaster) -> None:
    order = Event.ShutdownExecutor(
        framework_id=master.framework.id, executor_id=pb.ExecutorID(value="ex")
    )
    master.send(Event(type=Event.SHUTDOWN_EXECUTOR, shutdown_executor=order))


async def test_an_executor_runs_tasks_takes_kills_and_messages_and_ends_when_told(master, agent):
    master.run(for_executor("a", executor()), for_executor("b", executor(), data=b"finish"))
    running = await master.status("a", pb.TASK_RUNNING)
    assert running.source == pb.TaskStatus.SOURCE_EXECUTOR
    assert running.executor_id.value == "ex"
    assert running.container_status.executor_pid in processes_of("ex")
    await master.status("b", pb.TASK_FINISHED)
    # Each update came three times, and counts once.
    assert master.states("b") == ["RUNNING", "FINISHED"]
    assert len(processes_of("ex")) == 1
    master.kill("a")
    await master.status("a", pb.TASK_KILLED)
    order = Event.ExecutorMessage(
        framework_id=master.framework.id, executor_id=pb.ExecutorID(value="ex"), data=b"abc"
    )
    master.send(Event(type=Event.EXECUTOR_MESSAGE, executor_message=order))
    message = await master.call(agent_pb2.Call.EXECUTOR_MESSAGE)
    assert message.executor_message.data == b"cba"
    shut_down(master)
    gone = await master.call(agent_pb2.Call.EXECUTOR_EXITED)
    assert gone.executor_exited.status == 0
    assert agent.output("ex").split("\n")[:3] == ["20secs", "SUBSCRIBED ", "LAUNCH "]


async def test_an_executor_that_exits_fails_the_tasks_that_it_had(master, agent):
    master.run(for_executor("a", executor()), for_executor("b", executor(), data=b"exit"))
    for name in ("a", "b"):
        failed = await master.status(name, pb.TASK_FAILED)
        assert failed.reason == pb.TaskStatus.REASON_EXECUTOR_TERMINATED
    gone = await master.call(agent_pb2.Call.EXECUTOR_EXITED)
    assert gone.executor_exited.status == 9 << 8


async def test_an_executor_that_does_not_end_is_killed_after_the_grace(master, tmp_path):
    async with running_agent(
        master, tmp_path / "agent", "--executor-shutdown-grace-period", "500ms"
    ):
        master.run(for_executor("a", executor(RUDE="1")))
        await master.status("a", pb.TASK_RUNNING)
        shut_down(master)
        failed = await master.status("a", pb.TASK_FAILED)
        assert failed.reason == pb.TaskStatus.REASON_EXECUTOR_TERMINATED
        assert not processes_of("ex")


def limited(task_id: str, **environment: str) -> pb.TaskInfo:
    """A task on room for short tasks, which never ends by itself."""
    limit = pb.DurationInfo(nanoseconds=200_000_000)
    return for_executor(task_id, executor(**environment), max_completion_time=limit, short=True)


async def test_a_task_out_of_time_is_ended_and_its_executor_goes_on(master, agent):
    master.run(for_executor("a", executor()), limited("b"))
    failed = await master.status("b", pb.TASK_FAILED)
    assert failed.reason == pb.TaskStatus.REASON_MAX_COMPLETION_TIME_REACHED
    assert failed.message == "Task ran on room for short tasks of at most 0.2 s; its time is over"
    master.run(for_executor("c", executor(), data=b"finish"))
    await master.status("c", pb.TASK_FINISHED)
    assert master.states("a") == ["RUNNING"]


async def test_an_executor_that_keeps_a_task_out_of_time_is_ended(master, tmp_path):
    async with running_agent(
        master, tmp_path / "agent", "--executor-shutdown-grace-period", "100ms"
    ):
        master.run(limited("a", DEAF="1"))
        failed = await master.status("a", pb.TASK_FAILED)
        assert failed.reason == pb.TaskStatus.REASON_MAX_COMPLETION_TIME_REACHED
        assert not processes_of("ex")


async def test_an_executor_that_comes_back_goes_on(master, agent):
    master.run(for_executor("a", executor(), data=b"reconnect"))
    await master.status("a", pb.TASK_RUNNING)
    await eventually(lambda: agent.output("ex").count("SUBSCRIBED") == 2)
    master.run(for_executor("b", executor(), data=b"finish"))
    await master.status("b", pb.TASK_FINISHED)
    assert agent.output("ex").count("LAUNCH") == 2


async def test_an_executor_that_breaks_the_rules_is_told_and_cut_off(master, agent):
    master.run(for_executor("a", executor(), data=b"stage"))
    await eventually(
        lambda: (
            "ERROR update of task 'a': an executor may not report TASK_STAGING"
            in agent.output("ex")
        )
    )
    assert set(master.states("a")) == {"RUNNING"}


async def test_an_executor_that_speaks_a_newer_protocol_is_refused(master, agent):
    master.run(for_executor("a", executor(SPEAKS="99")))
    await eventually(lambda: "speaks protocol version 99" in agent.output("ex"))


async def test_an_executor_that_never_connects_is_killed_in_time(master, tmp_path):
    flags = ("--executor-registration-timeout", "300ms")
    async with running_agent(master, tmp_path / "agent", *flags):
        silent = executor_info(command=pb.CommandInfo(value="exec sleep 1000"))
        master.run(for_executor("a", silent))
        failed = await master.status("a", pb.TASK_FAILED)
        assert failed.reason == pb.TaskStatus.REASON_EXECUTOR_REGISTRATION_TIMEOUT
        assert not processes_of("ex")


async def test_a_work_directory_with_a_long_path_has_its_socket_elsewhere(master, tmp_path):
    deep = tmp_path / ("d" * MAX_SOCKET_PATH) / "agent"
    deep.parent.mkdir()
    async with running_agent(master, deep) as agent:
        master.run(for_executor("a", executor(), data=b"finish"))
        await master.status("a", pb.TASK_FINISHED)
        assert not (deep / "executors.sock").exists()
        assert agent.process.poll() is None
