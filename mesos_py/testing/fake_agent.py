"""An agent for tests of executors: real gRPC on a Unix socket, does what it is told.

::

    with FakeAgent(tmp_path) as agent:
        driver = ExecutorDriver(MyExecutor(), agent.environment)
        driver.start()
        agent.wait_for_subscription()
        agent.launch(make_task("t1", executor=make_executor()))
        agent.wait_for_status("t1", TASK_FINISHED)
        agent.shutdown()

Statuses are acknowledged at once unless `acknowledging` is set to False.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Self

import grpc.aio

from mesos_py.executor.environment import ExecutorEnvironment
from mesos_py.states import TaskState
from mesos_py.testing.builders import make_executor
from mesos_py.testing.fake_server import FakeServer
from mesos_py.testing.loop_thread import PATIENCE_S
from mesos_py.v1.executor_pb2 import Call, Event, Events
from mesos_py.v1.executor_pb2_grpc import (
    ExecutorServiceServicer,
    add_ExecutorServiceServicer_to_server,
)
from mesos_py.v1.types_pb2 import (
    AgentID,
    AgentInfo,
    ContainerID,
    DurationInfo,
    FrameworkID,
    FrameworkInfo,
    KillPolicy,
    TaskGroupInfo,
    TaskID,
    TaskInfo,
    TaskStatus,
)


class FakeAgent(FakeServer[Call, Event]):
    """See the module's docstring.  `directory` holds the socket and should have a short path."""

    def __init__(
        self,
        directory: Path,
        *,
        executor_id: str = "executor-1",
        framework_id: str = "framework-1",
        checkpoint: bool = False,
        recovery_timeout_s: float = 5.0,
        shutdown_grace_s: float = 5.0,
    ) -> None:
        super().__init__("fake agent")
        self.acknowledging = True
        self.environment = ExecutorEnvironment(
            agent_endpoint=f"unix:{directory / 'agent.sock'}",
            framework_id=framework_id,
            executor_id=executor_id,
            checkpoint=checkpoint,
            recovery_timeout_s=recovery_timeout_s,
            backoff_max_s=0.1,
            shutdown_grace_s=shutdown_grace_s,
            sandbox=str(directory),
        )

    def __enter__(self) -> Self:
        self._enter()
        return self

    @property
    def environ(self) -> dict[str, str]:
        """What an executor that is a process of its own is to find in its environment."""
        known = self.environment
        return {
            "MESOS_PY_EXECUTOR_ENDPOINT": known.agent_endpoint,
            "MESOS_FRAMEWORK_ID": known.framework_id,
            "MESOS_EXECUTOR_ID": known.executor_id,
            "MESOS_CHECKPOINT": "1" if known.checkpoint else "0",
            "MESOS_RECOVERY_TIMEOUT": f"{known.recovery_timeout_s}secs",
            "MESOS_SUBSCRIPTION_BACKOFF_MAX": f"{known.backoff_max_s}secs",
            "MESOS_EXECUTOR_SHUTDOWN_GRACE_PERIOD": f"{known.shutdown_grace_s}secs",
            "MESOS_SANDBOX": known.sandbox,
        }

    # ---- What came -----------------------------------------------------------

    def statuses(self, task_id: str | None = None) -> list[TaskStatus]:
        """All statuses so far, of one task or of all; repeated ones come repeatedly."""
        found = [call.update.status for call in self.calls if call.type == Call.UPDATE]
        return [s for s in found if task_id is None or s.task_id.value == task_id]

    def wait_for_status(
        self, task_id: str, state: TaskState.ValueType, timeout_s: float = PATIENCE_S
    ) -> TaskStatus:
        """The task's status with this state, once it is there."""

        def wanted(call: Call) -> bool:
            status = call.update.status
            return (
                call.type == Call.UPDATE
                and status.task_id.value == task_id
                and status.state == state
            )

        found: Call = self._log.wait(wanted, 1, timeout_s)[0]
        return found.update.status

    # ---- What is said --------------------------------------------------------

    def launch(self, *tasks: TaskInfo) -> None:
        self.send(*(Event(type=Event.LAUNCH, launch=Event.Launch(task=task)) for task in tasks))

    def launch_group(self, *tasks: TaskInfo) -> None:
        group = TaskGroupInfo(tasks=tasks)
        launch = Event.LaunchGroup(task_group=group)
        self.send(Event(type=Event.LAUNCH_GROUP, launch_group=launch))

    def kill(self, task_id: str, grace_s: float | None = None) -> None:
        kill = Event.Kill(task_id=TaskID(value=task_id))
        if grace_s is not None:
            grace = DurationInfo(nanoseconds=int(grace_s * 1e9))
            kill.kill_policy.CopyFrom(KillPolicy(grace_period=grace))
        self.send(Event(type=Event.KILL, kill=kill))

    def message(self, data: bytes) -> None:
        self.send(Event(type=Event.MESSAGE, message=Event.Message(data=data)))

    def shutdown(self) -> None:
        self.send(Event(type=Event.SHUTDOWN))

    def acknowledge(self, status: TaskStatus) -> None:
        self.send(_acknowledged(status))

    def error(self, message: str) -> None:
        """Say ERROR and end the stream."""
        self.end_with(Event(type=Event.ERROR, error=Event.Error(message=message)))

    # ---- On the loop ---------------------------------------------------------

    def _bind(self, server: grpc.aio.Server) -> None:
        add_ExecutorServiceServicer_to_server(_Service(self), server)
        server.add_insecure_port(self.environment.agent_endpoint)

    def _batch(self, events: list[Event]) -> Events:
        return Events(events=events)

    def _answer(self, call: Call) -> list[Event]:
        subscribed = Event.Subscribed(
            executor_info=make_executor(self.environment.executor_id),
            framework_info=FrameworkInfo(
                name="test", id=FrameworkID(value=self.environment.framework_id)
            ),
            agent_info=AgentInfo(hostname="host-1", id=AgentID(value="agent-1")),
            container_id=ContainerID(value="container-1"),
        )
        events = [Event(type=Event.SUBSCRIBED, subscribed=subscribed)]
        if self.acknowledging:
            events += [_acknowledged(u.status) for u in call.subscribe.unacknowledged_updates]
        return events

    def _on_call(self, call: Call) -> None:
        if call.type == Call.UPDATE and self.acknowledging:
            self.reply(_acknowledged(call.update.status))


def _acknowledged(status: TaskStatus) -> Event:
    acknowledged = Event.Acknowledged(task_id=status.task_id, uuid=status.uuid)
    return Event(type=Event.ACKNOWLEDGED, acknowledged=acknowledged)


class _Service(ExecutorServiceServicer):
    def __init__(self, agent: FakeAgent) -> None:
        self._agent = agent

    async def Subscribe(self, request_iterator: Any, context: Any) -> AsyncIterator[Events]:
        async for batch in self._agent.serve(aiter(request_iterator), context):
            yield batch


__all__ = ["FakeAgent"]
