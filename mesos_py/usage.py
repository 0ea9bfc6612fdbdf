"""What containers use, as rates between two looks, by container, framework or agent.

Pure.  Two answers of `OperatorClient.usage` go in, rows come out; each container's own
timestamps count, so that answers that were long on their way do no harm.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mesos_py.errors import InvalidValue
from mesos_py.resources import Resources
from mesos_py.v1 import operator_pb2 as pb
from mesos_py.v1.agent_operator_pb2 import Response
from mesos_py.v1.types_pb2 import ResourceStatistics

Container = Response.GetContainers.Container
Row = dict[str, Any]

# Rows of one kind can be summed up over what is named here.
CONTAINER: Final = "container"
GROUPS: Final = (CONTAINER, "framework", "agent")

# Per second, from numbers that only grow.
_RATES: Final = {
    "io_read": ("io_read_bytes",),
    "io_write": ("io_write_bytes",),
    "net_rx": ("net_rx_bytes",),
    "net_tx": ("net_tx_bytes",),
}
_CPU: Final = ("cpus_user_time_secs", "cpus_system_time_secs")
# As they are at this moment.
_AMOUNTS: Final = {
    "memory": "mem_total_bytes",
    "memory_rss": "mem_rss_bytes",
    "memory_cache": "mem_cache_bytes",
    "memory_peak": "mem_peak_bytes",
    "memory_limit": "mem_limit_bytes",
    "pids": "processes",
    "disk": "disk_used_bytes",
}
SUMMED: Final = ("cpu", "cpus", "mem", *_RATES, *_AMOUNTS)
# What rows can be ordered by: the largest first, names from the beginning.
ORDERS: Final[Mapping[str, str]] = {
    "cpu": "cpu",
    "mem": "memory",
    "peak": "memory_peak",
    "pids": "pids",
    "throttled": "throttled",
    "read": "io_read",
    "write": "io_write",
    "rx": "net_rx",
    "tx": "net_tx",
    "disk": "disk",
    "name": "name",
}


@dataclass(frozen=True)
class Names:
    """Who is who: framework names by id."""

    frameworks: Mapping[str, str]

    def framework(self, framework_id: str) -> str:
        return self.frameworks.get(framework_id) or framework_id


def rows(
    before: pb.Response.GetUsage | None, after: pb.Response.GetUsage, names: Names
) -> list[Row]:
    """One row per container of `after`; without a look before there are no rates."""
    earlier = {
        each.container_id.value: each.resource_statistics
        for agent in (before.agents if before is not None else ())
        for each in agent.containers
        if each.HasField("resource_statistics")
    }
    return [
        _row(agent, each, earlier.get(each.container_id.value), names)
        for agent in after.agents
        for each in agent.containers
    ]


def _row(
    agent: pb.Response.GetUsage.Agent,
    container: Container,
    before: ResourceStatistics | None,
    names: Names,
) -> Row:
    after = container.resource_statistics
    given = Resources.from_proto("resources", container.resources).plain
    framework_id = container.framework_id.value
    row: Row = {
        "name": container.executor_id.value,
        "container_id": container.container_id.value,
        "executor_id": container.executor_id.value,
        "tasks": [each.value for each in container.task_ids],
        "framework_id": framework_id,
        "framework": names.framework(framework_id),
        "agent_id": agent.agent_id.value,
        "hostname": agent.hostname,
        "containers": 1,
        # What it was given: cores, and MB.
        "cpus": given.scalar("cpus"),
        "mem": given.scalar("mem"),
        "cpu": rate(before, after, _CPU),
        "cpu_seconds": _total(after, _CPU),
        **{name: rate(before, after, fields) for name, fields in _RATES.items()},
        **{name: _value(after, field) for name, field in _AMOUNTS.items()},
    }
    row["throttled_periods"] = _growth(before, after, ("cpus_nr_throttled",))
    row["periods"] = _growth(before, after, ("cpus_nr_periods",))
    row["throttled"] = _share(row["throttled_periods"], row["periods"])
    return row


def rate(
    before: ResourceStatistics | None, after: ResourceStatistics, fields: Sequence[str]
) -> float | None:
    """By how much their sum has grown in a second; None if that cannot be told.

    Never below zero: a sum that has shrunk was counted anew, or lost a part (a process
    that has ended), and has grown by nobody knows how much.
    """
    growth = _growth(before, after, fields)
    if growth is None or before is None:
        return None
    # _growth has seen to it that time has passed.
    return growth / (after.timestamp - before.timestamp)


def _growth(
    before: ResourceStatistics | None, after: ResourceStatistics, fields: Sequence[str]
) -> float | None:
    if before is None or after.timestamp <= before.timestamp:
        return None
    first, second = _total(before, fields), _total(after, fields)
    return None if first is None or second is None else max(0.0, second - first)


def _total(statistics: ResourceStatistics, fields: Sequence[str]) -> float | None:
    values = [_value(statistics, field) for field in fields]
    known = [value for value in values if value is not None]
    return float(sum(known)) if known else None


def _value(statistics: ResourceStatistics, field: str) -> float | None:
    if not statistics.HasField(field):  # type: ignore[arg-type]
        return None
    value: float = getattr(statistics, field)
    return value


def _share(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else min(1.0, part / whole)


def summed(listed: Iterable[Row], group: str) -> list[Row]:
    """Rows summed up by "framework" or "agent"; by "container" as they are.

    A sum is that of the rows that know the number, and None where none does.
    """
    if group not in GROUPS:
        raise InvalidValue("by", group, f"must be one of {', '.join(GROUPS)}")
    if group == CONTAINER:
        return list(listed)
    members: dict[str, list[Row]] = {}
    for row in listed:
        members.setdefault(row[f"{group}_id"], []).append(row)
    return [_sum(found, group) for found in members.values()]


def _sum(found: Sequence[Row], group: str) -> Row:
    first = found[0]
    named = {"framework": ("framework_id", "framework"), "agent": ("agent_id", "hostname")}[group]
    row: Row = {name: first[name] for name in named}
    row["name"] = first[named[1]] or first[named[0]]
    row["containers"] = sum(each["containers"] for each in found)
    for name in (*SUMMED, "cpu_seconds", "throttled_periods", "periods"):
        known = [each[name] for each in found if each[name] is not None]
        row[name] = sum(known) if known else None
    row["throttled"] = _share(row["throttled_periods"], row["periods"])
    return row


def ordered(listed: Iterable[Row], order: str) -> list[Row]:
    """By a column: the largest first, and what is not known last; equal ones by name."""
    if order not in ORDERS:
        raise InvalidValue("sort", order, f"must be one of {', '.join(ORDERS)}")
    by_name = sorted(listed, key=lambda row: (row["name"], row.get("container_id", "")))
    if order == "name":
        return by_name
    column = ORDERS[order]

    def amount(row: Row) -> float:
        value: float | None = row[column]
        return -1.0 if value is None else value

    return sorted(by_name, key=amount, reverse=True)
