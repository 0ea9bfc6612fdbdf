"""The master's records as operator messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from master.core import inverse_offers
from master.core import offers as offering
from master.core.admitted import record_of
from master.core.cluster import Cluster
from master.core.records import Agent, Executor, Framework, Task
from mesos_py.clock import Now
from mesos_py.policy import ancestors, policy_to_proto
from mesos_py.reserved import role_of
from mesos_py.resources import Resources, total
from mesos_py.states import is_terminal
from mesos_py.v1 import operator_pb2 as op
from mesos_py.v1 import types_pb2 as pb


def time_info(now: Now) -> pb.TimeInfo:
    return pb.TimeInfo(nanoseconds=int(now.wall_s * 1e9))


def task_message(task: Task) -> pb.Task:
    message = pb.Task()
    if task.extras is not None:
        message.CopyFrom(task.extras)
    message.name = task.name
    message.task_id.value = task.task_id
    message.framework_id.value = task.framework_id
    message.agent_id.value = task.agent_id
    message.state = task.state
    message.allocation_role = task.role
    if task.executor_id is not None:
        message.executor_id.value = task.executor_id
    message.resources.extend(task.resources.to_proto())
    message.statuses.extend(task.statuses)
    if task.update_state is not None:
        message.status_update_state = task.update_state
        message.status_update_uuid = task.update_uuid
    if task.short:
        message.short = True
    if task.revocation_cost is not None:
        message.revocation_cost = task.revocation_cost
    if task.launched_wall_s is not None:
        message.launched_time = task.launched_wall_s
    if task.ended_wall_s is not None:
        message.ended_time = task.ended_wall_s
    return message


def agent_message(c: Cluster, agent: Agent) -> op.Response.GetAgents.Agent:
    if agent.unreachable is not None:
        state = "unreachable"
    else:
        state = "connected" if agent.connected else "disconnected"
    message = op.Response.GetAgents.Agent(
        agent_info=agent.info,
        active=not agent.why_inactive,
        deactivated=agent.deactivated,
        drain_info=agent.drain,
        version=agent.version,
        total_resources=agent.total.to_proto(),
        allocated_resources=_by_role(
            [(who.role, each) for who, each in c.ledger.allocations(agent.agent_id).items()], total
        ),
        offered_resources=_by_role(
            [(each.role, each.resources) for each in c.ledger.offers(agent.agent_id)], total
        ),
        capabilities=[pb.AgentInfo.Capability(type=kind) for kind in agent.capabilities],
        state=state,
        running_tasks=sum(_lives(c, *key) for key in agent.tasks),
    )
    if agent.registered is not None:
        message.registered_time.CopyFrom(time_info(agent.registered))
    if agent.reregistered is not None:
        message.reregistered_time.CopyFrom(time_info(agent.reregistered))
    if agent.unreachable is not None:
        message.unreachable_time.CopyFrom(time_info(agent.unreachable))
    return message


def absent_agent_message(
    c: Cluster, agent_id: str, state: str
) -> op.Response.GetAgents.Agent | None:
    """An agent of which there is only its record; None if there is none, either."""
    record = record_of(c, agent_id)
    if record is None:
        return None
    info = record.info
    return op.Response.GetAgents.Agent(
        agent_info=info,
        deactivated=record.deactivated,
        drain_info=record.drain_info if record.HasField("drain_info") else None,
        total_resources=info.resources,
        state=state,
    )


def _lives(c: Cluster, framework_id: str, task_id: str) -> bool:
    framework = c.frameworks.get(framework_id)
    task = framework.tasks.get(task_id) if framework is not None else None
    return task is not None and not is_terminal(task.state)


def framework_message(c: Cluster, framework: Framework) -> op.Response.GetFrameworks.Framework:
    offered = [c.offers[offer_id] for offer_id in framework.offers]
    running = [task for task in framework.tasks.values() if not is_terminal(task.state)]
    holders: list[Task | Executor] = [*running, *framework.executors.values()]
    message = op.Response.GetFrameworks.Framework(
        framework_info=framework.info,
        active=framework.connected,
        connected=framework.connected,
        recovered=framework.recovered,
        registered_time=time_info(framework.registered),
        offers=[offering.offer_message(c, framework, each) for each in offered],
        allocated_resources=_by_role([(each.role, each.resources) for each in holders], _amounts),
        offered_resources=_by_role([(each.role, each.resources) for each in offered], _amounts),
        suppressed_roles=sorted(framework.suppressed),
        running_tasks=len(running),
        standbys=[each.name for each in c.standbys.get(framework.framework_id, ())],
    )
    message.inverse_offers.extend(
        inverse_offers.message(c, each)
        for each in c.inverse.offers.values()
        if (each.framework_id, each.link) == (framework.framework_id, framework.link)
    )
    if framework.reregistered is not None:
        message.reregistered_time.CopyFrom(time_info(framework.reregistered))
    if framework.unregistered is not None:
        message.unregistered_time.CopyFrom(time_info(framework.unregistered))
    if framework.constraints_proto is not None:
        message.offer_constraints.CopyFrom(framework.constraints_proto)
    return message


def _by_role(
    holdings: Iterable[tuple[str, Resources]], together: Callable[[list[Resources]], Resources]
) -> Iterator[pb.Resource]:
    """What is held of each role, by itself."""
    bundles: dict[str, list[Resources]] = {}
    for role, each in holdings:
        bundles.setdefault(role, []).append(each)
    for role in sorted(bundles):
        for resource in together(bundles[role]).to_proto():
            made = pb.Resource()
            made.CopyFrom(resource)
            made.allocation_info.role = role
            yield made


def _amounts(bundles: list[Resources]) -> Resources:
    return Resources(sum_up(bundles))


def sum_up(bundles: Iterable[Resources]) -> dict[str, int]:
    """Scalars, in thousandths, of many bundles (whose ranges may be anything)."""
    amounts: dict[str, int] = {}
    for bundle in bundles:
        for name, milli in bundle.scalars.items():
            amounts[name] = amounts.get(name, 0) + milli
    return amounts


def executor_message(executor: Executor) -> op.Response.GetExecutors.Executor:
    message = op.Response.GetExecutors.Executor(executor_info=executor.info)
    message.agent_id.value = executor.agent_id
    return message


def role_messages(c: Cluster, shares: Mapping[str, float]) -> list[pb.Role]:
    """Every role with a framework, a policy, something held or reserved, and those above."""
    members: dict[str, list[str]] = {role: [] for role in c.policies}
    for framework in c.frameworks.values():
        for role in framework.roles:
            members.setdefault(role, []).append(framework.framework_id)
    for role in [*members, *shares, *_reserved_for(c)]:
        for above in ancestors(role):
            members.setdefault(above, [])
    return [_role_message(c, role, members[role], shares.get(role)) for role in sorted(members)]


def _reserved_for(c: Cluster) -> set[str]:
    """The roles for which agents that are there have something reserved."""
    there = [each.total for each in c.agents.values() if each.unreachable is None]
    keys = {key for each in there if each.has_reserved for key in each.names()}
    return {role_of(key) for key in keys} - {"*"}


def _role_message(c: Cluster, role: str, members: list[str], share: float | None) -> pb.Role:
    policy = c.policy(role)
    return pb.Role(
        name=role,
        weight=policy.weight,
        frameworks=[pb.FrameworkID(value=name) for name in sorted(members)],
        resources=Resources(dict(c.ledger.held_under(role))).to_proto(),
        share=share,
        policy=policy_to_proto(policy) if role in c.policies else None,
    )
