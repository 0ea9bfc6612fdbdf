"""The record of an agent in the registry: read, changed, written.

Several topics change the same record (its admission, its absence, draining), so each
changes its own fields and keeps the others.  What was decided is read at once, also
while it is on its way to the storage.
"""

from __future__ import annotations

from collections.abc import Callable

from master.core.cluster import Cluster
from master.core.gone import is_gone
from master.core.registry import AGENT
from mesos_py.clock import Now
from mesos_py.v1 import registry_pb2 as reg


def key_of(agent_id: str) -> str:
    return AGENT + agent_id


def record_of(c: Cluster, agent_id: str) -> reg.Agent | None:
    """The record as it was last decided; None: the agent is not admitted.

    It is a copy: to change it, see `change`.
    """
    return c.registry.read(key_of(agent_id), reg.Agent())


def change(
    c: Cluster,
    agent_id: str,
    alter: Callable[[reg.Agent], None],
    then: Callable[[Now], None],
    now: Now,
) -> None:
    """Have `alter` change fields of the record; once that is stored, `then` is called.

    An agent that has no record gets one.  As for `Registry.write`, `then` must look
    anew: the agent may have been changed again, or be gone.
    """
    record = record_of(c, agent_id) or reg.Agent()
    alter(record)
    c.registry.write({key_of(agent_id): record}, then, now)


def remove(c: Cluster, agent_id: str, then: Callable[[Now], None], now: Now) -> None:
    """Have the record removed; once that is stored, `then` is called.

    That of an agent that is gone for good stays: it is what keeps the agent away.
    """
    changes = {} if is_gone(record_of(c, agent_id)) else {key_of(agent_id): None}
    c.registry.write(changes, then, now)


def mark_reachable(record: reg.Agent) -> None:
    """For `change`: the agent is back."""
    record.ClearField("unreachable_time")


def remember_gone(c: Cluster, agent_id: str, since_wall_s: float, now: Now) -> None:
    """The agent can never come back: its id is refused as long as its record is kept.

    Only so many are kept: the record of the longest gone is removed.
    """
    c.gone[agent_id] = since_wall_s
    while len(c.gone) > c.options.max_remembered_agents:
        oldest = next(iter(c.gone))
        c.drop("gone-agent-forgotten", agent=oldest)
        del c.gone[oldest]
        c.registry.write({key_of(oldest): None}, nothing_follows, now)


def nothing_follows(now: Now) -> None:
    """For a write that nobody waits for."""
