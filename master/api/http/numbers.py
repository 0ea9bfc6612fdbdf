"""The numbers of the HTTP server, for Prometheus."""

from __future__ import annotations

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from master.api.exporter import PREFIX
from mesos_py.http.server import HttpServer


def http_families(server: HttpServer) -> list[Metric]:
    """Answers by status, and what went wrong with connections and with us."""
    answers = CounterMetricFamily(
        PREFIX + "http_answers", "Requests over HTTP that were answered", labels=("status",)
    )
    for status, count in sorted(server.answered.items()):
        answers.add_metric((str(status),), count)
    failures = "Requests over HTTP that failed by a fault of this master; see its log"
    crowded = "Connections that were closed, or not taken, for want of room"
    unreadable = "What came over HTTP and is no request, or not the body that its head says"
    return [
        answers,
        GaugeMetricFamily(PREFIX + "http_connections", "At this moment", value=server.connections),
        CounterMetricFamily(PREFIX + "http_failures", failures, value=server.failures),
        CounterMetricFamily(PREFIX + "http_crowded_out", crowded, value=server.crowded_out),
        CounterMetricFamily(PREFIX + "http_unreadable", unreadable, value=server.unreadable),
    ]


__all__ = ["http_families"]
