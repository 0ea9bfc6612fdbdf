"""Agents out of service by an operator's word: deactivated, drained, taken back.

A word counts once the registry has it; then the offers go back, and an agent that is to
be drained is told, now and after each registration.  What is asked is checked against
what was decided last, stored or not.
"""

from __future__ import annotations

from collections.abc import Callable

from master.core import offers as offering
from master.core.admitted import change, record_of
from master.core.cluster import Cluster
from master.core.gone import is_gone
from master.core.records import Agent
from mesos_py.clock import Now
from mesos_py.errors import Conflict, InvalidValue, NotFound
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import registry_pb2 as reg
from mesos_py.v1 import types_pb2 as pb

_CAPABLE = pb.AgentInfo.Capability.AGENT_DRAINING


# ---- What operators ask ------------------------------------------------------------


def deactivate(c: Cluster, agent_id: str, then: Callable[[Now], None], now: Now) -> None:
    """Nothing is offered there any more; what runs goes on.  Raises NotFound."""
    known(c, agent_id)

    def alter(record: reg.Agent) -> None:
        record.deactivated = True

    c.counters["agents_deactivated"] += 1
    _decide(c, agent_id, alter, "the agent was deactivated by an operator", then, now)


def drain(
    c: Cluster, agent_id: str, config: pb.DrainConfig, then: Callable[[Now], None], now: Now
) -> None:
    """Nothing is offered there, and all that runs ends; said again, the newest words count.

    An agent that is away is told when it is back.  Raises NotFound, InvalidValue, and
    Conflict for an agent that does not know how to, or whose machine is in the maintenance
    schedule.
    """
    grace_ns = config.max_grace_period.nanoseconds
    if grace_ns < 0:
        raise InvalidValue("max_grace_period", grace_ns, "must not be negative")
    if c.planned.of(known(c, agent_id).info) is not None:
        raise Conflict(f"agent {agent_id}: its machine is in the maintenance schedule")
    agent = c.agents.get(agent_id)
    if agent is not None and agent.connected and _CAPABLE not in agent.capabilities:
        raise Conflict(f"agent {agent_id}: its version ({agent.version}) cannot be drained")

    def alter(record: reg.Agent) -> None:
        record.deactivated = True
        record.drain_info.CopyFrom(pb.DrainInfo(state=pb.DRAINING, config=config))

    c.counters["agents_drain_ordered"] += 1
    _decide(c, agent_id, alter, "the agent is being drained by an operator", then, now)


def reactivate(c: Cluster, agent_id: str, then: Callable[[Now], None], now: Now) -> None:
    """An agent that was deactivated, or has been drained, is offered again.

    Raises NotFound, and Conflict unless it is that, and registered.
    """
    record = known(c, agent_id)
    if not record.deactivated:
        raise Conflict(f"agent {agent_id}: is not deactivated")
    if record.drain_info.state == pb.DRAINING:
        raise Conflict(f"agent {agent_id}: is being drained, which cannot be undone")
    agent = c.agents.get(agent_id)
    if agent is None or agent.unreachable is not None:
        raise Conflict(f"agent {agent_id}: is not registered now", registered=False)

    def alter(record: reg.Agent) -> None:
        record.deactivated = False
        record.ClearField("drain_info")

    c.counters["agents_reactivated"] += 1
    _decide(c, agent_id, alter, "", then, now)


def known(c: Cluster, agent_id: str) -> reg.Agent:
    """The record of an agent that is admitted.  Raises NotFound naming any other one."""
    record = record_of(c, agent_id)
    if record is None:
        raise NotFound("agent", agent_id)
    if is_gone(record):
        raise NotFound("agent", agent_id, "has been marked as gone")
    return record


def _decide(
    c: Cluster,
    agent_id: str,
    alter: Callable[[reg.Agent], None],
    why: str,
    then: Callable[[Now], None],
    now: Now,
) -> None:
    def keep(record: reg.Agent) -> None:
        alter(record)
        decided.CopyFrom(record)

    def stored(now: Now) -> None:
        c.deciding[agent_id] -= 1
        if not c.deciding[agent_id]:
            del c.deciding[agent_id]
        agent = c.agents.get(agent_id)
        if agent is not None:
            _apply(c, agent, decided, why, now)
        then(now)

    decided = reg.Agent()
    c.deciding[agent_id] += 1
    change(c, agent_id, keep, stored, now)


# ---- What follows -------------------------------------------------------------------


def _apply(c: Cluster, agent: Agent, record: reg.Agent, why: str, now: Now) -> None:
    _take_over(agent, record)
    if agent.deactivated:
        offering.drop_all(c, agent.offers, why, now, tell=True)
    c.tell_agent(agent, now)
    _tell_if_concerned(c, agent)
    c.emptier(agent.agent_id, now)


def _take_over(agent: Agent, record: reg.Agent) -> None:
    agent.deactivated = record.deactivated
    agent.drain = record.drain_info if record.HasField("drain_info") else None


def _tell_if_concerned(c: Cluster, agent: Agent) -> None:
    if agent.drain is None and not agent.told_to_drain:
        return
    order = agent_pb2.Event.Drain()
    if agent.drain is not None:
        order.config.CopyFrom(agent.drain.config)
    agent.told_to_drain = agent.drain is not None
    c.to_agent(agent, agent_pb2.Event(type=agent_pb2.Event.DRAIN, drain=order))


def recall(c: Cluster, agent: Agent) -> None:
    """What operators have said of the agent, or of its machine, before it came."""
    agent.unavailability = c.machines.unavailability_of(agent.info)
    record = record_of(c, agent.agent_id)
    if record is None:
        return
    if agent.agent_id in c.deciding:
        agent.deactivated = True  # until it is certain what they say
    else:
        _take_over(agent, record)


def registered(c: Cluster, agent: Agent, drains: bool, now: Now) -> None:
    """It has been greeted.  `drains`: it was told to drain, and not yet that it is over."""
    agent.told_to_drain = drains
    if agent.agent_id not in c.deciding:
        _tell_if_concerned(c, agent)
        c.emptier(agent.agent_id, now)


def is_empty(c: Cluster, agent: Agent) -> bool:
    """Whether nothing of it is left: no task or executor, no end of a task and no outcome of
    an operation that is not acknowledged, nothing that still ends.  Only an agent that is
    here can say that."""
    if agent.tasks or agent.executors or agent.operations:
        return False
    return agent.connected and not any(key[0] == agent.agent_id for key in c.lingering)
