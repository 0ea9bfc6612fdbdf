"""Operators' words about agents and machines: answered once the registry has them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from master.api.changes import Changes
from master.api.shell import Shell
from master.core import departures, draining, maintenance
from master.core.machines import text_of
from mesos_py import logs
from mesos_py.clock import Now
from mesos_py.errors import InvalidValue
from mesos_py.v1 import operator_pb2 as op
from mesos_py.v1 import types_pb2 as pb

log = logs.get("master.operator")

_NS: Final = 10**9
# What a field of 64 bits does not hold: 292 years.
_TOO_LONG_NS: Final = 2**63


class MaintenanceCalls:
    """The part of OperatorService that takes agents and machines out of service and back."""

    def __init__(self, shell: Shell, changes: Changes) -> None:
        self._shell = shell
        self._changes = changes

    async def drain(self, call: op.Call) -> op.Response:
        asked, config = call.drain_agent, pb.DrainConfig()
        config.mark_gone = asked.mark_gone
        if asked.HasField("max_grace_period"):
            grace = asked.max_grace_period
            grace_ns = grace.seconds * _NS + grace.nanos
            if abs(grace_ns) >= _TOO_LONG_NS:
                raise InvalidValue("max_grace_period", f"{grace.seconds} s", "is too long")
            config.max_grace_period.nanoseconds = grace_ns
        agent_id = _id(asked.agent_id)
        c = self._shell.core.cluster
        return await self._once_stored(
            "drain", agent_id, lambda then, now: draining.drain(c, agent_id, config, then, now)
        )

    async def deactivate(self, call: op.Call) -> op.Response:
        agent_id = _id(call.deactivate_agent.agent_id)
        c = self._shell.core.cluster
        return await self._once_stored(
            "deactivate", agent_id, lambda then, now: draining.deactivate(c, agent_id, then, now)
        )

    async def reactivate(self, call: op.Call) -> op.Response:
        agent_id = _id(call.reactivate_agent.agent_id)
        c = self._shell.core.cluster
        return await self._once_stored(
            "reactivate", agent_id, lambda then, now: draining.reactivate(c, agent_id, then, now)
        )

    async def mark_gone(self, call: op.Call) -> op.Response:
        agent_id = _id(call.mark_agent_gone.agent_id)
        c = self._shell.core.cluster
        return await self._once_stored(
            "mark gone", agent_id, lambda then, now: departures.mark_gone(c, agent_id, then, now)
        )

    # ---- Machines --------------------------------------------------------

    def get_schedule(self, _: op.Call) -> op.Response:
        schedule = self._shell.core.cluster.machines.record.schedule
        return op.Response(
            type=op.Response.GET_MAINTENANCE_SCHEDULE,
            get_maintenance_schedule=op.Response.GetMaintenanceSchedule(schedule=schedule),
        )

    def get_status(self, _: op.Call) -> op.Response:
        status = maintenance.status(self._shell.core.cluster)
        return op.Response(
            type=op.Response.GET_MAINTENANCE_STATUS,
            get_maintenance_status=op.Response.GetMaintenanceStatus(status=status),
        )

    async def update_schedule(self, call: op.Call) -> op.Response:
        c, schedule = self._shell.core.cluster, call.update_maintenance_schedule.schedule
        return await self._once_stored(
            "maintenance schedule",
            f"{len(schedule.windows)} windows",
            lambda then, now: maintenance.update_schedule(c, schedule, then, now),
        )

    async def start(self, call: op.Call) -> op.Response:
        c, named = self._shell.core.cluster, call.start_maintenance.machines
        return await self._once_stored(
            "start maintenance",
            _texts(named),
            lambda then, now: maintenance.start(c, named, then, now),
        )

    async def stop(self, call: op.Call) -> op.Response:
        c, named = self._shell.core.cluster, call.stop_maintenance.machines
        return await self._once_stored(
            "stop maintenance",
            _texts(named),
            lambda then, now: maintenance.stop(c, named, then, now),
        )

    async def _once_stored(
        self, what: str, whom: str, say: Callable[[Callable[[Now], None], Now], None]
    ) -> op.Response:
        now = self._shell.now()
        answer = await self._changes.done(lambda done: say(lambda _: done(), now))
        log.info("operator's word", what=what, whom=whom)
        return answer


def _id(agent_id: pb.AgentID) -> str:
    if not agent_id.value:
        raise InvalidValue("agent_id", "", "must not be empty")
    return agent_id.value


def _texts(machines: Iterable[pb.MachineID]) -> str:
    return ", ".join(text_of(each) for each in machines)
