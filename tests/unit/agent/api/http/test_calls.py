"""What is refused of an executor's call before anything is done about it."""

import uuid

import pytest

from agent.api.http.calls import check
from agent.api.http.executor import as_mesos
from mesos_py.errors import InvalidValue
from mesos_py.http.media import Media
from mesos_py.v1 import executor_pb2
from mesos_py.v1 import types_pb2 as pb

Call = executor_pb2.Call
Event = executor_pb2.Event
CheckStatus = pb.CheckStatusInfo


def call(kind: int, **parts: object) -> Call:
    ids = {"framework_id": pb.FrameworkID(value="F1"), "executor_id": pb.ExecutorID(value="ex")}
    return Call(type=kind, **ids, **parts)  # type: ignore[arg-type]


def update(**status: object) -> Call:
    known = {
        "task_id": pb.TaskID(value="t"),
        "state": pb.TASK_RUNNING,
        "source": pb.TaskStatus.SOURCE_EXECUTOR,
        "uuid": uuid.uuid4().bytes,
    }
    given = {name: value for name, value in (known | status).items() if value is not None}
    return call(Call.UPDATE, update=Call.Update(status=pb.TaskStatus(**given)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "fine",
    [
        call(Call.SUBSCRIBE, subscribe=Call.Subscribe()),
        call(Call.MESSAGE, message=Call.Message(data=b"")),
        call(Call.HEARTBEAT),
        # There is such a type; what it means is asked later.
        call(Call.UNKNOWN),
        update(),
        update(state=pb.TASK_STARTING),
        update(uuid=uuid.uuid1().bytes),
        update(uuid=uuid.uuid5(uuid.NAMESPACE_DNS, "x").bytes),
        update(executor_id=pb.ExecutorID(value="ex")),
        update(agent_id=pb.AgentID(value="of another")),
        update(check_status=CheckStatus(type=pb.CheckInfo.COMMAND, command=CheckStatus.Command())),
        update(check_status=CheckStatus(type=pb.CheckInfo.HTTP, http=CheckStatus.Http())),
        update(check_status=CheckStatus(type=pb.CheckInfo.TCP, tcp=CheckStatus.Tcp())),
    ],
)
def test_calls_that_are_as_mesos_wants_them(fine):
    check(fine)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (Call(), "type"),
        (call(99), "type"),
        (call(Call.SUBSCRIBE), "subscribe"),
        (call(Call.UPDATE), "update"),
        (call(Call.MESSAGE), "message"),
        (update(uuid=None), "update.status.uuid"),
        (update(uuid=b""), "update.status.uuid"),
        (update(uuid=b"u" * 15), "update.status.uuid"),
        (update(uuid=bytes(16)), "update.status.uuid"),
        (update(uuid=b"\xff" * 16), "update.status.uuid"),
        (update(executor_id=pb.ExecutorID(value="other")), "update.status.executor_id"),
        (update(source=None), "update.status.source"),
        (update(source=pb.TaskStatus.SOURCE_MASTER), "update.status.source"),
        (update(source=pb.TaskStatus.SOURCE_AGENT), "update.status.source"),
        (update(source=77), "update.status.source"),
        (update(state=pb.TASK_STAGING), "update.status.state"),
        (update(check_status=CheckStatus()), "update.status.check_status.type"),
        (
            update(check_status=CheckStatus(type=pb.CheckInfo.HTTP, tcp=CheckStatus.Tcp())),
            "update.status.check_status.http",
        ),
    ],
)
def test_a_call_that_mesos_would_refuse_is_refused_by_field(wrong, field):
    with pytest.raises(InvalidValue, match=f"^{field}: "):
        check(wrong)


def test_an_executor_reads_of_one_port_and_of_nothing_that_mesos_does_not_have():
    info = pb.AgentInfo(hostname="h", ip="10.0.0.1", port=5061, http_port=5051)
    event = Event(type=Event.SUBSCRIBED, subscribed=Event.Subscribed(agent_info=info))
    told = as_mesos(event)
    assert told.subscribed.agent_info.port == 5051
    assert event.subscribed.agent_info.port == 5061  # not ours to change
    assert b'"agent_info":{"hostname":"h","port":5051}' in Media.JSON.dumps(told)
    launch = Event(type=Event.LAUNCH)
    assert as_mesos(launch) is launch
