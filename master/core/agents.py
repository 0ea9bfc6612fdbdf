"""Agents: registration, loss of the link, unreachable, removal.

What an agent brings back when it registers again is in returning.py.
"""

from __future__ import annotations

from master.allocator import base as alloc
from master.core import offers as offering
from master.core import returning, statuses
from master.core.cluster import Cluster
from master.core.ledger import require_fit
from master.core.reconcile import answer_ended
from master.core.records import Agent, Framework, Task, Turn
from mesos_py.clock import Now
from mesos_py.constraints import host_of
from mesos_py.errors import InvalidValue, MesosPyError, UnsupportedProtocol, shortened
from mesos_py.ids import check_id
from mesos_py.resources import Resources
from mesos_py.states import TASK_LOST, TASK_UNREACHABLE, TaskState, is_terminal
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb

MAX_UNREACHABLE_AGENTS = 10_000


def register(c: Cluster, link: int, call: agent_pb2.Call.Register, now: Now) -> None:
    """REGISTER on a new stream: answered with REGISTERED, or REFUSED and the end."""
    if link in c.agent_of_link:
        c.drop("agent-registered-twice", agent=c.agent_of_link[link])
        return
    known = c.agents.get(call.agent_info.id.value)
    if known is not None and Turn(call.instance, call.attempt).is_late(known.turn):
        c.drop("registration-overtaken", agent=known.agent_id)
        c.outbox.close(link, "a later stream of the agent has come before")
        return
    try:
        _register(c, link, call, now)
    except MesosPyError as error:
        message = shortened(error.message)
        c.drop("agent-refused", hostname=shortened(call.agent_info.hostname), why=message)
        refused = agent_pb2.Event.Refused(code=error.code, message=message, final=True)
        c.outbox.to_agent(link, agent_pb2.Event(type=agent_pb2.Event.REFUSED, refused=refused))
        c.outbox.close(link, message)


def _register(c: Cluster, link: int, call: agent_pb2.Call.Register, now: Now) -> None:
    info = pb.AgentInfo()
    info.CopyFrom(call.agent_info)
    known = c.agents.get(info.id.value) if info.id.value else None
    amount = _checked(c, info, known, call)
    # Everything that can be refused is refused before anything is changed.
    report = returning.read(call)
    charged = returning.charges(c, info.id.value, report)
    require_fit(info.id.value, amount, charged)
    was_unreachable = known is not None and known.unreachable is not None
    changed = known is not None and _hosts_differ(known.info, info)
    if known is None:
        agent = _new_agent(c, info, amount, call.version, now)
    else:
        agent = known
        _displace(c, agent, now)
        agent.info, agent.host, agent.total = info, host_of(info), amount
        agent.version, agent.reregistered = call.version, now
    c.ledger.put_agent(agent.agent_id, amount, charged)
    agent.capabilities = tuple(each.type for each in call.capabilities)
    agent.link, agent.disconnected, agent.unreachable = link, None, None
    c.agent_of_link[link] = agent.agent_id
    agent.turn = Turn(call.instance, call.attempt)
    agent.pings_unanswered = 0
    c.timers.cancel("unreachable", agent.agent_id)
    c.timers.set("ping", agent.agent_id, now.monotonic_s + c.options.agent_ping_s)
    c.counters["agents_registered" if known is None else "agents_reregistered"] += 1
    c.tell_agent(agent, now, attributes_changed=changed)
    _greet(c, agent)
    announce = was_unreachable or known is None
    returning.take_back(c, agent, report, announce, now)


def _hosts_differ(old: pb.AgentInfo, new: pb.AgentInfo) -> bool:
    """Whether a framework that refused the agent may think otherwise now."""
    return list(old.attributes) != list(new.attributes) or old.domain != new.domain


def _checked(
    c: Cluster, info: pb.AgentInfo, known: Agent | None, call: agent_pb2.Call.Register
) -> Resources:
    """The agent's resources.  Raises what is wrong with the registration."""
    if call.protocol_version > c.options.protocol_version:
        raise UnsupportedProtocol(
            f"the agent (version {call.version}) speaks protocol {call.protocol_version}, "
            f"this master at most {c.options.protocol_version}"
        )
    if not info.hostname:
        raise InvalidValue("agent_info.hostname", "", "must not be empty")
    if info.id.value:
        check_id("agent_info.id", info.id.value)
    if known is not None and known.info.hostname != info.hostname:
        raise InvalidValue(
            "agent_info.hostname", info.hostname, f"the agent was {known.info.hostname} before"
        )
    amount = Resources.from_proto("agent_info.resources", info.resources)
    if not amount:
        raise InvalidValue("agent_info.resources", "", "must not be empty")
    return amount


def _new_agent(c: Cluster, info: pb.AgentInfo, amount: Resources, version: str, now: Now) -> Agent:
    if not info.id.value:
        # A new agent where a disconnected one was: the old one cannot come back.
        for old in list(c.agents.values()):
            same = (old.info.ip, old.info.port, old.info.hostname)
            if not old.connected and info.port and same == (info.ip, info.port, info.hostname):
                remove(c, old, "another agent registered at its address", now)
        info.id.value = c.new_agent_id()
    agent = Agent(info.id.value, info, host_of(info), amount, version, registered=now)
    c.agents[agent.agent_id] = agent
    return agent


def _greet(c: Cluster, agent: Agent) -> None:
    registered = agent_pb2.Event.Registered(
        agent_id=pb.AgentID(value=agent.agent_id),
        ping_timeout_seconds=c.options.agent_ping_s * c.options.agent_max_missed_pings,
        master_info=c.info,
        protocol_version=c.options.protocol_version,
    )
    c.to_agent(agent, agent_pb2.Event(type=agent_pb2.Event.REGISTERED, registered=registered))


def _displace(c: Cluster, agent: Agent, now: Now) -> None:
    """An older stream of the same agent is ended; its offers are void."""
    offering.drop_all(c, agent.offers, "the agent registered again", now, tell=True)
    if agent.link is not None:
        del c.agent_of_link[agent.link]
        c.outbox.close(agent.link, "the agent registered again")
        agent.link = None


# ---- Liveness --------------------------------------------------------------------


def ping(c: Cluster, agent_id: str, now: Now) -> None:
    """Time to ping.  Counting unanswered pings, not seconds, forgives our own pauses."""
    agent = c.agents[agent_id]
    if agent.pings_unanswered >= c.options.agent_max_missed_pings:
        c.drop("agent-silent", agent=agent_id, pings=agent.pings_unanswered)
        unreachable(c, agent, f"{agent.pings_unanswered} pings went unanswered", now)
        return
    agent.pings_unanswered += 1
    agent.ping_sequence += 1
    order = agent_pb2.Event.Ping(sequence=agent.ping_sequence)
    c.to_agent(agent, agent_pb2.Event(type=agent_pb2.Event.PING, ping=order))
    c.timers.set("ping", agent_id, now.monotonic_s + c.options.agent_ping_s)


def disconnected(c: Cluster, link: int, now: Now) -> None:
    """A stream ended.  The agent's tasks go on; it has some time to come back."""
    agent_id = c.agent_of_link.pop(link, None)
    if agent_id is None:
        return  # it never registered, or was displaced or cut off
    agent = c.agents[agent_id]
    agent.link = None
    agent.disconnected = now
    c.timers.cancel("ping", agent.agent_id)
    c.timers.set("unreachable", agent.agent_id, now.monotonic_s + c.options.agent_timeout_s)
    offering.drop_all(c, agent.offers, "the agent disconnected", now, tell=True)
    c.tell_agent(agent, now)


def timed_out(c: Cluster, agent_id: str, now: Now) -> None:
    unreachable(c, c.agents[agent_id], f"away for {c.options.agent_timeout_s:g} s", now)


# ---- Ends -------------------------------------------------------------------------


def unreachable(c: Cluster, agent: Agent, why: str, now: Now) -> None:
    """The agent counts as cut off: it, and the tasks on it, may come back."""
    lost = _cut_off(c, agent, f"agent unreachable: {why}", now)
    agent.unreachable = now
    c.counters["agents_unreachable"] += 1
    for framework, task in lost:
        _report(c, framework, task, TASK_UNREACHABLE, f"agent unreachable: {why}", now)
        del framework.tasks[task.task_id]
        task.state = TASK_UNREACHABLE
        framework.unreachable_tasks[task.task_id] = task
        if len(framework.unreachable_tasks) > c.options.max_unreachable_tasks:
            oldest = next(iter(framework.unreachable_tasks.values()))
            c.complete(framework, oldest, now)
    away = [(a.unreachable, a.agent_id) for a in c.agents.values() if a.unreachable is not None]
    if len(away) > MAX_UNREACHABLE_AGENTS:
        del c.agents[min(away)[1]]


def remove(c: Cluster, agent: Agent, why: str, now: Now) -> None:
    """The agent is gone for good: its tasks are lost (also for partition-aware ones)."""
    lost = _cut_off(c, agent, f"agent removed: {why}", now)
    del c.agents[agent.agent_id]
    c.counters["agents_removed"] += 1
    for framework in c.frameworks.values():
        for task in list(framework.unreachable_tasks.values()):
            if task.agent_id == agent.agent_id:
                lost.append((framework, task))
    for framework, task in lost:
        _report(c, framework, task, TASK_LOST, f"agent removed: {why}", now)
        task.state = TASK_LOST
        c.complete(framework, task, now)


def _cut_off(c: Cluster, agent: Agent, why: str, now: Now) -> list[tuple[Framework, Task]]:
    """Take the agent out of the account; the tasks that had not ended."""
    agent_id = agent.agent_id
    offering.drop_all(c, agent.offers, why, now, tell=True)
    if agent.link is not None:
        del c.agent_of_link[agent.link]
        c.outbox.close(agent.link, why)
        agent.link = None
        agent.disconnected = now
    c.timers.cancel("ping", agent_id)
    c.timers.cancel("unreachable", agent_id)
    for key in [key for key in c.lingering if key[0] == agent_id]:
        del c.lingering[key]
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
    failure = sched.Event.Failure(agent_id=pb.AgentID(value=agent_id))
    for framework in c.frameworks.values():
        c.to_framework(framework, sched.Event(type=sched.Event.FAILURE, failure=failure))
    return lost


def _report(
    c: Cluster, framework: Framework, task: Task, state: TaskState.ValueType, why: str, now: Now
) -> None:
    status = statuses.master_status(
        task.task_id,
        task.agent_id,
        statuses.for_framework(framework, state),
        pb.TaskStatus.REASON_AGENT_REMOVED,
        why,
        now,
    )
    if state == TASK_UNREACHABLE:
        status.unreachable_time.nanoseconds = int(now.wall_s * 1e9)
        # It may come back: this is not the end that the history shows.
        task.statuses.keep(status)
    else:
        statuses.record(task, status, now)
    statuses.send(c, framework, status)


# ---- Executors ---------------------------------------------------------------------


def executor_exited(
    c: Cluster, agent: Agent, call: agent_pb2.Call.ExecutorExited, now: Now
) -> None:
    """A custom executor's processes are gone; its tasks' updates come separately."""
    framework_id, executor_id = call.framework_id.value, call.executor_id.value
    agent.executors.discard((framework_id, executor_id))
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
