"""What an agent brings when it registers: tasks, executors, frameworks.

The agent's own account is the truth about what runs.  Tasks that the master knows
and the agent does not name stay charged until the agent has answered for them.
"""

from __future__ import annotations

from master.core import statuses, tasks
from master.core.cluster import Cluster
from master.core.frameworks import checked_roles
from master.core.ledger import Holder
from master.core.reconcile import answer_known
from master.core.records import Agent, Executor, Framework, Task
from mesos_py.clock import Now
from mesos_py.errors import MesosPyError
from mesos_py.ids import check_id
from mesos_py.resources import Resources
from mesos_py.states import is_terminal, may_follow
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb


def charges(c: Cluster, agent_id: str, call: agent_pb2.Call.Register) -> dict[Holder, Resources]:
    """Who will hold what on the agent.  Raises InvalidValue; changes nothing."""
    charged: dict[Holder, Resources] = {}
    listed: set[str] = set()
    role_of: dict[tuple[str, str], str] = {}
    for item in call.tasks:
        framework_id, task_id = item.framework_id.value, item.task_id.value
        check_id("tasks.framework_id", framework_id)
        check_id("tasks.task_id", task_id)
        resources = Resources.from_proto("tasks.resources", item.resources)
        role = _role_of_task(c, agent_id, item)
        listed.add(f"{framework_id}/{task_id}")
        if item.executor_id.value:
            role_of[framework_id, item.executor_id.value] = role
        if not is_terminal(item.state):
            charged[Holder(framework_id, role, "task", task_id)] = resources
    for info in call.executors:
        framework_id, executor_id = info.framework_id.value, info.executor_id.value
        check_id("executors.executor_id", executor_id)
        resources = Resources.from_proto("executors.resources", info.resources)
        if not resources:
            continue
        framework = c.frameworks.get(framework_id)
        known = framework.executors.get((agent_id, executor_id)) if framework else None
        lingers = c.lingering.get((agent_id, framework_id, "executor", executor_id))
        role = role_of.get((framework_id, executor_id), "*")
        role = known.role if known is not None else lingers.role if lingers else role
        charged[Holder(framework_id, role, "executor", executor_id)] = resources
    for holder in c.ledger.holders(agent_id):
        if holder.kind != "task" or f"{holder.framework_id}/{holder.name}" in listed:
            continue
        kept = c.ledger.allocation(agent_id, holder)
        lingers = c.lingering.get((agent_id, holder.framework_id, holder.kind, holder.name))
        if kept is not None and lingers is None:
            charged[holder] = kept
    return charged


def _role_of_task(c: Cluster, agent_id: str, item: pb.Task) -> str:
    """The role that the task was charged to before, else the one that it names."""
    framework = c.frameworks.get(item.framework_id.value)
    if framework is not None:
        task = framework.tasks.get(item.task_id.value)
        task = task or framework.unreachable_tasks.get(item.task_id.value)
        if task is not None and task.agent_id == agent_id:
            return task.role
    lingers = c.lingering.get((agent_id, item.framework_id.value, "task", item.task_id.value))
    return lingers.role if lingers is not None else item.allocation_role or "*"


def take_back(
    c: Cluster, agent: Agent, call: agent_pb2.Call.Register, announce: bool, now: Now
) -> None:
    """Join what the agent reports with what the master knows.

    `announce`: the frameworks were told that its tasks were lost, or this master
    never knew them, so each is told of the tasks' true state.
    """
    _take_frameworks(c, agent, call, now)
    _take_executors(c, agent, call, now)
    listed: set[tuple[str, str]] = set()
    for item in call.tasks:
        listed.add((item.framework_id.value, item.task_id.value))
        _take_task(c, agent, item, announce, now)
    _ask_for_missing(c, agent, listed, now)


def _take_frameworks(c: Cluster, agent: Agent, call: agent_pb2.Call.Register, now: Now) -> None:
    """Frameworks that only the agent knows wait for their scheduler to subscribe."""
    for info in call.frameworks:
        framework_id = info.id.value
        if framework_id in c.frameworks or framework_id in c.completed_frameworks:
            continue
        kept = pb.FrameworkInfo()
        kept.CopyFrom(info)
        try:
            roles = checked_roles(kept)
        except MesosPyError as error:
            c.drop("framework-info-unusable", framework=framework_id, why=error.message)
            roles = ("*",)
        framework = Framework(
            framework_id, kept, roles, now, recovered=True, completed_tasks=c.new_history()
        )
        capability = pb.FrameworkInfo.Capability.PARTITION_AWARE
        framework.partition_aware = any(x.type == capability for x in kept.capabilities)
        c.frameworks[framework_id] = framework
        c.tell_framework(framework, now)


def _take_executors(c: Cluster, agent: Agent, call: agent_pb2.Call.Register, now: Now) -> None:
    listed: set[tuple[str, str]] = set()
    for info in call.executors:
        framework_id, executor_id = info.framework_id.value, info.executor_id.value
        listed.add((framework_id, executor_id))
        framework = c.frameworks.get(framework_id)
        holder = _holder(c, agent.agent_id, framework_id, "executor", executor_id)
        if framework is None:
            if holder is not None:
                c.linger(agent.agent_id, holder)
            _order_shutdown(c, agent, framework_id)
            continue
        if (agent.agent_id, executor_id) not in framework.executors:
            kept = pb.ExecutorInfo()
            kept.CopyFrom(info)
            framework.executors[agent.agent_id, executor_id] = Executor(
                framework_id,
                agent.agent_id,
                executor_id,
                holder.role if holder is not None else "*",
                kept,
                Resources.from_proto("executors.resources", info.resources),
            )
        agent.executors.add((framework_id, executor_id))
    for framework_id, executor_id in agent.executors - listed:
        agent.executors.discard((framework_id, executor_id))
        framework = c.frameworks.get(framework_id)
        if framework is None or not framework.executors.pop((agent.agent_id, executor_id), None):
            continue
        failure = sched.Event.Failure(
            agent_id=pb.AgentID(value=agent.agent_id),
            executor_id=pb.ExecutorID(value=executor_id),
            status=-1,
        )
        c.to_framework(framework, sched.Event(type=sched.Event.FAILURE, failure=failure))
    # What lingered and is not named any more is gone: put_agent has freed it.
    named = {f"{item.framework_id.value}/{item.task_id.value}" for item in call.tasks}
    for key in [key for key in c.lingering if key[0] == agent.agent_id]:
        _, framework_id, kind, name = key
        gone_task = kind == "task" and f"{framework_id}/{name}" not in named
        if gone_task or (kind == "executor" and (framework_id, name) not in listed):
            del c.lingering[key]


def _take_task(c: Cluster, agent: Agent, item: pb.Task, announce: bool, now: Now) -> None:
    framework_id, task_id = item.framework_id.value, item.task_id.value
    framework = c.frameworks.get(framework_id)
    if framework is None:
        holder = _holder(c, agent.agent_id, framework_id, "task", task_id)
        if holder is not None:
            c.linger(agent.agent_id, holder)
        _order_shutdown(c, agent, framework_id)
        return
    task = framework.tasks.get(task_id)
    if task is not None and task.agent_id != agent.agent_id:
        # The framework has replaced it while this agent was away: the old copy goes.
        c.drop("stale-copy-killed", task=task_id, agent=agent.agent_id)
        holder = _holder(c, agent.agent_id, framework_id, "task", task_id)
        if holder is not None:
            c.linger(agent.agent_id, holder)
        order = agent_pb2.Event.KillTask(framework_id=item.framework_id, task_id=item.task_id)
        c.to_agent(agent, agent_pb2.Event(type=agent_pb2.Event.KILL_TASK, kill_task=order))
        return
    if task is None:
        task = framework.unreachable_tasks.pop(task_id, None) or _new_task(agent, item)
        framework.tasks[task_id] = task
        task.state = item.state
        task.ended_wall_s = None
    elif may_follow(task.state, item.state):
        task.state = item.state
    agent.tasks.add((framework_id, task_id))
    if item.HasField("status_update_state") and task.update_state is None:
        task.update_state = item.status_update_state
        task.update_uuid = item.status_update_uuid
    if announce and not is_terminal(task.state):
        status = statuses.master_status(
            task_id,
            agent.agent_id,
            task.state,
            pb.TaskStatus.REASON_AGENT_REREGISTERED,
            "the agent is back",
            now,
        )
        statuses.send(c, framework, status)
    if task.kill_pending and not is_terminal(task.state):
        task.kill_pending = False
        tasks.order_kill(c, task, task.pending_kill)


def _new_task(agent: Agent, item: pb.Task) -> Task:
    return Task(
        framework_id=item.framework_id.value,
        task_id=item.task_id.value,
        agent_id=agent.agent_id,
        name=item.name,
        role=item.allocation_role or "*",
        resources=Resources.from_proto("tasks.resources", item.resources),
        executor_id=item.executor_id.value or None,
        state=item.state,
        statuses=list(item.statuses),
        launched_wall_s=item.launched_time if item.HasField("launched_time") else None,
        extras=item if item.HasField("labels") or item.HasField("container") else None,
    )


def _ask_for_missing(c: Cluster, agent: Agent, listed: set[tuple[str, str]], now: Now) -> None:
    """Tasks that should be there and are not named: the agent answers for each."""
    expected = agent_pb2.Event.Reconcile()
    for framework_id, task_id in sorted(agent.tasks - listed):
        framework = c.frameworks.get(framework_id)
        task = framework.tasks.get(task_id) if framework is not None else None
        if framework is None or task is None:
            agent.tasks.discard((framework_id, task_id))
        elif is_terminal(task.state):
            # Nobody is left who could repeat its last update: say it once more.
            answer_known(c, framework, task, now)
            c.complete(framework, task, now)
        else:
            item = expected.tasks.add(partition_aware=framework.partition_aware)
            item.framework_id.value = framework_id
            item.task_id.value = task_id
    if expected.tasks:
        c.to_agent(agent, agent_pb2.Event(type=agent_pb2.Event.RECONCILE, reconcile=expected))


def _holder(c: Cluster, agent_id: str, framework_id: str, kind: str, name: str) -> Holder | None:
    for holder in c.ledger.holders(agent_id):
        if (holder.framework_id, holder.kind, holder.name) == (framework_id, kind, name):
            return holder
    return None


def _order_shutdown(c: Cluster, agent: Agent, framework_id: str) -> None:
    """The framework has ended here, or nobody knows it: what it has there ends too."""
    order = agent_pb2.Event(type=agent_pb2.Event.SHUTDOWN_FRAMEWORK)
    order.shutdown_framework.framework_id.value = framework_id
    c.to_agent(agent, order)
