"""The agent's numbers and those of its containers for Prometheus.

A container has its series while its processes live: there are never more than live
containers times the numbers of each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from agent.core.listing import Container
from agent.usage.statistics import NUMBERS, Kind, numbers_of

PREFIX: Final = "mesos_py_container_"
LABELS: Final = ("framework", "executor", "task", "container")
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,60}")


def families(containers: Iterable[Container]) -> list[Metric]:
    """One family per number, with a sample for each container that has it."""
    found: dict[str, CounterMetricFamily | GaugeMetricFamily] = {}
    for container in containers:
        labels = labels_of(container)
        for name, value in numbers_of(container.resource_statistics):
            family = found.get(name) or _family(name)
            if family is not None:
                found[name] = family
                family.add_metric(labels, value)
    return [found[name] for name in sorted(found)]


def labels_of(container: Container) -> Sequence[str]:
    """A custom executor's container is that of no one task."""
    task = container.task_ids[0].value if _is_of_one_task(container) else ""
    framework, executor = container.framework_id.value, container.executor_id.value
    return (framework, executor, task, container.container_id.value)


def _is_of_one_task(container: Container) -> bool:
    return not container.custom_executor and len(container.task_ids) == 1


def _family(name: str) -> CounterMetricFamily | GaugeMetricFamily | None:
    known = NUMBERS.get(name)
    if known is not None and known.kind is Kind.COUNTER:
        return CounterMetricFamily(PREFIX + name, known.help, labels=LABELS)
    if known is not None:
        return GaugeMetricFamily(PREFIX + name, known.help, labels=LABELS)
    if not _NAME.fullmatch(name):
        return None
    return GaugeMetricFamily(PREFIX + name, "As an isolator gives it", labels=LABELS)
