"""The master's numbers: for GET_METRICS, and for Prometheus."""

from __future__ import annotations

import re
from typing import Final

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from master.api.shares import share_families
from master.core.cluster import Cluster
from master.core.machines import MODE
from master.registry.registrar import Figures
from mesos_py.states import is_terminal

PREFIX: Final = "mesos_py_master_"
_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9_]+")
# Counters named GROUP/MEMBER are one family, the member a label of this name.
_GROUPS: Final = {"task_states": "state", "dropped": "reason", "revocations": "stage"}


def gauges(c: Cluster, step_failures: int) -> dict[str, float]:
    """What there is at this moment."""
    tasks = [task for each in c.frameworks.values() for task in each.tasks.values()]
    return {
        "agents": len(c.agents),
        "agents_connected": sum(agent.connected for agent in c.agents.values()),
        "agents_expected": len(c.expected),
        "agents_awaiting_removal": len(c.removals),
        "agents_draining": sum(agent.draining for agent in c.agents.values()),
        "agents_out_of_service": sum(agent.deactivated for agent in c.agents.values()),
        "machines_down": sum(each.mode == MODE.DOWN for each in c.machines),
        "inverse_offers_outstanding": len(c.inverse.offers),
        "offers_held_back": c.recovery.held,
        "frameworks": len(c.frameworks),
        "frameworks_connected": sum(f.connected for f in c.frameworks.values()),
        "standbys": len(c.standby_of_link),
        "offers_outstanding": len(c.offers),
        "revocations_outstanding": len(c.revoking.by_name),
        "frameworks_not_admitted": len(c.needs.waiting),
        "frameworks_silent": sum(f.silent for f in c.frameworks.values()),
        "tasks": len(tasks),
        "tasks_running": sum(not is_terminal(task.state) for task in tasks),
        "step_failures": step_failures,
        "allocation_seconds": c.allocation.seconds,
        "allocation_longest_seconds": c.allocation.longest_s,
    }


def families(c: Cluster, step_failures: int) -> list[Metric]:
    """All numbers.  None is that of a task: their number would have no bound."""
    found: list[Metric] = [
        GaugeMetricFamily(PREFIX + name, "At this moment", value=value)
        for name, value in gauges(c, step_failures).items()
    ]
    groups: dict[str, CounterMetricFamily] = {}
    for name, value in sorted(c.counters.items()):
        group, slash, member = name.partition("/")
        family = _NOT_IN_NAMES.sub("_", group.lower())
        if not slash:
            found.append(CounterMetricFamily(PREFIX + family, "Since the start", value=value))
            continue
        if family not in groups:
            label = _GROUPS.get(group, "name")
            groups[family] = CounterMetricFamily(
                PREFIX + family, "Since the start", labels=(label,)
            )
        groups[family].add_metric((member,), value)
    return [*found, *groups.values(), *share_families(c, PREFIX)]


def registry_families(figures: Figures, waiting: int) -> list[Metric]:
    """The registry's numbers, of this leadership; `waiting` is for writes not yet taken."""
    gauges = {"waiting": float(waiting), "last_write_seconds": figures.last_seconds}
    counters = {
        "writes": float(figures.batches),
        "operations": float(figures.operations),
        "bytes": float(figures.bytes),
        "write_seconds": figures.seconds,
    }
    return [
        *(
            GaugeMetricFamily(f"{PREFIX}registry_{name}", "At this moment", value=value)
            for name, value in gauges.items()
        ),
        *(
            CounterMetricFamily(f"{PREFIX}registry_{name}", "Since it leads", value=value)
            for name, value in counters.items()
        ),
    ]
