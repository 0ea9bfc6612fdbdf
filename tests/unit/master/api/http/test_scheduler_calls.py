"""What a scheduler's call must have, each in both forms."""

from typing import Any

import pytest

from master.api.http.scheduler_calls import check_call
from mesos_py.errors import InvalidValue
from mesos_py.http import jsonpb
from mesos_py.http.answers import HttpRefusal
from mesos_py.v1 import scheduler_pb2 as sched

INFO = {"user": "u", "name": "n"}
F = {"value": "f"}
UUID = "AAAAAAAAQACAAAAAAAAAAA=="


def check(**call: Any) -> None:
    check_call(jsonpb.from_object(sched.Call, call))


@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("type", {}),
        ("type", {"type": "DANCE"}),
        ("type", {"type": None, "framework_id": F}),
        ("subscribe", {"type": "SUBSCRIBE"}),
        (
            "framework_id",
            {"type": "SUBSCRIBE", "framework_id": F, "subscribe": {"framework_info": INFO}},
        ),
        ("framework_id", {"type": "SUBSCRIBE", "subscribe": {"framework_info": {**INFO, "id": F}}}),
        ("framework_id", {"type": "TEARDOWN"}),
        ("framework_id", {"type": "TEARDOWN", "framework_id": {"value": ""}}),
        ("framework_id", {"type": "UNKNOWN"}),
        ("accept", {"type": "ACCEPT", "framework_id": F}),
        ("decline", {"type": "DECLINE", "framework_id": F}),
        ("accept_inverse_offers", {"type": "ACCEPT_INVERSE_OFFERS", "framework_id": F}),
        ("decline_inverse_offers", {"type": "DECLINE_INVERSE_OFFERS", "framework_id": F}),
        ("kill", {"type": "KILL", "framework_id": F}),
        ("shutdown", {"type": "SHUTDOWN", "framework_id": F}),
        ("acknowledge", {"type": "ACKNOWLEDGE", "framework_id": F}),
        (
            "acknowledge_operation_status",
            {"type": "ACKNOWLEDGE_OPERATION_STATUS", "framework_id": F},
        ),
        ("reconcile", {"type": "RECONCILE", "framework_id": F}),
        ("reconcile_operations", {"type": "RECONCILE_OPERATIONS", "framework_id": F}),
        ("message", {"type": "MESSAGE", "framework_id": F}),
        ("request", {"type": "REQUEST", "framework_id": F}),
        ("update_framework", {"type": "UPDATE_FRAMEWORK", "framework_id": F}),
        (
            "framework_id",
            {
                "type": "UPDATE_FRAMEWORK",
                "framework_id": F,
                "update_framework": {"framework_info": INFO},
            },
        ),
        (
            "acknowledge.uuid",
            {
                "type": "ACKNOWLEDGE",
                "framework_id": F,
                "acknowledge": {"agent_id": F, "task_id": F, "uuid": "YQ=="},
            },
        ),
        (
            "acknowledge_operation_status.uuid",
            {
                "type": "ACKNOWLEDGE_OPERATION_STATUS",
                "framework_id": F,
                "acknowledge_operation_status": {"operation_id": F, "agent_id": F, "uuid": ""},
            },
        ),
        (
            "acknowledge_operation_status.agent_id",
            {
                "type": "ACKNOWLEDGE_OPERATION_STATUS",
                "framework_id": F,
                "acknowledge_operation_status": {"operation_id": F, "uuid": UUID},
            },
        ),
    ],
)
def test_what_is_missing_or_wrong_is_named(field: str, call: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue) as caught:
        check(**call)
    assert caught.value.field == field


def test_a_number_that_is_no_call_of_ours_is_as_none() -> None:
    with pytest.raises(InvalidValue, match=r"^type: 99: "):
        check_call(sched.Call.FromString(b"\x10\x63"))


def test_unknown_said_outright_is_not_implemented() -> None:
    with pytest.raises(HttpRefusal) as caught:
        check(type="UNKNOWN", framework_id=F)
    assert caught.value.status == 501


@pytest.mark.parametrize("kind", ["REVIVE", "SUPPRESS", "TEARDOWN"])
def test_some_calls_need_nothing_more(kind: str) -> None:
    check(type=kind, framework_id=F)


def test_ids_that_agree_or_are_both_absent() -> None:
    check(type="SUBSCRIBE", subscribe={"framework_info": INFO})
    check(type="SUBSCRIBE", framework_id=F, subscribe={"framework_info": {**INFO, "id": F}})
    check(
        type="UPDATE_FRAMEWORK",
        framework_id=F,
        update_framework={"framework_info": {**INFO, "id": F}},
    )
