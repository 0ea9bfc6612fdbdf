"""Bad calls to real daemons, past the SDK: of schedulers, agents, executors and operators.

Each is answered with the field and the value at fault, and nothing is changed.
"""

import math
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from mesos_py import rpc
from mesos_py.errors import InvalidValue, NotFound, Refused
from mesos_py.resources import Resources
from mesos_py.states import TASK_RUNNING, TASK_UNREACHABLE
from mesos_py.tasks import command_task, launch
from mesos_py.v1 import agent_pb2, executor_pb2, operator_pb2, scheduler_pb2, types_pb2
from mesos_py.v1.executor_pb2_grpc import ExecutorServiceStub
from mesos_py.v1.operator_pb2_grpc import OperatorServiceStub
from tests.kit.cluster import Cluster
from tests.kit.framework import Framework
from tests.kit.raw import RawAgent, RawScheduler, framework_info
from tests.kit.waiting import gone

NAN = math.nan
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


def kill_policy(nanoseconds: int) -> types_pb2.KillPolicy:
    return types_pb2.KillPolicy(grace_period=types_pb2.DurationInfo(nanoseconds=nanoseconds))


def constrained(**predicate: Any) -> scheduler_pb2.OfferConstraints:
    constraint = scheduler_pb2.AttributeConstraint()
    constraint.selector.attribute_name = "rack"
    constraint.predicate.CopyFrom(scheduler_pb2.AttributeConstraint.Predicate(**predicate))
    group = scheduler_pb2.OfferConstraints.RoleConstraints.Group(attribute_constraints=[constraint])
    rule = scheduler_pb2.OfferConstraints.RoleConstraints(groups=[group])
    return scheduler_pb2.OfferConstraints(role_constraints={"*": rule})


BAD_PATTERN = constrained(
    text_matches=scheduler_pb2.AttributeConstraint.Predicate.TextMatches(regex="(")
)
NO_ROLE = scheduler_pb2.OfferConstraints(
    role_constraints={"nobodys": scheduler_pb2.OfferConstraints.RoleConstraints()}
)

BAD_CALLS: dict[str, tuple[dict[str, Any], str, str]] = {
    "short uuid": (
        {
            "acknowledge": Call.Acknowledge(
                agent_id={"value": "x"}, task_id={"value": "x"}, uuid=b"x"
            )
        },
        "uuid",
        "78",
    ),
    "refuse for no time that is": (
        {"decline": Call.Decline(filters=types_pb2.Filters(refuse_seconds=NAN))},
        "filters.refuse_seconds",
        "nan",
    ),
    "suppress a stranger's role": (
        {"suppress": Call.Suppress(roles=["*", "nobodys"])},
        "suppressed_roles",
        "nobodys",
    ),
    "revive a stranger's role": ({"revive": Call.Revive(roles=["x"])}, "suppressed_roles", "x"),
    "needs that cannot be": (
        {
            "request": Call.Request(
                requests=[{"resources": [{"name": "cpus", "scalar": {"value": -1}}]}]
            )
        },
        "requests.resources.cpus",
        "-1.0",
    ),
    "more needs than anyone has": (
        {"request": Call.Request(requests=[types_pb2.Request()] * 1001)},
        "requests",
        "1001",
    ),
    "a message to nobody": (
        {"message": Call.Message(agent_id={"value": "S9"}, executor_id={"value": "e"}, data=b"x")},
        "agent",
        "S9",
    ),
    "shut nobody down": (
        {"shutdown": Call.Shutdown(agent_id={"value": "S9"}, executor_id={"value": "e"})},
        "executor",
        "e",
    ),
    "a pattern that is none": (
        {
            "update_framework": Call.UpdateFramework(
                framework_info=framework_info(), offer_constraints=BAD_PATTERN
            )
        },
        "offer_constraints.role_constraints[*]",
        "(",
    ),
    "constraints for another role": (
        {
            "update_framework": Call.UpdateFramework(
                framework_info=framework_info(), offer_constraints=NO_ROLE
            )
        },
        "offer_constraints.role_constraints[nobodys]",
        "nobodys",
    ),
    "another principal": (
        {
            "update_framework": Call.UpdateFramework(
                framework_info=framework_info(principal="somebody")
            )
        },
        "framework_info.principal",
        "somebody",
    ),
    "an impossible time-out": (
        {
            "update_framework": Call.UpdateFramework(
                framework_info=framework_info(failover_timeout=-1.0)
            )
        },
        "framework_info.failover_timeout",
        "-1.0",
    ),
    "inverse offers": (
        {"accept_inverse_offers": Call.AcceptInverseOffers(inverse_offer_ids=[{"value": "x"}])},
        "type",
        "13",
    ),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_a_call_that_cannot_be_is_refused_and_the_next_one_is_heard(raw, case):
    parts, field, value = BAD_CALLS[case]
    (part,) = parts
    kind = Call.Type.Value(part.upper())
    raw.call(kind, **parts)
    refused = raw.refused(kind)
    assert (refused.field, refused.value) == (field, value)
    assert refused.message
    raw.call(Call.RECONCILE, reconcile=Call.Reconcile(tasks=[{"task_id": {"value": "after"}}]))
    raw.status("after")


def test_a_kill_with_a_negative_grace(raw):
    offer = raw.offer()
    task = command_task("spared", "spared", offer, ["sleep", "600"], cpus=0.1)
    raw.call(Call.ACCEPT, accept=Call.Accept(offer_ids=[offer.id], operations=[launch(task)]))
    raw.acknowledge(raw.status("spared"))
    running = raw.status("spared", count=2)
    kill = Call.Kill(task_id={"value": "spared"}, kill_policy=kill_policy(-1))
    raw.call(Call.KILL, kill=kill)
    refused = raw.refused(Call.KILL)
    assert (refused.field, refused.value) == ("kill_policy.grace_period", "-1")
    assert not gone(running.container_status.executor_pid)


@pytest.mark.parametrize("kind", [0, 14, 18, 4711])
def test_a_call_of_a_type_that_nobody_knows(raw, kind):
    raw.send(Call(type=kind))
    refused = raw.event(raw.Event.REFUSED).refused
    assert (refused.field, refused.value) == ("type", str(kind))


def test_a_call_in_another_frameworks_name(raw):
    raw.send(Call(type=Call.TEARDOWN, framework_id={"value": "another"}))
    refused = raw.refused(Call.TEARDOWN)
    assert (refused.field, refused.value) == ("framework_id", "another")


# --- subscriptions ----------------------------------------------------------------------------


BAD_SUBSCRIPTIONS: dict[str, tuple[Call.Subscribe, str]] = {
    "newer protocol": (
        Call.Subscribe(framework_info=framework_info(), protocol_version=NEWER, client="later"),
        f"the client (later) speaks protocol {NEWER}, this master at most {rpc.PROTOCOL_VERSION}",
    ),
    "role with a dash": (
        Call.Subscribe(framework_info=framework_info(role="-x")),
        "framework_info.role: '-x'",
    ),
    "role like a path": (
        Call.Subscribe(framework_info=framework_info(role="a/../b")),
        "framework_info.role: 'a/../b'",
    ),
    "negative time-out": (
        Call.Subscribe(framework_info=framework_info(failover_timeout=-1.0)),
        "framework_info.failover_timeout: -1",
    ),
    "time-out that is no number": (
        Call.Subscribe(framework_info=framework_info(failover_timeout=NAN)),
        "framework_info.failover_timeout: nan",
    ),
    "name with a line": (
        Call.Subscribe(framework_info=framework_info("two\nlines")),
        "framework_info.name: 'two\\nlines'",
    ),
    "id like a path": (
        Call.Subscribe(framework_info=framework_info(id="../..")),
        "framework_info.id: '../..'",
    ),
    "stranger's role suppressed": (
        Call.Subscribe(framework_info=framework_info(), suppressed_roles=["other"]),
        "suppressed_roles: 'other'",
    ),
    "pattern that is none": (
        Call.Subscribe(framework_info=framework_info(), offer_constraints=BAD_PATTERN),
        "offer_constraints.role_constraints[*]: '('",
    ),
}


@pytest.mark.parametrize("case", BAD_SUBSCRIPTIONS)
def test_a_subscription_that_cannot_be_is_an_error_and_the_end_of_the_stream(cluster, case):
    subscribe, said = BAD_SUBSCRIPTIONS[case]
    with RawScheduler(cluster.address) as raw:
        call = Call(type=Call.SUBSCRIBE, subscribe=subscribe)
        call.framework_id.CopyFrom(subscribe.framework_info.id)
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
        code, details = raw.ended()
        assert code in (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.CANCELLED)
    framework.driver.decline_offers(framework.offer("a"), filters=0)
    framework.offer("a")
    assert framework.all("disconnected") == []


def test_what_is_no_message_at_all_costs_its_sender_the_stream(cluster):
    with grpc.insecure_channel(cluster.address) as channel:
        method = "/mesos_py.v1.scheduler.SchedulerService/Subscribe"
        stream = channel.stream_stream(method)(iter([b"\xff\xff\xff\xff garbage"]))
        # Its end; whether as an error depends on who notices first.
        try:
            assert list(stream) == []
        except grpc.RpcError:
            pass


# --- agents -----------------------------------------------------------------------------------


def agent_info(hostname: str = "raw", resources: str = "cpus:1", **fields: Any):
    made = Resources.parse(resources).to_proto()
    return types_pb2.AgentInfo(hostname=hostname, port=1, resources=made, **fields)


def with_amount(value: float):
    info = agent_info()
    info.resources[0].scalar.value = value
    return info


Register = agent_pb2.Call.Register
BAD_AGENTS: dict[str, tuple[Register, str]] = {
    "newer protocol": (
        Register(agent_info=agent_info(), version="9.9", protocol_version=NEWER),
        f"the agent (version 9.9) speaks protocol {NEWER}, "
        f"this master at most {rpc.PROTOCOL_VERSION}",
    ),
    "no name": (Register(agent_info=agent_info("")), "agent_info.hostname: ''"),
    "nothing to offer": (
        Register(agent_info=types_pb2.AgentInfo(hostname="raw")),
        "agent_info.resources: ''",
    ),
    "negative": (Register(agent_info=with_amount(-4)), "agent_info.resources.cpus: -4"),
    "no number": (Register(agent_info=with_amount(NAN)), "agent_info.resources.cpus: nan"),
    "id like a path": (
        Register(agent_info=agent_info(id={"value": "a/b"})),
        "agent_info.id: 'a/b'",
    ),
    "task in no state that is": (
        Register(
            agent_info=agent_info(),
            tasks=[
                {
                    "task_id": {"value": "t"},
                    "framework_id": {"value": "f"},
                    "state": TASK_UNREACHABLE,
                }
            ],
        ),
        "tasks.state",
    ),
    "more tasks than it has room for": (
        Register(
            agent_info=agent_info(),
            tasks=[
                {
                    "task_id": {"value": "t"},
                    "framework_id": {"value": "f"},
                    "state": TASK_RUNNING,
                    "resources": Resources.parse("cpus:2").to_proto(),
                }
            ],
        ),
        "",
    ),
}


@pytest.mark.parametrize("case", BAD_AGENTS)
def test_an_agent_that_cannot_be_is_refused_for_good(cluster, case):
    register, said = BAD_AGENTS[case]
    with RawAgent(cluster.address) as raw:
        raw.send(raw.Call(type=raw.Call.REGISTER, register=register))
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
    with RawAgent(cluster.address) as raw:
        info = agent_info("elsewhere", id=before.agent_info.id)
        raw.send(raw.Call(type=raw.Call.REGISTER, register=Register(agent_info=info)))
        raw.ended()
        (refused,) = raw.events()
        assert refused.refused.message.startswith("agent_info.hostname: 'elsewhere'")
    assert cluster.agent_row("a").agent_info == before.agent_info


# --- executors --------------------------------------------------------------------------------


def executor_answer(cluster: Cluster, call: executor_pb2.Call) -> str:
    """What agent "a" says to an executor that begins with `call`."""
    socket = cluster.directory / "a" / "executors.sock"
    with grpc.insecure_channel(f"unix:{socket}") as channel:
        stream = ExecutorServiceStub(channel).Subscribe(
            iter([executor_pb2.Calls(calls=[call])]), timeout=60
        )
        ((event,),) = [batch.events for batch in stream]
        message: str = event.error.message
        return message


def executor_call(**subscribe: Any) -> executor_pb2.Call:
    return executor_pb2.Call(
        type=executor_pb2.Call.SUBSCRIBE,
        framework_id={"value": "f"},
        executor_id={"value": "e"},
        subscribe=executor_pb2.Call.Subscribe(**subscribe),
    )


def test_an_executor_that_nobody_has_started_is_refused(cluster):
    answer = executor_answer(cluster, executor_call(protocol_version=1))
    assert answer == "no executor 'e' of framework 'f' is expected here"


def test_an_executor_of_a_newer_protocol_is_refused_with_both_versions(cluster):
    answer = executor_answer(cluster, executor_call(protocol_version=NEWER))
    assert str(NEWER) in answer
    assert str(rpc.PROTOCOL_VERSION) in answer


# --- operators --------------------------------------------------------------------------------


BAD_QUESTIONS: dict[str, tuple[operator_pb2.Call, type[Exception], str]] = {
    "no type": (operator_pb2.Call(), InvalidValue, "type: 0"),
    "unknown type": (operator_pb2.Call(type=9999), InvalidValue, "type: 9999"),
    "teardown of nobody": (
        operator_pb2.Call(type=operator_pb2.Call.TEARDOWN),
        NotFound,
        "framework ''",
    ),
    "kill without a name": (
        operator_pb2.Call(type=operator_pb2.Call.KILL_TASK),
        InvalidValue,
        "task_id: ''",
    ),
    "tasks of a stranger": (
        operator_pb2.Call(
            type=operator_pb2.Call.GET_TASKS, get_tasks={"framework_id": {"value": "x"}}
        ),
        NotFound,
        "framework 'x'",
    ),
    "explain a stranger": (
        operator_pb2.Call(type=operator_pb2.Call.EXPLAIN, explain={"framework_id": {"value": "x"}}),
        NotFound,
        "framework 'x'",
    ),
    "explain a task that is not": (
        operator_pb2.Call(type=operator_pb2.Call.EXPLAIN, explain={"task_id": {"value": "x"}}),
        NotFound,
        "task 'x'",
    ),
    "weight of nothing": (
        operator_pb2.Call(
            type=operator_pb2.Call.UPDATE_WEIGHTS,
            update_weights={"weight_infos": [{"role": "a", "weight": 2}, {"role": "b"}]},
        ),
        InvalidValue,
        "weight of b: 0",
    ),
    "weight that is no number": (
        operator_pb2.Call(
            type=operator_pb2.Call.UPDATE_WEIGHTS,
            update_weights={"weight_infos": [{"role": "a", "weight": NAN}]},
        ),
        InvalidValue,
        "weight of a: nan",
    ),
    "weight of no role": (
        operator_pb2.Call(
            type=operator_pb2.Call.UPDATE_WEIGHTS,
            update_weights={"weight_infos": [{"role": "a b", "weight": 1}]},
        ),
        InvalidValue,
        "role: 'a b'",
    ),
}


@pytest.mark.parametrize("case", BAD_QUESTIONS)
def test_an_operators_call_that_cannot_be_is_an_error(cluster, case):
    call, error, said = BAD_QUESTIONS[case]
    with pytest.raises(error) as caught:
        cluster.operator.execute(call)
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "a/../../x", "", "a\0b", "x" * 5000])
def test_no_path_leads_out_of_a_sandbox(cluster, framework, path):
    task_id = framework.run("ln -s /etc/passwd link; exec sleep 600").task_id.value
    with pytest.raises((InvalidValue, NotFound)):
        list(cluster.operator.read_log(framework.id, task_id, path))
    assert b"" == b"".join(p.data for p in cluster.operator.read_log(framework.id, task_id))


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
        method = channel.unary_unary("/mesos_py.v1.operator.OperatorService/Execute")
        with pytest.raises(grpc.RpcError):
            method(b"\xff\xff\xff garbage", timeout=60)
        OperatorServiceStub(channel).Execute(
            operator_pb2.Call(type=operator_pb2.Call.GET_HEALTH), timeout=60
        )
