"""The agent's core alone: a master, executors and containers that are only lists.

world = AgentWorld()
world.run(world.command("t1"))
world.started("t1", pid=7)
assert world.states("t1") == ["STARTING"]      # the head alone is in flight
world.acknowledge("t1")
"""

from __future__ import annotations

import itertools
from collections.abc import Collection
from dataclasses import replace
from typing import Any, TypeVar

from agent.core.agent import AgentCore
from agent.core.effects import (
    ContainerSpec,
    Drop,
    Effect,
    KillContainer,
    LaunchContainer,
    SendExecutor,
    SendMaster,
    StartProbe,
    Stop,
    StopProbe,
    TaskEnded,
    UpdateContainer,
)
from agent.core.health import Outcome
from agent.core.journal import Kind, RecordKey
from agent.core.records import Exit
from agent.core.recovery import Record, Restored
from agent.core.state import Settings
from agent.core.volumes import NOWHERE, Directories
from mesos_py.clock import ManualClock
from mesos_py.resources import Resources
from mesos_py.states import short_name
from mesos_py.v1 import agent_pb2, executor_pb2
from mesos_py.v1 import types_pb2 as pb

Event = agent_pb2.Event
Call = agent_pb2.Call
E = TypeVar("E")

FRAMEWORK = "F1"
CAPABILITY = pb.FrameworkInfo.Capability


class CountingIds:
    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def container_id(self) -> str:
        return f"c{next(self._numbers)}"

    def uuid(self) -> bytes:
        return next(self._numbers).to_bytes(16, "big")


class AgentWorld:
    """One core, registered unless told otherwise, and what it has asked for so far."""

    def __init__(
        self, *, registered: bool = True, directories: Directories = NOWHERE, **settings: Any
    ) -> None:
        self.clock = ManualClock()
        made = Settings(
            work_dir="/srv/agent", executor_endpoint="unix:/srv/agent/executors.sock", **settings
        )
        self._settings, self._ids = made, CountingIds()
        self.directories = directories
        self.core = AgentCore(made, agent_info(), self._ids, directories)
        self.effects: list[Effect] = []
        # What stands in the checkpoint.
        self.records: dict[tuple[Kind, RecordKey], bytes] = {}
        self.framework = framework_info()
        if registered:
            self.register()

    def restart(
        self, *, damaged: Collection[tuple[Kind, RecordKey]] = (), **settings: Any
    ) -> Restored:
        """kill -9, and the next run: all that is left is the checkpoint.

        What was asked for before is forgotten here, too.
        """
        self.effects.clear()
        self._settings = replace(self._settings, **settings)
        self.core = AgentCore(self._settings, agent_info(), self._ids, self.directories)
        found = [
            Record(kind, key, None if (kind, key) in damaged else data)
            for (kind, key), data in sorted(self.records.items(), key=lambda each: each[0][1])
        ]
        restored = self.core.restore(found, self.clock.now())
        self.collect()
        return restored

    # ---- What happens --------------------------------------------------------------

    def collect(self) -> list[Effect]:
        """The effects since the last look; all are kept in `effects` too."""
        for kind, key, data in self.core.take_changes():
            if data is None:
                self.records.pop((kind, key), None)
            else:
                self.records[kind, key] = data
        new = self.core.take_effects()
        self.effects.extend(new)
        return new

    def register(self, agent_id: str = "A1") -> None:
        registered = Event.Registered(agent_id=pb.AgentID(value=agent_id))
        self.master(Event(type=Event.REGISTERED, registered=registered))

    def master(self, event: Event) -> list[Effect]:
        self.core.on_master_event(event, self.clock.now())
        return self.collect()

    def run(self, *tasks: pb.TaskInfo) -> list[Effect]:
        order = Event.RunTasks(framework_info=self.framework, tasks=tasks)
        return self.master(Event(type=Event.RUN_TASKS, run_tasks=order))

    def run_group(self, *tasks: pb.TaskInfo, new: Collection[str] = ("ex",)) -> list[Effect]:
        """`new`: the executors that the master takes to be."""
        order = Event.RunTasks(framework_info=self.framework, tasks=tasks, group=True)
        order.new_executors.extend(pb.ExecutorID(value=each) for each in new)
        return self.master(Event(type=Event.RUN_TASKS, run_tasks=order))

    def kill(self, task_id: str, grace_s: float | None = None, **cause: Any) -> list[Effect]:
        order = Event.KillTask(
            framework_id=self.framework.id, task_id=pb.TaskID(value=task_id), **cause
        )
        if grace_s is not None:
            order.kill_policy.grace_period.nanoseconds = int(grace_s * 1e9)
        return self.master(Event(type=Event.KILL_TASK, kill_task=order))

    def acknowledge(self, task_id: str, uuid: bytes | None = None) -> list[Effect]:
        """Acknowledge what was sent last of the task, or `uuid`."""
        if uuid is None:
            uuid = self.updates(task_id)[-1].status.uuid
        order = Event.Acknowledge(
            framework_id=self.framework.id, task_id=pb.TaskID(value=task_id), uuid=uuid
        )
        return self.master(Event(type=Event.ACKNOWLEDGE, acknowledge=order))

    def acknowledge_all(self, task_id: str) -> None:
        """Acknowledge as long as something new comes."""
        seen: set[bytes] = set()
        while (uuid := self.updates(task_id)[-1].status.uuid) not in seen:
            seen.add(uuid)
            self.acknowledge(task_id, uuid)

    def scheduler_is_new(self) -> list[Effect]:
        """It has subscribed anew."""
        order = Event.RepeatUpdates(framework_id=self.framework.id)
        return self.master(Event(type=Event.REPEAT_UPDATES, repeat_updates=order))

    def shut_down_framework(self) -> list[Effect]:
        order = Event.ShutdownFramework(framework_id=self.framework.id)
        return self.master(Event(type=Event.SHUTDOWN_FRAMEWORK, shutdown_framework=order))

    def shut_down_executor(self, executor_id: str) -> list[Effect]:
        order = Event.ShutdownExecutor(
            framework_id=self.framework.id, executor_id=pb.ExecutorID(value=executor_id)
        )
        return self.master(Event(type=Event.SHUTDOWN_EXECUTOR, shutdown_executor=order))

    def advance(self, seconds: float) -> list[Effect]:
        """Let time pass, deadline by deadline."""
        end = self.clock.monotonic_s + seconds
        while (at := self.core.next_deadline_s()) is not None and at <= end:
            self.clock.advance(max(0.0, at - self.clock.monotonic_s))
            self.core.on_time(self.clock.now())
        self.clock.advance(end - self.clock.monotonic_s)
        return self.collect()

    def started(self, executor_id: str, pid: int = 100) -> list[Effect]:
        self.core.on_container_started(self.container(executor_id), pid, self.clock.now())
        return self.collect()

    def failed(self, executor_id: str, message: str = "no such file") -> list[Effect]:
        self.core.on_container_failed(self.container(executor_id), message, self.clock.now())
        return self.collect()

    def ended(self, executor_id: str, status: int | None = 0, unknown: str = "") -> list[Effect]:
        self.core.on_container_ended(
            self.container(executor_id), Exit(status, unknown), self.clock.now()
        )
        return self.collect()

    def probed(
        self,
        executor_id: str,
        good: bool | None,
        value: int | None = None,
        *,
        kind: str = "health",
        number: int | None = None,
        text: str = "so it is",
    ) -> list[Effect]:
        """The task's probe of this kind, the newest unless said otherwise, has ended."""
        container_id = self.container(executor_id)
        if number is None:
            number = self.probes(executor_id, kind)[-1].number
        self.core.on_probe_ended(
            container_id, kind, number, Outcome(good, value, text), self.clock.now()
        )
        return self.collect()

    def subscribe(self, executor_id: str, **call: Any) -> str | None:
        key = (FRAMEWORK, executor_id)
        subscribe = executor_pb2.Call.Subscribe(**call)
        refusal = self.core.on_executor_subscribed(key, subscribe, self.clock.now())
        self.collect()
        return refusal

    def report(self, executor_id: str, status: pb.TaskStatus) -> str | None:
        key = (FRAMEWORK, executor_id)
        refusal = self.core.on_executor_update(key, status, self.clock.now())
        self.collect()
        return refusal

    # ---- What it asked for ---------------------------------------------------------

    def of(self, kind: type[E]) -> list[E]:
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def specs(self) -> list[ContainerSpec]:
        return [effect.spec for effect in self.of(LaunchContainer)]

    def container(self, executor_id: str) -> str:
        """The id of the newest container of the executor (or command task)."""
        for spec in reversed(self.specs()):
            if spec.executor_id == executor_id:
                return spec.container_id
        # It is of an earlier run.
        return next(
            each.container_id
            for each in self.core.saved_containers()
            if each.executor_id == executor_id
        )

    def kills(self) -> list[tuple[str, str]]:
        return [(each.container_id, each.signal.name) for each in self.of(KillContainer)]

    def calls(self, kind: int) -> list[Call]:
        return [each.call for each in self.of(SendMaster) if each.call.type == kind]

    def updates(self, task_id: str) -> list[Call.Update]:
        """All that was sent of the task, repeated ones too."""
        calls = [call.update for call in self.calls(Call.UPDATE)]
        return [update for update in calls if update.status.task_id.value == task_id]

    def last(self, task_id: str) -> pb.TaskStatus:
        return self.updates(task_id)[-1].status

    def states(self, task_id: str) -> list[str]:
        return [short_name(update.status.state) for update in self.updates(task_id)]

    def probes(self, executor_id: str, kind: str = "health") -> list[StartProbe]:
        container_id = self.container(executor_id)
        found = self.of(StartProbe)
        return [each for each in found if (each.container_id, each.kind) == (container_id, kind)]

    def stopped_probes(self) -> list[tuple[str, str]]:
        return [(each.container_id, each.kind) for each in self.of(StopProbe)]

    def told(self, executor_id: str) -> list[executor_pb2.Event]:
        key = (FRAMEWORK, executor_id)
        return [each.event for each in self.of(SendExecutor) if each.key == key]

    def told_types(self, executor_id: str) -> list[str]:
        return [executor_pb2.Event.Type.Name(each.type) for each in self.told(executor_id)]

    def drops(self) -> list[str]:
        return [drop.reason for drop in self.of(Drop)]

    def stops(self) -> list[Stop]:
        return self.of(Stop)

    def task_ends(self) -> list[str]:
        return [each.key[1] for each in self.of(TaskEnded)]

    def limits(self) -> list[str]:
        return [str(each.resources) for each in self.of(UpdateContainer)]


def agent_info() -> pb.AgentInfo:
    return pb.AgentInfo(hostname="host", resources=Resources.of(cpus=8, mem=1024).to_proto())


def framework_info(*capabilities: int, user: str = "root") -> pb.FrameworkInfo:
    return pb.FrameworkInfo(
        id=pb.FrameworkID(value=FRAMEWORK),
        name="f",
        user=user,
        capabilities=[CAPABILITY(type=each) for each in capabilities],  # type: ignore[arg-type]
    )


def command(
    task_id: str, value: str = "true", *, cpus: float = 1, grace_s: float | None = None, **info: Any
) -> pb.TaskInfo:
    given = info.pop("command", None) or pb.CommandInfo(value=value)
    task = pb.TaskInfo(
        name=task_id,
        task_id=pb.TaskID(value=task_id),
        resources=Resources.of(cpus=cpus).to_proto(),
        command=given,
        **info,
    )
    if grace_s is not None:
        task.kill_policy.grace_period.nanoseconds = int(grace_s * 1e9)
    return task


def executor_info(executor_id: str = "ex", **info: Any) -> pb.ExecutorInfo:
    return pb.ExecutorInfo(
        executor_id=pb.ExecutorID(value=executor_id),
        command=info.pop("command", pb.CommandInfo(value="./executor")),
        resources=Resources.of(cpus=0.5).to_proto(),
        **info,
    )


def for_executor(task_id: str, executor: pb.ExecutorInfo | None = None, **info: Any) -> pb.TaskInfo:
    return pb.TaskInfo(
        name=task_id,
        task_id=pb.TaskID(value=task_id),
        resources=Resources.of(cpus=1).to_proto(),
        executor=executor or executor_info(),
        **info,
    )


def status(task_id: str, state: int, uuid: bytes = b"u" * 16, **more: Any) -> pb.TaskStatus:
    return pb.TaskStatus(task_id=pb.TaskID(value=task_id), state=state, uuid=uuid, **more)  # type: ignore[arg-type]
