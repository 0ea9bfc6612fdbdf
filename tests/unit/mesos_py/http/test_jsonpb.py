"""Messages as JSON: each convention of the reference is a test."""

import json
import math
from typing import Any

import pytest

from mesos_py.errors import InvalidValue
from mesos_py.http import jsonpb
from mesos_py.v1 import maintenance_pb2, operator_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb


def out(message: Any, **kw: bool) -> Any:
    return json.loads(jsonpb.dumps(message, **kw))


def read(kind: Any, content: Any) -> Any:
    return jsonpb.loads(kind, json.dumps(content).encode())


# ---- Out -----------------------------------------------------------------------------


def test_on_one_line_without_spaces_in_ascii() -> None:
    label = pb.Label(key="k", value="Bär\n")
    assert jsonpb.dumps(label) == b'{"key":"k","value":"B\\u00e4r\\n"}'


def test_names_are_those_of_the_definition() -> None:
    assert "framework_id" in out(sched.Event.Subscribed(framework_id=pb.FrameworkID(value="f")))


def test_integers_of_64_bits_are_numbers() -> None:
    assert jsonpb.dumps(pb.TimeInfo(nanoseconds=2**62)) == b'{"nanoseconds":4611686018427387904}'
    assert out(pb.Value.Range(begin=1, end=2**64 - 1)) == {"begin": 1, "end": 2**64 - 1}


def test_bytes_are_base64() -> None:
    assert out(pb.TaskStatus(uuid=b"\xff\xfe"))["uuid"] == "//4="


def test_enums_are_names() -> None:
    assert out(sched.Event(type=sched.Event.HEARTBEAT)) == {"type": "HEARTBEAT"}


def test_an_enum_without_a_name_here_is_its_number() -> None:
    assert out(pb.FrameworkInfo.Capability(type=99)) == {"type": 99}  # type: ignore[arg-type]


def test_what_is_required_is_there_also_when_it_is_zero() -> None:
    assert out(pb.Value.Scalar()) == {"value": 0.0}
    resource = pb.Resource(name="cpus", scalar=pb.Value.Scalar(value=1))
    assert out(resource) == {"name": "cpus", "type": "SCALAR", "scalar": {"value": 1.0}}
    assert out(pb.TaskStatus(task_id=pb.TaskID(value="t")))["state"] == "TASK_STARTING"


def test_what_has_a_default_is_there() -> None:
    assert out(pb.CommandInfo(value="true")) == {"value": "true", "shell": True}
    info = out(pb.FrameworkInfo(user="u", name="n"))
    assert info == {"user": "u", "name": "n", "failover_timeout": 0.0, "checkpoint": False}
    docker = out(pb.ContainerInfo.DockerInfo(image="i"))
    assert docker == {"image": "i", "network": "HOST", "privileged": False}
    assert out(pb.HealthCheck())["consecutive_failures"] == 3


def test_what_was_said_counts_not_the_default() -> None:
    assert out(pb.CommandInfo(shell=False)) == {"shell": False}
    assert out(pb.FrameworkInfo(failover_timeout=7.5))["failover_timeout"] == 7.5


def test_what_is_not_set_is_left_out() -> None:
    assert out(pb.TaskStatus(task_id=pb.TaskID(value="t"), state=pb.TASK_RUNNING)) == {
        "task_id": {"value": "t"},
        "state": "TASK_RUNNING",
    }
    assert out(pb.Labels()) == {}


def test_what_is_zero_and_was_said_is_there() -> None:
    assert out(sched.Event.Failure(status=0)) == {"status": 0}


def test_a_map_is_an_object() -> None:
    filters = pb.OfferFilters.ResourceQuantities()
    filters.quantities["cpus"].value = 0.5
    assert out(filters) == {"quantities": {"cpus": {"value": 0.5}}}


def test_a_duration_of_google_is_no_exception() -> None:
    drain = operator_pb2.Call.DrainAgent()
    drain.max_grace_period.seconds = 600
    assert out(drain)["max_grace_period"] == {"seconds": 600}


@pytest.mark.parametrize(
    ("value", "text"), [(math.inf, "Infinity"), (-math.inf, "-Infinity"), (math.nan, "NaN")]
)
def test_what_json_has_no_number_for_is_text(value: float, text: str) -> None:
    assert jsonpb.dumps(pb.Value.Scalar(value=value)) == f'{{"value":"{text}"}}'.encode()


def test_what_only_we_know_is_told_to_those_who_know_it() -> None:
    status = pb.TaskStatus(state=pb.TASK_FAILED)
    status.exit_status.exit_code = 3
    assert out(status) == {"state": "TASK_FAILED"}
    assert out(status, ours=True)["exit_status"] == {"exit_code": 3}


# ---- In ------------------------------------------------------------------------------


def test_everything_comes_back_as_it_went_out() -> None:
    call = sched.Call(type=sched.Call.ACCEPT, framework_id=pb.FrameworkID(value="f"))
    call.accept.offer_ids.add(value="o")
    operation = call.accept.operations.add(type=pb.Offer.Operation.LAUNCH)
    task = operation.launch.task_infos.add(name="é", data=b"\0\xff")
    task.task_id.value, task.agent_id.value = "t", "a"
    task.resources.add(name="cpus").scalar.value = 0.1
    ports = task.resources.add(name="ports", type=pb.Value.RANGES)
    ports.ranges.range.add(begin=1, end=2**63)
    task.limits["cpus"].value = math.inf
    task.command.shell = True
    call.accept.filters.refuse_seconds = 1e-3
    assert jsonpb.loads(sched.Call, jsonpb.dumps(call)) == call


def test_unknown_members_are_ignored() -> None:
    assert read(pb.Label, {"key": "k", "Key": 1, "colour": {"deep": []}}) == pb.Label(key="k")


def test_names_in_camel_case_are_unknown() -> None:
    assert not read(pb.CommandInfo, {"outputFile": "x"}).HasField("value")


def test_null_is_unset_everywhere() -> None:
    given: dict[str, Any] = {
        "user": "u",
        "name": "n",
        "id": None,
        "failover_timeout": None,
        "roles": None,
    }
    given |= {"capabilities": [None, {"type": "MULTI_ROLE"}], "offer_filters": {"r": None}}
    info = read(pb.FrameworkInfo, given)
    assert not info.HasField("id")
    assert not info.HasField("failover_timeout")
    assert len(info.capabilities) == 1
    assert not info.offer_filters


def test_null_does_not_stand_for_what_is_required() -> None:
    with pytest.raises(InvalidValue, match="name: '': is missing"):
        read(pb.FrameworkInfo, {"user": "u", "name": None})


@pytest.mark.parametrize("given", [15, 15.0, "15", "15.0", "1.5e1", "15."])
def test_numbers_may_be_text_and_have_exponents(given: Any) -> None:
    assert read(pb.Value.Scalar, {"value": given}).value == 15.0
    assert read(pb.TimeInfo, {"nanoseconds": given}).nanoseconds == 15


def test_a_number_in_exponent_form_as_it_stands_in_the_text() -> None:
    assert jsonpb.loads(pb.TimeInfo, b'{"nanoseconds":5E9}').nanoseconds == 5 * 10**9


def test_large_integers_keep_their_last_digit() -> None:
    assert read(pb.TimeInfo, {"nanoseconds": 2**63 - 1}).nanoseconds == 2**63 - 1
    assert read(pb.TimeInfo, {"nanoseconds": str(2**63 - 1)}).nanoseconds == 2**63 - 1


def test_of_a_number_with_a_fraction_the_whole_part_is_an_integer() -> None:
    assert read(pb.TimeInfo, {"nanoseconds": -5.7}).nanoseconds == -5


@pytest.mark.parametrize(
    ("text", "value"), [("Infinity", math.inf), ("-Infinity", -math.inf), ("1e999", math.inf)]
)
def test_infinity_is_text(text: str, value: float) -> None:
    assert read(pb.Value.Scalar, {"value": text}).value == value


@pytest.mark.parametrize(("given", "value"), [(True, True), ("true", True), ("false", False)])
def test_booleans_may_be_text(given: Any, value: bool) -> None:
    assert read(pb.CommandInfo, {"shell": given}).shell is value


def test_one_element_may_stand_for_a_list() -> None:
    info = read(pb.CommandInfo, {"arguments": "a", "uris": {"value": "u"}})
    assert list(info.arguments) == ["a"]
    assert [uri.value for uri in info.uris] == ["u"]


@pytest.mark.parametrize("text", ["YWI=", "YW\nI=", "YWI", "YWI==", "YWI=junk"])
def test_base64_is_read_as_mesos_reads_it(text: str) -> None:
    status = {"task_id": {"value": "t"}, "state": "TASK_LOST", "data": text}
    assert read(pb.TaskStatus, status).data == b"ab"


def test_an_unknown_name_of_an_optional_enum_is_nothing() -> None:
    assert read(sched.Call, {"type": "DANCE"}) == sched.Call()
    assert read(pb.FrameworkInfo.Capability, {"type": "FLYING"}) == pb.FrameworkInfo.Capability()


def test_an_unknown_name_of_a_required_enum_is_an_error() -> None:
    with pytest.raises(InvalidValue, match="state: 'TASK_ASLEEP': is none of TASK_STARTING"):
        read(pb.TaskStatus, {"task_id": {"value": "t"}, "state": "TASK_ASLEEP"})


@pytest.mark.parametrize(
    ("kind", "given", "says"),
    [
        (sched.Call, {"type": 1}, "type: 1: must be the name of a value"),
        (pb.Label, {"key": 5}, "key: 5: must be text"),
        (pb.Label, {"key": ["k"]}, "key: ['k']: must be text"),
        (pb.CommandInfo, {"shell": 1}, "shell: 1: must be true or false"),
        (pb.CommandInfo, {"shell": "yes"}, "shell: 'yes': must be true or false"),
        (pb.Value.Scalar, {"value": True}, "value: True: must be a number"),
        (pb.Value.Scalar, {"value": "1_0"}, "value: '1_0': is no number"),
        (pb.Value.Scalar, {"value": " 1"}, "value: ' 1': is no number"),
        (pb.Value.Scalar, {"value": {}}, "value: {}: must be a number"),
        (pb.TimeInfo, {"nanoseconds": 2**63}, "must be from"),
        (pb.TimeInfo, {"nanoseconds": "1e999"}, "is too large"),
        (pb.TimeInfo, {"nanoseconds": "Infinity"}, "is too large"),
        (pb.MasterInfo, {"id": "m", "ip": -1, "port": 1}, "ip: -1: must be from 0 to"),
        (pb.Secret.Value, {"data": "a"}, "data: 'a': is no base64"),
        (pb.Secret.Value, {"data": "é"}, "data: 'é': is no base64"),
        (pb.CommandInfo, {"environment": []}, "environment: []: must be an object"),
        (pb.CommandInfo, {"uris": ["u"]}, "uris[0]: 'u': must be an object"),
        (pb.CommandInfo, {"uris": [{}]}, "uris[0].value: '': is missing"),
        (pb.OfferFilters.ResourceQuantities, {"quantities": []}, "quantities: []: must be an"),
        (
            pb.OfferFilters.ResourceQuantities,
            {"quantities": {"cpus": 1}},
            "quantities[cpus]: 1: must be an object",
        ),
        (
            sched.Call,
            {"subscribe": {"framework_info": {"user": "u"}}},
            "subscribe.framework_info.name: '': is missing",
        ),
        (sched.Call, {"kill": {}}, "kill.task_id: '': is missing"),
        (sched.Call, {"kill": {"task_id": {}}}, "kill.task_id.value: '': is missing"),
    ],
)
def test_what_is_wrong_is_named_with_its_value(kind: Any, given: Any, says: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        read(kind, given)
    assert says in caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"x"',
        b"\xff",
        b'{"value":NaN}',
        b'{"value":Infinity}',
        b'{"nanoseconds":' + b"9" * 5000 + b"}",
        b"[" * 100_000,
        b'{"key":' * 100_000,
    ],
)
def test_what_is_no_json_object(text: bytes) -> None:
    with pytest.raises(InvalidValue):
        jsonpb.loads(pb.Value.Scalar, text)


def test_half_a_surrogate_pair_is_no_text() -> None:
    with pytest.raises(InvalidValue, match=r"^key: "):
        jsonpb.loads(pb.Label, b'{"key":"\\ud800"}')
    with pytest.raises(InvalidValue, match=r"^arguments\[0\]: "):
        jsonpb.loads(pb.CommandInfo, b'{"arguments":["\\ud800"]}')
    with pytest.raises(InvalidValue, match=r"^quantities\["):
        jsonpb.loads(pb.OfferFilters.ResourceQuantities, b'{"quantities":{"\\ud800":{"value":1}}}')


def test_depth_is_bounded() -> None:
    text = b'{"value":"c","parent":' * 100 + b'{"value":"c"}' + b"}" * 100
    with pytest.raises(InvalidValue, match="is nested deeper than 64"):
        jsonpb.loads(pb.ContainerID, text)


def test_a_repeated_message_without_presence_is_kept_when_empty() -> None:
    schedule = read(maintenance_pb2.Schedule, {"windows": []})
    assert not schedule.windows
    assert read(
        pb.TaskInfo,
        {
            "name": "n",
            "task_id": {"value": "t"},
            "agent_id": {"value": "a"},
            "command": {},
        },
    ).HasField("command")
