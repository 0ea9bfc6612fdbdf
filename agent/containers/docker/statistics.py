"""What dockerd measures, under the names that isolators use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agent.containers.docker.limits import CPU_PERIOD_US, Limits

_NS: Final = 1e9
# dockerd says this, or more, where there is no limit (cgroup v1 rounds to pages).
_NO_LIMIT: Final = 1 << 60
_NET: Final = (
    ("rx_bytes", "net_rx_bytes"),
    ("tx_bytes", "net_tx_bytes"),
    ("rx_packets", "net_rx_packets"),
    ("tx_packets", "net_tx_packets"),
    ("rx_dropped", "net_rx_dropped"),
    ("tx_dropped", "net_tx_dropped"),
)


def usage_of(stats: Mapping[str, Any], limits: Limits) -> dict[str, float]:
    """Of one answer to `stats`, of cgroup v1 or v2.  What is not in it is left out."""
    usage: dict[str, float] = {}
    _cpu(_part(stats, "cpu_stats"), usage)
    if limits.cpu_quota_us:
        usage["cpu_limit_cores"] = limits.cpu_quota_us / CPU_PERIOD_US
    _memory(_part(stats, "memory_stats"), usage)
    pids = _part(stats, "pids_stats")
    _take(usage, "pids", pids, "current")
    _take(usage, "pids_limit", pids, "limit")
    if not 0 < usage.get("pids_limit", 1) < _NO_LIMIT:
        del usage["pids_limit"]
    blkio = _part(stats, "blkio_stats")
    _io(usage, blkio.get("io_service_bytes_recursive"), "io_read_bytes", "io_write_bytes")
    _io(usage, blkio.get("io_serviced_recursive"), "io_reads", "io_writes")
    networks = _part(stats, "networks")
    for theirs, ours in _NET:
        found = [_number(_part(networks, name), theirs) for name in networks]
        if found:
            usage[ours] = sum(each or 0.0 for each in found)
    return usage


def _cpu(cpu: Mapping[str, Any], usage: dict[str, float]) -> None:
    used = _part(cpu, "cpu_usage")
    _take(usage, "cpu_user_seconds", used, "usage_in_usermode", 1 / _NS)
    _take(usage, "cpu_system_seconds", used, "usage_in_kernelmode", 1 / _NS)
    throttling = _part(cpu, "throttling_data")
    _take(usage, "cpu_periods", throttling, "periods")
    _take(usage, "cpu_throttled_periods", throttling, "throttled_periods")
    _take(usage, "cpu_throttled_seconds", throttling, "throttled_time", 1 / _NS)


def _memory(memory: Mapping[str, Any], usage: dict[str, float]) -> None:
    _take(usage, "memory_bytes", memory, "usage")
    _take(usage, "memory_peak_bytes", memory, "max_usage")
    if 0 < (_number(memory, "limit") or 0) < _NO_LIMIT:
        _take(usage, "memory_limit_bytes", memory, "limit")
    details = _part(memory, "stats")
    for ours, names in (
        ("memory_rss_bytes", ("total_rss", "anon", "rss")),
        ("memory_cache_bytes", ("total_cache", "file", "cache")),
    ):
        found = next((name for name in names if name in details), None)
        if found is not None:
            _take(usage, ours, details, found)


def _io(usage: dict[str, float], rows: Any, read: str, write: str) -> None:
    """Rows of all devices, each with its operation; none: the machine counts nothing."""
    for row in rows if isinstance(rows, list) else ():
        name = {"read": read, "write": write}.get(str(row.get("op", "")).lower())
        if name is not None:
            usage[name] = usage.get(name, 0.0) + (_number(row, "value") or 0.0)


def _part(whole: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = whole.get(name)
    return part if isinstance(part, Mapping) else {}


def _number(part: Mapping[str, Any], name: str) -> float | None:
    value = part.get(name)
    return float(value) if isinstance(value, (int, float)) else None


def _take(
    usage: dict[str, float], ours: str, part: Mapping[str, Any], theirs: str, factor: float = 1.0
) -> None:
    value = _number(part, theirs)
    if value is not None:
        usage[ours] = value * factor
