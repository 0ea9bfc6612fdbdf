"""What an agent brings when it registers: tasks, executors, frameworks.

The agent's own account is the truth about what runs.  Tasks that the master knows
and the agent does not name stay charged until the agent has answered for them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TypeAlias

from master.core import kills, operations, statuses
from master.core.cluster import Cluster
from master.core.framework_checks import checked_roles
from master.core.frameworks import failover_s, order_shutdown
from master.core.ledger import Holder
from master.core.reconcile import answer_ended
from master.core.records import Agent, Executor, Framework, Task, cost_of, extras_of
from mesos_py.clock import Now
from mesos_py.conversions import reserved_part, with_volumes_as
from mesos_py.errors import InvalidValue, MesosPyError, shortened
from mesos_py.ids import check_id
from mesos_py.resources import Resources, total
from mesos_py.states import (
    REPORTED,
    TASK_DROPPED,
    TASK_GONE,
    TASK_LOST,
    TASK_UNREACHABLE,
    is_terminal,
    may_follow,
)
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb

# (framework_id, task_id) or (framework_id, executor_id)
Key: TypeAlias = tuple[str, str]


@dataclass(slots=True)
class Report:
    """What a registration names, checked and by id: of each id the first record."""

    tasks: dict[Key, tuple[pb.Task, Resources]] = field(default_factory=dict)
    executors: dict[Key, tuple[pb.ExecutorInfo, Resources]] = field(default_factory=dict)
    frameworks: dict[str, pb.FrameworkInfo] = field(default_factory=dict)
    operations: list[pb.Operation] = field(default_factory=list)
    # By uuid, why.
    not_done: dict[bytes, str] = field(default_factory=dict)


def read(call: agent_pb2.Call.Register, amount: Resources) -> Report:
    """Volumes are named as in `amount`, which the agent has, whatever the tasks call them.

    Raises InvalidValue for ids, states and resources that cannot be.
    """
    report = Report()
    for info in call.frameworks:
        framework_id = check_id("frameworks.id", info.id.value)
        report.frameworks.setdefault(framework_id, info)
    for item in call.tasks:
        framework_id = check_id("tasks.framework_id", item.framework_id.value)
        task_id = check_id("tasks.task_id", item.task_id.value)
        if item.state not in REPORTED or item.status_update_state not in REPORTED:
            raise InvalidValue("tasks.state", item.state, "is no state that an agent reports")
        resources = Resources.from_proto("tasks.resources", item.resources)
        resources = with_volumes_as(amount, resources)
        report.tasks.setdefault((framework_id, task_id), (item, resources))
    for executor in call.executors:
        framework_id = check_id("executors.framework_id", executor.framework_id.value)
        executor_id = check_id("executors.executor_id", executor.executor_id.value)
        resources = Resources.from_proto("executors.resources", executor.resources)
        resources = with_volumes_as(amount, resources)
        report.executors.setdefault((framework_id, executor_id), (executor, resources))
    report.operations.extend(call.operations)
    for operation in call.not_done:
        report.not_done[operation.uuid.value] = shortened(operation.latest_status.message)
    return report


def charges(
    c: Cluster, agent_id: str, report: Report, amount: Resources
) -> dict[Holder, Resources]:
    """Who will hold what on the agent, which has `amount`.  Changes nothing."""
    charged: dict[Holder, Resources] = {}
    role_of: dict[Key, str] = {}
    for (framework_id, task_id), (item, resources) in report.tasks.items():
        known = _known_task(c, agent_id, framework_id, task_id)
        short = item.short
        if known is not None:
            # What was known may be a volume that the agent has not made, in place of its own.
            resources = with_volumes_as(amount, known.resources)
            role, short = known.role, known.short
        else:
            lingers = c.lingering.get((agent_id, framework_id, "task", task_id))
            role = lingers.role if lingers is not None else item.allocation_role or "*"
            short = lingers.short if lingers is not None else short
        if item.executor_id.value:
            role_of[framework_id, item.executor_id.value] = role
        if not is_terminal(item.state):
            charged[Holder(framework_id, role, "task", task_id, short)] = resources
    for (framework_id, executor_id), (_, resources) in report.executors.items():
        framework = c.frameworks.get(framework_id)
        executor = framework.executors.get((agent_id, executor_id)) if framework else None
        lingers = c.lingering.get((agent_id, framework_id, "executor", executor_id))
        role = role_of.get((framework_id, executor_id)) or _first_role(c, report, framework_id)
        if executor is not None:
            role = executor.role
            resources = with_volumes_as(amount, executor.resources)
        elif lingers is not None:
            role = lingers.role
        if resources:
            charged[Holder(framework_id, role, "executor", executor_id)] = resources
    converted = reserved_part(c.ledger.total(agent_id)) != reserved_part(amount)
    for holder, resources in c.ledger.allocations(agent_id).items():
        framework_id, _, kind, name, _ = holder
        named = kind != "task" or (framework_id, name) in report.tasks
        if named or c.lingers(agent_id, framework_id, kind, name):
            continue
        if converted and not amount.contains(total([*charged.values(), resources])):
            # It was to use what an operation made that never arrived, nor did its order.
            continue
        charged[holder] = resources
    return charged


def _known_task(c: Cluster, agent_id: str, framework_id: str, task_id: str) -> Task | None:
    """The task as the master knows it, if it knows it there."""
    framework = c.frameworks.get(framework_id)
    task = framework.find(task_id) if framework is not None else None
    return task if task is not None and task.agent_id == agent_id else None


def _first_role(c: Cluster, report: Report, framework_id: str) -> str:
    framework = c.frameworks.get(framework_id)
    info = framework.info if framework is not None else report.frameworks.get(framework_id)
    if info is None:
        return "*"
    return info.role or next(iter(info.roles), "*")


def take_back(c: Cluster, agent: Agent, report: Report, announce: bool, now: Now) -> None:
    """Join what the agent reports, and is charged for already, with what the master knows.

    `announce`: the frameworks were told that its tasks were lost, or this master
    never knew them, so each is told of the tasks' true state.
    """
    held = {(h.framework_id, h.kind, h.name): h for h in c.ledger.allocations(agent.agent_id)}
    # What lingered and is not named any more is gone: put_agent has freed it.
    for key in [key for key in c.lingering if key[0] == agent.agent_id]:
        del c.lingering[key]
    _take_frameworks(c, agent, report, now)
    operations.take_back(c, agent, report.operations, report.not_done, now)
    named = {key[0] for key in (*report.tasks, *report.executors)}.union(report.frameworks)
    # Not a difference of sets: that would go through all frameworks there are.
    ended = {framework_id for framework_id in named if framework_id not in c.frameworks}
    for holder in held.values():
        if holder.framework_id in ended:
            c.linger(agent.agent_id, holder)
    for framework_id, executor_id in report.executors:
        if framework_id in ended and (framework_id, "executor", executor_id) not in held:
            # It holds nothing, and runs all the same.
            c.linger(agent.agent_id, Holder(framework_id, "*", "executor", executor_id))
    for framework_id in sorted(ended):
        order_shutdown(c, agent, framework_id)
    _take_executors(c, agent, report, held)
    for (framework_id, task_id), (item, resources) in report.tasks.items():
        framework = c.frameworks.get(framework_id)
        if framework is None:
            continue
        known = framework.find(task_id)
        charged = held.get((framework_id, "task", task_id))
        if known is not None and known.agent_id != agent.agent_id:
            _end_copy(c, agent, item, charged)
        else:
            if charged is not None:
                item.allocation_role, item.short = charged.role, charged.short
            _take_task(c, agent, framework, item, resources, announce, now)
    if announce:
        _end_unreachable(c, agent, now)
    _ask_for_missing(c, agent, report, now)


def _take_frameworks(c: Cluster, agent: Agent, report: Report, now: Now) -> None:
    """Frameworks that only the agent knows wait for their scheduler to subscribe."""
    for framework_id, info in report.frameworks.items():
        if framework_id in c.completed_frameworks:
            continue
        known = c.frameworks.get(framework_id)
        if known is not None:
            if not known.recovered and known.info != info:
                # It was away when its framework changed.
                update = agent_pb2.Event(type=agent_pb2.Event.UPDATE_FRAMEWORK)
                update.update_framework.framework_info.CopyFrom(known.info)
                c.to_agent(agent, update)
            continue
        kept = pb.FrameworkInfo()
        kept.CopyFrom(info)
        try:
            roles = checked_roles(kept)
        except MesosPyError as error:
            c.drop("framework-info-unusable", framework=framework_id, why=error.message)
            roles = ("*",)
        framework = Framework(
            framework_id,
            kept,
            roles,
            now,
            recovered=True,
            from_before=True,
            completed_tasks=c.new_history(),
        )
        capability = pb.FrameworkInfo.Capability.PARTITION_AWARE
        framework.partition_aware = any(x.type == capability for x in kept.capabilities)
        c.frameworks[framework_id] = framework
        c.judge("failover", framework_id, now.monotonic_s + failover_s(c, framework), now)
        c.tell_framework(framework, now)


def _take_executors(
    c: Cluster, agent: Agent, report: Report, held: dict[tuple[str, str, str], Holder]
) -> None:
    for (framework_id, executor_id), (info, resources) in report.executors.items():
        framework = c.frameworks.get(framework_id)
        if framework is None:
            continue
        if (agent.agent_id, executor_id) not in framework.executors:
            kept = pb.ExecutorInfo()
            kept.CopyFrom(info)
            holder = held.get((framework_id, "executor", executor_id))
            role = holder.role if holder is not None else "*"
            framework.executors[agent.agent_id, executor_id] = Executor(
                framework_id, agent.agent_id, executor_id, role, kept, resources
            )
        executor = framework.executors[agent.agent_id, executor_id]
        charged = c.ledger.allocation(agent.agent_id, executor.holder)
        executor.resources = charged if charged is not None else executor.resources
        agent.executors.add((framework_id, executor_id))
    for framework_id, executor_id in sorted(agent.executors - report.executors.keys()):
        agent.executors.discard((framework_id, executor_id))
        framework = c.frameworks[framework_id]
        del framework.executors[agent.agent_id, executor_id]
        failure = sched.Event.Failure(
            agent_id=pb.AgentID(value=agent.agent_id),
            executor_id=pb.ExecutorID(value=executor_id),
            status=-1,
        )
        c.to_framework(framework, sched.Event(type=sched.Event.FAILURE, failure=failure))


def _end_copy(c: Cluster, agent: Agent, item: pb.Task, holder: Holder | None) -> None:
    """The framework has replaced the task while this agent was away: the old copy goes."""
    if holder is None:
        return
    c.drop("stale-copy-killed", task=item.task_id.value, agent=agent.agent_id)
    c.linger(agent.agent_id, holder)
    order = agent_pb2.Event.KillTask(framework_id=item.framework_id, task_id=item.task_id)
    c.to_agent(agent, agent_pb2.Event(type=agent_pb2.Event.KILL_TASK, kill_task=order))


def _take_task(
    c: Cluster,
    agent: Agent,
    framework: Framework,
    item: pb.Task,
    resources: Resources,
    announce: bool,
    now: Now,
) -> None:
    task_id = item.task_id.value
    task = framework.find(task_id)
    ended = agent.ended.get((framework.framework_id, task_id))
    if task is not None and ended and item.status_update_uuid == ended != task.update_uuid:
        _never_arrived(c, framework, task, now)
        return
    if task is None:
        task = c.recall(framework, agent.agent_id, task_id)
        if task is not None:
            # What a task that is no more in the account is charged for is what its agent says.
            task.role, task.resources = item.allocation_role or "*", resources
            task.short = item.short
    if task is None:
        task = _new_task(agent, item, resources, now)
    c.reachable(framework, task_id)
    if c.news is not None and framework.tasks.get(task_id) is not task:
        c.news.task_added(task)
    framework.tasks[task_id] = task
    agent.tasks.add((framework.framework_id, task_id))
    charged = c.ledger.allocation(agent.agent_id, task.holder)
    task.resources = charged if charged is not None else task.resources
    returned = _agree(task, item.state)
    if task.update_state is None and item.HasField("status_update_state"):
        task.update_state = item.status_update_state
        task.update_uuid = item.status_update_uuid
    if is_terminal(task.state):
        return
    if announce or returned:
        status = statuses.master_status(
            task_id,
            agent.agent_id,
            task.told_state,
            pb.TaskStatus.REASON_AGENT_REREGISTERED,
            "the agent is back",
            now,
        )
        statuses.send(c, framework, status)
    if task_id in framework.early_kills:
        kills.order_kill(c, task, framework.early_kills.pop(task_id))
    elif task.kill_pending:
        kills.order_kill(c, task, task.pending_kill)


def _never_arrived(c: Cluster, framework: Framework, task: Task, now: Now) -> None:
    """The agent names the end of an older task with this id, whose acknowledgement was
    lost with the stream, and with it the order for this one that came after it."""
    task.state = statuses.for_framework(framework, TASK_DROPPED)
    status = statuses.master_status(
        task.task_id,
        task.agent_id,
        task.state,
        pb.TaskStatus.REASON_RECONCILIATION,
        "its agent was never told to run it",
        now,
    )
    statuses.record(c, task, status, now)
    c.complete(framework, task, now)
    statuses.send(c, framework, status)


def _agree(task: Task, state: pb.TaskState.ValueType) -> bool:
    """Bring the task to the state that its agent says.  Whether it had been given up."""
    given_up = task.state in (TASK_UNREACHABLE, TASK_LOST)
    if is_terminal(task.state) and not is_terminal(state):
        given_up = True
    if not given_up:
        if may_follow(task.state, state):
            task.state = state
        return False
    task.state = state
    task.ended_wall_s = None
    if task.update_state is not None and is_terminal(task.update_state):
        task.update_state, task.update_uuid = None, b""
    return True


def _new_task(agent: Agent, item: pb.Task, resources: Resources, now: Now) -> Task:
    task = Task(
        framework_id=item.framework_id.value,
        task_id=item.task_id.value,
        agent_id=agent.agent_id,
        name=item.name,
        role=item.allocation_role or "*",
        resources=resources,
        executor_id=item.executor_id.value or None,
        state=item.state,
        short=item.short,
        revocation_cost=cost_of(item),
        launched_s=_launched_s(item, now),
        launched_wall_s=item.launched_time if item.HasField("launched_time") else None,
        extras=extras_of(item, item.user),
    )
    for status in item.statuses:
        task.statuses.keep(status)
    return task


def _launched_s(item: pb.Task, now: Now) -> float:
    """On the clock of this master, by the time that the agent says: else after a failover
    nobody could tell whose end loses the least work."""
    ran_s = now.wall_s - item.launched_time
    if not item.HasField("launched_time") or math.isnan(ran_s):
        return -math.inf
    return now.monotonic_s - max(0.0, ran_s)


def _end_unreachable(c: Cluster, agent: Agent, now: Now) -> None:
    """The agent came back without tasks that were taken for unreachable: they are gone."""
    for framework, task in c.unreachable_tasks_on(agent.agent_id):
        task.state = statuses.for_framework(framework, TASK_GONE)
        status = statuses.master_status(
            task.task_id,
            agent.agent_id,
            task.state,
            pb.TaskStatus.REASON_RECONCILIATION,
            "its agent came back without it",
            now,
        )
        statuses.record(c, task, status, now)
        c.complete(framework, task, now)
        if framework.partition_aware:  # the others were told that it is lost
            statuses.send(c, framework, status)


def _ask_for_missing(c: Cluster, agent: Agent, report: Report, now: Now) -> None:
    """Tasks that should be there and are not named: the agent answers for each."""
    expected = agent_pb2.Event.Reconcile()
    for framework_id, task_id in sorted(agent.tasks - report.tasks.keys()):
        framework = c.frameworks[framework_id]
        task = framework.tasks[task_id]
        if is_terminal(task.state):
            answer_ended(c, framework, task, now)
            c.complete(framework, task, now)
        elif c.ledger.allocation(agent.agent_id, task.holder) is None:
            _never_arrived(c, framework, task, now)
        else:
            item = expected.tasks.add(partition_aware=framework.partition_aware)
            item.framework_id.value = framework_id
            item.task_id.value = task_id
    if expected.tasks:
        c.to_agent(agent, agent_pb2.Event(type=agent_pb2.Event.RECONCILE, reconcile=expected))
