"""Maintenance windows: as people write them, as JSON, and as rows."""

from __future__ import annotations

import datetime
import ipaddress
import json
from collections.abc import Collection
from typing import Any

from google.protobuf import json_format

from mesos_py.config_kinds import duration_s
from mesos_py.errors import Conflict, InvalidValue, NotFound
from mesos_py.v1.maintenance_pb2 import ClusterStatus, InverseOfferStatus, Schedule, Window
from mesos_py.v1.types_pb2 import MachineID

_WORDS = {
    InverseOfferStatus.UNKNOWN: "has not answered",
    InverseOfferStatus.ACCEPT: "leaves",
    InverseOfferStatus.DECLINE: "stays",
}


# ---- Machines ----------------------------------------------------------------------


def machine_of(text: str) -> MachineID:
    """HOST, IP, or HOST,IP.  Raises InvalidValue."""
    host, _, address = text.partition(",")
    if not address and _is_address(host):
        host, address = "", host
    if not host and not address:
        raise InvalidValue("machine", text, "must be a host name, an IP address, or HOST,IP")
    if address and not _is_address(address):
        raise InvalidValue("machine", text, f"{address!r} is no IP address")
    return MachineID(hostname=host or None, ip=address or None)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def text_of(machine: MachineID) -> str:
    return ",".join(part for part in (machine.hostname, machine.ip) if part)


def entry_of(schedule: Schedule, text: str) -> MachineID:
    """The entry of the schedule that `text` means: itself, or one with more to it.

    Raises NotFound, or Conflict where it may mean several.
    """
    wanted = machine_of(text)
    entries = [machine for window in schedule.windows for machine in window.machine_ids]
    exact = [each for each in entries if _key(each) == _key(wanted)]
    found = exact or [each for each in entries if _fits(wanted, each)]
    if not found:
        raise NotFound("machine", text, "is not in the maintenance schedule")
    if len(found) > 1:
        names = " ".join(text_of(each) for each in found)
        raise Conflict(f"machine {text!r} means {len(found)}: {names}")
    return found[0]


def _key(machine: MachineID) -> tuple[str, str]:
    return machine.hostname.lower(), machine.ip


def _fits(wanted: MachineID, entry: MachineID) -> bool:
    pairs = zip(_key(wanted), _key(entry), strict=True)
    return all(given in ("", known) for given, known in pairs)


# ---- Windows -----------------------------------------------------------------------


def when(text: str | None, now: float) -> float:
    """A moment in seconds since the epoch.  Raises InvalidValue."""
    if text is None or text == "now":
        return now
    try:
        if text.startswith("+"):
            return now + float(duration_s.read(text[1:]))
        return datetime.datetime.fromisoformat(text).timestamp()
    except (ValueError, InvalidValue):
        raise InvalidValue(
            "start", text, "must be +DURATION from now, or a time such as 2026-03-01T22:00"
        ) from None


def window_of(machines: Collection[MachineID], start_s: float, length_s: float | None) -> Window:
    window = Window(machine_ids=machines)
    window.unavailability.start.nanoseconds = round(start_s * 1e9)
    if length_s is not None:
        window.unavailability.duration.nanoseconds = round(length_s * 1e9)
    return window


def with_window(schedule: Schedule, window: Window) -> Schedule:
    """The schedule with this window, which its machines are in and in no other."""
    made = without(schedule, window.machine_ids)
    made.windows.append(window)
    return made


def without(schedule: Schedule, machines: Collection[MachineID]) -> Schedule:
    """The schedule without these machines; a window that has no others is left out."""
    keys = {_key(each) for each in machines}
    made = Schedule()
    for window in schedule.windows:
        left = [each for each in window.machine_ids if _key(each) not in keys]
        if left:
            made.windows.add(machine_ids=left, unavailability=window.unavailability)
    return made


# ---- JSON, and rows ------------------------------------------------------------------


def from_json(data: bytes) -> Schedule:
    """Raises InvalidValue for what is no schedule."""
    try:
        # The parser takes an empty list for an empty message.
        if not isinstance(json.loads(data), dict):
            raise ValueError("not an object")
        return json_format.Parse(data, Schedule())
    except (json_format.ParseError, ValueError) as error:
        raise InvalidValue("schedule", "the file", f"is none: {error}") from None


def to_json(schedule: Schedule) -> str:
    text: str = json_format.MessageToJson(schedule, preserving_proto_field_name=True)
    return text


def rows(schedule: Schedule, status: ClusterStatus) -> list[dict[str, Any]]:
    """One for each machine of the schedule, in its order."""
    down = {_key(each) for each in status.down_machines}
    answers = {_key(each.id): each.statuses for each in status.draining_machines}
    return [
        {
            "machine": text_of(machine),
            "hostname": machine.hostname or None,
            "ip": machine.ip or None,
            "state": "down" if _key(machine) in down else "draining",
            "start": window.unavailability.start.nanoseconds / 1e9,
            "duration": (
                window.unavailability.duration.nanoseconds / 1e9
                if window.unavailability.HasField("duration")
                else None
            ),
            "answers": [
                {
                    "framework_id": each.framework_id.value,
                    "answer": _WORDS.get(each.status, str(each.status)),
                    "time": each.timestamp.nanoseconds / 1e9,
                }
                for each in answers.get(_key(machine), ())
            ],
        }
        for window in schedule.windows
        for machine in window.machine_ids
    ]
