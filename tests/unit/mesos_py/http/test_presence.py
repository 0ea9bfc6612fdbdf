"""The tables of what Mesos requires fit our messages."""

from typing import Any

from mesos_py.http.fields import fields_of
from mesos_py.http.presence import DEFAULTS, REQUIRED
from mesos_py.v1 import (
    agent_operator_pb2,
    executor_pb2,
    maintenance_pb2,
    operator_pb2,
    scheduler_pb2,
    types_pb2,
)

MODULES = (
    agent_operator_pb2,
    executor_pb2,
    maintenance_pb2,
    operator_pb2,
    scheduler_pb2,
    types_pb2,
)


def _messages() -> dict[str, Any]:
    found: dict[str, Any] = {}
    waiting: list[Any] = [m for o in MODULES for m in o.DESCRIPTOR.message_types_by_name.values()]
    while waiting:
        each = waiting.pop()
        found[each.full_name] = each
        waiting.extend(each.nested_types)
    return found


def test_every_default_is_read() -> None:
    for name, descriptor in _messages().items():
        written = {of.name for of, _ in fields_of(descriptor).written}
        assert written >= set(DEFAULTS.get(name, {})) & set(descriptor.fields_by_name)


def test_known_rows_of_the_reference() -> None:
    assert REQUIRED["mesos_py.v1.TaskInfo"] == ("name", "task_id", "agent_id")
    assert REQUIRED["mesos_py.v1.scheduler.Call.Acknowledge"] == ("agent_id", "task_id", "uuid")
    assert len(DEFAULTS["mesos_py.v1.HealthCheck"]) == 5


def test_a_required_field_of_ours_is_one_without_presence_or_a_message() -> None:
    # Otherwise whoever fills it in could tell apart what Mesos cannot.
    messages = _messages()
    for name in REQUIRED:
        for field in messages[name].fields if name in messages else ():
            if field.name in REQUIRED[name] and field.name not in DEFAULTS.get(name, {}):
                assert not field.has_presence or field.message_type is not None, field.full_name
