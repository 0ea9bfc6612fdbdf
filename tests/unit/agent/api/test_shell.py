"""The shell around the agent's core: nothing is done that is not written down, but kills."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agent.api import shell as shells
from agent.api.shell import Shell
from agent.checkpoint.store import CheckpointUnwritable
from agent.core.agent import AgentCore
from agent.core.effects import LinkVolumes, Signal
from agent.core.state import Settings
from agent.core.volume_uses import VolumeKey, VolumeUse
from mesos_py.clock import SystemClock
from mesos_py.metrics import Metrics
from mesos_py.v1 import agent_pb2, executor_pb2
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import (
    CountingIds,
    agent_info,
    command,
    for_executor,
    framework_info,
)
from tests.kit.reserving import amount, by, reserve

Event = agent_pb2.Event


class FullDisk:
    """A checkpoint that can be written, or not."""

    def __init__(self) -> None:
        self.full = False
        self.count = 0

    def write(self, changes: list[Any]) -> None:
        if self.full:
            raise CheckpointUnwritable("database or disk is full")
        self.count += len(changes)


class Recorder:
    """Takes whatever it is asked for; `done` has the names of the methods, in order."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.news = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        def call(*_: object, **__: object) -> None:
            if name != "flush":
                self.done.append(name)
                self.news.set()

        return call


@pytest.fixture
async def disk() -> FullDisk:
    return FullDisk()


@pytest.fixture
async def launcher() -> Recorder:
    return Recorder()


@pytest.fixture
async def shell(disk: FullDisk, launcher: Recorder, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shells, "WRITE_AGAIN_S", 0.01)
    core = AgentCore(Settings("/srv/agent", executor_endpoint=""), agent_info(), CountingIds())
    others: Any = Recorder()
    made = Shell(core, SystemClock(), Metrics(), disk, others, others)  # type: ignore[arg-type]
    made.wire(others, launcher, others, others, others)
    registered = Event.Registered(agent_id=pb.AgentID(value="A1"))
    made.master_said([Event(type=Event.REGISTERED, registered=registered)])
    yield made
    made.close()


def run(task_id: str) -> Event:
    order = Event.RunTasks(framework_info=framework_info(), tasks=[command(task_id)])
    return Event(type=Event.RUN_TASKS, run_tasks=order)


def apply(info: pb.Offer.Operation) -> Event:
    operation = pb.Operation(info=info, uuid=pb.UUID(value=b"u" * 16))
    order = Event.ApplyOperation(operation=operation)
    return Event(type=Event.APPLY_OPERATION, apply_operation=order)


def kill(task_id: str) -> Event:
    order = Event.KillTask(framework_id=framework_info().id, task_id=pb.TaskID(value=task_id))
    return Event(type=Event.KILL_TASK, kill_task=order)


async def test_a_task_is_written_down_before_it_is_launched(shell, disk, launcher):
    shell.master_said([run("t")])
    assert launcher.done == ["launch"]
    assert disk.count > 0


async def test_nothing_is_launched_that_cannot_be_written_down_until_it_can(shell, disk, launcher):
    disk.full = True
    shell.master_said([run("t")])
    assert launcher.done == []
    disk.full = False
    await launcher.news.wait()
    assert launcher.done == ["launch"]


async def test_what_fills_the_disk_can_be_killed(shell, disk, launcher):
    shell.master_said([run("t")])
    disk.full = True
    shell.master_said([kill("t")])
    assert launcher.done == ["launch", "kill"]


async def test_what_an_operator_has_ended_is_ended(shell, launcher):
    shell.master_said([run("t")])
    (container_id,) = shell.core.state.containers
    shell.container_unwanted(container_id, Signal.TERM)
    assert launcher.done == ["launch", "kill"]


async def test_a_kill_does_not_overtake_the_launch_that_waits(shell, disk, launcher):
    disk.full = True
    shell.master_said([run("t"), kill("t")])
    assert launcher.done == []
    disk.full = False
    await launcher.news.wait()
    assert launcher.done == ["launch", "kill"]


async def test_no_master_is_told_of_reservations_that_are_not_written_down(shell, disk):
    """Not even in REGISTER: this agent would have promised what its next run forgets."""
    await shell.may_register()
    disk.full = True
    shell.master_said([apply(reserve(amount(by("ads"), cpus=1)))])
    shell.link_lost()
    waiting = asyncio.create_task(shell.may_register())
    await asyncio.sleep(0)
    assert not waiting.done()
    disk.full = False
    await waiting
    assert shell.register_call().register.reserved


async def test_an_agent_whose_disk_is_full_of_other_things_can_register(shell, disk):
    """What it runs can be killed then, which may be what gives room."""
    disk.full = True
    shell.master_said([run("t")])
    shell.link_lost()
    await shell.may_register()


class Unshown:
    """Volumes of an agent whose locale cannot say their paths."""

    links = property(lambda self: self)

    def show_beneath(self, *_args):
        "é".encode("ascii")


@pytest.mark.parametrize(
    ("volumes", "why"), [(None, "keeps no volumes"), (Unshown(), "UnicodeEncodeError")]
)
async def test_an_executor_is_not_sent_a_task_whose_volume_cannot_be_shown(
    shell, launcher, volumes, why
):
    shell._volumes = volumes
    order = Event.RunTasks(framework_info=framework_info(), tasks=[for_executor("t")])
    shell.master_said([Event(type=Event.RUN_TASKS, run_tasks=order)])
    state = shell.core.state
    (task,) = state.tasks.values()
    use = VolumeUse(VolumeKey("ads", "v1"), "data")
    key, sandbox = task.executor.key, task.executor.sandbox
    state.effects.append(LinkVolumes(key, executor_pb2.Event(), (task.key,), sandbox, [use]))
    shell.containers_told()
    assert task.state == pb.TASK_FAILED
    assert why in task.status.message
