"""The master's numbers for Prometheus."""

from prometheus_client.parser import text_string_to_metric_families

from master.api.exporter import families, gauges, registry_families
from master.registry.registrar import Figures
from mesos_py.metrics import rendered
from tests.kit.core import World


def test_gauges_and_counters_with_states_and_reasons_as_labels():
    world = World()
    world.agent()
    framework = world.framework()
    framework.start("t1")
    cluster = world.core.cluster
    cluster.drop("update-unknown-framework", task="x")
    cluster.drop("update-unknown-framework", task="y")
    text = rendered(families(cluster, 3)).decode()
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert found["mesos_py_master_agents_connected",] == 1
    assert found["mesos_py_master_tasks_running",] == 1
    assert found["mesos_py_master_step_failures",] == 3
    assert found["mesos_py_master_tasks_launched_total",] == 1
    assert found["mesos_py_master_dropped_total", "update-unknown-framework"] == 2
    assert gauges(cluster, 0)["frameworks"] == 1


def test_the_registry_has_numbers_of_its_own():
    figures = Figures(batches=2, operations=5, bytes=70, seconds=0.5, last_seconds=0.125)
    text = rendered(registry_families(figures, 3)).decode()
    found = {
        sample.name.removeprefix("mesos_py_master_registry_"): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert found == {
        "waiting": 3,
        "last_write_seconds": 0.125,
        "writes_total": 2,
        "operations_total": 5,
        "bytes_total": 70,
        "write_seconds_total": 0.5,
    }
