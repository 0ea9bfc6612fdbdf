"""/metrics/snapshot: the master's numbers under the names that people's alerts have for them.

The names of Apache Mesos 1.11 for what there is here; what is peculiar to its make (libprocess'
queues, the replicated log, operations of resource providers) is not there.  Our own numbers are at
/metrics, for Prometheus.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from master.core.cluster import Cluster
from master.core.records import Framework
from mesos_py.http.numbers import system
from mesos_py.resources import MILLI
from mesos_py.states import is_terminal
from mesos_py.v1 import types_pb2 as pb

_KINDS: Final = ("cpus", "mem", "disk", "gpus")
# How many tasks are in such a state now; of the others: how many came to it so far.
_NOW: Final = ("STAGING", "STARTING", "RUNNING", "KILLING", "UNREACHABLE")
_SO_FAR: Final = (
    *("FINISHED", "FAILED", "KILLED", "LOST", "ERROR"),
    *("DROPPED", "GONE", "GONE_BY_OPERATOR"),
)
# Names of Mesos, and the counters here that count the same.
_COUNTED: Final = {
    "slave_registrations": "agents_registered",
    "slave_reregistrations": "agents_reregistered",
    "slave_removals": "agents_removed",
    "slave_unreachable_completed": "agents_unreachable",
    "messages_status_update": "updates_received",
}


def snapshot(c: Cluster | None, *, uptime_s: float, leading: bool) -> dict[str, float]:
    """By name.  What depends on the cluster is 0 for a master that does not lead, and has
    none."""
    found: dict[str, float] = {"elected": float(leading), "uptime_secs": uptime_s}
    found |= _amounts(c)
    found |= _agents(c)
    frameworks = list(c.frameworks.values()) if c is not None else []
    counters = c.counters if c is not None else Counter[str]()
    connected = sum(each.connected for each in frameworks)
    found |= {
        "frameworks_active": connected,
        "frameworks_connected": connected,
        "frameworks_disconnected": len(frameworks) - connected,
        "frameworks_inactive": len(frameworks) - connected,
        "outstanding_offers": len(c.offers) if c is not None else 0,
    }
    found |= _tasks(frameworks, counters)
    found |= {name: counters[ours] for name, ours in _COUNTED.items()}
    found["dropped_messages"] = sum(
        count for name, count in counters.items() if name.startswith("dropped/")
    )
    named = {f"master/{name}": float(value) for name, value in found.items()}
    for each in frameworks:
        named |= _framework(each)
    return named | system()


def _amounts(c: Cluster | None) -> dict[str, float]:
    total: Mapping[str, int] = {}
    used: Counter[str] = Counter()
    if c is not None:
        total = c.ledger.cluster_total()
        for agent_id in c.agents:
            used.update(c.ledger.allocated(agent_id).plain.scalars)
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


def _agents(c: Cluster | None) -> dict[str, float]:
    agents = list(c.agents.values()) if c is not None else []
    there = [each for each in agents if each.unreachable is None]
    connected = sum(each.connected for each in there)
    active = sum(not each.why_inactive for each in there)
    return {
        "slaves_active": active,
        "slaves_inactive": len(there) - active,
        "slaves_connected": connected,
        "slaves_disconnected": len(there) - connected,
        "slaves_unreachable": len(agents) - len(there),
    }


def _tasks(frameworks: Iterable[Framework], counters: Counter[str]) -> dict[str, float]:
    now = _states(frameworks)
    found: dict[str, float] = {f"tasks_{name.lower()}": now[f"TASK_{name}"] for name in _NOW}
    for name in _SO_FAR:
        found[f"tasks_{name.lower()}"] = counters[f"task_states/TASK_{name}"]
    return found


def _states(frameworks: Iterable[Framework]) -> Counter[str]:
    counted: Counter[pb.TaskState.ValueType] = Counter()
    for each in frameworks:
        counted.update(task.state for task in each.tasks.values() if not is_terminal(task.state))
        counted.update(task.state for task in each.unreachable_tasks.values())
    return Counter({pb.TaskState.Name(state): count for state, count in counted.items()})


def _framework(given: Framework) -> Mapping[str, float]:
    prefix = f"master/frameworks/{given.info.name}/{given.framework_id}/"
    states = _states([given])
    numbers = given.numbers.values()
    found: dict[str, float] = {
        "subscribed": given.connected,
        "offers/sent": sum(each.sent for each in numbers),
        "offers/accepted": sum(each.accepted for each in numbers),
        "offers/declined": sum(each.declined for each in numbers),
        "offers/rescinded": sum(each.rescinded for each in numbers),
    }
    for name in _NOW:
        found[f"tasks/active/task_{name.lower()}"] = states[f"TASK_{name}"]
    for role in given.roles:
        found[f"roles/{role}/suppressed"] = role in given.suppressed
    return {prefix + name: float(value) for name, value in found.items()}
