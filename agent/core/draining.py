"""The agent is to be emptied: whatever runs here is ended, and nothing new begins.

The master says so after each registration, and it stands in the checkpoint, so that an
agent that is started again in the middle goes on by itself.
"""

from __future__ import annotations

from agent.core import commands, executors
from agent.core.effects import ExecutorKey
from agent.core.environment import shutdown_grace_s
from agent.core.records import Executor, Task
from agent.core.state import AgentState
from mesos_py.clock import Now
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import types_pb2 as pb


def drain(s: AgentState, event: agent_pb2.Event.Drain, now: Now) -> None:
    """DRAIN, perhaps for the second time; without `config` it is over."""
    if not event.HasField("config"):
        s.drain = None
        for container_id in s.containers:
            s.timers.cancel(("drain", container_id))
    else:
        s.drain = pb.DrainConfig()
        s.drain.CopyFrom(event.config)
        go_on(s, now)
    s.note_self()


def go_on(s: AgentState, now: Now) -> None:
    """End all that runs, if the agent is being drained.  Repeating it shortens nothing but
    a grace that is longer than what is left of the new one."""
    if s.drain is None:
        return
    for executor in list(s.containers.values()):
        for task in list(executor.tasks.values()):
            if executor.custom:
                executors.kill(s, task, _policy(s, task), now)
            else:
                commands.kill(s, task, _policy(s, task), now)
        if not executor.custom:
            continue
        timer = ("drain", executor.container_id)
        if s.drain.HasField("max_grace_period") and s.timers.at_s(timer) is None:
            # What an executor takes for a kill is its own affair, but not for ever.
            s.timers.set(timer, now.monotonic_s + _max_grace_s(s.drain))
        _end_idle(s, executor, now)


def look(s: AgentState, key: ExecutorKey, now: Now) -> None:
    """The executor has said something: perhaps that its last task has ended."""
    executor = s.executors.get(key)
    if s.drain is not None and executor is not None:
        _end_idle(s, executor, now)


def out_of_time(s: AgentState, executor: Executor, now: Now) -> None:
    """The longest grace is over, and the executor still has tasks."""
    executors.shut_down(s, executor, now)


def _end_idle(s: AgentState, executor: Executor, now: Now) -> None:
    """An executor without tasks would wait for more, and none will come."""
    if s.drain is None or executor.info is None or executor.tasks or executor.ending:
        return
    executors.shut_down(s, executor, now)
    if s.drain.HasField("max_grace_period"):
        grace_s = min(shutdown_grace_s(s, executor.info), _max_grace_s(s.drain))
        s.end(executor, grace_s, now, ask=False)


def _policy(s: AgentState, task: Task) -> pb.KillPolicy | None:
    """The drain's grace, where the task has none or a longer one; None: as the task has it."""
    assert s.drain is not None
    if not s.drain.HasField("max_grace_period"):
        return None
    policy = pb.KillPolicy()
    policy.grace_period.nanoseconds = max(0, s.drain.max_grace_period.nanoseconds)
    own = task.info.kill_policy
    if own.HasField("grace_period"):
        shorter = min(policy.grace_period.nanoseconds, own.grace_period.nanoseconds)
        policy.grace_period.nanoseconds = shorter
    return policy


def _max_grace_s(config: pb.DrainConfig) -> float:
    return max(0.0, config.max_grace_period.nanoseconds / 1e9)
