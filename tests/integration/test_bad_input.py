"""Bad input to real daemons: an error that names field and value, and nothing is changed.

First what the SDK refuses by itself, then the same past it, as raw messages.  Further
cases: a user or program that does not exist (test_launch.py), a port in use and a
work directory that is taken (test_agents.py), options of commands (test_cli_*.py).
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest

from mesos_py import rpc
from mesos_py.errors import InvalidValue, NotFound, TooLarge
from mesos_py.resources import Resources
from mesos_py.states import TASK_DROPPED, TASK_ERROR, TASK_RUNNING
from mesos_py.tasks import command_task, custom_executor, launch
from mesos_py.v1 import agent_pb2, executor_pb2, operator_pb2, scheduler_pb2, types_pb2
from mesos_py.v1.executor_pb2_grpc import ExecutorServiceStub
from mesos_py.v1.operator_pb2_grpc import OperatorServiceStub
from mesos_py.v1.types_pb2 import FrameworkInfo, Offer, OfferID, TaskInfo, TaskStatus, Value
from tests.kit.cluster import Cluster
from tests.kit.framework import Framework
from tests.kit.raw import RawAgent, RawScheduler, framework_info
from tests.kit.waiting import gone

SIZE = "cpus:2;mem:1024;disk:0;ports:[21500-21509]"
NAN, INFINITY = math.nan, math.inf
NEWER = rpc.PROTOCOL_VERSION + 1
Call = scheduler_pb2.Call


@pytest.fixture(scope="module")
def running(tmp_path_factory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("bad"), offer_timeout="0s") as cluster:
        cluster.start_agents("a", "b", resources=SIZE)
        cluster.operator.version()
        yield cluster


def known(cluster: Cluster) -> list[Any]:
    """All that a refused call must not change: agents, live tasks, executors, weights."""
    state = cluster.operator.execute(operator_pb2.Call(type=operator_pb2.Call.GET_STATE)).get_state
    weights = cluster.operator.execute(operator_pb2.Call(type=operator_pb2.Call.GET_WEIGHTS))
    return [
        sorted(
            (a.agent_info.hostname, str(list(a.allocated_resources)), a.state)
            for a in state.get_agents.agents
        ),
        [task.task_id.value for task in state.get_tasks.tasks],
        list(state.get_executors.executors),
        weights.get_weights,
    ]


@pytest.fixture
def cluster(running) -> Iterator[Cluster]:
    before = known(running)
    with running.undisturbed():
        yield running
    assert known(running) == before


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


# --- what the SDK refuses ----------------------------------------------------------------


@pytest.mark.parametrize("amount", [-1, NAN, INFINITY, -INFINITY, 0, 0.0001, 1e18, "two", None])
def test_an_amount_that_cannot_be_is_refused_before_anything_is_sent(framework, amount):
    offer = framework.offer("a")
    with pytest.raises(InvalidValue) as caught:
        command_task("bad", "bad", offer, "true", cpus=amount)
    if amount is not None:
        assert "cpus" in caught.value.field
        assert str(amount) in str(caught.value)
    framework.driver.launch_tasks(offer, framework.task("exec sleep 600", offer, task_id="good"))
    framework.status("good", TASK_RUNNING)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (lambda f, o: f.driver.launch_tasks("no-such-offer", f.task("true", o)), "offer_ids"),
        (lambda f, o: f.driver.launch_tasks([o, o], f.task("true", o)), "offer_ids"),
        (lambda f, o: f.driver.launch_tasks([], f.task("true", o)), "offer_ids"),
        (lambda f, o: f.driver.launch_tasks(o, [f.task("true", o, task_id="x")] * 2), "task_id"),
        (lambda f, o: f.driver.decline_offers(o, filters=-1), "refuse_seconds"),
        (lambda f, o: f.driver.decline_offers(o, filters=NAN), "refuse_seconds"),
        (lambda f, o: f.driver.kill_task("x", grace_s=-1), "grace_s"),
        (lambda f, o: f.driver.kill_task(""), "task_id"),
        (lambda f, o: f.driver.kill_task("a/b"), "task_id"),
        (lambda f, o: f.driver.set_filters(hosts=[]), "hosts"),
        (lambda f, o: f.driver.set_filters(min_free=Resources.parse("ports:[1-2]")), "min_free"),
        (lambda f, o: f.driver.set_needs_offers(False, "no-such-role"), "role"),
        (lambda f, o: f.driver.request_resources([("x", Resources.of(cpus=1), 0)]), "count"),
        (lambda f, o: f.task("true", o, task_id="../up"), "task_id"),
        (lambda f, o: f.task("", o), "command"),
        (lambda f, o: f.task("true", o, kill_grace_s=-1), "kill_grace_s"),
        (lambda f, o: f.task("true", o, env={"A": 1}), "env.A"),
    ],
)
def test_a_call_that_cannot_be_is_refused_by_the_driver(framework, wrong, field):
    offer = framework.offer("a")
    with pytest.raises(InvalidValue) as caught:
        wrong(framework, offer)
    assert field in caught.value.field
    framework.driver.decline_offers(offer, filters=0)
    framework.offer("a")


def test_an_offer_is_used_once(framework):
    offer = framework.offer("a")
    framework.driver.launch_tasks(offer, framework.task("exec sleep 600", offer, task_id="good"))
    for again in (framework.driver.decline_offers, lambda o: framework.driver.launch_tasks(o, [])):
        with pytest.raises(InvalidValue, match=f"{offer.id.value}.*accepted"):
            again(offer)
    framework.status("good", TASK_RUNNING)


def test_offers_of_two_agents_are_not_merged(framework):
    offers = [framework.offer("a"), framework.offer("b")]
    with pytest.raises(InvalidValue, match="offer_ids"):
        framework.driver.launch_tasks(offers, framework.task("true", offers[0]))


def test_a_call_over_the_limit_of_a_message_is_refused_and_the_link_stays(framework):
    offer = framework.offer("a")
    task = framework.task("true", offer, labels={"large": "x" * rpc.MAX_MESSAGE_BYTES})
    with pytest.raises(TooLarge, match="at most"):
        framework.driver.launch_tasks(offer, task)
    framework.driver.launch_tasks(offer, framework.task("exec sleep 600", offer, task_id="good"))
    framework.status("good", TASK_RUNNING)
    assert framework.all("disconnected") == []


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": ""}, "framework.name"),
        ({"name": "x", "failover_timeout": -1.0}, "framework.failover_timeout"),
        ({"name": "x", "failover_timeout": NAN}, "framework.failover_timeout"),
    ],
)
def test_a_framework_that_cannot_be_is_refused_by_the_driver(cluster, fields, field):
    from mesos_py import SchedulerDriver

    with pytest.raises(InvalidValue) as caught:
        SchedulerDriver(Framework(cluster.address), FrameworkInfo(**fields), cluster.address)
    assert caught.value.field == field


# --- tasks, past the SDK -------------------------------------------------------------------


def amount(name: str, value: float) -> Callable[[TaskInfo], object]:
    def change(task: TaskInfo) -> None:
        for resource in task.resources:
            if resource.name == name:
                resource.scalar.value = value

    return change


def ports(*spans: tuple[int, int]) -> Callable[[TaskInfo], object]:
    def change(task: TaskInfo) -> None:
        added = task.resources.add(name="ports", type=Value.RANGES)
        for begin, end in spans:
            added.ranges.range.add(begin=begin, end=end)

    return change


def both_kinds(task: TaskInfo) -> None:
    task.executor.CopyFrom(custom_executor("e", "true"))


def executor_only(**fields: Any) -> Callable[[TaskInfo], object]:
    def change(task: TaskInfo) -> None:
        task.ClearField("command")
        task.executor.CopyFrom(custom_executor("e", "true"))
        for name, value in fields.items():
            if value is None:
                task.executor.ClearField(name)
            elif hasattr(value, "CopyFrom"):
                getattr(task.executor, name).CopyFrom(value)
            else:
                setattr(task.executor, name, value)

    return change


BAD_TASKS: dict[str, tuple[Callable[[TaskInfo], object], str, str]] = {
    "negative": (amount("cpus", -1), "resources.cpus", "-1"),
    "nan": (amount("cpus", NAN), "resources.cpus", "nan"),
    "infinite": (amount("mem", INFINITY), "resources.mem", "inf"),
    "nothing": (amount("cpus", 0), "resources.cpus", "0"),
    "tiny": (amount("cpus", 0.0001), "resources.cpus", "0.0001"),
    "astronomic": (amount("mem", 1e300), "resources.mem", "1e+300"),
    "larger than the offer": (amount("cpus", 2.001), "resources.cpus", "2.001"),
    "unnamed resource": (lambda t: setattr(t.resources[0], "name", ""), "resources.name", "''"),
    "other type": (lambda t: setattr(t.resources[0], "type", Value.SET), "resources.cpus", "SET"),
    "unknown type": (lambda t: setattr(t.resources[0], "type", 99), "resources.cpus", "99"),
    "no resources": (lambda t: t.ClearField("resources"), "resources", "''"),
    "backward range": (ports((21505, 21501)), "resources.ports", "21505"),
    "port of nobody": (ports((1, 2)), "resources.ports", "1-2"),
    "whole number space": (ports((0, 2**64 - 1)), "resources.ports", str(2**64 - 1)),
    "port twice": (ports((21501, 21502), (21502, 21503)), "resources.ports", "2150"),
    "unknown resource": (lambda t: setattr(t.resources[1], "name", "gold"), "gold", "16"),
    "empty id": (lambda t: setattr(t.task_id, "value", ""), "task_id", "''"),
    "path as id": (lambda t: setattr(t.task_id, "value", "../x"), "task_id", "'../x'"),
    "long id": (lambda t: setattr(t.task_id, "value", "x" * 256), "task_id", "xxx"),
    "other agent": (lambda t: setattr(t.agent_id, "value", "S99"), "agent_id", "'S99'"),
    "nothing to run": (lambda t: t.ClearField("command"), "command", "neither"),
    "two things to run": (both_kinds, "command", "both"),
    "empty command": (lambda t: setattr(t.command, "value", ""), "command.value", "''"),
    "null in the command": (lambda t: setattr(t.command, "value", "a\0b"), "command", "a"),
    "unnamed variable": (
        lambda t: t.command.environment.variables.add(name="", value="x"),
        "command.environment",
        "''",
    ),
    "variable with =": (
        lambda t: t.command.environment.variables.add(name="A=B", value="x"),
        "command.environment",
        "A=B",
    ),
    "negative grace": (
        lambda t: setattr(t.kill_policy.grace_period, "nanoseconds", -1),
        "kill_policy.grace_period",
        "-1",
    ),
    "negative time": (
        lambda t: setattr(t.max_completion_time, "nanoseconds", -5),
        "max_completion_time",
        "-5",
    ),
    "limit below the request": (
        lambda t: setattr(t.limits["cpus"], "value", 0.01),
        "limits.cpus",
        "0.01",
    ),
    "limit that is no number": (
        lambda t: setattr(t.limits["mem"], "value", NAN),
        "limits.mem",
        "nan",
    ),
    "limit of a port": (lambda t: setattr(t.limits["ports"], "value", 1), "limits.ports", "1"),
    "too much in all": (
        lambda t: t.labels.labels.add(key="large", value="x" * (5 << 20)),
        "",
        "at most 4194304",
    ),
    "executor without command": (executor_only(command=None), "executor.command", "''"),
    "executor without id": (
        executor_only(executor_id=types_pb2.ExecutorID(value="")),
        "executor.executor_id",
        "''",
    ),
    "executor of another framework": (
        executor_only(framework_id=types_pb2.FrameworkID(value="other")),
        "executor.framework_id",
        "'other'",
    ),
    "executor of another type": (
        executor_only(type=types_pb2.ExecutorInfo.DEFAULT),
        "executor.type",
        "DEFAULT",
    ),
}


def small_task(offer: Offer, task_id: str = "bad") -> TaskInfo:
    return command_task(task_id, task_id, offer, "exec sleep 600", cpus=0.1, mem=16)


def accept(*offers: Offer, tasks: list[TaskInfo], filters: float = 0) -> Call.Accept:
    return Call.Accept(
        offer_ids=[offer.id for offer in offers],
        operations=[launch(tasks)],
        filters=types_pb2.Filters(refuse_seconds=filters),
    )


def of(host: str) -> Callable[[Offer], bool]:
    return lambda offer: offer.hostname == host


@pytest.mark.parametrize("case", BAD_TASKS)
def test_a_task_that_cannot_be_is_an_error_and_all_of_its_offer_comes_back(raw, case):
    change, field, value = BAD_TASKS[case]
    offer = raw.offer(of("a"))
    task = small_task(offer)
    change(task)
    raw.call(Call.ACCEPT, accept=accept(offer, tasks=[task]))
    status = raw.status(task.task_id.value)
    assert status.state == TASK_ERROR
    assert status.reason == TaskStatus.REASON_TASK_INVALID
    assert status.source == TaskStatus.SOURCE_MASTER
    assert not status.uuid
    assert status.message.startswith(field)
    assert value in status.message
    again = raw.offer(lambda o: o.hostname == "a" and o.id != offer.id)
    assert again.resources == offer.resources


@pytest.mark.parametrize("operation", [Offer.Operation.RESERVE, Offer.Operation.CREATE, 999])
def test_an_operation_that_is_not_there_is_refused_by_name(raw, operation):
    offer = raw.offer(of("a"))
    call = Call.Accept(offer_ids=[offer.id], operations=[Offer.Operation(type=operation)])
    raw.call(Call.ACCEPT, accept=call)
    refused = raw.refused(Call.ACCEPT)
    assert refused.field == "operations.type"
    name = Offer.Operation.Type.Name(operation) if operation != 999 else "999"
    assert name in refused.value


def test_two_tasks_with_one_id_in_one_call(raw):
    offer = raw.offer(of("a"))
    task = small_task(offer, "twice")
    raw.call(Call.ACCEPT, accept=accept(offer, tasks=[task, task]))
    error = raw.event(raw.Event.UPDATE, lambda e: e.update.status.state == TASK_ERROR)
    assert error.update.status.message == "task_id: 'twice': is in this call twice"
    # The first of them is as good as any.
    raw.event(raw.Event.UPDATE, lambda e: bool(e.update.status.uuid))


# --- offers, past the SDK ---------------------------------------------------------------------


def test_an_offer_used_twice_starts_nothing_the_second_time(raw):
    offer = raw.offer(of("a"))
    raw.call(Call.ACCEPT, accept=accept(offer, tasks=[]))
    raw.call(Call.ACCEPT, accept=accept(offer, tasks=[small_task(offer, "late")]))
    assert_void(raw, offer.id.value, "offer gone: accepted already", "late")


def test_an_offer_that_was_declined_cannot_be_accepted(raw):
    offer = raw.offer(of("a"))
    raw.call(Call.DECLINE, decline=Call.Decline(offer_ids=[offer.id]))
    raw.call(Call.ACCEPT, accept=accept(offer, tasks=[small_task(offer, "late")]))
    assert_void(raw, offer.id.value, "offer gone: declined by the framework", "late")


def test_an_offer_that_never_was(raw):
    offer = raw.offer(of("a"))
    live = OfferID(value=offer.id.value)
    offer.id.value = "no-such-offer"
    call = accept(offer, tasks=[small_task(offer, "late")])
    call.offer_ids.append(live)
    raw.call(Call.ACCEPT, accept=call)
    assert_void(raw, "no-such-offer", "offer gone: unknown", "late")
    # The live one of the call is back, as a new offer.
    raw.offer(lambda o: o.hostname == "a" and o.id != live)


def test_offers_of_two_agents(raw):
    first, second = raw.offer(of("a")), raw.offer(of("b"))
    raw.call(Call.ACCEPT, accept=accept(first, second, tasks=[small_task(first, "both")]))
    assert_void(raw, second.id.value, "of several agents", "both")
    for offer in (first, second):
        raw.offer(lambda o, offer=offer: o.hostname == offer.hostname and o.id != offer.id)


def test_the_same_offer_twice_in_one_call(raw):
    offer = raw.offer(of("a"))
    raw.call(Call.ACCEPT, accept=accept(offer, offer, tasks=[small_task(offer, "double")]))
    assert_void(raw, offer.id.value, "is in the call twice", "double")
    raw.offer(lambda o: o.hostname == "a" and o.id != offer.id)


def test_no_offer_at_all(raw):
    offer = raw.offer(of("a"))
    raw.call(Call.ACCEPT, accept=accept(tasks=[small_task(offer, "nowhere")]))
    assert_void(raw, "[]", "must name at least one offer", "nowhere")


def test_another_frameworks_offer(cluster, raw):
    offer = raw.offer(of("a"))
    with RawScheduler(cluster.address) as thief:
        thief.subscribe(suppressed_roles=["*"])
        thief.call(Call.ACCEPT, accept=accept(offer, tasks=[small_task(offer, "stolen")]))
        assert_void(thief, offer.id.value, "is another framework's offer", "stolen")
        thief.call(Call.DECLINE, decline=Call.Decline(offer_ids=[offer.id]))
        thief.teardown()
    raw.call(Call.ACCEPT, accept=accept(offer, tasks=[small_task(offer, "own")]))
    assert raw.status("own").uuid


def assert_void(raw: RawScheduler, value: str, why: str, task_id: str) -> None:
    """The ACCEPT was refused for this offer, and its task never starts."""
    refused = raw.refused(Call.ACCEPT)
    assert (refused.field, refused.value) == ("offer_ids", value)
    assert why in refused.message
    dropped = raw.status(task_id)
    assert dropped.state == TASK_DROPPED
    assert dropped.reason == TaskStatus.REASON_INVALID_OFFERS
    assert why in dropped.message


# --- other calls, past the SDK ----------------------------------------------------------------


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
        {"acknowledge": Call.Acknowledge(agent_id={"value": "x"}, task_id={"value": "x"}, uuid=b"x")},
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
        {"request": Call.Request(requests=[{"resources": [{"name": "cpus", "scalar": {"value": -1}}]}])},
        "requests.resources.cpus",
        "-1",
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
        "-1",
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
    offer = raw.offer(of("a"))
    raw.call(Call.ACCEPT, accept=accept(offer, tasks=[small_task(offer, "spared")]))
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
        with pytest.raises(grpc.RpcError):
            list(stream)


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
            tasks=[{"task_id": {"value": "t"}, "framework_id": {"value": "f"}, "state": 11}],
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
        lambda: list(cluster.operator.read_log(framework.id, task_id))
        if framework.states(task_id)[-1:] == ["RUNNING"]
        else []
    )
    with pytest.raises((InvalidValue, NotFound)):
        list(cluster.operator.read_log(framework.id, task_id, "link"))


def test_an_operators_garbage_is_an_error_of_its_own(cluster):
    with grpc.insecure_channel(cluster.address) as channel:
        method = channel.unary_unary("/mesos_py.v1.operator.OperatorService/Execute")
        with pytest.raises(grpc.RpcError):
            method(b"\xff\xff\xff garbage", timeout=60)
        OperatorServiceStub(channel).Execute(
            operator_pb2.Call(type=operator_pb2.Call.GET_HEALTH), timeout=60
        )
