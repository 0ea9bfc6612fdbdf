"""Agents: pings, loss of the link, unreachable, removal.

How an agent is admitted is in admission.py, what it brings back in returning.py.  That
an agent is taken for lost, or is removed, is stored before anybody is told of it; what
is to follow then looks anew whether it still holds.
"""

from __future__ import annotations

from functools import partial

from master.allocator import base as alloc
from master.core import admitted, draining, inverse_offers, operations, revoking, statuses
from master.core import offers as offering
from master.core.cluster import Cluster
from master.core.gone import is_gone
from master.core.reconcile import answer_ended
from master.core.records import Agent, Expected, Framework, Task
from mesos_py.clock import Now
from mesos_py.constraints import host_of
from mesos_py.resources import Resources
from mesos_py.states import TASK_LOST, TASK_UNREACHABLE, TaskState, is_terminal
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import registry_pb2 as reg
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb

# ---- Liveness --------------------------------------------------------------------


def ping(c: Cluster, agent_id: str, now: Now) -> None:
    """Time to ping.  Counting unanswered pings, not seconds, forgives our own pauses."""
    agent = c.agents[agent_id]
    if agent.pings_unanswered >= c.options.agent_max_missed_pings:
        if not agent.leaving:
            c.drop("agent-silent", agent=agent_id, pings=agent.pings_unanswered)
            _offer_no_more(c, agent, "the agent does not answer", now)
        lose(c, agent_id, f"{agent.pings_unanswered} pings went unanswered", now)
        if not agent.connected:
            return
    agent.pings_unanswered += 1
    agent.ping_sequence += 1
    order = agent_pb2.Event.Ping(sequence=agent.ping_sequence)
    c.to_agent(agent, agent_pb2.Event(type=agent_pb2.Event.PING, ping=order))
    c.timers.set("ping", agent_id, now.monotonic_s + c.options.agent_ping_s)


def pong(c: Cluster, agent: Agent, now: Now) -> None:
    """It is there: if it was about to be taken for lost, that is over."""
    agent.pings_unanswered = 0
    if agent.agent_id in c.removals:
        c.removals.discard(agent.agent_id)
        _offer_again(c, agent, now)


def _offer_no_more(c: Cluster, agent: Agent, why: str, now: Now) -> None:
    offering.drop_all(c, agent.offers, why, now, tell=True)
    agent.leaving = True
    c.tell_agent(agent, now)


def _offer_again(c: Cluster, agent: Agent, now: Now) -> None:
    agent.leaving = False
    c.tell_agent(agent, now)


def disconnected(c: Cluster, link: int, now: Now) -> None:
    """A stream ended.  The agent's tasks go on; it has some time to come back."""
    agent_id = c.agent_of_link.pop(link, None)
    if agent_id is None:
        return  # it never registered, or was displaced or cut off
    agent = c.agents[agent_id]
    agent.link = None
    agent.disconnected = now
    c.timers.cancel("ping", agent.agent_id)
    c.judge("unreachable", agent.agent_id, now.monotonic_s + c.options.agent_timeout_s, now)
    offering.drop_all(c, agent.offers, "the agent disconnected", now, tell=True)
    inverse_offers.rescind_of(c, agent.agent_id)
    c.tell_agent(agent, now)


def ask_anew(c: Cluster, agent: Agent, why: str, now: Now) -> None:
    """What is known of it is wrong: it has to register again, with all that it has."""
    link = agent.link
    if link is not None:
        disconnected(c, link, now)
        c.outbox.close(link, why)


def timed_out(c: Cluster, agent_id: str, now: Now) -> None:
    lose(c, agent_id, f"away for {c.options.agent_timeout_s:g} s", now)


# ---- Unreachable ------------------------------------------------------------------


def lose(c: Cluster, agent_id: str, why: str, now: Now) -> None:
    """The agent is to be taken for lost as soon as the limit on that allows.

    Whoever hears of the agent before takes it off the list: `c.removals.discard`.
    """
    record = admitted.record_of(c, agent_id)
    if record is None or record.HasField("unreachable_time") or is_gone(record):
        return  # that, or its removal, is decided already
    c.removals.add(agent_id, why)
    take_removals(c, now)


def take_removals(c: Cluster, now: Now) -> None:
    """Go on with those that the limit allows now."""
    while (taken := c.removals.take(now.monotonic_s)) is not None:
        _mark(c, *taken, now)
    next_s = c.removals.next_s()
    if next_s is None:
        c.timers.cancel("removal", "")
    else:
        c.judge("removal", "", max(next_s, now.monotonic_s), now)


def _mark(c: Cluster, agent_id: str, why: str, since: Now) -> None:
    record = admitted.record_of(c, agent_id)
    if record is None or is_gone(record):
        return  # that was decided while it waited for the limit

    def alter(record: reg.Agent) -> None:
        record.unreachable_time.nanoseconds = int(since.wall_s * 1e9)

    admitted.change(c, agent_id, alter, partial(_marked, c, agent_id, why, since), since)


def _marked(c: Cluster, agent_id: str, why: str, since: Now, now: Now) -> None:
    """It is stored that the agent is unreachable: tell everybody, if it still is."""
    record = admitted.record_of(c, agent_id)
    if record is None or not record.HasField("unreachable_time") or agent_id in c.gone:
        c.drop("unreachable-agent-came-back", agent=agent_id)
        return
    if is_gone(record):
        return  # which was decided meanwhile, and says more
    expected = c.expected.pop(agent_id, None)
    if expected is not None:
        c.counters["agents_unreachable"] += 1
        agent = put_away(c, expected, since)
        _tell_lost(c, agent)
        prune(c, now)
        return
    agent = c.agents[agent_id]
    if agent.connected and agent.pings_unanswered < c.options.agent_max_missed_pings:
        c.drop("unreachable-agent-answered", agent=agent_id)
        admitted.change(c, agent_id, admitted.mark_reachable, admitted.nothing_follows, now)
        _offer_again(c, agent, now)
        return
    unreachable(c, agent, why, since, now)


def stay_unreachable(c: Cluster, agent: Agent, since: Now, now: Now) -> None:
    """It was on its way back, and is away again before anybody was told."""
    c.unreachable[agent.agent_id] = None

    def alter(record: reg.Agent) -> None:
        record.unreachable_time.nanoseconds = int(since.wall_s * 1e9)

    admitted.change(c, agent.agent_id, alter, admitted.nothing_follows, now)


def put_away(c: Cluster, expected: Expected, since: Now) -> Agent:
    """The record of an agent that is unreachable, and that this master has never seen."""
    info = expected.info
    agent = c.agents[expected.agent_id] = Agent(
        expected.agent_id,
        info,
        host_of(info),
        Resources.from_proto("agent_info.resources", info.resources),
        version="",
        registered=None,
        unreachable=since,
    )
    c.unreachable[agent.agent_id] = None
    draining.recall(c, agent)
    return agent


def unreachable(c: Cluster, agent: Agent, why: str, since: Now, now: Now) -> None:
    """The agent counts as cut off: it, and the tasks on it, may come back."""
    operations.agent_lost(c, agent, pb.OPERATION_UNREACHABLE, f"agent unreachable: {why}", now)
    lost = _cut_off(c, agent, f"agent unreachable: {why}", now)
    agent.unreachable = since
    c.unreachable[agent.agent_id] = None
    c.counters["agents_unreachable"] += 1
    for framework, task in lost:
        _report(c, framework, task, TASK_UNREACHABLE, f"agent unreachable: {why}", now)
        del framework.tasks[task.task_id]
        task.state = TASK_UNREACHABLE
        c.unreachable_task(framework, task)
        if len(framework.unreachable_tasks) > c.options.max_unreachable_tasks:
            oldest = next(iter(framework.unreachable_tasks.values()))
            c.complete(framework, oldest, now)
    prune(c, now)


def prune(c: Cluster, now: Now) -> None:
    """Only so many unreachable agents are remembered: the longest absent is forgotten."""
    while len(c.unreachable) > c.options.max_remembered_agents:
        agent_id = next(iter(c.unreachable))
        c.drop("unreachable-agent-forgotten", agent=agent_id)
        forget(c, agent_id)
        admitted.remove(c, agent_id, admitted.nothing_follows, now)


def forget(c: Cluster, agent_id: str) -> None:
    """Take it out of the lists of agents."""
    del c.agents[agent_id]
    c.unreachable.pop(agent_id, None)
    c.places.forget(agent_id)


# ---- Ends -------------------------------------------------------------------------


def leave(c: Cluster, agent: Agent, why: str, now: Now) -> None:
    """The agent ends for good by itself."""
    if is_gone(admitted.record_of(c, agent.agent_id)):
        return  # it is removed as soon as that is stored, and its record stays
    _offer_no_more(c, agent, why, now)
    admitted.remove(c, agent.agent_id, partial(_left, c, agent.agent_id, why), now)


def _left(c: Cluster, agent_id: str, why: str, now: Now) -> None:
    agent = c.agents.get(agent_id)
    if agent is not None and admitted.record_of(c, agent_id) is None:
        remove(c, agent, why, now)


def remove(
    c: Cluster,
    agent: Agent,
    why: str,
    now: Now,
    state: TaskState.ValueType = TASK_LOST,
    reason: pb.TaskStatus.Reason.ValueType = pb.TaskStatus.REASON_AGENT_REMOVED,
) -> None:
    """The agent is gone for good, and the registry says so (a successor does not expect
    it): its tasks are lost (also for partition-aware frameworks), or what `state` says."""
    gone = pb.OPERATION_GONE_BY_OPERATOR if agent.agent_id in c.gone else None
    operations.agent_lost(c, agent, gone, f"agent removed: {why}", now)
    lost = _cut_off(c, agent, f"agent removed: {why}", now)
    forget(c, agent.agent_id)
    c.counters["agents_removed"] += 1
    lost += c.unreachable_tasks_on(agent.agent_id)
    for framework, task in lost:
        _report(c, framework, task, state, f"agent removed: {why}", now, reason)
        task.state = statuses.for_framework(framework, state)
        c.complete(framework, task, now)


def _cut_off(c: Cluster, agent: Agent, why: str, now: Now) -> list[tuple[Framework, Task]]:
    """Take the agent out of the account; the tasks that had not ended."""
    agent_id = agent.agent_id
    if c.news is not None:
        c.news.agent_removed(agent_id)
    offering.drop_all(c, agent.offers, why, now, tell=True)
    inverse_offers.forget_agent(c, agent_id)
    if agent.link is not None:
        del c.agent_of_link[agent.link]
        c.outbox.close(agent.link, why)
        agent.link = None
        agent.disconnected = now
    agent.leaving = False
    c.removals.discard(agent_id)
    c.timers.cancel("ping", agent_id)
    c.timers.cancel("unreachable", agent_id)
    c.timers.cancel("drained", agent_id)
    for key in [key for key in c.lingering if key[0] == agent_id]:
        del c.lingering[key]
    revoking.agent_lost(c, agent_id, now)
    if c.ledger.has(agent_id):
        c.ledger.remove_agent(agent_id)
    c.allocator.tell(alloc.AgentRemoved(agent_id))
    c.want_allocation(now)
    lost: list[tuple[Framework, Task]] = []
    for framework_id, task_id in sorted(agent.tasks):
        framework = c.frameworks[framework_id]
        task = framework.tasks[task_id]
        if is_terminal(task.state):
            answer_ended(c, framework, task, now)
            c.complete(framework, task, now)
        else:
            lost.append((framework, task))
    agent.tasks.clear()
    for framework_id, executor_id in agent.executors:
        del c.frameworks[framework_id].executors[agent_id, executor_id]
    agent.executors.clear()
    _tell_lost(c, agent)
    return lost


def _tell_lost(c: Cluster, agent: Agent) -> None:
    failure = sched.Event.Failure(agent_id=pb.AgentID(value=agent.agent_id))
    for framework in c.frameworks.values():
        c.to_framework(framework, sched.Event(type=sched.Event.FAILURE, failure=failure))


def _report(
    c: Cluster,
    framework: Framework,
    task: Task,
    state: TaskState.ValueType,
    why: str,
    now: Now,
    reason: pb.TaskStatus.Reason.ValueType = pb.TaskStatus.REASON_AGENT_REMOVED,
) -> None:
    status = statuses.master_status(
        task.task_id,
        task.agent_id,
        statuses.for_framework(framework, state),
        reason,
        why,
        now,
    )
    if state == TASK_UNREACHABLE:
        statuses.put_absence(status, c.agents[task.agent_id])
        # It may come back: this is not the end that the history shows.
        statuses.keep(c, task, status)
    else:
        statuses.record(c, task, status, now)
    statuses.send(c, framework, status)


# ---- Executors ---------------------------------------------------------------------


def executor_exited(
    c: Cluster, agent: Agent, call: agent_pb2.Call.ExecutorExited, now: Now
) -> None:
    """A custom executor's processes are gone; its tasks' updates come separately."""
    framework_id, executor_id = call.framework_id.value, call.executor_id.value
    agent.executors.discard((framework_id, executor_id))
    c.emptier(agent.agent_id, now)
    framework = c.frameworks.get(framework_id)
    key = (agent.agent_id, executor_id)
    executor = framework.executors.pop(key, None) if framework is not None else None
    if framework is None or executor is None:
        if not c.settle(agent.agent_id, framework_id, "executor", executor_id, now):
            c.drop("unknown-executor-exited", executor=executor_id, agent=agent.agent_id)
        return
    c.release(agent.agent_id, executor.holder, now)
    failure = sched.Event.Failure(
        agent_id=pb.AgentID(value=agent.agent_id),
        executor_id=call.executor_id,
        status=call.status,
    )
    c.to_framework(framework, sched.Event(type=sched.Event.FAILURE, failure=failure))
