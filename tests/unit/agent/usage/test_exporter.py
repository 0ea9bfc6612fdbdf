"""The agent's series for Prometheus."""

from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from agent.core.listing import Container
from agent.usage.exporter import families
from agent.usage.statistics import statistics
from mesos_py.metrics import rendered
from mesos_py.v1 import types_pb2 as pb


def container(
    container_id: str, *tasks: str, custom: bool = False, executor: str = "", **numbers: Any
) -> Container:
    return Container(
        framework_id=pb.FrameworkID(value="f"),
        executor_id=pb.ExecutorID(value=executor or (tasks[0] if tasks else "x")),
        container_id=pb.ContainerID(value=container_id),
        task_ids=[pb.TaskID(value=each) for each in tasks],
        custom_executor=custom,
        resource_statistics=statistics(numbers, 1.0),
    )


def samples(*containers: Container) -> dict[tuple[str, str], tuple[dict[str, str], float, str]]:
    """By name and container: labels, value, type."""
    text = rendered(families(containers)).decode()
    return {
        (sample.name, sample.labels["container"]): (sample.labels, sample.value, family.type)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_each_container_has_its_series_with_all_four_labels():
    found = samples(
        container("c1", "t1", memory_bytes=5, cpu_user_seconds=0.5), container("c2", "t2", pids=3)
    )
    labels = {"framework": "f", "executor": "t1", "task": "t1", "container": "c1"}
    assert found == {
        ("mesos_py_container_memory_bytes", "c1"): (labels, 5, "gauge"),
        ("mesos_py_container_cpu_user_seconds_total", "c1"): (labels, 0.5, "counter"),
        ("mesos_py_container_pids", "c2"): (
            {"framework": "f", "executor": "t2", "task": "t2", "container": "c2"},
            3,
            "gauge",
        ),
    }


def test_a_custom_executors_container_is_that_of_no_one_task():
    found = samples(container("c", "t1", "t2", custom=True, executor="x", pids=1))
    assert found["mesos_py_container_pids", "c"][0]["task"] == ""
    assert found["mesos_py_container_pids", "c"][0]["executor"] == "x"


def test_ids_with_quotes_and_ends_of_lines_break_nothing():
    odd = 'a"b\\c\nd'
    found = samples(container("c", odd, pids=1))
    assert found["mesos_py_container_pids", "c"][0]["task"] == odd


def test_other_isolators_numbers_have_series_if_their_names_can_be():
    odd: dict[str, Any] = {"gpu_busy_seconds": 2, "no name": 3, "": 4}
    found = samples(container("c", "t", **odd))
    assert [name for name, _ in found] == ["mesos_py_container_gpu_busy_seconds"]


def test_no_containers_no_series():
    assert rendered(families([])) == b""
