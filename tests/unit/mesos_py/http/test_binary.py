"""Protobuf bodies, as proto2 peers write and read them."""

import pytest

from mesos_py.errors import InvalidValue
from mesos_py.http import binary
from mesos_py.v1 import agent_operator_pb2, executor_pb2, maintenance_pb2, operator_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb


def test_what_is_required_goes_out_also_when_it_is_zero() -> None:
    # Field 2, a varint of 0: TASK_STARTING.
    assert b"\x10\x00" not in pb.TaskStatus(state=pb.TASK_STARTING).SerializeToString()
    assert b"\x10\x00" in binary.dumps(pb.TaskStatus(state=pb.TASK_STARTING))


def test_at_every_depth_in_lists_and_maps() -> None:
    event = sched.Event(type=sched.Event.OFFERS)
    resource = event.offers.offers.add(hostname="h").resources.add(name="cpus")
    resource.scalar.SetInParent()
    # Of the resource: type SCALAR, and a scalar of nine bytes, which is 0.0.
    assert b"\x10\x00\x1a\x09\x09" + bytes(8) in binary.dumps(event)
    info = pb.TaskInfo()
    info.limits["cpus"].SetInParent()
    assert b"\x09" + bytes(8) in binary.dumps(info)


def test_what_is_there_is_not_changed() -> None:
    event = sched.Event(type=sched.Event.UPDATE)
    event.update.status.task_id.value = "t"
    event.update.status.state = pb.TASK_FAILED
    event.update.status.exit_status.exit_code = 3
    assert sched.Event.FromString(binary.dumps(event)) == event


def test_a_message_that_requires_nothing_is_as_it_is() -> None:
    heartbeat = sched.Event.Failure(status=0)
    assert binary.dumps(heartbeat) == heartbeat.SerializeToString()


def test_a_body_comes_in() -> None:
    call = sched.Call(type=sched.Call.TEARDOWN, framework_id=pb.FrameworkID(value="f"))
    assert binary.loads(sched.Call, call.SerializeToString()) == call


@pytest.mark.parametrize(
    ("call", "missing"),
    [
        (sched.Call(subscribe=sched.Call.Subscribe()), "subscribe.framework_info"),
        (sched.Call(kill=sched.Call.Kill()), "kill.task_id"),
        (
            sched.Call(kill=sched.Call.Kill(task_id=pb.TaskID(value="t"), agent_id=pb.AgentID())),
            "kill.agent_id.value",
        ),
    ],
)
def test_what_is_missing_is_named(call: sched.Call, missing: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        binary.loads(sched.Call, call.SerializeToString())
    assert (caught.value.field, caught.value.reason) == (missing, "is missing")


@pytest.mark.parametrize("data", [b"\xff", b"{}", b"\x0a\x05ab", b"\x0a" * 1000])
def test_what_is_no_such_message(data: bytes) -> None:
    with pytest.raises(InvalidValue, match="is no Call"):
        binary.loads(sched.Call, data)


def test_all_our_messages_have_twins() -> None:
    modules = (sched, pb, executor_pb2, operator_pb2, agent_operator_pb2, maintenance_pb2)
    for module in modules:
        for descriptor in module.DESCRIPTOR.message_types_by_name.values():
            kind = getattr(module, descriptor.name)
            data = binary.dumps(kind())
            assert binary.dumps(kind.FromString(data)) == data


def test_a_message_that_lacks_nothing_is_the_same_bytes() -> None:
    event = sched.Event(type=sched.Event.UPDATE)
    event.update.status.task_id.value = "t"
    event.update.status.state = pb.TASK_FAILED
    assert binary.dumps(event) == event.SerializeToString()
