"""/metrics/snapshot: the agent's numbers under the names that people's alerts have for them.

The names of Apache Mesos 1.11 for what there is here.  Our own numbers are at /metrics, for
Prometheus.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from agent.core import listing
from agent.core.state import AgentState
from mesos_py.http.numbers import system
from mesos_py.resources import MILLI, Resources
from mesos_py.v1 import types_pb2 as pb

_KINDS: Final = ("cpus", "mem", "disk", "gpus")
# How many tasks are in such a state now; of the others: how many came to it so far.
_NOW: Final = ("STAGING", "STARTING", "RUNNING", "KILLING")
_SO_FAR: Final = ("FINISHED", "FAILED", "KILLED", "LOST", "GONE")
# Names of Mesos, and our own numbers (/metrics) that count the same.
_SAME: Final = {
    "containerizer/fetcher/cache_size_used_bytes": "fetcher_cache_bytes",
    "containerizer/fetcher/task_fetches_succeeded": 'fetches_total{outcome="fetched"}',
    "containerizer/fetcher/task_fetches_failed": 'fetches_total{outcome="failed"}',
    "gc/path_removals_succeeded": "sandboxes_removed_total",
    "gc/path_removals_failed": "sandbox_removals_failed_total",
    "slave/executor_directory_max_allowed_age_secs": "sandbox_age_limit_seconds",
}


@dataclass(slots=True)
class Recovery:
    """How the start from the checkpoint went."""

    seconds: float = 0.0
    errors: int = 0


def snapshot(
    s: AgentState,
    ours: Mapping[str, float],
    *,
    uptime_s: float,
    recovery: Recovery,
    cache_bytes: int,
) -> dict[str, float]:
    """By name.  `ours`: those of /metrics, without their prefix; `cache_bytes`: what the
    fetcher's cache may hold."""
    tally = s.tally
    found: dict[str, float] = {
        "registered": s.registered,
        "uptime_secs": uptime_s,
        "recovery_errors": recovery.errors,
        "recovery_time_secs": recovery.seconds,
        "frameworks_active": len(listing.present(s)),
        "container_launch_errors": tally.launches_failed,
        "valid_status_updates": tally.updates,
        "invalid_status_updates": tally.updates_refused,
        "valid_framework_messages": tally.messages,
        "invalid_framework_messages": tally.messages_dropped,
    }
    found |= _amounts(s)
    found |= _executors(s)
    found |= _tasks(s)
    named = {f"slave/{name}": float(value) for name, value in found.items()}
    named |= {name: ours.get(own, 0.0) for name, own in _SAME.items()}
    named["containerizer/fetcher/cache_size_total_bytes"] = float(cache_bytes)
    return named | system()


def _amounts(s: AgentState) -> dict[str, float]:
    total = Resources.from_proto("resources", s.info.resources).plain.scalars
    used: Counter[str] = Counter()
    for executor in s.executors.values():
        for bundle in listing.held(executor):
            used.update(bundle.plain.scalars)
    found: dict[str, float] = {}
    for kind in _KINDS:
        of = total.get(kind, 0)
        found[f"{kind}_total"] = of / MILLI
        found[f"{kind}_used"] = used[kind] / MILLI
        found[f"{kind}_percent"] = used[kind] / of if of else 0.0
        # Nothing is offered that may be taken back in the sense of Mesos.
        for what in ("total", "used", "percent"):
            found[f"{kind}_revocable_{what}"] = 0.0
    return found


def _executors(s: AgentState) -> dict[str, float]:
    """A command counts as an executor, since it does for Mesos."""
    there = s.executors.values()
    ending = sum(each.ending for each in there)
    registering = sum(each.custom and not each.subscribed and not each.ending for each in there)
    return {
        "executors_registering": registering,
        "executors_running": len(there) - ending - registering,
        "executors_terminating": ending,
        "executors_terminated": s.tally.executors_ended,
        "executors_preempted": 0,
    }


def _tasks(s: AgentState) -> dict[str, float]:
    now = Counter(
        pb.TaskState.Name(task.state)
        for executor in s.executors.values()
        for task in executor.tasks.values()
    )
    found: dict[str, float] = {f"tasks_{name.lower()}": now[f"TASK_{name}"] for name in _NOW}
    for name in _SO_FAR:
        found[f"tasks_{name.lower()}"] = s.tally.ended[pb.TaskState.Value(f"TASK_{name}")]
    return found


__all__ = ["Recovery", "snapshot"]
