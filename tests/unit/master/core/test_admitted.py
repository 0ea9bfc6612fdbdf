"""The record of an agent: whoever changes it keeps what others have put there."""

from typing import Any

from master.core import admitted
from master.core.cluster import Options
from mesos_py.v1 import registry_pb2 as reg
from tests.kit.core import World


def altered(**fields):
    def alter(record: reg.Agent) -> None:
        for name, value in fields.items():
            setattr(record, name, value)

    return alter


def test_a_change_keeps_the_other_fields_and_is_read_at_once():
    world = World(Options(durable=True))
    done: list[Any] = []
    now = world.clock.now()

    def put_info(record):
        record.info.hostname = "web1"

    admitted.change(world.cluster, "a1", put_info, admitted.nothing_follows, now)
    admitted.change(world.cluster, "a1", altered(deactivated=True), done.append, now)
    found = admitted.record_of(world.cluster, "a1")
    assert found is not None
    assert (found.info.hostname, found.deactivated) == ("web1", True)
    assert done == []
    world.stored()
    assert done == [now]
    assert reg.Agent.FromString(world.records["agent/a1"]) == found


def test_what_is_read_is_a_copy():
    world = World(Options(durable=True))
    now = world.clock.now()
    admitted.change(world.cluster, "a1", altered(deactivated=True), admitted.nothing_follows, now)
    found = admitted.record_of(world.cluster, "a1")
    assert found is not None
    found.deactivated = False
    again = admitted.record_of(world.cluster, "a1")
    assert again is not None
    assert again.deactivated


def test_a_record_that_is_removed_is_gone_for_later_decisions_before_it_is_stored():
    world = World(Options(durable=True))
    done: list[Any] = []
    now = world.clock.now()
    admitted.change(world.cluster, "a1", altered(deactivated=True), admitted.nothing_follows, now)
    world.stored()
    admitted.remove(world.cluster, "a1", done.append, now)
    assert admitted.record_of(world.cluster, "a1") is None
    assert (done, list(world.records)) == ([], ["agent/a1"])
    world.stored()
    assert (done, world.records) == ([now], {})
