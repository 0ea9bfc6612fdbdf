"""Rates, sums and orders of what containers use."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mesos_py.errors import InvalidValue
from mesos_py.resources import Resources
from mesos_py.usage import GROUPS, ORDERS, Names, ordered, rows, summed
from mesos_py.v1 import types_pb2 as pb
from mesos_py.v1.agent_operator_pb2 import Response as AgentResponse
from mesos_py.v1.operator_pb2 import Response

Usage = Response.GetUsage
Statistics = pb.ResourceStatistics
NAMES = Names({"f1": "one"})


def container(
    container_id: str, framework: str = "f1", **numbers: Any
) -> AgentResponse.GetContainers.Container:
    made = AgentResponse.GetContainers.Container(
        framework_id=pb.FrameworkID(value=framework),
        executor_id=pb.ExecutorID(value=f"task-of-{container_id}"),
        container_id=pb.ContainerID(value=container_id),
        task_ids=[pb.TaskID(value=f"task-of-{container_id}")],
        resources=Resources.parse("cpus:1;mem:64").to_proto(),
    )
    if numbers:
        made.resource_statistics.CopyFrom(Statistics(**numbers))
    return made


def look(**agents: list[AgentResponse.GetContainers.Container]) -> Usage:
    return Usage(
        agents=[
            Usage.Agent(agent_id=pb.AgentID(value=f"id-{name}"), hostname=name, containers=found)
            for name, found in agents.items()
        ]
    )


def busy(at: float, cpu: float, **more: Any) -> Usage:
    return look(h=[container("c", timestamp=at, cpus_user_time_secs=cpu, **more)])


def only(before: Usage | None, after: Usage):
    (row,) = rows(before, after, NAMES)
    return row


# ---- Rates ------------------------------------------------------------------------------


def test_a_rate_is_the_growth_in_a_second_by_the_containers_own_clock():
    before = busy(100, 10, cpus_system_time_secs=1, io_read_bytes=1000)
    after = busy(104, 11, cpus_system_time_secs=4, io_read_bytes=5000)
    row = only(before, after)
    assert row["cpu"] == (1 + 3) / 4
    assert row["io_read"] == 1000
    assert row["cpu_seconds"] == 15
    assert row["io_write"] is None  # nobody counts it


def test_without_a_look_before_there_are_amounts_and_no_rates():
    row = only(None, busy(100, 10, mem_total_bytes=5, processes=2))
    assert (row["cpu"], row["memory"], row["pids"]) == (None, 5, 2)


def test_a_counter_that_has_shrunk_is_no_negative_rate():
    assert only(busy(100, 50), busy(102, 3))["cpu"] == 0


@pytest.mark.parametrize("at", [100, 99])
def test_without_time_in_between_there_is_no_rate(at):
    assert only(busy(100, 1), busy(at, 2))["cpu"] is None


def test_a_number_that_is_new_or_gone_has_no_rate():
    assert only(busy(100, 1), busy(101, 2, io_read_bytes=5))["io_read"] is None
    assert only(busy(100, 1, io_read_bytes=5), busy(101, 2))["io_read"] is None


def test_a_container_that_is_new_has_no_rates_and_one_that_is_gone_no_row():
    before = look(h=[container("old", timestamp=1, cpus_user_time_secs=1)])
    after = look(h=[container("new", timestamp=2, cpus_user_time_secs=9)])
    row = only(before, after)
    assert (row["container_id"], row["cpu"]) == ("new", None)


def test_a_container_of_which_nothing_is_known_yet_is_shown():
    row = only(None, look(h=[container("c")]))
    assert (row["cpu"], row["memory"], row["cpus"], row["mem"]) == (None, None, 1, 64)


def test_the_share_of_periods_in_which_it_was_throttled():
    before = busy(1, 0, cpus_nr_periods=100, cpus_nr_throttled=10)
    after = busy(2, 0, cpus_nr_periods=110, cpus_nr_throttled=15)
    assert only(before, after)["throttled"] == 0.5
    assert only(after, busy(3, 0, cpus_nr_periods=110, cpus_nr_throttled=15))["throttled"] is None


amounts = st.floats(0, 1e12)


@given(first=amounts, second=amounts, at=st.floats(0, 1e10), later=st.floats(-10, 1e5))
def test_no_rate_is_ever_negative(first, second, at, later):
    row = only(busy(at, first), busy(at + later, second))
    assert row["cpu"] is None or row["cpu"] >= 0


def test_who_a_row_is_about():
    row = only(None, look(h=[container("c", framework="f9")]))
    assert (row["framework"], row["framework_id"]) == ("f9", "f9")  # a name that is not known
    assert (row["hostname"], row["agent_id"]) == ("h", "id-h")
    assert (row["name"], row["tasks"]) == ("task-of-c", ["task-of-c"])


# ---- Sums and orders ----------------------------------------------------------------------


@pytest.fixture
def listed():
    def at(second: int) -> Usage:
        fields: dict[str, Any] = {"timestamp": second, "processes": 1}
        grown = second - 1
        return look(
            h1=[
                container("a", mem_total_bytes=10, cpus_user_time_secs=grown, **fields),
                container("b", "f2", cpus_user_time_secs=3 * grown, **fields),
            ],
            h2=[container("c", cpus_user_time_secs=2 * grown, mem_total_bytes=5, **fields)],
        )

    return rows(at(1), at(2), NAMES)


def test_sums_by_framework_and_by_agent(listed):
    by_name = {row["name"]: row for row in summed(listed, "framework")}
    assert (by_name["one"]["cpu"], by_name["one"]["memory"], by_name["one"]["pids"]) == (3, 15, 2)
    assert (by_name["f2"]["containers"], by_name["f2"]["memory"]) == (1, None)
    assert by_name["one"]["cpus"] == 2
    hosts = {row["name"]: (row["containers"], row["cpu"]) for row in summed(listed, "agent")}
    assert hosts == {"h1": (2, 4), "h2": (1, 2)}
    assert summed(listed, "container") == listed


def test_a_sum_of_throttled_shares_is_one_of_periods():
    def at(second: int) -> Usage:
        whole: dict[str, Any] = {"timestamp": second, "cpus_nr_periods": 10 * second}
        return look(
            h=[container("a", cpus_nr_throttled=10 * second, **whole), container("b", **whole)]
        )

    (row,) = summed(rows(at(1), at(2), NAMES), "agent")
    assert row["throttled"] == 0.5


@pytest.mark.parametrize(
    ("order", "names"),
    [
        ("cpu", ["b", "c", "a"]),
        ("mem", ["a", "c", "b"]),  # what is not known comes last
        ("pids", ["a", "b", "c"]),  # all the same: by name
        ("name", ["a", "b", "c"]),
    ],
)
def test_the_largest_first(listed, order, names):
    assert [row["container_id"] for row in ordered(listed, order)] == names


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("order", ORDERS)
def test_everything_can_be_ordered_by_everything(listed, group, order):
    assert len(ordered(summed(listed, group), order)) > 0


def test_an_order_or_a_group_that_is_none_is_named():
    with pytest.raises(InvalidValue, match=r"^sort: 'size': must be one of cpu, mem"):
        ordered([], "size")
    with pytest.raises(InvalidValue, match=r"^by: 'user': must be one of container"):
        summed([], "user")
