from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from mesos_py.metrics import CONTENT_TYPE, MAX_DROP_REASONS, Metrics


def test_metrics_of_one_name_are_one() -> None:
    metrics = Metrics()
    metrics.counter("offers_total", "Offers").inc()
    metrics.counter("offers_total", "Offers").inc(2)
    assert metrics.snapshot()["offers_total"] == 3


def test_two_daemons_in_a_process_share_nothing() -> None:
    first, second = Metrics(), Metrics()
    first.counter("offers_total", "Offers").inc()
    second.counter("offers_total", "Offers")
    assert second.snapshot()["offers_total"] == 0


def test_the_registry_is_the_callers() -> None:
    registry = CollectorRegistry()
    Metrics(registry, prefix="mesos_py_master_").gauge("agents", "Agents").set(3)
    assert registry.get_sample_value("mesos_py_master_agents") == 3


@pytest.mark.parametrize("labels", [(), ("other",)])
def test_a_name_keeps_its_type_and_labels(labels: tuple[str, ...]) -> None:
    metrics = Metrics()
    metrics.gauge("agents", "Agents", ("role",))
    with pytest.raises(ValueError, match="agents"):
        metrics.gauge("agents", "Agents", labels)
    with pytest.raises(ValueError, match="agents"):
        metrics.histogram("agents", "Agents", ("role",))


def test_a_counter_is_named_as_one() -> None:
    with pytest.raises(ValueError, match="_total"):
        Metrics().counter("offers", "Offers")


def test_snapshot_names_labels() -> None:
    metrics = Metrics()
    metrics.gauge("free", "Free", ("resource", "role")).labels("cpus", "*").set(1.5)
    assert metrics.snapshot()['free{resource="cpus",role="*"}'] == 1.5


def test_snapshot_of_a_histogram_is_its_count_and_sum() -> None:
    metrics = Metrics()
    histogram = metrics.histogram("cycle_seconds", "Cycle", buckets=(1.0,))
    histogram.observe(0.5)
    histogram.observe(2)
    assert metrics.snapshot() == {"cycle_seconds_count": 2, "cycle_seconds_sum": 2.5}


def test_a_watched_number_is_read_when_asked() -> None:
    metrics = Metrics()
    tasks: list[int] = []
    metrics.watch("tasks", "Tasks", lambda: len(tasks))
    tasks.append(1)
    assert metrics.snapshot()["tasks"] == 1


def test_a_watch_that_fails_takes_no_other_number_away() -> None:
    metrics = Metrics()
    metrics.watch("broken", "Broken", lambda: 1 / 0)
    metrics.gauge("fine", "Fine").set(1)
    assert metrics.snapshot() == {"fine": 1}
    assert b"broken NaN" in metrics.render()


def test_drops_are_counted_by_reason() -> None:
    metrics = Metrics()
    metrics.drop("unknown agent")
    metrics.drop("unknown agent", 2)
    metrics.drop("late")
    snapshot = metrics.snapshot()
    assert snapshot['drops_total{reason="unknown agent"}'] == 3
    assert snapshot['drops_total{reason="late"}'] == 1


def test_reasons_that_should_have_been_constant_do_not_fill_the_memory() -> None:
    metrics = Metrics()
    for number in range(MAX_DROP_REASONS + 50):
        metrics.drop(f"unknown task {number}")
    snapshot = metrics.snapshot()
    assert snapshot['drops_total{reason="other"}'] == 50
    assert len(snapshot) == MAX_DROP_REASONS + 1


def test_render_is_prometheus_text_without_created_series() -> None:
    metrics = Metrics()
    metrics.counter("offers_total", "Offers sent").inc()
    metrics.histogram("cycle_seconds", "Cycle").observe(0.01)
    lines = metrics.render().decode().splitlines()
    assert "# HELP offers_total Offers sent" in lines
    assert "offers_total 1.0" in lines
    assert 'cycle_seconds_bucket{le="+Inf"} 1.0' in lines
    assert not [line for line in lines if "_created" in line]
    assert CONTENT_TYPE.startswith("text/plain")
