"""Machines that are to be absent, or are: which those are, and which agents they have.

An entry names a machine by host name (in any case), by IP address, or by both; what it
leaves out fits any agent.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from mesos_py.errors import InvalidValue, Unavailable
from mesos_py.v1 import maintenance_pb2 as mt
from mesos_py.v1 import registry_pb2 as reg
from mesos_py.v1 import types_pb2 as pb

Key: TypeAlias = tuple[str, str]  # host name in lower case, IP address; "": any
MODE = pb.MachineInfo


class MachineDown(Unavailable):
    """No agent registers there before its maintenance is stopped."""

    code = "machine-down"


def key_of(field: str, machine: pb.MachineID) -> Key:
    """What the entry stands for.  Raises InvalidValue naming `field`."""
    if not machine.hostname and not machine.ip:
        raise InvalidValue(field, "", "must name a host name or an IP address")
    if not machine.ip:
        return machine.hostname.lower(), ""
    try:
        address = str(ipaddress.ip_address(machine.ip))
    except ValueError:
        raise InvalidValue(f"{field}.ip", machine.ip, "is no IP address") from None
    return machine.hostname.lower(), address


def text_of(machine: pb.MachineID) -> str:
    """How people are told of the machine."""
    return " ".join(part for part in (machine.hostname, machine.ip) if part)


def distinct(field: str, machines: Iterable[pb.MachineID]) -> dict[Key, pb.MachineID]:
    """The machines by what they stand for.  Raises InvalidValue for one that is there twice."""
    found: dict[Key, pb.MachineID] = {}
    for machine in machines:
        key = key_of(field, machine)
        if key in found:
            raise InvalidValue(field, text_of(machine), "is named twice")
        found[key] = machine
    return found


class Machines:
    """The record of the maintenance, ready to be asked.  Never changed."""

    def __init__(self, record: reg.Maintenance | None = None) -> None:
        self.record = record or reg.Maintenance()
        self._by_key = {key_of("machines.id", each.id): each for each in self.record.machines}

    def __bool__(self) -> bool:
        return bool(self._by_key)

    def __iter__(self) -> Iterator[pb.MachineInfo]:
        return iter(self._by_key.values())

    def get(self, key: Key) -> pb.MachineInfo | None:
        return self._by_key.get(key)

    def of(self, info: pb.AgentInfo) -> pb.MachineInfo | None:
        """The machine that the agent is on; of several one that is down, or goes first."""
        if not self._by_key:
            return None
        host, address = info.hostname.lower(), _normal(info.ip)
        keys = [(host, "")] if not address else [(host, address), (host, ""), ("", address)]
        found = [self._by_key[key] for key in keys if key in self._by_key]
        return min(found, key=_urgency, default=None)

    def is_down(self, info: pb.AgentInfo) -> bool:
        machine = self.of(info)
        return machine is not None and machine.mode == MODE.DOWN

    def unavailability_of(self, info: pb.AgentInfo) -> pb.Unavailability | None:
        """When the agent is to be absent, if it is."""
        machine = self.of(info)
        return machine.unavailability if machine is not None else None


def _normal(address: str) -> str:
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return address  # whatever an agent says that is none fits no entry


def _urgency(machine: pb.MachineInfo) -> tuple[bool, int]:
    return machine.mode != MODE.DOWN, machine.unavailability.start.nanoseconds


# ---- New records ---------------------------------------------------------------------


def scheduled(now: Machines, schedule: mt.Schedule) -> reg.Maintenance:
    """The record with this schedule in place of the old one.

    Raises InvalidValue for a window without machines or without a beginning, a machine
    that is there twice, and one that is missing although it is down.
    """
    made = reg.Maintenance(schedule=schedule)
    seen: set[Key] = set()
    for window in schedule.windows:
        field = "schedule.windows"
        if not window.machine_ids:
            raise InvalidValue(f"{field}.machine_ids", "[]", "must name at least one machine")
        _check_times(f"{field}.unavailability", window.unavailability)
        for key, machine in distinct(f"{field}.machine_ids", window.machine_ids).items():
            if key in seen:
                raise InvalidValue(
                    f"{field}.machine_ids", text_of(machine), "is in more than one window"
                )
            seen.add(key)
            known = now.get(key)
            down = known is not None and known.mode == MODE.DOWN
            made.machines.add(
                id=machine,
                mode=MODE.DOWN if down else MODE.DRAINING,
                unavailability=window.unavailability,
            )
    for each in now:
        if each.mode == MODE.DOWN and key_of("machines.id", each.id) not in seen:
            raise InvalidValue(
                "schedule.windows.machine_ids",
                text_of(each.id),
                "is down, and must stay in the schedule until its maintenance is stopped",
            )
    return made


def _check_times(field: str, times: pb.Unavailability) -> None:
    if not times.HasField("start"):
        raise InvalidValue(f"{field}.start", "", "is missing")
    if times.duration.nanoseconds < 0:
        given = times.duration.nanoseconds
        raise InvalidValue(f"{field}.duration", given, "must not be negative")


def started(now: Machines, machines: Iterable[pb.MachineID]) -> reg.Maintenance:
    """The record in which these machines are down.  Raises InvalidValue for others than
    those that are scheduled and up."""
    keys = _named(machines)
    for key, machine in keys.items():
        known = now.get(key)
        if known is None:
            raise InvalidValue("machines", text_of(machine), "is not in the schedule")
        if known.mode == MODE.DOWN:
            raise InvalidValue("machines", text_of(machine), "is down already")
    made = reg.Maintenance()
    made.CopyFrom(now.record)
    for each in made.machines:
        if key_of("machines.id", each.id) in keys:
            each.mode = MODE.DOWN
    return made


def stopped(now: Machines, machines: Iterable[pb.MachineID]) -> reg.Maintenance:
    """The record without these machines, which have been down.  Raises InvalidValue for
    others."""
    keys = _named(machines)
    for key, machine in keys.items():
        known = now.get(key)
        if known is None or known.mode != MODE.DOWN:
            raise InvalidValue("machines", text_of(machine), "is not down")
    made = reg.Maintenance()
    for window in now.record.schedule.windows:
        left = [each for each in window.machine_ids if key_of("machine_ids", each) not in keys]
        if left:
            made.schedule.windows.add(machine_ids=left, unavailability=window.unavailability)
    for each in now.record.machines:
        if key_of("machines.id", each.id) not in keys:
            made.machines.append(each)
    return made


def _named(machines: Iterable[pb.MachineID]) -> dict[Key, pb.MachineID]:
    keys = distinct("machines", machines)
    if not keys:
        raise InvalidValue("machines", "[]", "must name at least one machine")
    return keys
