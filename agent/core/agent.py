"""The face of the agent's core: one method for each thing that can happen.

Every method takes the moment at which it happens and leaves what is to be done in
`take_effects`.  Nothing here waits, reads a clock or fails on what peers send.
"""

from __future__ import annotations

from agent.core import (
    checks,
    commands,
    containers,
    draining,
    executors,
    launch,
    operations,
    probing,
    recovery,
    registration,
)
from agent.core.effects import Effect, ExecutorKey, LinkVolumes, SentAway, Signal, Stop, TaskKey
from agent.core.health import Outcome
from agent.core.journal import Change, Kind
from agent.core.records import Exit, KillCause, Place, Reason
from agent.core.recovery import Record, Restored, SavedContainer
from agent.core.state import AgentState, Ids, Settings
from agent.core.updates import Ack
from agent.core.volume_uses import VolumeKey, keys_of
from agent.core.volumes import NOWHERE, Directories
from mesos_py.clock import Now
from mesos_py.v1 import agent_pb2, executor_pb2
from mesos_py.v1 import types_pb2 as pb

# A wake-up that much too late: this process was stopped or starved, and what peers have
# said meanwhile is not read yet.
STALL_S = 1.0
# When to look again at what waits for the checkpoint.
BLOCKED_AGAIN_S = 1.0
# What is carried out although nothing can be written down.
_KILLS = frozenset({"force", "completion", "overtime", "overtime end"})


class AgentCore:
    """All decisions of one agent.  Used from one thread."""

    def __init__(
        self,
        settings: Settings,
        info: pb.AgentInfo,
        ids: Ids,
        directories: Directories = NOWHERE,
    ) -> None:
        """`info` is kept, and gets its id when the master has given one.

        `directories`: where volumes are; without any the agent cannot make one.
        """
        self.state = AgentState(settings, info, ids, directories)

    def take_effects(self) -> list[Effect]:
        """What is to be done since the last call, in order."""
        effects, self.state.effects = self.state.effects, []
        return effects

    def take_changes(self) -> list[Change]:
        """What is to be written down before the effects are carried out."""
        return self.state.journal.take()

    def next_deadline_s(self) -> float | None:
        """When `on_time` should be called, on the monotonic clock."""
        s = self.state
        deadlines = [s.timers.next_s(), s.updates.next_s(), s.operations.next_s()]
        return min((each for each in deadlines if each is not None), default=None)

    def on_time(self, now: Now) -> None:
        """Time has passed."""
        s = self.state
        planned_s = self.next_deadline_s()
        if planned_s is not None and now.monotonic_s - planned_s > STALL_S:
            executors.wait_anew(s, now)
            checks.look_anew(s, now.monotonic_s - planned_s, now)
        for kind, container_id, *of_task in s.timers.due(now.monotonic_s):
            executor = s.containers[container_id]  # forgetting it cancels its timers
            if s.blocked_since_s is not None and kind not in _KILLS:
                # Who is waited for was not sent what it should answer.
                again_s = now.monotonic_s + BLOCKED_AGAIN_S
                s.timers.set((kind, container_id, *of_task), again_s)
            elif kind == "force":
                s.force(executor)
            elif kind == "completion":
                commands.out_of_time(s, executor, now)
            elif kind == "overtime":
                executors.overdue(s, executor, of_task[0], now)
            elif kind == "overtime end":
                executors.outlived(s, executor, of_task[0], now)
            elif kind == "drain":
                draining.out_of_time(s, executor, now)
            elif kind in probing.DUE or kind in probing.LIMIT:
                checks.on_timer(s, executor, kind, of_task[0], now)
            else:
                executors.out_of_time(s, executor, now)
        s.updates.repeat(now)
        s.operations.repeat(now)

    def on_checkpoint(self, *, writable: bool, now: Now) -> None:
        """Whether what is decided is carried out; while it is not only kills are."""
        s = self.state
        if not writable:
            s.blocked_since_s = now.monotonic_s
        elif s.blocked_since_s is not None:
            lost_s = now.monotonic_s - s.blocked_since_s
            s.blocked_since_s = None
            executors.wait_anew(s, now)
            checks.look_anew(s, lost_s, now)

    # ---- The earlier run of this agent ----------------------------------------------

    def restore(self, records: list[Record], now: Now) -> Restored:
        """Before anything else: go on from where the records say that the agent was.

        Raises InvalidValue when the agent's own record cannot be read.
        """
        return recovery.restore(self.state, records, now)

    def saved_containers(self) -> list[SavedContainer]:
        """The containers to look for after `restore`: each is there still, or has ended."""
        return recovery.saved_containers(self.state)

    def saved_volumes(self) -> tuple[set[VolumeKey], int]:
        """The volumes that there are after `restore`, and the generation of operations of
        which that is known: what was put aside later belongs to one of them."""
        return keys_of(self.state.total), self.state.generation

    def on_executors_welcome(self, now: Now) -> None:
        """Executors can connect from now on: their time to come back begins."""
        recovery.wait_for_executors(self.state, now)
        draining.go_on(self.state, now)

    def on_rebooted(self, now: Now) -> None:
        """After `restore`: the kernel is another one, so none of them is."""
        for container_id, exit in recovery.rebooted(self.state, now):
            containers.ended(self.state, container_id, exit, now)

    # ---- The master ---------------------------------------------------------------

    def register_call(self, version: str, protocol_version: int) -> agent_pb2.Call:
        """The first message on a new link."""
        return registration.register_call(self.state, version, protocol_version)

    def on_epoch(self, epoch: int) -> None:
        """The events that follow are orders of this leadership."""
        registration.orders_of(self.state, epoch)

    def on_disconnected(self) -> None:
        """The link is gone, or never came about.  Tasks go on."""
        registration.disconnected(self.state)

    def on_master_event(self, event: agent_pb2.Event, now: Now) -> None:
        """Anything the master says except REFUSED and PING, which concern the link."""
        s = self.state
        kind = event.type
        if kind == agent_pb2.Event.ACKNOWLEDGE:
            self._acknowledge(event.acknowledge, now)
        elif kind == agent_pb2.Event.RUN_TASKS:
            launch.run_tasks(s, event.run_tasks, now)
        elif kind == agent_pb2.Event.KILL_TASK:
            self._kill(event.kill_task, now)
        elif kind == agent_pb2.Event.EXECUTOR_MESSAGE:
            message = event.executor_message
            executors.message(
                s, (message.framework_id.value, message.executor_id.value), message.data
            )
        elif kind == agent_pb2.Event.SHUTDOWN_EXECUTOR:
            order = event.shutdown_executor
            self._shut_down_executor((order.framework_id.value, order.executor_id.value), now)
        elif kind == agent_pb2.Event.SHUTDOWN_FRAMEWORK:
            self._shut_down_framework(event.shutdown_framework.framework_id.value, now)
        elif kind == agent_pb2.Event.UPDATE_FRAMEWORK:
            self._update_framework(event.update_framework.framework_info)
        elif kind == agent_pb2.Event.DRAIN:
            draining.drain(s, event.drain, now)
        elif kind == agent_pb2.Event.SHUTDOWN:
            self.on_sent_away(event.shutdown.message, now)
        elif not registration.on_event(s, event, now) and not operations.on_event(s, event, now):
            s.drop("unknown event", type=str(kind))

    def _acknowledge(self, event: agent_pb2.Event.Acknowledge, now: Now) -> None:
        s = self.state
        key = (event.framework_id.value, event.task_id.value)
        result = s.updates.acknowledge(key, event.uuid, now)
        if result is Ack.ENDED:
            s.forget_task(key)
        elif result is Ack.NEXT:
            checks.acknowledged(s, key, now)
        else:
            s.drop(result.value, framework=key[0], task=key[1])

    def _kill(self, event: agent_pb2.Event.KillTask, now: Now) -> None:
        s = self.state
        key = (event.framework_id.value, event.task_id.value)
        task = s.tasks.get(key)
        policy = event.kill_policy if event.HasField("kill_policy") else None
        if task is None or task.key[1] not in task.executor.tasks:
            if task is not None or key in s.updates or s.history.get(key) is not None:
                s.drop("kill of a task that has ended", framework=key[0], task=key[1])
                return
            framework = s.frameworks.get(key[0])
            s.answer(
                key,
                framework is not None and framework.partition_aware,
                now,
                pb.TaskStatus.REASON_EXECUTOR_TERMINATED,
                "Task unknown to the agent",
            )
            return
        if event.HasField("reason") and not task.is_killed:
            task.kill_cause = KillCause(event.reason, event.message)
            s.journal.task(task)
        if task.executor.custom:
            executors.kill(s, task, policy, now)
        else:
            commands.kill(s, task, policy, now)

    def _shut_down_executor(self, key: ExecutorKey, now: Now) -> None:
        s = self.state
        executor = s.executors.get(key)
        if executor is None:
            s.drop("shutdown of an unknown executor", framework=key[0], executor=key[1])
        elif executor.custom:
            executors.shut_down(s, executor, now)
        else:
            commands.shut_down(s, executor, now)

    def _shut_down_framework(self, framework_id: str, now: Now) -> None:
        """The framework is gone for good: its tasks end, its updates interest nobody."""
        s = self.state
        if s.frameworks.pop(framework_id, None) is not None:
            s.journal.remove(Kind.FRAMEWORK, (framework_id,))
        s.operations.drop_framework(framework_id)
        for end in s.updates.drop_framework(framework_id):
            s.settle((framework_id, end.task_id.value), end)
        for key, executor in s.executors.items():
            if key[0] == framework_id:
                executor.abandoned = True
                s.journal.container(executor)
                self._shut_down_executor(key, now)

    def _update_framework(self, info: pb.FrameworkInfo) -> None:
        framework = self.state.frameworks.get(info.id.value)
        if framework is None:
            self.state.drop("update of an unknown framework", framework=info.id.value)
        else:
            framework.update(info)
            self.state.journal.framework(info)

    # ---- Executors ----------------------------------------------------------------

    def executor_standing(self, key: ExecutorKey) -> executors.Standing:
        """Who speaks when this executor does."""
        return executors.standing(self.state, key)

    def on_executor_subscribed(
        self, key: ExecutorKey, call: executor_pb2.Call.Subscribe, now: Now
    ) -> str | None:
        """Returns why the executor is refused; None: it was answered SUBSCRIBED."""
        refusal = executors.subscribe(self.state, key, call, now)
        draining.look(self.state, key, now)
        return refusal

    def on_executor_update(self, key: ExecutorKey, status: pb.TaskStatus, now: Now) -> str | None:
        """Takes `status` over.  Returns why it is refused; None: it is acknowledged."""
        refusal = executors.update(self.state, key, status, now)
        draining.look(self.state, key, now)
        return refusal

    def on_executor_message(self, key: ExecutorKey, data: bytes) -> None:
        if not self.state.registered:
            self.state.tally.messages_dropped += 1
            self.state.drop("message without a master", framework=key[0], executor=key[1])
            return
        self.state.tally.messages += 1
        message = agent_pb2.Call.ExecutorMessage(
            framework_id=pb.FrameworkID(value=key[0]),
            executor_id=pb.ExecutorID(value=key[1]),
            data=data,
        )
        self.state.send(
            agent_pb2.Call(type=agent_pb2.Call.EXECUTOR_MESSAGE, executor_message=message)
        )

    def on_volumes_not_linked(self, effect: LinkVolumes, why: str, now: Now) -> None:
        """What a LinkVolumes asked for cannot be."""
        for _, task_id in effect.tasks:
            executors.not_handed_over(self.state, effect.key, task_id, why, now)
        draining.look(self.state, effect.key, now)

    def on_executor_disconnected(self, key: ExecutorKey, now: Now) -> None:
        executors.disconnected(self.state, key, now)

    # ---- Containers ---------------------------------------------------------------

    def on_container_addressed(self, container_id: str, addresses: tuple[str, ...]) -> None:
        """It has a network of its own, with these IP addresses."""
        containers.addressed(self.state, container_id, addresses)

    def on_container_started(
        self, container_id: str, pid: int, now: Now, start_ticks: int = 0
    ) -> None:
        """`start_ticks`: when the process began, as its stat says; 0 if it is unknown."""
        containers.started(self.state, container_id, pid, start_ticks, now)

    def on_container_failed(self, container_id: str, message: str, now: Now) -> None:
        """Its first process could not be started; nothing of it runs."""
        containers.failed(self.state, container_id, message, now)

    def on_container_ended(self, container_id: str, exit: Exit, now: Now) -> None:
        """All its processes are gone."""
        containers.ended(self.state, container_id, exit, now)

    def on_container_limited(
        self,
        container_id: str,
        reason: Reason,
        message: str,
        limitation: pb.TaskResourceLimitation,
        now: Now,
        *,
        fatal: bool = True,
    ) -> None:
        """It took more than it was given (isolators).  Not `fatal`: and goes on."""
        note = containers.over_limit if fatal else containers.hurt
        note(self.state, container_id, reason, message, limitation, now)

    def on_container_unwanted(self, container_id: str, signal: Signal, now: Now) -> None:
        containers.unwanted(self.state, container_id, signal, now)

    def on_probe_ended(
        self, container_id: str, check: str, number: int, outcome: Outcome, now: Now
    ) -> None:
        """What a StartProbe has found out."""
        checks.probe_ended(self.state, container_id, check, number, outcome, now)

    # ---- The operator -------------------------------------------------------------

    def on_stop(self, now: Now) -> None:
        """End all tasks with their grace; a Stop follows when nothing runs any more."""
        self._end_all(Stop("asked to stop", wanted=True), now)

    def on_sent_away(self, reason: str, now: Now) -> None:
        """The master has taken leave of this agent: end all tasks with their grace; a
        SentAway follows when nothing runs any more."""
        if self.state.stop is None:
            self._end_all(SentAway(reason), now)

    def _end_all(self, then: Stop | SentAway, now: Now) -> None:
        s = self.state
        s.stop, s.stopped = then, False
        for key in list(s.executors):
            self._shut_down_executor(key, now)
        containers.say_if_stopped(s)

    def on_stop_at_once(self, now: Now) -> None:
        """The same without grace."""
        s = self.state
        s.stop, s.stopped = Stop("asked to stop", wanted=True), False
        for executor in s.executors.values():
            executor.killed = True
            s.end(executor, 0.0, now)
        containers.say_if_stopped(s)

    # ---- Reading ------------------------------------------------------------------

    @property
    def unacknowledged(self) -> int:
        """How many tasks have updates that no framework has acknowledged."""
        return sum(1 for key in self.state.updates if self.state.updates.head(key) is not None)

    def find_task(self, key: TaskKey) -> Place | None:
        """Where the task's sandbox is; None if the task is not remembered."""
        task = self.state.tasks.get(key)
        if task is None:
            return self.state.history.get(key)
        return task.executor.place(key[1])
