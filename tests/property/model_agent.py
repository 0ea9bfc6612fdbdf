"""A model of an agent: what it knows, says, repeats and forgets.

An honest one keeps its word: it names all that it has when it registers, keeps each
task's updates in order, has one of them in flight until it is acknowledged, and says
that a task has ended only once nothing of it runs.  A faulty one says, on top of
that, whatever comes to its mind.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from mesos_py.resources import Resources
from mesos_py.states import (
    TASK_DROPPED,
    TASK_FAILED,
    TASK_FINISHED,
    TASK_KILLED,
    TASK_LOST,
    TASK_RUNNING,
    TASK_STAGING,
    TASK_STARTING,
    TaskState,
    is_terminal,
)
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import types_pb2 as pb
from tests.property.model_net import Net, Stream

Call = agent_pb2.Call
Event = agent_pb2.Event
Key: TypeAlias = tuple[str, str]  # (framework_id, task_id or executor_id)
State: TypeAlias = TaskState.ValueType

LIE: Final = "a lie"


@dataclass(slots=True)
class AgentTask:
    """A task that has not ended, or whose end has not been acknowledged."""

    key: Key
    info: pb.TaskInfo
    role: str
    executor: ExecutorOnAgent | None
    state: State = TASK_STAGING
    alive: bool = True
    killing: bool = False
    # Its framework is gone: its end is said, and nobody acknowledges it.
    abandoned: bool = False


@dataclass(slots=True)
class ExecutorOnAgent:
    key: Key
    info: pb.ExecutorInfo
    ending: bool = False


@dataclass(slots=True)
class Updates:
    """A task's updates that have not been acknowledged, oldest first."""

    queue: deque[pb.TaskStatus] = field(default_factory=deque)
    latest: State = TASK_STAGING


class AgentModel:
    """One machine.  A crash loses all that it knows; its next registration is a new one."""

    def __init__(self, net: Net, number: int, resources: str, faulty: bool) -> None:
        self.name = f"agent{number}"
        self.net = net
        self.faulty = faulty
        # What it says proves nothing about its tasks.
        self.doubtful = faulty
        self.info = pb.AgentInfo(
            hostname=f"host{number}",
            ip="127.0.0.1",
            port=5051,
            resources=Resources.parse(resources).to_proto(),
        )
        self.stream: Stream | None = None
        self.registered = False
        self.tasks: dict[Key, AgentTask] = {}
        self.updates: dict[Key, Updates] = {}
        self.executors: dict[Key, ExecutorOnAgent] = {}
        self.frameworks: dict[str, pb.FrameworkInfo] = {}
        # Orders that a faulty agent, or one that is out of luck, does not carry out.
        self.refuse_next: State | None = None
        # What it does since it was told to drain, until it is told that it is over.
        self.draining = False
        self._uuids = number * 1_000_000
        self._life = 1
        self._attempts = 0

    @property
    def id(self) -> str:
        return self.info.id.value

    # ---- The stream ----------------------------------------------------------

    def register(self) -> None:
        """Open a new stream with all that there is."""
        self.stream = self.net.open(self, of_agent=True)
        self.registered = False
        self._attempts += 1
        used = {key[0] for key in self.tasks} | {key[0] for key in self.updates}
        register = Call.Register(
            agent_info=self.info,
            tasks=[*map(self._listed, self.tasks.values()), *self._answered()],
            executors=[executor.info for executor in self.executors.values()],
            frameworks=[self.frameworks[name] for name in sorted(used) if name in self.frameworks],
            version="model",
            protocol_version=1,
            instance=f"{self.name}/{self._life}",
            attempt=self._attempts,
            capabilities=[pb.AgentInfo.Capability(type=pb.AgentInfo.Capability.AGENT_DRAINING)],
            draining=self.draining,
        )
        self.stream.send(Call(type=Call.REGISTER, register=register))

    def _listed(self, task: AgentTask) -> pb.Task:
        listed = pb.Task(
            name=task.info.name,
            task_id=task.info.task_id,
            framework_id=pb.FrameworkID(value=task.key[0]),
            agent_id=self.info.id,
            state=task.state,
            resources=task.info.resources,
            allocation_role=task.role,
            short=task.info.short,
        )
        if task.executor is not None:
            listed.executor_id.value = task.executor.key[1]
        updates = self.updates.get(task.key)
        if updates is not None and updates.queue:
            listed.status_update_state = updates.queue[0].state
            listed.status_update_uuid = updates.queue[0].uuid
        return listed

    def _answered(self) -> list[pb.Task]:
        """Tasks that are not here and never were, whose end is not acknowledged."""
        return [
            pb.Task(
                task_id=pb.TaskID(value=key[1]),
                framework_id=pb.FrameworkID(value=key[0]),
                agent_id=self.info.id,
                state=updates.latest,
                status_update_state=updates.queue[0].state,
                status_update_uuid=updates.queue[0].uuid,
            )
            for key, updates in self.updates.items()
            if key not in self.tasks
        ]

    def lost(self, stream: Stream) -> None:
        if stream is self.stream:
            self.stream = None
            self.registered = False

    def say(self, call: agent_pb2.Call) -> None:
        if self.stream is not None:
            self.stream.send(call)

    def crash(self, rng: random.Random) -> None:
        """The machine restarts: nothing runs, nothing is remembered."""
        if self.stream is not None:
            self.net.leave(self.stream, rng)
        self._forget()

    def unregister(self) -> None:
        """A planned end: all stops, then the master is told."""
        self.finish()
        self.say(Call(type=Call.UNREGISTER, unregister=Call.Unregister(message="planned")))
        if self.stream is not None:
            self.stream.end_up()
        self._forget()

    def _forget(self) -> None:
        # A removed id that registers once more, long after, is not what we are after here.
        self.net.forget(self, but=self.stream if self.registered else None)
        self.stream = None
        self.registered = False
        self._life += 1
        self.tasks.clear()
        self.updates.clear()
        self.executors.clear()
        self.frameworks.clear()
        self.draining = False
        self.info.ClearField("id")

    # ---- Orders ----------------------------------------------------------------

    def receive(self, stream: Stream, event: Any) -> None:
        if stream is not self.stream:
            return
        kind = event.type
        if kind == Event.RUN_TASKS:
            self._run(event.run_tasks)
        elif kind == Event.ACKNOWLEDGE:
            self._acknowledged(event.acknowledge)
        elif kind == Event.KILL_TASK:
            self._kill((event.kill_task.framework_id.value, event.kill_task.task_id.value))
        elif kind == Event.PING:
            self.say(Call(type=Call.PONG, pong=Call.Pong(sequence=event.ping.sequence)))
        elif kind == Event.SHUTDOWN_FRAMEWORK:
            self._shut_down_framework(event.shutdown_framework.framework_id.value)
        elif kind == Event.RECONCILE:
            for item in event.reconcile.tasks:
                key = (item.framework_id.value, item.task_id.value)
                if key not in self.tasks and key not in self.updates:
                    self._answer(key, TASK_DROPPED if item.partition_aware else TASK_LOST)
        elif kind == Event.REGISTERED:
            self.info.id.CopyFrom(event.registered.agent_id)
            self.registered = True
            self.repeat()
        elif kind == Event.SHUTDOWN or (kind == Event.REFUSED and event.refused.shut_down):
            # All of it ends, and the machine may come back as a new agent.
            self._forget()
        elif kind == Event.DRAIN:
            self.draining = event.drain.HasField("config")
            for task in self.tasks.values():
                task.killing = task.killing or self.draining
        elif kind == Event.SHUTDOWN_EXECUTOR:
            order = event.shutdown_executor
            self._shut_down_executor((order.framework_id.value, order.executor_id.value))
        elif kind == Event.REPEAT_UPDATES:
            framework_id = event.repeat_updates.framework_id.value
            for key in [key for key in self.updates if key[0] == framework_id]:
                self.repeat(key)
        elif kind == Event.UPDATE_FRAMEWORK:
            info = event.update_framework.framework_info
            if info.id.value in self.frameworks:
                self.frameworks[info.id.value] = info

    def _run(self, order: agent_pb2.Event.RunTasks) -> None:
        framework_id = order.framework_info.id.value
        self.frameworks[framework_id] = order.framework_info
        new = [(framework_id, item.value) for item in order.new_executors]
        for info in order.tasks:
            key = (framework_id, info.task_id.value)
            if key in self.tasks or key in self.updates:
                continue  # the same order has come twice
            if self.draining:
                self._answer(key, self._lost_or(framework_id, TASK_DROPPED))
                continue
            if self.refuse_next is not None:
                self._answer(key, self.refuse_next)
                self.refuse_next = None
                continue
            executor = None
            if info.HasField("executor"):
                executor = self._executor_for(
                    (framework_id, info.executor.executor_id.value), info, new
                )
                if executor is None or executor.ending:
                    self._answer(key, self._lost_or(framework_id, TASK_DROPPED))
                    continue
            role = info.resources[0].allocation_info.role
            task = self.tasks[key] = AgentTask(key, info, role, executor)
            if executor is None:
                self._report(task, TASK_STARTING)
        for key in new:
            if key not in self.executors:
                self._say_exited(key)

    def _executor_for(self, key: Key, info: pb.TaskInfo, new: list[Key]) -> ExecutorOnAgent | None:
        """The running one, or a new one if it is wanted; None: it has ended by now."""
        executor = self.executors.get(key)
        if executor is None and key in new:
            executor = self.executors[key] = ExecutorOnAgent(key, info.executor)
        return executor

    def _lost_or(self, framework_id: str, state: State) -> State:
        aware = pb.FrameworkInfo.Capability.PARTITION_AWARE
        info = self.frameworks.get(framework_id, pb.FrameworkInfo())
        return state if any(c.type == aware for c in info.capabilities) else TASK_LOST

    def _acknowledged(self, order: agent_pb2.Event.Acknowledge) -> None:
        key = (order.framework_id.value, order.task_id.value)
        updates = self.updates.get(key)
        if updates is None or updates.queue[0].uuid != order.uuid:
            return
        if is_terminal(updates.queue.popleft().state):
            del self.updates[key]
            self.tasks.pop(key, None)
        elif updates.queue:
            self._send_head(key, updates)
        else:
            del self.updates[key]

    def _kill(self, key: Key) -> None:
        task = self.tasks.get(key)
        if task is not None:
            task.killing = True
        elif key not in self.updates:
            self._answer(key, self._lost_or(key[0], TASK_DROPPED))

    def _shut_down_framework(self, framework_id: str) -> None:
        self.frameworks.pop(framework_id, None)
        for key in [key for key in self.updates if key[0] == framework_id]:
            updates = self.updates.pop(key)
            if is_terminal(updates.latest):
                # The master may not know it yet, and holds the resources until it does.
                self._say_ended(key, updates.latest)
        for key, task in list(self.tasks.items()):
            if key[0] == framework_id:
                task.abandoned = task.killing = True
                if not task.alive:
                    del self.tasks[key]
        for key in self.executors:
            if key[0] == framework_id:
                self._shut_down_executor(key)

    def _shut_down_executor(self, key: Key) -> None:
        executor = self.executors.get(key)
        if executor is not None:
            executor.ending = True

    # ---- What happens to tasks ---------------------------------------------------

    def progress(self, rng: random.Random) -> None:
        """Something happens to one task: it starts, runs, or ends."""
        running = [task for task in self.tasks.values() if task.alive]
        if not running:
            return
        task = rng.choice(running)
        if task.killing:
            self._end(task, TASK_KILLED)
        elif task.state == TASK_STAGING and task.executor is not None and task.executor.ending:
            return
        elif task.state == TASK_STAGING and rng.random() < 0.5:
            self._report(task, TASK_STARTING)
        elif task.state in (TASK_STAGING, TASK_STARTING) or rng.random() < 0.3:
            self._report(task, TASK_RUNNING)
        else:
            self._end(task, rng.choice((TASK_FINISHED, TASK_FINISHED, TASK_FAILED)))

    def finish(self) -> None:
        """All that runs here ends."""
        for task in list(self.tasks.values()):
            if task.alive:
                self._end(task, TASK_KILLED if task.killing else TASK_FINISHED)
        for executor in list(self.executors.values()):
            self._exit(executor)

    def end_doomed(self) -> None:
        """What was told to end ends."""
        for executor in list(self.executors.values()):
            if executor.ending:
                self._exit(executor)
        for task in list(self.tasks.values()):
            if task.alive and task.killing:
                self._end(task, TASK_KILLED)
        if self.draining:
            busy = {id(task.executor) for task in self.tasks.values() if task.alive}
            for executor in list(self.executors.values()):
                if id(executor) not in busy:
                    self._exit(executor)

    def exit_executor(self, rng: random.Random) -> None:
        """An executor ends, and its tasks with it."""
        if self.executors:
            self._exit(rng.choice(list(self.executors.values())))

    def _exit(self, executor: ExecutorOnAgent) -> None:
        for task in list(self.tasks.values()):
            if task.executor is executor and task.alive:
                self._end(task, TASK_FAILED)
        del self.executors[executor.key]
        self._say_exited(executor.key)

    def _say_exited(self, key: Key) -> None:
        exited = Call.ExecutorExited(
            framework_id=pb.FrameworkID(value=key[0]),
            executor_id=pb.ExecutorID(value=key[1]),
        )
        self.say(Call(type=Call.EXECUTOR_EXITED, executor_exited=exited))

    def _end(self, task: AgentTask, state: State) -> None:
        task.alive = False
        if task.abandoned:
            del self.tasks[task.key]
            self._say_ended(task.key, state)
        else:
            self._report(task, state)

    def _say_ended(self, key: Key, state: State) -> None:
        """The framework is gone; the master still wants to know what is free again."""
        status = self._status(key, state)
        status.ClearField("uuid")
        self.say(_update(key, status, state))

    # ---- Updates -------------------------------------------------------------------

    def _status(self, key: Key, state: State) -> pb.TaskStatus:
        self._uuids += 1
        return pb.TaskStatus(
            task_id=pb.TaskID(value=key[1]),
            agent_id=self.info.id,
            state=state,
            source=pb.TaskStatus.SOURCE_AGENT,
            uuid=self._uuids.to_bytes(16, "big"),
        )

    def _report(self, task: AgentTask, state: State) -> None:
        task.state = state
        self._queue(task.key, self._status(task.key, state))

    def _answer(self, key: Key, state: State) -> None:
        self._queue(key, self._status(key, state))

    def _queue(self, key: Key, status: pb.TaskStatus) -> None:
        updates = self.updates.get(key)
        if updates is None:
            updates = self.updates[key] = Updates()
        updates.latest = status.state
        updates.queue.append(status)
        if len(updates.queue) == 1:
            self._send_head(key, updates)

    def _send_head(self, key: Key, updates: Updates) -> None:
        if self.registered:
            self.say(_update(key, updates.queue[0], updates.latest))

    def repeat(self, key: Key | None = None) -> None:
        """Send the head of a task's updates once more; without a key: all heads."""
        for each in [key] if key is not None else list(self.updates):
            self._send_head(each, self.updates[each])

    # ---- Lies ------------------------------------------------------------------------

    def lie(self, rng: random.Random, others: list[Key]) -> None:
        """Say something that no honest agent would say now."""
        if self.stream is None:
            return
        key = rng.choice([*others, *self.tasks, ("nobody", "t0")])
        state: Any = rng.choice([*TaskState.values(), 99])
        latest: Any = rng.choice([*TaskState.values(), 99])
        match rng.randrange(6):
            case 0 | 1 | 2:
                status = self._status(key, state)
                status.message = LIE
                if rng.random() < 0.3:
                    status.uuid = rng.choice((b"", b"short"))
                self.say(_update(key, status, latest))
            case 3:
                exited = Call.ExecutorExited(
                    framework_id=pb.FrameworkID(value=key[0]),
                    executor_id=pb.ExecutorID(value=rng.choice(("e0", "e1", ""))),
                )
                self.say(Call(type=Call.EXECUTOR_EXITED, executor_exited=exited))
            case 4:
                if rng.random() < 0.7:
                    self.stream = self.net.open(self, of_agent=True)
                    self.registered = False
                self.say(self._false_registration(rng, key, state))
            case _:
                self.say(Call(type=rng.choice((0, 99))))  # type: ignore[arg-type]

    def _false_registration(self, rng: random.Random, key: Key, state: Any) -> agent_pb2.Call:
        """With tasks and amounts that are not there."""
        info = pb.AgentInfo()
        info.CopyFrom(self.info)
        if rng.random() < 0.3:
            info.id.value = rng.choice(("m-S0", "m-S1", "m-S2", "odd/id"))
        listed = pb.Task(
            task_id=pb.TaskID(value=key[1]),
            framework_id=pb.FrameworkID(value=key[0]),
            agent_id=info.id,
            state=state,
            resources=Resources.of(cpus=rng.choice((0.1, 1, 100))).to_proto(),
        )
        if rng.random() < 0.3:
            listed.executor_id.value = "e0"
        executor = pb.ExecutorInfo(
            executor_id=pb.ExecutorID(value=rng.choice(("e0", "e1"))),
            framework_id=pb.FrameworkID(value=key[0]),
            resources=Resources.of(cpus=0.1).to_proto(),
        )
        register = Call.Register(
            agent_info=info,
            tasks=[listed] * rng.randint(0, 2) + [self._listed(t) for t in self.tasks.values()],
            executors=[executor] * rng.randint(0, 1),
            version="model",
            protocol_version=rng.choice((1, 1, 1, 2)),
        )
        return Call(type=Call.REGISTER, register=register)


def _update(key: Key, status: pb.TaskStatus, latest: State) -> agent_pb2.Call:
    update = Call.Update(
        framework_id=pb.FrameworkID(value=key[0]), status=status, latest_state=latest
    )
    return Call(type=Call.UPDATE, update=update)
