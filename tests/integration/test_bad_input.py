"""Bad input to real daemons: an error that names field and value, and nothing is changed.

First what the SDK refuses by itself, then tasks and offers past it, as raw messages.
Further cases: all other calls (test_bad_calls.py), flags (test_bad_flags.py), a user or
program that does not exist (test_launch.py), a port in use and a work directory that is
taken (test_agents.py), options of commands (test_cli_*.py).
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mesos_py import SchedulerDriver, rpc
from mesos_py.errors import InvalidValue, TooLarge
from mesos_py.resources import Resources
from mesos_py.states import TASK_DROPPED, TASK_ERROR, TASK_RUNNING
from mesos_py.tasks import command_task, custom_executor, launch
from mesos_py.v1 import scheduler_pb2, types_pb2
from mesos_py.v1.types_pb2 import FrameworkInfo, Offer, OfferID, TaskInfo, TaskStatus, Value
from tests.kit.cluster import Cluster
from tests.kit.framework import Framework
from tests.kit.raw import RawScheduler

SIZE = "cpus:2;mem:1024;disk:0;ports:[21500-21509]"
NAN, INFINITY = math.nan, math.inf
Call = scheduler_pb2.Call


@pytest.fixture(scope="module")
def running(tmp_path_factory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("bad"), offer_timeout="0s") as cluster:
        cluster.start_agents("a", "b", resources=SIZE)
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


def nothing(task: TaskInfo) -> None:
    """What is zero is left out, and then there is nothing."""
    for resource in task.resources:
        resource.scalar.value = 0


def both_kinds(task: TaskInfo) -> None:
    task.executor.CopyFrom(custom_executor("e", "true"))


def executor_only(**fields: Any) -> Callable[[TaskInfo], object]:
    def change(task: TaskInfo) -> None:
        task.ClearField("command")
        task.executor.CopyFrom(custom_executor("e", "true"))
        for name, value in fields.items():
            if value is None:
                task.executor.ClearField(name)  # type: ignore[arg-type]
            elif hasattr(value, "CopyFrom"):
                getattr(task.executor, name).CopyFrom(value)
            else:
                setattr(task.executor, name, value)

    return change


BAD_TASKS: dict[str, tuple[Callable[[TaskInfo], object], str, str]] = {
    "negative": (amount("cpus", -1), "resources.cpus", "-1"),
    "nan": (amount("cpus", NAN), "resources.cpus", "nan"),
    "infinite": (amount("mem", INFINITY), "resources.mem", "inf"),
    "nothing": (nothing, "resources", "''"),
    "astronomic": (amount("mem", 1e300), "resources.mem", "1e+300"),
    "larger than the offer": (amount("cpus", 2.001), "resources.cpus", "2.001"),
    "unnamed resource": (lambda t: setattr(t.resources[0], "name", ""), "resources.name", "''"),
    "other type": (lambda t: setattr(t.resources[0], "type", Value.SET), "resources.cpus", "{}"),
    "unknown type": (lambda t: setattr(t.resources[0], "type", 99), "resources.cpus", "99"),
    "no resources": (lambda t: t.ClearField("resources"), "resources", "''"),
    "backward range": (ports((21505, 21501)), "resources.ports", "21505"),
    "port of nobody": (ports((1, 2)), "resources.ports", "1-2"),
    "whole number space": (ports((0, 2**64 - 1)), "resources.ports", str(2**64 - 1)),
    "port twice": (ports((21501, 21502), (21502, 21503)), "resources.ports", "2150"),
    "unknown resource": (lambda t: setattr(t.resources[1], "name", "gold"), "resources.gold", "16"),
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


@pytest.mark.parametrize(
    "operation", [Offer.Operation.CREATE_DISK, Offer.Operation.DESTROY_DISK, 999]
)
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
