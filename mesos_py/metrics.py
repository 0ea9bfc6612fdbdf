"""Numbers about a running daemon: a thin layer on prometheus-client.

The registry is the caller's, so that two masters in one process (tests, the
simulator) do not share counters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.metrics_core import Metric

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST

# Seconds: from one wake-up of the event loop to a call that somebody notices.
LATENCY_BUCKETS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)

# Reasons are constant texts of ours; the bound is for the day that one is not.
MAX_DROP_REASONS: Final = 200
OTHER: Final = "other"

M = TypeVar("M", bound=MetricWrapperBase)


class Metrics:
    """Makes and finds metrics by name, in the registry that it is given.

    Asking again for a name returns the metric that is there; asking for it with
    another type or other labels is a ValueError.
    """

    def __init__(self, registry: CollectorRegistry | None = None, prefix: str = "") -> None:
        self.registry = CollectorRegistry() if registry is None else registry
        self._prefix = prefix
        self._made: dict[str, tuple[MetricWrapperBase, tuple[str, ...]]] = {}
        self._drops = self.counter("drops_total", "Inputs that were ignored", ("reason",))
        self._reasons: dict[str, Counter] = {}

    def counter(self, name: str, help: str, labels: Sequence[str] = ()) -> Counter:
        """A number that only grows.  `name` ends in _total."""
        if not name.endswith("_total"):
            raise ValueError(f"the name of a counter ends in _total: {name!r}")
        return self._metric(
            Counter,
            name,
            labels,
            lambda full: Counter(full, help, tuple(labels), registry=self.registry),
        )

    def gauge(self, name: str, help: str, labels: Sequence[str] = ()) -> Gauge:
        """A number that goes up and down."""
        return self._metric(
            Gauge,
            name,
            labels,
            lambda full: Gauge(full, help, tuple(labels), registry=self.registry),
        )

    def histogram(
        self,
        name: str,
        help: str,
        labels: Sequence[str] = (),
        buckets: Sequence[float] = LATENCY_BUCKETS,
    ) -> Histogram:
        """How amounts (usually seconds: `..._seconds`) are spread."""
        return self._metric(
            Histogram,
            name,
            labels,
            lambda full: Histogram(
                full, help, tuple(labels), registry=self.registry, buckets=tuple(buckets)
            ),
        )

    def watch(self, name: str, help: str, read: Callable[[], float]) -> None:
        """A gauge that is read when somebody asks.  If `read` raises, it is NaN."""

        def guarded() -> float:
            try:
                return float(read())
            except Exception:
                # One bad number must not take all others from the operator.
                return float("nan")

        self.gauge(name, help).set_function(guarded)

    def drop(self, reason: str, count: int = 1) -> None:
        """Count inputs that were ignored.  `reason` is a constant text, without ids."""
        child = self._reasons.get(reason)
        if child is None:
            kept = reason if len(self._reasons) < MAX_DROP_REASONS else OTHER
            child = self._drops.labels(kept)
            if kept == reason:
                self._reasons[reason] = child
        child.inc(count)

    def snapshot(self) -> dict[str, float]:
        """All numbers by name: `offers_total`, `drops_total{reason="unknown task"}`.

        Of a histogram the count and the sum.  What is not a number is left out.
        """
        numbers: dict[str, float] = {}
        for metric in self.registry.collect():
            for sample in metric.samples:
                if sample.name.endswith(("_created", "_bucket")) or sample.value != sample.value:
                    continue
                labels = ",".join(f'{key}="{value}"' for key, value in sample.labels.items())
                numbers[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
        return numbers

    def render(self) -> bytes:
        """All numbers in the Prometheus text format (`CONTENT_TYPE`)."""
        return generate_latest(_WithoutCreated(self.registry))

    def _metric(
        self, kind: type[M], name: str, labels: Sequence[str], make: Callable[[str], M]
    ) -> M:
        known = self._made.get(name)
        if known is None:
            metric = make(self._prefix + name)
            self._made[name] = (metric, tuple(labels))
            return metric
        found, found_labels = known
        if not isinstance(found, kind) or found_labels != tuple(labels):
            raise ValueError(f"metric {name!r} exists as another type or with other labels")
        return found


def rendered(families: Iterable[Metric]) -> bytes:
    """Families of metrics that were made for this one answer, in the text format."""
    return generate_latest(_Made(families))


class _Made(CollectorRegistry):
    def __init__(self, families: Iterable[Metric]) -> None:
        super().__init__()
        self._families = list(families)

    def collect(self) -> Iterable[Metric]:
        return self._families


class _WithoutCreated(CollectorRegistry):
    """A view of a registry without the `_created` series, which double the output.

    prometheus-client can leave them out only for the whole process.
    """

    def __init__(self, inner: CollectorRegistry) -> None:
        super().__init__()
        self._inner = inner

    def collect(self) -> Iterable[Metric]:
        for metric in self._inner.collect():
            metric.samples = [each for each in metric.samples if not each.name.endswith("_created")]
            yield metric
