"""Calls of schedulers: whose they are, which there are, and what is done with the others."""

import pytest

from master.core.calls import HANDLERS
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import World

Call = sched.Call


@pytest.fixture
def world():
    made = World()
    yield made
    made.check()


LATER = {Call.UNKNOWN}


def test_every_call_has_a_handler_but_those_that_come_later():
    assert set(Call.Type.values()) - set(HANDLERS) == LATER


@pytest.mark.parametrize("kind", sorted(set(HANDLERS) - {Call.SUBSCRIBE, Call.TEARDOWN}))
def test_an_empty_call_of_any_kind_ends_nothing(world, kind):
    framework = world.framework()
    framework.call(type=kind)
    assert world.cluster.frameworks[framework.id].connected
    assert framework.link not in world.outbox.closed


@pytest.mark.parametrize("kind", [*sorted(LATER), 77, -1, 2**31 - 1])
def test_a_call_that_is_not_supported_is_refused_and_the_stream_goes_on(world, kind):
    framework = world.framework()
    framework.call(type=kind)
    (refusal,) = framework.refusals()
    assert refusal.call == (kind if kind in Call.Type.values() else Call.UNKNOWN)
    assert (refusal.code, refusal.field, refusal.value) == ("invalid-value", "type", str(kind))
    framework.call(type=Call.REVIVE)
    assert framework.take() == []


def test_wrong_kinds_are_counted_under_one_name(world):
    framework = world.framework()
    for kind in range(100, 200):
        framework.call(type=kind)
    assert world.cluster.counters["dropped/call-unknown"] == 100


def test_a_call_in_the_name_of_another_framework_is_refused(world):
    framework, other = world.framework("a"), world.framework("b")
    for kind in (Call.TEARDOWN, 77):
        framework.call(type=kind, framework_id=pb.FrameworkID(value=other.id))
        (refusal,) = framework.refusals()
        assert refusal.field == "framework_id"
    assert other.id in world.cluster.frameworks


def test_a_call_may_name_its_own_framework(world):
    framework = world.framework()
    framework.call(type=Call.REVIVE, framework_id=pb.FrameworkID(value=framework.id))
    assert framework.take() == []
    assert world.cluster.counters["calls"] == 1


@pytest.mark.parametrize(("kind", "name"), [(Call.ACCEPT, "ACCEPT"), (77, "77")])
def test_a_stream_that_has_not_subscribed_is_told_so_and_closed(world, kind, name):
    link = world.link()
    world.core.framework_call(link, Call(type=kind), world.clock.now())
    (event,) = world.outbox.take(link)
    assert event.type == sched.Event.ERROR
    assert event.error.message == f"{name} before SUBSCRIBE, or after the framework's end"
    assert link in world.outbox.closed


def test_a_call_after_the_frameworks_end_is_not_heard(world):
    framework = world.framework()
    framework.call(type=Call.TEARDOWN)
    framework.call(type=Call.REVIVE)
    (event,) = framework.take()
    assert event.type == sched.Event.ERROR


def test_a_refusal_names_the_call_the_field_and_the_reason_and_is_remembered(world):
    framework = world.framework()
    framework.call(type=Call.SUPPRESS, suppress=Call.Suppress(roles=["nonsense"]))
    (refusal,) = framework.refusals()
    assert refusal == sched.Event.Refused(
        call=Call.SUPPRESS,
        code="invalid-value",
        field="suppressed_roles",
        value="nonsense",
        message="suppressed_roles: 'nonsense': is not a role of the framework",
    )
    (tally,) = world.cluster.frameworks[framework.id].refusals.values()
    assert tally.message.startswith("SUPPRESS: suppressed_roles")
    assert (tally.count, tally.last_wall_s) == (1, world.clock.wall_s)
    assert world.outbox.drops[-1][0] == "call-suppress"
