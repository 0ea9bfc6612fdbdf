"""Whatever is said to the daemons: never an internal error, and nothing half made.

Calls that are valid but for a few fields, and calls that are made up altogether, to
every service.  Afterwards the daemons live, have logged no traceback, count no failed
step, hold nothing for anybody, and run the next task.
"""

import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import grpc
import pytest
from google.protobuf import text_format
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mesos_py.resources import Resources
from mesos_py.states import TASK_FINISHED
from mesos_py.tasks import command_task, custom_executor, executor_task, launch
from mesos_py.v1 import agent_pb2, executor_pb2, operator_pb2, scheduler_pb2
from mesos_py.v1.agent_pb2_grpc import AgentFilesStub
from mesos_py.v1.executor_pb2_grpc import ExecutorServiceStub
from mesos_py.v1.operator_pb2_grpc import OperatorServiceStub
from mesos_py.v1.types_pb2 import DRAINING, RolePolicy
from tests.kit.cluster import Cluster
from tests.kit.framework import Framework, what
from tests.kit.fuzz import Fuzz
from tests.kit.raw import RawAgent, RawScheduler, framework_info

Call = scheduler_pb2.Call
BROKEN = (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.UNIMPLEMENTED)
FUZZED = settings(
    max_examples=min(60, settings.default.max_examples if settings.default else 60),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    deadline=None,
)
DICE = st.integers(0, 2**32 - 1).map(random.Random)


@pytest.fixture
def cluster(tmp_path) -> Iterator[Cluster]:
    with Cluster(tmp_path, offer_timeout="0s") as cluster:
        cluster.start_agent("a", executor_shutdown_grace_period="0s")
        yield cluster
        _assert_sound(cluster)


def _assert_sound(cluster: Cluster) -> None:
    for left in cluster.operator.frameworks().frameworks:
        cluster.operator.teardown(left.framework_info.id.value)
    cluster.wait_until(lambda: not cluster.used().get("a"))
    metrics = cluster.metrics()
    assert metrics["master/step_failures"] == 0
    assert metrics["master/offers_outstanding"] == 0
    assert [task for task in cluster.operator.tasks() if task.state < TASK_FINISHED] == []
    for agent in cluster.agents:
        assert agent.alive
        for sign in ("input failed", "effect failed"):
            assert sign not in agent.log
    cluster.assert_no_internal_error()
    with Framework(cluster.address) as framework:
        framework.status(framework.launch("true", host="a"), TASK_FINISHED)


def parsed(texts: Iterable[str], kind: type[Any]) -> list[Any]:
    return [text_format.Parse(text, kind()) for text in texts]


# --- schedulers -------------------------------------------------------------------------------


VALID_CALLS = parsed(
    [
        "type: DECLINE decline { offer_ids {} filters { refuse_seconds: 0 } }",
        'type: KILL kill { task_id { value: "x" } kill_policy { grace_period {} } }',
        'type: RECONCILE reconcile { tasks { task_id { value: "x" } agent_id {} } }',
        'type: ACKNOWLEDGE acknowledge { task_id { value: "x" } uuid: "0123456789abcdef" }',
        'type: REQUEST request { requests { resources { name: "cpus" scalar { value: 1 } } } }',
        'type: UPDATE_FRAMEWORK update_framework { framework_info { name: "f" user: "root" } }',
        'type: MESSAGE message { executor_id { value: "x" } data: "x" }',
        'type: SHUTDOWN shutdown { executor_id { value: "x" } }',
        "type: SUPPRESS suppress { }",
        "type: REVIVE revive { }",
    ],
    Call,
)
SUBSCRIBE = text_format.Parse(
    'type: SUBSCRIBE subscribe { framework_info { name: "f" user: "root" failover_timeout: 0 } '
    "protocol_version: 1 }",
    Call(),
)


@FUZZED
@given(dice=DICE)
def test_subscriptions(cluster, dice):
    fuzz = Fuzz(dice)
    with RawScheduler(cluster.address) as raw:
        raw.send(fuzz.altered(SUBSCRIBE) if dice.random() < 0.8 else fuzz.made_up(Call))
        raw.half_close()
        answered(raw)


@FUZZED
@given(dice=DICE)
def test_calls_of_schedulers(cluster, dice):
    with RawScheduler(cluster.address) as raw:
        raw.subscribe(framework_info(failover_timeout=0.0))
        ids = [raw.framework_id, cluster.agent_id("a")]
        for _ in range(dice.randint(1, 8)):
            fuzz = Fuzz(dice, ids)
            if dice.random() < 0.2:
                raw.send(fuzz.made_up(Call))
            else:
                raw.send(fuzz.altered(dice.choice(VALID_CALLS)))
        raw.half_close()
        answered(raw)


@FUZZED
@given(dice=DICE)
def test_launches(cluster, dice):
    with RawScheduler(cluster.address) as raw:
        raw.subscribe(framework_info(failover_timeout=0.0))
        offer = raw.offer()
        tasks = [
            command_task("c", "c", offer, "true", cpus=0.1, mem=16),
            executor_task("e", "e", offer, custom_executor("x", "true"), cpus=0.1, mem=16),
        ]
        fuzz = Fuzz(dice, [raw.framework_id, offer.agent_id.value, offer.id.value, "c", "e", "x"])
        accept = Call.Accept(offer_ids=[offer.id], operations=[launch(tasks)])
        raw.send(fuzz.altered(raw.made(Call.ACCEPT, accept=accept), dice.randint(1, 6)))
        if dice.random() < 0.5:
            raw.send(raw.made(Call.RECONCILE))
        raw.half_close()
        answered(raw)


def answered(raw: RawScheduler | RawAgent) -> None:
    """All that was said is dealt with; the stream has ended in a way that is foreseen."""
    code, details = raw.ended()
    assert code not in BROKEN, details


# --- agents -----------------------------------------------------------------------------------


TASK = (
    'tasks { name: "t" task_id { value: "t" } framework_id { value: "f" } state: TASK_RUNNING '
    'status_update_state: TASK_RUNNING resources { name: "cpus" scalar { value: 1 } } }'
)
EXECUTOR = (
    'executors { executor_id { value: "e" } framework_id { value: "f" } type: CUSTOM '
    'command { value: "true" } resources { name: "cpus" scalar { value: 0.5 } } }'
)
REGISTER = text_format.Parse(
    'type: REGISTER register { version: "1" protocol_version: 1 agent_info { hostname: "raw" '
    'port: 1 resources { name: "cpus" scalar { value: 2 } } '
    'attributes { name: "rack" type: TEXT text { value: "x" } } } '
    f'{TASK} {EXECUTOR} frameworks {{ name: "f" user: "root" id {{ value: "f" }} }} }}',
    agent_pb2.Call(),
)
VALID_AGENT_CALLS = parsed(
    [
        'type: UPDATE update { framework_id { value: "f" } latest_state: TASK_RUNNING status { '
        'task_id { value: "t" } state: TASK_RUNNING uuid: "0123456789abcdef" } }',
        'type: UPDATE update { framework_id { value: "f" } latest_state: TASK_FAILED status { '
        'task_id { value: "t" } state: TASK_FAILED uuid: "fedcba9876543210" } }',
        'type: EXECUTOR_MESSAGE executor_message { framework_id { value: "f" } data: "x" }',
        'type: EXECUTOR_EXITED executor_exited { framework_id { value: "f" } '
        'executor_id { value: "e" } status: 9 }',
        "type: PONG pong { sequence: 1 }",
    ],
    agent_pb2.Call,
)


@FUZZED
@given(dice=DICE)
def test_registrations_and_calls_of_agents(cluster, dice):
    """Also in the name of frameworks and of an agent that there are."""
    ids = ["f", "t", "e"]
    if dice.random() < 0.3:
        ids.append(cluster.operator.agents()[-1].agent_info.id.value)
    fuzz = Fuzz(dice, ids)
    with RawAgent(cluster.address) as raw:
        register = fuzz.altered(REGISTER) if dice.random() < 0.8 else REGISTER
        # The real agent's id is its own: it would be displaced, and rightly end.
        if register.register.agent_info.hostname == "a":
            return
        raw.send(register)
        for _ in range(dice.randint(0, 6)):
            made_up = dice.random() < 0.2
            call = fuzz.made_up(agent_pb2.Call) if made_up else None
            raw.send(call or fuzz.altered(dice.choice(VALID_AGENT_CALLS)))
        raw.half_close()
        answered(raw)


# --- executors --------------------------------------------------------------------------------


VALID_EXECUTOR_CALLS = parsed(
    [
        'type: SUBSCRIBE subscribe { protocol_version: 1 unacknowledged_tasks { name: "t" '
        'task_id { value: "t" } } unacknowledged_updates { status { task_id { value: "t" } '
        'state: TASK_RUNNING uuid: "0123456789abcdef" } } }',
        'type: UPDATE update { status { task_id { value: "t" } state: TASK_RUNNING '
        'source: SOURCE_EXECUTOR uuid: "0123456789abcdef" } }',
        'type: UPDATE update { status { task_id { value: "t" } state: TASK_FINISHED '
        'source: SOURCE_EXECUTOR uuid: "fedcba9876543210" } }',
        'type: MESSAGE message { data: "x" }',
    ],
    executor_pb2.Call,
)


@FUZZED
@given(dice=DICE)
def test_calls_of_executors(cluster, dice):
    """In the name of an executor that is expected, and of others."""
    with Framework(cluster.address) as framework:
        offer = framework.offer()
        executor = custom_executor("x", "exec sleep 600")
        task = executor_task("t", "t", offer, executor, cpus=0.1, mem=16)
        framework.driver.launch_tasks(offer, task, filters=0)
        cluster.wait_until(lambda: cluster.strays() != [])
        fuzz = Fuzz(dice, [framework.id, "x", "t"])
        calls = []
        for number in range(dice.randint(1, 6)):
            valid = VALID_EXECUTOR_CALLS[0] if number == 0 else dice.choice(VALID_EXECUTOR_CALLS)
            call = executor_pb2.Call()
            call.CopyFrom(valid)
            call.framework_id.value, call.executor_id.value = framework.id, "x"
            calls.append(fuzz.altered(call) if number or dice.random() < 0.5 else call)
        with grpc.insecure_channel(f"unix:{cluster.directory}/a/executors.sock") as channel:
            batch = executor_pb2.Calls(calls=calls)
            stream = ExecutorServiceStub(channel).Subscribe(iter([batch]), timeout=60)
            assert_foreseen(lambda: list(stream))


# --- questions --------------------------------------------------------------------------------


@FUZZED
@given(dice=DICE)
def test_calls_of_operators(cluster, dice):
    fuzz = Fuzz(dice, [cluster.agent_id("a"), "x"])
    kinds = operator_pb2.Call.Type.values()
    with asking(cluster.address) as channel:
        for _ in range(10):
            call = fuzz.made_up(operator_pb2.Call, density=0.6)
            call.type = dice.choice([*kinds, 4711])
            # From there it could not come back.
            call.drain_agent.mark_gone = False
            call.mark_agent_gone.agent_id.value = "x"
            assert_foreseen(lambda c=call: OperatorServiceStub(channel).Execute(c, timeout=60))
    _put_back(cluster)


def _put_back(cluster: Cluster) -> None:
    """Into service, if one of the calls has happened to take the agent out of it; and what
    they have happened to say of roles."""
    cluster.wait_until(lambda: cluster.agent_row("a").drain_info.state != DRAINING)
    agent = cluster.agent_row("a")
    if agent.deactivated:
        cluster.operator.reactivate_agent(agent.agent_info.id.value)
    for role in cluster.operator.roles():
        if role.HasField("policy"):
            cluster.operator.update_role(role.name, RolePolicy())


@FUZZED
@given(dice=DICE)
def test_questions_for_logs(cluster, dice):
    """Through the master, and to the agent itself."""
    with Framework(cluster.address) as framework:
        task_id = framework.launch("echo x; mkdir d")
        framework.status(task_id, TASK_FINISHED)
        fuzz = Fuzz(dice, [framework.id, task_id, "stdout", "d"])
        valid = agent_pb2.ReadLogRequest(path="stdout")
        valid.framework_id.value, valid.task_id.value = framework.id, task_id
        agent = f"127.0.0.1:{cluster.agents[0].port}"
        with asking(cluster.address) as to_master, asking(agent) as to_agent:
            for _ in range(4):
                request = fuzz.altered(valid)
                for stub in (OperatorServiceStub(to_master), AgentFilesStub(to_agent)):
                    assert_foreseen(lambda s=stub, r=request: list(s.ReadLog(r, timeout=60)))


@contextmanager
def asking(address: str) -> Iterator[grpc.Channel]:
    with grpc.insecure_channel(address) as channel:
        yield channel


def assert_foreseen(ask: Any) -> None:
    """An answer, or an error that somebody has thought of."""
    try:
        ask()
    except grpc.RpcError as error:
        assert error.code() not in BROKEN, error  # noqa: PT017


def test_resources_of_any_kind_leave_the_ledger_exact(cluster):
    """Ten thousandths and their sums: what is free in the end is what there was at first."""
    with Framework(cluster.address) as framework:
        all_of_it = "cpus:4;mem:4096;ports:[21000-21099]"
        dice = random.Random(3)
        for _ in range(10):
            offer = framework.gather(all_of_it)
            tasks = [
                framework.task("true", offer, cpus=dice.choice((0.001, 0.1, 0.2, 0.66)), mem=0.5)
                for _ in range(5)
            ]
            framework.driver.launch_tasks(offer, tasks, filters=0)
            for task in tasks:
                framework.status(task.task_id.value, TASK_FINISHED)
        assert what(framework.gather(all_of_it)) == Resources.parse(all_of_it)
