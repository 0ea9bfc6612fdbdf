"""What must outlive a master is stored before anything follows from it."""

import pytest

from master.core.cluster import Options
from master.core.registry import MAX_RECORD_BYTES, MAX_WRITE_BYTES, Registry
from mesos_py.clock import Now
from mesos_py.errors import TooLarge
from mesos_py.v1 import registry_pb2 as reg
from tests.kit.core import RecordingOutbox, World

NOW = Now(1.0, 2.0)


def durable() -> tuple[RecordingOutbox, Registry, list[str]]:
    outbox = RecordingOutbox()
    return outbox, Registry(outbox, durable=True), []


def weight(value: float) -> reg.Weight:
    return reg.Weight(weight=value)


def test_nothing_follows_from_a_write_before_it_is_stored():
    outbox, registry, done = durable()
    registry.write({"weight/a": weight(2)}, lambda now: done.append("a"), NOW)
    assert (done, registry.waits) == ([], True)
    ((number, changes),) = outbox.writes
    assert changes == {"weight/a": weight(2).SerializeToString()}
    registry.stored(number, NOW)
    assert (done, registry.waits) == (["a"], False)
    registry.stored(number, NOW)
    assert done == ["a"]


def test_what_is_decided_is_read_at_once_by_later_decisions():
    _, registry, _ = durable()
    registry.write({"weight/a": weight(2)}, lambda now: None, NOW)
    found = registry.read("weight/a", reg.Weight())
    assert found is not None
    assert found.weight == 2
    assert list(registry.keys("weight/")) == ["weight/a"]
    registry.write({"weight/a": None}, lambda now: None, NOW)
    assert registry.read("weight/a", reg.Weight()) is None


def test_what_follows_keeps_the_order_of_the_writes_and_one_answer_may_be_for_many():
    outbox, registry, done = durable()
    registry.write({"weight/a": weight(1)}, lambda now: done.append("a"), NOW)
    registry.write({"weight/b": weight(1)}, lambda now: done.append("b"), NOW)
    # Changes nothing, but what it rests on is not stored yet.
    registry.write({"weight/b": weight(1)}, lambda now: done.append("again"), NOW)
    assert [dict(changes) for _, changes in outbox.writes][2] == {}
    registry.stored(outbox.writes[1][0], NOW)
    assert done == ["a", "b"]
    registry.stored(outbox.writes[2][0], NOW)
    assert done == ["a", "b", "again"]


def test_a_write_that_changes_nothing_costs_nothing():
    outbox, registry, done = durable()
    registry.load({"weight/a": weight(1).SerializeToString()})
    registry.write({"weight/a": weight(1), "weight/b": None}, lambda now: done.append("a"), NOW)
    assert (done, outbox.writes) == (["a"], [])


def test_without_a_place_to_store_all_follows_at_once():
    outbox = RecordingOutbox()
    registry, done = Registry(outbox, durable=False), []
    registry.write({"weight/a": weight(1)}, lambda now: done.append("a"), NOW)
    assert (done, outbox.writes) == (["a"], [])
    assert registry.read("weight/a", reg.Weight()) == weight(1)


def test_the_kit_answers_for_a_storage():
    world, done = World(Options(durable=True)), []
    changes = {"weight/a": weight(1)}
    world.cluster.registry.write(changes, lambda now: done.append("a"), world.clock.now())
    world.stored()
    assert done == ["a"]
    assert world.records == {"weight/a": weight(1).SerializeToString()}


def test_a_record_that_no_storage_is_sure_to_take_is_refused_and_changes_nothing():
    outbox, registry, done = durable()
    much = reg.Agent()
    much.info.hostname = "h" * (MAX_RECORD_BYTES + 1)
    with pytest.raises(TooLarge, match=r"agent/a.*at most 524288 can be kept"):
        registry.write({"weight/a": weight(1), "agent/a": much}, lambda now: done.append("a"), NOW)
    assert (done, outbox.writes, registry.waits) == ([], [], False)
    assert registry.read("weight/a", reg.Weight()) is None


def test_more_records_at_once_than_a_storage_is_sure_to_take_are_refused():
    outbox, registry, done = durable()
    each = len("weight/000000") + len(weight(1).SerializeToString())
    many = {f"weight/{n:06}": weight(1) for n in range(MAX_WRITE_BYTES // each + 1)}
    with pytest.raises(TooLarge, match=r"records.*at most 655360 can be kept"):
        registry.write(many, lambda now: done.append("a"), NOW)
    assert (done, outbox.writes, list(registry.keys(""))) == ([], [], [])
    many.popitem()
    registry.write(many, lambda now: done.append("a"), NOW)
    assert len(outbox.writes) == 1
