"""Names of enum values, also of those that only a newer peer knows."""

import pytest

from mesos_py.enums import name_of
from mesos_py.v1 import scheduler_pb2, types_pb2


@pytest.mark.parametrize(
    ("names", "number", "name"),
    [
        (types_pb2.TaskState, types_pb2.TASK_RUNNING, "TASK_RUNNING"),
        (scheduler_pb2.Call.Type, 3, "ACCEPT"),
        (scheduler_pb2.Call.Type, 77, "77"),
        (types_pb2.TaskStatus.Reason, -5, "-5"),
    ],
)
def test_a_number_without_a_name_is_shown_as_it_is(names, number, name):
    assert name_of(names, number) == name
