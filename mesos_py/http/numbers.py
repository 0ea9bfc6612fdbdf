"""Numbers of the machine that a daemon runs on, as Mesos has them in /metrics/snapshot."""

from __future__ import annotations

import os


def system() -> dict[str, float]:
    """`system/...`: processors, load and memory."""
    one, five, fifteen = os.getloadavg()
    page = os.sysconf("SC_PAGE_SIZE")
    return {
        "system/cpus_total": float(os.cpu_count() or 0),
        "system/load_1min": one,
        "system/load_5min": five,
        "system/load_15min": fifteen,
        "system/mem_total_bytes": float(os.sysconf("SC_PHYS_PAGES") * page),
        "system/mem_free_bytes": float(os.sysconf("SC_AVPHYS_PAGES") * page),
    }


def stats() -> dict[str, float]:
    """The same under the names that they had first: /system/stats.json."""
    return {
        name.removeprefix("system/").replace("load_", "avg_load_"): value
        for name, value in sorted(system().items())
    }


__all__ = ["system"]
