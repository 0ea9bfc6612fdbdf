"""The numbers of a container's usage: their names, what they are, their place on the wire."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from mesos_py.v1 import types_pb2 as pb


class Kind(enum.Enum):
    """Whether a number only grows while the container lives, or is that of a moment."""

    COUNTER = "counter"
    GAUGE = "gauge"


class Number(NamedTuple):
    kind: Kind
    # Of ResourceStatistics.
    field: str
    help: str


# By their names in agent.isolation.base.Usage.
NUMBERS: Final[Mapping[str, Number]] = {
    "cpu_user_seconds": Number(
        Kind.COUNTER, "cpus_user_time_secs", "Processor time outside of the kernel"
    ),
    "cpu_system_seconds": Number(
        Kind.COUNTER, "cpus_system_time_secs", "Processor time in the kernel"
    ),
    "cpu_limit_cores": Number(Kind.GAUGE, "cpus_limit", "Cores that it cannot use more than"),
    "cpu_periods": Number(Kind.COUNTER, "cpus_nr_periods", "Periods in which it wanted to run"),
    "cpu_throttled_periods": Number(
        Kind.COUNTER, "cpus_nr_throttled", "Periods in which it was stopped at its limit"
    ),
    "cpu_throttled_seconds": Number(
        Kind.COUNTER, "cpus_throttled_time_secs", "Time for which it was stopped at its limit"
    ),
    "memory_bytes": Number(Kind.GAUGE, "mem_total_bytes", "Memory that is charged to it"),
    "memory_rss_bytes": Number(Kind.GAUGE, "mem_rss_bytes", "Memory without files behind it"),
    "memory_cache_bytes": Number(Kind.GAUGE, "mem_cache_bytes", "Page cache charged to it"),
    "memory_peak_bytes": Number(Kind.GAUGE, "mem_peak_bytes", "The most memory it ever had"),
    "memory_limit_bytes": Number(Kind.GAUGE, "mem_limit_bytes", "Memory that it cannot exceed"),
    "memory_oom_kills": Number(
        Kind.COUNTER, "mem_oom_kills", "Processes that were killed for memory"
    ),
    "pids": Number(Kind.GAUGE, "processes", "Its processes"),
    "pids_limit": Number(Kind.GAUGE, "processes_limit", "Processes that it cannot exceed"),
    "io_read_bytes": Number(Kind.COUNTER, "io_read_bytes", "Read from disks"),
    "io_write_bytes": Number(Kind.COUNTER, "io_write_bytes", "Written to disks"),
    "io_reads": Number(Kind.COUNTER, "io_reads", "Reads"),
    "io_writes": Number(Kind.COUNTER, "io_writes", "Writes"),
    "disk_bytes": Number(Kind.GAUGE, "disk_used_bytes", "Size of its sandbox and volumes"),
    "disk_limit_bytes": Number(Kind.GAUGE, "disk_limit_bytes", "Size that they cannot exceed"),
    "net_rx_bytes": Number(Kind.COUNTER, "net_rx_bytes", "Received"),
    "net_tx_bytes": Number(Kind.COUNTER, "net_tx_bytes", "Sent"),
    "net_rx_packets": Number(Kind.COUNTER, "net_rx_packets", "Packets received"),
    "net_tx_packets": Number(Kind.COUNTER, "net_tx_packets", "Packets sent"),
    "net_rx_dropped": Number(Kind.COUNTER, "net_rx_dropped", "Packets dropped on their way in"),
    "net_tx_dropped": Number(Kind.COUNTER, "net_tx_dropped", "Packets dropped on their way out"),
}

# So many numbers of isolators that are not ours are passed on.
MAX_OTHER: Final = 32
# Times and cores are fractions, all else is counted.
_FRACTIONS: Final = ("_seconds", "_cores")
_MIB: Final = 1024 * 1024
_UINT32: Final = frozenset(
    {"cpu_periods", "cpu_throttled_periods", "pids", "pids_limit"},
)


def statistics(numbers: Mapping[str, float], at_s: float) -> pb.ResourceStatistics:
    """The wire form.  What is no amount (NaN, infinite, below zero) is left out."""
    message = pb.ResourceStatistics(timestamp=at_s)
    for name, value in numbers.items():
        if not math.isfinite(value) or value < 0:
            continue
        known = NUMBERS.get(name)
        if known is not None:
            setattr(message, known.field, _amount(name, value))
        elif len(message.other) < MAX_OTHER:
            message.other[name] = value
    return message


def note_asked(message: pb.ResourceStatistics, resources: Iterable[pb.Resource]) -> None:
    """What was asked for, beside what is used."""
    for each in resources:
        if each.name == "cpus":
            message.cpus_soft_limit += each.scalar.value
        elif each.name == "mem":
            message.mem_soft_limit_bytes += int(each.scalar.value * _MIB)


def as_mesos(given: pb.ResourceStatistics) -> pb.ResourceStatistics:
    """With what Mesos has under other names, too, and where it says what was asked for: a
    container that is held to nothing has that as its limit of memory."""
    message = pb.ResourceStatistics()
    message.CopyFrom(given)
    if message.HasField("mem_rss_bytes"):
        message.mem_anon_bytes = message.mem_rss_bytes
    if message.HasField("mem_cache_bytes"):
        message.mem_file_bytes = message.mem_cache_bytes
    if message.HasField("mem_soft_limit_bytes") and not message.HasField("mem_limit_bytes"):
        message.mem_limit_bytes = message.mem_soft_limit_bytes
    return message


def numbers_of(message: pb.ResourceStatistics) -> Iterator[tuple[str, float]]:
    """The numbers that are there, by their names."""
    for name, known in NUMBERS.items():
        if message.HasField(known.field):  # type: ignore[arg-type]
            yield name, getattr(message, known.field)
    yield from sorted(message.other.items())


def _amount(name: str, value: float) -> Any:
    if name.endswith(_FRACTIONS):
        return value
    return min(int(value), 2**32 - 1 if name in _UINT32 else 2**64 - 1)
