"""Agents that leave for good by an operator's word."""

from __future__ import annotations

from collections.abc import Callable

from master.core import agents, recovery
from master.core.admitted import change, record_of, remember_gone
from master.core.cluster import Cluster
from master.core.draining import is_empty
from master.core.gone import is_gone
from master.core.records import Agent
from mesos_py.clock import Now
from mesos_py.errors import NotFound
from mesos_py.states import TASK_GONE_BY_OPERATOR
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import registry_pb2 as reg
from mesos_py.v1 import types_pb2 as pb


def mark_gone(c: Cluster, agent_id: str, then: Callable[[Now], None], now: Now) -> None:
    """The agent never comes back; its tasks have ended as far as frameworks are concerned.

    One that is gone already stays so.  Raises NotFound.
    """
    if record_of(c, agent_id) is None:
        raise NotFound("agent", agent_id)

    def alter(record: reg.Agent) -> None:
        if not is_gone(record):
            _mark(record, now)

    def stored(now: Now) -> None:
        _is_gone(c, agent_id, now)
        then(now)

    change(c, agent_id, alter, stored, now)


def _mark(record: reg.Agent, now: Now) -> None:
    record.gone_time.nanoseconds = int(now.wall_s * 1e9)


def _is_gone(c: Cluster, agent_id: str, now: Now) -> None:
    if agent_id in c.gone:
        return
    c.counters["agents_marked_gone"] += 1
    remember_gone(c, agent_id, now.wall_s, now)
    agent = c.agents.get(agent_id)
    if agent is not None:
        why = "marked as gone by an operator"
        send_away(c, agent, why)
        reason = pb.TaskStatus.REASON_AGENT_REMOVED_BY_OPERATOR
        agents.remove(c, agent, why, now, TASK_GONE_BY_OPERATOR, reason)
    elif agent_id in c.expected:
        recovery.expect_no_more(c, agent_id)


def send_away(c: Cluster, agent: Agent, why: str) -> None:
    """Tell it to end its tasks and itself, if it can hear that."""
    order = agent_pb2.Event.Shutdown(message=f"agent {agent.agent_id} was {why}")
    c.to_agent(agent, agent_pb2.Event(type=agent_pb2.Event.SHUTDOWN, shutdown=order))


def drained(c: Cluster, agent_id: str, now: Now) -> None:
    """Something on an agent that is being drained has ended: perhaps the last."""
    agent, record = c.agents.get(agent_id), record_of(c, agent_id)
    if agent is None or record is None or not is_empty(c, agent):
        return
    if record.drain_info.state != pb.DRAINING or is_gone(record):
        return
    leaves = record.drain_info.config.mark_gone

    def alter(record: reg.Agent) -> None:
        record.drain_info.state = pb.DRAINED
        if leaves:
            _mark(record, now)

    def stored(now: Now) -> None:
        c.counters["agents_drained"] += 1
        if leaves:
            _is_gone(c, agent_id, now)
            return
        agent = c.agents.get(agent_id)
        if agent is not None and agent.drain is not None:
            agent.drain.state = pb.DRAINED
            c.tell_agent(agent, now)  # the words that explain why it is not offered

    change(c, agent_id, alter, stored, now)
