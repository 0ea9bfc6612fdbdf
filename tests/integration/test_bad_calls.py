"""Bad calls to real daemons, past the SDK: of schedulers, agents, executors and operators.

Each is answered with the field and the value at fault, and nothing is changed.
"""

from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.protobuf import text_format

from mesos_py import rpc
from mesos_py.errors import InsufficientResources, InvalidValue, NotFound, Refused
from mesos_py.tasks import command_task, launch
from mesos_py.v1 import executor_pb2, operator_pb2, scheduler_pb2
from mesos_py.v1.executor_pb2_grpc import ExecutorServiceStub
from mesos_py.v1.operator_pb2_grpc import OperatorServiceStub
from tests.kit.cluster import Cluster
from tests.kit.framework import Framework
from tests.kit.raw import RawAgent, RawScheduler, framework_info
from tests.kit.waiting import gone

NEWER = rpc.PROTOCOL_VERSION + 1
Call = scheduler_pb2.Call


@pytest.fixture(scope="module")
def running(tmp_path_factory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("calls"), offer_timeout="0s") as cluster:
        cluster.start_agent("a")
        cluster.operator.version()
        yield cluster


@pytest.fixture
def cluster(running) -> Iterator[Cluster]:
    with running.unchanged():
        yield running


@pytest.fixture
def framework(cluster) -> Iterator[Framework]:
    with Framework(cluster.address) as framework:
        yield framework


@pytest.fixture
def raw(cluster) -> Iterator[RawScheduler]:
    with RawScheduler(cluster.address) as raw:
        raw.subscribe()
        yield raw
        raw.teardown()


# --- schedulers -------------------------------------------------------------------------------


INFO = 'framework_info { name: "raw" user: "root" failover_timeout: 3600 }'
BAD_PATTERN = """offer_constraints { role_constraints { key: "*" value { groups {
    attribute_constraints {
        selector { attribute_name: "rack" } predicate { text_matches { regex: "(" } }
    } } } } }"""
BAD_CALLS = {
    "short uuid": (
        "type: ACKNOWLEDGE "
        'acknowledge { agent_id { value: "S" } task_id { value: "t" } uuid: "x" }',
        ("uuid", "78"),
    ),
    "refuse for no time that is": (
        "type: DECLINE decline { filters { refuse_seconds: nan } }",
        ("filters.refuse_seconds", "nan"),
    ),
    "suppress a stranger's role": (
        'type: SUPPRESS suppress { roles: "*" roles: "nobodys" }',
        ("suppressed_roles", "nobodys"),
    ),
    "revive a stranger's role": ('type: REVIVE revive { roles: "x" }', ("suppressed_roles", "x")),
    "needs that cannot be": (
        'type: REQUEST request { requests { resources { name: "cpus" scalar { value: -1 } } } }',
        ("requests.resources.cpus", "-1.0"),
    ),
    "more needs than anyone has": (
        "type: REQUEST request { " + "requests {} " * 1001 + "}",
        ("requests", "1001"),
    ),
    "a message to nobody": (
        'type: MESSAGE message { agent_id { value: "S9" } executor_id { value: "e" } data: "x" }',
        ("agent", "S9"),
    ),
    "shut nobody down": (
        'type: SHUTDOWN shutdown { agent_id { value: "S9" } executor_id { value: "e" } }',
        ("executor", "e"),
    ),
    "a pattern that is none": (
        f"type: UPDATE_FRAMEWORK update_framework {{ {INFO} {BAD_PATTERN} }}",
        ("offer_constraints.role_constraints[*]", "("),
    ),
    "constraints for another role": (
        f"type: UPDATE_FRAMEWORK update_framework {{ {INFO} offer_constraints {{ "
        'role_constraints { key: "nobodys" value {} } } }',
        ("offer_constraints.role_constraints[nobodys]", "nobodys"),
    ),
    "another principal": (
        'type: UPDATE_FRAMEWORK update_framework { framework_info { name: "raw" user: "root" '
        'principal: "somebody" } }',
        ("framework_info.principal", "somebody"),
    ),
    "an impossible time-out": (
        'type: UPDATE_FRAMEWORK update_framework { framework_info { name: "raw" user: "root" '
        "failover_timeout: -1 } }",
        ("framework_info.failover_timeout", "-1.0"),
    ),
    "a type that nobody knows": ("type: 4711", ("type", "4711")),
    "no type": ("", ("type", "0")),
    "another's name": (
        'type: TEARDOWN framework_id { value: "another" }',
        ("framework_id", "another"),
    ),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_a_call_that_cannot_be_is_refused_and_the_next_one_is_heard(raw, case):
    text, at_fault = BAD_CALLS[case]
    raw.send(text_format.Parse(text, Call()))
    refused = raw.event(raw.Event.REFUSED).refused
    assert (refused.field, refused.value) == at_fault
    assert refused.message
    raw.send(
        text_format.Parse(
            'type: RECONCILE reconcile { tasks { task_id { value: "after" } } }', Call()
        )
    )
    raw.status("after")


def test_a_kill_with_a_negative_grace(raw):
    offer = raw.offer()
    task = command_task("spared", "spared", offer, ["sleep", "600"], cpus=0.1)
    raw.call(Call.ACCEPT, accept=Call.Accept(offer_ids=[offer.id], operations=[launch(task)]))
    raw.acknowledge(raw.status("spared"))
    running = raw.status("spared", count=2)
    kill = 'kill { task_id { value: "spared" } kill_policy { grace_period { nanoseconds: -1 } } }'
    raw.send(text_format.Parse(f"type: KILL {kill}", Call()))
    refused = raw.refused(Call.KILL)
    assert (refused.field, refused.value) == ("kill_policy.grace_period", "-1")
    assert not gone(running.container_status.executor_pid)


# --- subscriptions ----------------------------------------------------------------------------


BAD_SUBSCRIPTIONS = {
    "newer protocol": (
        f'{INFO} client: "later" protocol_version: {NEWER}',
        f"the client (later) speaks protocol {NEWER}, this master at most {rpc.PROTOCOL_VERSION}",
    ),
    "role with a dash": ('framework_info { role: "-x" }', "framework_info.role: '-x'"),
    "role like a path": ('framework_info { role: "a/../b" }', "framework_info.role: 'a/../b'"),
    "negative time-out": (
        "framework_info { failover_timeout: -1 }",
        "framework_info.failover_timeout: -1",
    ),
    "time-out that is no number": (
        "framework_info { failover_timeout: nan }",
        "framework_info.failover_timeout: nan",
    ),
    "name with a line": (
        'framework_info { name: "two\\nlines" }',
        "framework_info.name: 'two\\nlines'",
    ),
    "id like a path": ('framework_info { id { value: "../.." } }', "framework_info.id: '../..'"),
    "stranger's role suppressed": (
        f'{INFO} suppressed_roles: "other"',
        "suppressed_roles: 'other'",
    ),
    "pattern that is none": (
        f"{INFO} {BAD_PATTERN}",
        "offer_constraints.role_constraints[*]: '('",
    ),
}


@pytest.mark.parametrize("case", BAD_SUBSCRIPTIONS)
def test_a_subscription_that_cannot_be_is_an_error_and_the_end_of_the_stream(cluster, case):
    text, said = BAD_SUBSCRIPTIONS[case]
    call = text_format.Parse(f"type: SUBSCRIBE subscribe {{ {text} }}", Call())
    call.framework_id.CopyFrom(call.subscribe.framework_info.id)
    with RawScheduler(cluster.address) as raw:
        raw.send(call)
        raw.ended()
        (error,) = raw.events()
        assert error.type == raw.Event.ERROR
        assert error.error.message.startswith(said)
    assert not cluster.operator.frameworks().frameworks


def test_a_call_before_the_subscription(cluster):
    with RawScheduler(cluster.address) as raw:
        raw.call(Call.TEARDOWN)
        raw.ended()
        (error,) = raw.events()
        assert error.error.message.startswith("TEARDOWN before SUBSCRIBE")


def test_a_message_over_the_limit_costs_its_sender_the_stream_and_nobody_else(cluster, framework):
    with RawScheduler(cluster.address) as raw:
        raw.subscribe(framework_info(failover_timeout=0.0))
        large = Call.Message(data=b"x" * (rpc.MAX_MESSAGE_BYTES + 1))
        raw.call(Call.MESSAGE, message=large)
        code, _ = raw.ended()
        assert code in (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.CANCELLED)
    framework.driver.decline_offers(framework.offer("a"), filters=0)
    framework.offer("a")
    assert framework.all("disconnected") == []


def test_what_is_no_message_at_all_costs_its_sender_the_stream(cluster):
    with grpc.insecure_channel(cluster.address) as channel:
        method = "/mesos_py.v1.scheduler.SchedulerService/Subscribe"
        call: Any = channel.stream_stream(method)
        stream = call(iter([b"\xff\xff\xff\xff garbage"]))
        # Its end; whether as an error depends on who notices first.
        try:
            assert list(stream) == []
        except grpc.RpcError:
            pass


# --- agents -----------------------------------------------------------------------------------


def agent(amount: str = "1", host: str = "raw", more: str = "") -> str:
    resources = f'resources {{ name: "cpus" scalar {{ value: {amount} }} }}'
    return f'agent_info {{ hostname: "{host}" port: 1 {resources} {more} }}'


def task(state: str, amount: str) -> str:
    ids = 'task_id { value: "t" } framework_id { value: "f" }'
    resources = f'resources {{ name: "cpus" scalar {{ value: {amount} }} }}'
    return f"tasks {{ {ids} state: {state} status_update_state: {state} {resources} }}"


BAD_AGENTS = {
    "newer protocol": (
        f'{agent()} version: "9.9" protocol_version: {NEWER}',
        f"the agent (version 9.9) speaks protocol {NEWER}, "
        f"this master at most {rpc.PROTOCOL_VERSION}",
    ),
    "no name": (agent(host=""), "agent_info.hostname: ''"),
    "nothing to offer": ('agent_info { hostname: "raw" }', "agent_info.resources: ''"),
    "negative": (agent("-4"), "agent_info.resources.cpus: -4"),
    "no number": (agent("nan"), "agent_info.resources.cpus: nan"),
    "id like a path": (agent(more='id { value: "a/b" }'), "agent_info.id: 'a/b'"),
    "task in no state that is": (f"{agent()} {task('TASK_UNREACHABLE', '1')}", "tasks.state"),
    "more tasks than it has room for": (f"{agent()} {task('TASK_RUNNING', '2')}", ""),
}


@pytest.mark.parametrize("case", BAD_AGENTS)
def test_an_agent_that_cannot_be_is_refused_for_good(cluster, case):
    text, said = BAD_AGENTS[case]
    with RawAgent(cluster.address) as raw:
        raw.send(text_format.Parse(f"type: REGISTER register {{ {text} }}", raw.Call()))
        raw.ended()
        (refused,) = raw.events()
        assert refused.type == raw.Event.REFUSED
        assert refused.refused.final
        assert refused.refused.message.startswith(said)


def test_an_agents_call_before_its_registration_ends_the_stream(cluster):
    with RawAgent(cluster.address) as raw:
        raw.send(raw.Call(type=raw.Call.PONG))
        raw.ended()
        assert raw.events() == []


def test_an_agents_id_does_not_move_to_another_host(cluster):
    before = cluster.agent_row("a")
    info = agent(host="elsewhere", more=f'id {{ value: "{before.agent_info.id.value}" }}')
    with RawAgent(cluster.address) as raw:
        raw.send(text_format.Parse(f"type: REGISTER register {{ {info} }}", raw.Call()))
        raw.ended()
        (refused,) = raw.events()
        assert refused.refused.message.startswith("agent_info.hostname: 'elsewhere'")
    assert cluster.agent_row("a").agent_info == before.agent_info


# --- executors --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "said"),
    [
        (rpc.PROTOCOL_VERSION, "no executor 'e' of framework 'f' is expected here"),
        (NEWER, f"protocol version {NEWER}"),
    ],
)
def test_an_executor_that_cannot_be_is_refused(cluster, version, said):
    """One that nobody has started, and one of a newer protocol."""
    text = (
        'calls { type: SUBSCRIBE framework_id { value: "f" } executor_id { value: "e" } '
        f"subscribe {{ protocol_version: {version} }} }}"
    )
    calls = text_format.Parse(text, executor_pb2.Calls())
    socket = cluster.directory / "a" / "executors.sock"
    with grpc.insecure_channel(f"unix:{socket}") as channel:
        batches = list(ExecutorServiceStub(channel).Subscribe(iter([calls]), timeout=60))
    (event,) = [event for batch in batches for event in batch.events]
    assert event.type == executor_pb2.Event.ERROR
    assert said in event.error.message
    assert str(rpc.PROTOCOL_VERSION) in event.error.message or version != NEWER


# --- operators --------------------------------------------------------------------------------


BAD_QUESTIONS = {
    "no type": ("", InvalidValue, "type: 0"),
    "unknown type": ("type: 9999", InvalidValue, "type: 9999"),
    "teardown of nobody": ("type: TEARDOWN", NotFound, "framework ''"),
    "kill without a name": ("type: KILL_TASK", InvalidValue, "task_id: ''"),
    "tasks of a stranger": (
        'type: GET_TASKS get_tasks { framework_id { value: "x" } }',
        NotFound,
        "framework 'x'",
    ),
    "explain a stranger": (
        'type: EXPLAIN explain { framework_id { value: "x" } }',
        NotFound,
        "framework 'x'",
    ),
    "explain a task that is not": (
        'type: EXPLAIN explain { task_id { value: "x" } }',
        NotFound,
        "task 'x'",
    ),
    "one weight of two is nothing": (
        'type: UPDATE_WEIGHTS update_weights { weight_infos { role: "a" weight: 2 } '
        'weight_infos { role: "b" } }',
        InvalidValue,
        "weight_infos[b].weight: 0",
    ),
    "weight that is no number": (
        'type: UPDATE_WEIGHTS update_weights { weight_infos { role: "a" weight: nan } }',
        InvalidValue,
        "weight_infos[a].weight: nan",
    ),
    "a role's limit below zero": (
        'type: UPDATE_ROLES update_roles { changes { role: "good" policy { priority: 1 } } '
        'changes { role: "a" policy { limits { key: "cpus" value { value: -1 } } } } }',
        InvalidValue,
        "changes[a].policy.limits.cpus: -1.0",
    ),
    "a role's guarantee of what there is not": (
        'type: UPDATE_ROLES update_roles { changes { role: "a" policy { guarantees '
        '{ key: "tapes" value { value: 1 } } } } }',
        InsufficientResources,
        "changes[a].policy.guarantees.tapes: 1: all guarantees come to 1 tapes",
    ),
    "what nobody can say of a role": (
        'type: UPDATE_ROLES update_roles { changes { role: "a" fields: "colour" } }',
        InvalidValue,
        "changes[a].fields: 'colour'",
    ),
    "weight of no role": (
        'type: UPDATE_WEIGHTS update_weights { weight_infos { role: "a b" weight: 1 } }',
        InvalidValue,
        "role: 'a b'",
    ),
}


@pytest.mark.parametrize("case", BAD_QUESTIONS)
def test_an_operators_call_that_cannot_be_is_an_error(cluster, case):
    text, error, said = BAD_QUESTIONS[case]
    with pytest.raises(error) as caught:
        cluster.operator.execute(text_format.Parse(text, operator_pb2.Call()))
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "a/../../x", "", "a\0b", "x" * 5000])
def test_no_path_leads_out_of_a_sandbox(cluster, framework, path):
    task_id = framework.run("ln -s /etc/passwd link; exec sleep 600").task_id.value
    with pytest.raises((InvalidValue, NotFound)):
        list(cluster.operator.read_log(framework.id, task_id, path))
    assert list(cluster.operator.read_log(framework.id, task_id)) == []


def test_a_link_does_not_lead_out_of_a_sandbox(cluster, framework):
    task_id = framework.launch("ln -s /etc/passwd link; echo; exec sleep 600")
    cluster.wait_until(
        lambda: (
            list(cluster.operator.read_log(framework.id, task_id))
            if framework.states(task_id)[-1:] == ["RUNNING"]
            else []
        )
    )
    with pytest.raises(Refused, match="'link' is or passes a symbolic link"):
        list(cluster.operator.read_log(framework.id, task_id, "link"))


def test_an_operators_garbage_is_an_error_of_its_own(cluster):
    with grpc.insecure_channel(cluster.address) as channel:
        method: Any = channel.unary_unary("/mesos_py.v1.operator.OperatorService/Execute")
        with pytest.raises(grpc.RpcError):
            method(b"\xff\xff\xff garbage", timeout=60)
        OperatorServiceStub(channel).Execute(
            operator_pb2.Call(type=operator_pb2.Call.GET_HEALTH), timeout=60
        )
