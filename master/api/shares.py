"""The numbers of each role and each framework, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from master.allocator.base import Standing
from master.core.cluster import Cluster
from master.core.records import OfferNumbers
from mesos_py.resources import MILLI

# Frameworks of which numbers are shown one by one: of each there are about twenty.
MAX_FRAMEWORKS: Final = 1000
_COUNTS: Final = ("sent", "accepted", "declined", "expired", "rescinded")


def share_families(c: Cluster, prefix: str) -> list[Metric]:
    """Of all roles, and of the frameworks that are there, the oldest `MAX_FRAMEWORKS`."""
    shown = set(list(c.frameworks)[:MAX_FRAMEWORKS])
    standings = c.allocator.standings(c.ledger)
    of_roles = [each for each in standings if not each.framework_id]
    of_frameworks = [each for each in standings if each.framework_id in shown]
    return [
        *_standing(f"{prefix}role", ("role",), [((each.role,), each) for each in of_roles]),
        *_offers(f"{prefix}role", ("role",), [((r,), n) for r, n in c.offer_numbers.items()]),
        *_standing(
            f"{prefix}framework",
            ("framework", "role"),
            [((each.framework_id, each.role), each) for each in of_frameworks],
        ),
        *_offers(
            f"{prefix}framework",
            ("framework", "role"),
            [
                ((framework_id, role), numbers)
                for framework_id in shown
                for role, numbers in c.frameworks[framework_id].numbers.items()
            ],
        ),
    ]


def _standing(
    prefix: str, labels: tuple[str, ...], found: list[tuple[tuple[str, ...], Standing]]
) -> Iterator[Metric]:
    share = GaugeMetricFamily(f"{prefix}_share", "Dominant share, offers included", labels=labels)
    weighted = GaugeMetricFamily(
        f"{prefix}_weighted_share", "Dominant share divided by the weight", labels=labels
    )
    amounts = {
        what: GaugeMetricFamily(f"{prefix}_{what}", help, labels=(*labels, "resource"))
        for what, help in (
            ("held", "What is held, offers included"),
            ("guarantee", "What is guaranteed"),
            ("lacking", "What is lacking of the stated needs"),
        )
    }
    for values, standing in found:
        share.add_metric(values, standing.share)
        weighted.add_metric(values, standing.weighted_share)
        for what, family in amounts.items():
            for name, milli in sorted(getattr(standing, what).items()):
                family.add_metric((*values, name), milli / MILLI)
    yield from (share, weighted, *amounts.values())


def _offers(
    prefix: str, labels: tuple[str, ...], found: list[tuple[tuple[str, ...], OfferNumbers]]
) -> Iterator[Metric]:
    offers = CounterMetricFamily(
        f"{prefix}_offers", "What became of offers, by name", labels=(*labels, "what")
    )
    seconds = CounterMetricFamily(
        f"{prefix}_answer_seconds", "How long the answered offers were out", labels=labels
    )
    for values, numbers in sorted(found, key=lambda item: item[0]):
        for what in _COUNTS:
            offers.add_metric((*values, what), getattr(numbers, what))
        seconds.add_metric(values, numbers.answer_s)
    yield from (offers, seconds)
