"""What containers use by their processes, where no isolator counts for them.

One look through the machine's processes for all containers together: cheap enough to be
done when somebody asks, and never otherwise.  What ended in between is lost, so a sum
over processes may also shrink.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from typing import Final

import psutil

from agent.containers.processes import marked_container

# What there is of every container that has a process.
BASICS: Final = frozenset({"cpu_user_seconds", "cpu_system_seconds", "memory_rss_bytes", "pids"})


def sample(leaders: Mapping[str, int]) -> dict[str, dict[str, float]]:
    """The usage of containers, given as the pids of their first processes, by id."""
    found: dict[str, list[int]] = {container_id: [] for container_id in leaders}
    by_session = {pid: container_id for container_id, pid in leaders.items()}
    for pid in psutil.pids():
        container_id = _owner(pid, by_session, leaders)
        if container_id is not None:
            found[container_id].append(pid)
    return {container_id: total(pids) for container_id, pids in found.items() if pids}


def _owner(pid: int, by_session: Mapping[int, str], known: Mapping[str, int]) -> str | None:
    """By its session; of one that has left that, by the environment it was started in."""
    try:
        container_id = by_session.get(os.getsid(pid))
    except (ProcessLookupError, PermissionError):
        return None
    if container_id is None:
        # A probe has a marker of its own, which begins with its container's.
        container_id = marked_container(pid).partition(".")[0]
    return container_id if container_id in known else None


def total(pids: Iterable[int]) -> dict[str, float]:
    """The sums over these processes; those that have just ended are passed over."""
    sums: dict[str, float] = dict.fromkeys((*BASICS, "memory_bytes"), 0.0)
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            with process.oneshot():
                times, memory_bytes = process.cpu_times(), process.memory_info().rss
                # Theirs and that of the children that they have waited for.
                sums["cpu_user_seconds"] += times.user + times.children_user
                sums["cpu_system_seconds"] += times.system + times.children_system
                sums["memory_rss_bytes"] += memory_bytes
                sums["memory_bytes"] += memory_bytes
                sums["pids"] += 1
                _add_io(sums, process)
    return sums


def _add_io(sums: dict[str, float], process: psutil.Process) -> None:
    try:
        io = process.io_counters()
    except (psutil.Error, NotImplementedError, OSError):
        return  # not ours to see, or a kernel that does not count
    for name, value in (
        ("io_read_bytes", io.read_bytes),
        ("io_write_bytes", io.write_bytes),
        ("io_reads", io.read_count),
        ("io_writes", io.write_count),
    ):
        sums[name] = sums.get(name, 0.0) + value
