"""The schedule of planned absences: replaced as a whole, begun and ended by operators.

Nothing happens by itself when a window begins: its times are told to frameworks, which
may leave in time (see inverse_offers), and that is all.  What an operator says counts
once the registry has it; it is checked against what was decided last (`planned`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from google.protobuf.message import Message

from master.core import agents, departures, inverse_offers, machines, recovery
from master.core import offers as offering
from master.core.admitted import key_of, record_of
from master.core.cluster import Cluster
from master.core.gone import is_gone
from master.core.machines import MODE, Machines
from master.core.registry import AGENT, MAINTENANCE
from mesos_py.clock import Now
from mesos_py.v1 import maintenance_pb2 as mt
from mesos_py.v1 import registry_pb2 as reg
from mesos_py.v1 import types_pb2 as pb

_WHY = "sent away: its machine is down for maintenance"


# ---- What operators ask ------------------------------------------------------------


def update_schedule(
    c: Cluster, schedule: mt.Schedule, then: Callable[[Now], None], now: Now
) -> None:
    """Replace the schedule.  Raises InvalidValue, see `machines.scheduled`."""
    record = machines.scheduled(c.planned, schedule)

    def stored(now: Now) -> None:
        _apply(c, record, now)
        then(now)

    c.counters["maintenance_scheduled"] += 1
    _write(c, record, {}, stored, now)


def start(c: Cluster, named: Iterable[pb.MachineID], then: Callable[[Now], None], now: Now) -> None:
    """These machines are taken away now: their agents are sent away, their tasks are lost,
    and no agent registers there before `stop`.  Raises InvalidValue."""
    record = machines.started(c.planned, named)
    down = Machines(record)
    leaving = [each for each in _admitted(c) if down.is_down(each.info)]
    changes: dict[str, Message | None] = {key_of(each.info.id.value): None for each in leaving}

    def stored(now: Now) -> None:
        _apply(c, record, now)
        for each in leaving:
            _send_away(c, each.info.id.value, now)
        then(now)

    c.counters["maintenance_started"] += 1
    _write(c, record, changes, stored, now)


def stop(c: Cluster, named: Iterable[pb.MachineID], then: Callable[[Now], None], now: Now) -> None:
    """These machines are back, and in no schedule any more.  Raises InvalidValue."""
    record = machines.stopped(c.planned, named)

    def stored(now: Now) -> None:
        _apply(c, record, now)
        then(now)

    c.counters["maintenance_stopped"] += 1
    _write(c, record, {}, stored, now)


def _admitted(c: Cluster) -> list[reg.Agent]:
    """The records of all agents that may still come, or are here."""
    found = (record_of(c, key.removeprefix(AGENT)) for key in c.registry.keys(AGENT))
    return [each for each in found if each is not None and not is_gone(each)]


def _write(
    c: Cluster,
    record: reg.Maintenance,
    changes: dict[str, Message | None],
    then: Callable[[Now], None],
    now: Now,
) -> None:
    c.planned = Machines(record)
    changes[MAINTENANCE] = record if c.planned else None
    c.registry.write(changes, then, now)


# ---- What follows -------------------------------------------------------------------


def _apply(c: Cluster, record: reg.Maintenance, now: Now) -> None:
    c.machines = Machines(record)
    for agent in c.agents.values():
        times = c.machines.unavailability_of(agent.info)
        if times == agent.unavailability:
            continue
        agent.unavailability = times
        why = "the maintenance schedule has changed"
        offering.drop_all(c, agent.offers, why, now, tell=True)
        inverse_offers.forget_agent(c, agent.agent_id)
    c.want_allocation(now)


def _send_away(c: Cluster, agent_id: str, now: Now) -> None:
    if record_of(c, agent_id) is not None:
        return  # it was admitted anew since: the machine has been taken back already
    agent = c.agents.get(agent_id)
    if agent is not None:
        departures.send_away(c, agent, _WHY)
        agents.remove(c, agent, _WHY, now)
    elif agent_id in c.expected:
        recovery.expect_no_more(c, agent_id)


# ---- Reading ------------------------------------------------------------------------


def status(c: Cluster) -> mt.ClusterStatus:
    """The machines that are to go, with what frameworks have said to that, and those
    that are down."""
    answer = mt.ClusterStatus()
    said: dict[int, list[mt.InverseOfferStatus]] = {}
    for agent_id, statuses in inverse_offers.statuses(c).items():
        machine = c.machines.of(c.agents[agent_id].info)
        if machine is not None:
            said.setdefault(id(machine), []).extend(statuses)
    for machine in c.machines:
        if machine.mode == MODE.DOWN:
            answer.down_machines.append(machine.id)
        else:
            found = said.get(id(machine), [])
            answer.draining_machines.add(id=machine.id, statuses=found)
    return answer
