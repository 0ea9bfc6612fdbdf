"""The registry has an agent's record before the agent hears that it is registered."""

import pytest

from master.core import admitted
from master.core.admission import MAX_INFO_BYTES
from master.core.cluster import Options
from mesos_py.resources import Resources
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import registry_pb2 as reg
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import FakeAgent, World
from tests.kit.scenes import PARTITION_AWARE

Call = agent_pb2.Call
Event = agent_pb2.Event


@pytest.fixture
def world():
    made = World(Options(durable=True), epoch=1)
    yield made
    made.check()


def fresh(world, hostname="web1", resources="cpus:4;mem:4096", agent_id=""):
    agent = FakeAgent(world, hostname, resources, {})
    if agent_id:
        agent.info.id.value = agent_id
    return agent


def record(world, agent_id):
    """What a successor would find."""
    return reg.Agent.FromString(world.records[f"agent/{agent_id}"])


def reasons(world):
    return [reason for reason, _ in world.outbox.drops]


def kinds(events):
    return [Event.Type.Name(event.type) for event in events]


# ---- Who is admitted, and when it is told --------------------------------------------------


def test_a_new_agent_is_stored_before_it_is_told(world):
    agent = fresh(world)
    assert agent.register() == []
    assert world.cluster.agents == {}
    world.stored()
    assert kinds(agent.greeted()) == ["REGISTERED"]
    assert record(world, agent.id).info == agent.info
    assert world.cluster.counters["agents_registered"] == 1
    assert world.cluster.admissions == world.cluster.admission_of_link == {}


def test_a_known_agent_costs_no_write(world):
    agent = world.agent()
    agent.disconnect()
    assert kinds(agent.register()) == ["REGISTERED"]
    assert world.outbox.writes == []


@pytest.mark.parametrize("change", ["port", "resources"])
def test_what_has_changed_of_a_known_agent_is_stored_but_not_waited_for(world, change):
    agent = world.agent()
    if change == "port":
        agent.info.port += 1
    else:
        del agent.info.resources[:]
        agent.info.resources.extend(Resources.parse("cpus:8;mem:64").to_proto())
    assert kinds(agent.register()) == ["REGISTERED"]
    ((_, changes),) = world.outbox.writes
    assert list(changes) == [f"agent/{agent.id}"]
    world.stored()
    assert record(world, agent.id).info == agent.info


def test_a_change_of_a_known_agent_keeps_what_others_put_into_the_record(world):
    agent = world.agent()

    def deactivate(found):
        found.deactivated = True

    now = world.clock.now()
    admitted.change(world.cluster, agent.id, deactivate, admitted.nothing_follows, now)
    agent.info.port += 1
    world.stored()
    agent.register()
    world.stored()
    assert record(world, agent.id).deactivated


@pytest.mark.long
def test_four_thousand_known_agents_come_back_without_a_write():
    world = World(Options(durable=True))
    known = [fresh(world, f"h{n}") for n in range(4000)]
    for agent in known:
        agent.register()
    world.stored()
    for agent in known:
        agent.greeted()
    heir = world.successor()
    for agent in known:
        agent.world = heir
        assert kinds(agent.register()) == ["REGISTERED"]
    assert heir.outbox.writes == []
    assert heir.cluster.expected == {}


def test_a_stranger_with_an_id_is_admitted_as_one_without(world):
    agent = fresh(world, agent_id="old-S1")
    assert agent.register() == []
    world.stored()
    assert kinds(agent.greeted()) == ["REGISTERED"]
    assert record(world, "old-S1").info == agent.info


def test_what_is_wrong_with_a_registration_is_said_without_a_write(world):
    agent = fresh(world)
    agent.info.ClearField("resources")
    (event,) = agent.register()
    assert event.refused.final
    assert world.outbox.writes == []


def test_a_new_id_is_none_that_is_on_its_way_or_in_the_registry(world):
    first, second = fresh(world, "a"), fresh(world, "b")
    stranger = fresh(world, "c", agent_id="m1-S0")
    stranger.register()
    first.register()
    second.register()
    world.stored()
    for agent in (first, second):
        agent.greeted()
    assert (first.id, second.id) == ("m1-S1", "m1-S2")


# ---- While it is on its way ------------------------------------------------------------------


def test_a_new_agent_whose_link_ends_meanwhile_leaves_no_record(world):
    agent = fresh(world)
    agent.register()
    agent.disconnect()
    world.stored()
    assert world.records == {}
    assert (world.cluster.agents, world.cluster.expected) == ({}, {})
    assert reasons(world) == ["admission-without-agent"]
    assert agent.take() == []


def test_a_stranger_with_an_id_whose_link_ends_meanwhile_is_expected(world):
    agent = fresh(world, agent_id="old-S1")
    agent.register()
    agent.disconnect()
    world.stored()
    assert list(world.cluster.expected) == ["old-S1"]
    assert list(world.records) == ["agent/old-S1"]
    # As its record says it is there, it costs nothing more.
    assert kinds(agent.register()) == ["REGISTERED"]
    assert world.cluster.expected == {}


def test_a_stranger_that_vanished_and_does_not_come_is_unreachable(world):
    agent = fresh(world, agent_id="old-S1")
    agent.register()
    agent.disconnect()
    world.stored()
    world.advance(75)
    world.stored()
    assert record(world, "old-S1").HasField("unreachable_time")
    assert world.cluster.agents["old-S1"].unreachable is not None


def test_register_twice_on_a_stream_that_waits_changes_nothing(world):
    agent = fresh(world)
    agent.register()
    agent.call(type=Call.REGISTER, register=Call.Register(agent_info=agent.info))
    world.stored()
    assert kinds(agent.greeted()) == ["REGISTERED"]
    assert len(world.cluster.agents) == 1
    assert reasons(world) == ["agent-registered-twice"]


def test_other_calls_of_a_stream_that_waits_are_refused(world):
    agent = fresh(world)
    agent.register()
    agent.pong()
    assert reasons(world) == ["agent-call-before-register"]
    # As the shell does when a link was closed.
    agent.disconnect()
    world.stored()
    assert world.cluster.agents == {}


def test_a_later_stream_of_the_agent_takes_the_place_of_one_that_waits(world):
    agent = fresh(world, agent_id="old-S1")
    agent.register(instance="i", attempt=1)
    first = agent.link
    agent.register(instance="i", attempt=2)
    assert world.outbox.closed == {first: "the agent registered again"}
    world.stored()
    assert kinds(agent.greeted()) == ["REGISTERED"]
    assert world.outbox.take(first) == []
    assert world.cluster.agent_of_link == {agent.link: "old-S1"}
    # The end of the older link comes at last.
    world.core.agent_disconnected(first, world.clock.now())
    assert world.cluster.agents["old-S1"].connected


def test_an_earlier_stream_that_comes_late_does_not(world):
    agent = fresh(world, agent_id="old-S1")
    agent.register(instance="i", attempt=2)
    second = agent.link
    agent.register(instance="i", attempt=1)
    assert reasons(world) == ["registration-overtaken"]
    assert agent.link in world.outbox.closed
    world.stored()
    assert world.cluster.agent_of_link == {second: "old-S1"}


def test_a_record_that_is_not_stored_yet_is_waited_for_by_later_streams_too(world):
    agent = fresh(world, agent_id="old-S1")
    agent.register()
    agent.disconnect()
    assert agent.register() == []
    world.stored()
    assert kinds(agent.greeted()) == ["REGISTERED"]


def test_several_wait_and_each_is_told_in_turn(world):
    waiting = [fresh(world, f"h{n}") for n in range(3)]
    for agent in waiting:
        agent.register()
    number, _ = world.outbox.writes[1]
    world.core.stored(number, world.clock.now())
    assert [len(agent.greeted()) for agent in waiting] == [1, 1, 0]


def test_two_with_one_id_the_last_one_wins_and_its_host_name_counts(world):
    one, other = fresh(world, "web1", agent_id="x"), fresh(world, "web2", agent_id="x")
    one.register()
    other.register()
    world.stored()
    assert kinds(other.greeted()) == ["REGISTERED"]
    assert world.cluster.agents["x"].info.hostname == "web2"
    (event,) = one.register()
    assert "the agent was web2 before" in event.refused.message


def test_an_agent_that_was_marked_gone_while_it_waited_is_refused_once_that_is_stored(world):
    agent = fresh(world, agent_id="old-S1")
    agent.register()
    mark_gone(world, "old-S1", 1_700_000_000.0)
    agent.disconnect()
    assert agent.register() == []
    world.stored()
    (event,) = agent.greeted()
    assert event.refused.final
    assert (world.cluster.agents, world.cluster.expected) == ({}, {})
    assert record(world, "old-S1").HasField("gone_time")


def test_another_host_with_the_id_of_an_expected_agent_is_refused(world):
    one, other = fresh(world, "web1", agent_id="x"), fresh(world, "web2", agent_id="x")
    one.register()
    one.disconnect()
    (event,) = other.register()
    assert "the agent was web1 before" in event.refused.message
    assert list(world.cluster.expected) == ["x"]


# ---- Ends --------------------------------------------------------------------------------------


def test_an_agent_that_unregisters_is_out_of_the_registry_before_frameworks_are_told(world):
    agent = world.agent()
    framework = world.framework(failover_timeout=1e6)
    framework.start("t1")
    framework.take()
    agent.call(type=Call.UNREGISTER)
    assert framework.take() == []
    world.stored()
    assert [e.type for e in framework.take()] == [sched.Event.FAILURE, sched.Event.UPDATE]
    assert world.records == {}
    assert world.cluster.agents == {}


def test_nothing_is_offered_of_an_agent_that_unregisters(world):
    agent = world.agent()
    framework = world.framework(failover_timeout=1e6)
    assert framework.offers()
    agent.call(type=Call.UNREGISTER)
    assert framework.kinds() == ["RESCIND"]
    assert framework.offers() == []


def test_an_agent_that_unregisters_and_comes_back_before_it_is_removed_is_kept(world):
    agent = world.agent()
    agent.call(type=Call.UNREGISTER)
    agent.disconnect()
    assert agent.register() == []
    world.stored()
    assert kinds(agent.greeted()) == ["REGISTERED"]
    assert world.cluster.counters["agents_removed"] == 0
    assert list(world.records) == [f"agent/{agent.id}"]


def test_a_new_agent_replaces_the_old_one_at_its_address_in_one_write(world):
    old = world.agent("web1")
    framework = world.framework(failover_timeout=1e6, capabilities=[PARTITION_AWARE])
    framework.start("t1")
    old.disconnect()
    framework.take()
    new = fresh(world, "web1")
    new.info.port = old.info.port
    new.register()
    ((_, changes),) = world.outbox.writes
    assert changes[f"agent/{old.id}"] is None
    assert len(changes) == 2
    assert framework.take() == []
    world.stored()
    new.greeted()
    assert list(world.records) == [f"agent/{new.id}"]
    assert [s.state for s in framework.updates()] == [pb.TASK_LOST]


def test_the_old_one_is_removed_also_if_the_new_one_vanishes(world):
    old = world.agent("web1")
    old.disconnect()
    new = fresh(world, "web1")
    new.info.port = old.info.port
    new.register()
    new.disconnect()
    world.stored()
    assert (world.cluster.agents, world.records) == ({}, {})


def test_an_old_one_that_comes_back_while_it_is_replaced_is_kept(world):
    old = world.agent("web1")
    old.disconnect()
    new = fresh(world, "web1")
    new.info.port = old.info.port
    new.register()
    assert old.register() == []
    world.stored()
    old.greeted()
    assert sorted(world.cluster.agents) == sorted([old.id, new.greeted() and new.id])
    assert world.cluster.counters["agents_removed"] == 0


# ---- Gone ------------------------------------------------------------------------------------


def mark_gone(world, agent_id, since_wall_s):
    def alter(found):
        found.info.id.value = agent_id
        found.gone_time.nanoseconds = int(since_wall_s * 1e9)

    now = world.clock.now()
    admitted.change(world.cluster, agent_id, alter, admitted.nothing_follows, now)
    admitted.remember_gone(world.cluster, agent_id, since_wall_s, now)


def test_an_agent_that_is_gone_is_refused_for_ever_and_told_since_when(world):
    mark_gone(world, "old-S1", 1_700_000_000.0)
    world.stored()
    for here in (world, world.successor()):
        agent = fresh(here, agent_id="old-S1")
        (event,) = agent.register()
        assert event.refused.final
        assert "marked gone on 2023-11-14 22:13:20 UTC" in event.refused.message
        assert here.cluster.agents == {}


def test_that_an_agent_is_gone_outlives_its_end_and_its_replacement(world):
    one, other = world.agent("web1"), world.agent("web2")
    other.disconnect()
    for agent in (one, other):
        mark_gone(world, agent.id, 1.0)
    one.call(type=Call.UNREGISTER)
    new = fresh(world, "web2")
    new.info.port = other.info.port
    new.register()
    world.stored()
    new.greeted()
    assert sorted(world.records) == sorted(f"agent/{each.id}" for each in (one, other, new))
    for agent in (one, other):
        assert record(world, agent.id).HasField("gone_time")


@pytest.mark.parametrize("lost_first", [False, True])
def test_an_agent_that_is_gone_is_not_marked_unreachable_as_well(world, lost_first):
    agent = world.agent()
    framework = world.framework(failover_timeout=1e6)
    agent.disconnect()
    if not lost_first:
        mark_gone(world, agent.id, 1.0)
    world.advance(75)
    if lost_first:
        mark_gone(world, agent.id, 1.0)
    world.stored()
    assert framework.kinds() == []
    assert world.cluster.unreachable == {}


def test_only_so_many_gone_agents_are_remembered():
    world = World(Options(durable=True, max_remembered_agents=2))
    for number in range(3):
        mark_gone(world, f"g{number}", 100.0 + number)
    world.stored()
    assert list(world.cluster.gone) == ["g1", "g2"]
    assert sorted(world.records) == ["agent/g1", "agent/g2"]
    assert world.cluster.counters["dropped/gone-agent-forgotten"] == 1


# ---- Epochs ----------------------------------------------------------------------------------


def test_an_agent_with_newer_orders_proves_that_this_master_is_an_old_one(world):
    agent = fresh(world)
    (event,) = agent.register(epoch=2)
    assert not event.refused.final
    assert "epoch 2" in event.refused.message
    assert world.outbox.newer_epochs == [2]
    assert (world.cluster.agents, world.outbox.writes) == ({}, [])
    assert reasons(world) == ["agent-knows-newer-epoch", "agent-refused"]


@pytest.mark.parametrize("epoch", [2**32 + 2, 2**62 - 2, 2**63, 2**64 - 1])
def test_an_epoch_that_cannot_be_ends_that_agent_and_no_leadership(world, epoch):
    agent = fresh(world)
    (event,) = agent.register(epoch=epoch)
    assert event.refused.final
    assert "is no epoch of this cluster" in event.refused.message
    assert world.outbox.newer_epochs == []
    assert reasons(world) == ["agent-refused"]


@pytest.mark.parametrize("epoch", [0, 1])
def test_an_agent_with_orders_of_this_or_an_older_leadership_is_admitted(world, epoch):
    agent = fresh(world)
    agent.register(epoch=epoch)
    world.stored()
    assert kinds(agent.greeted()) == ["REGISTERED"]


def test_a_leadership_whose_number_was_raised_admits_the_agent(world):
    agent = fresh(world)
    agent.register(epoch=7)
    world.core.raise_epoch(8)
    agent.register(epoch=7)
    world.stored()
    assert kinds(agent.greeted()) == ["REGISTERED"]


def test_an_agent_that_says_more_of_itself_than_can_be_kept_is_refused(world):
    agent = fresh(world, hostname="h" * MAX_INFO_BYTES)
    (event,) = agent.register()
    assert event.refused.final
    assert "agent_info" in event.refused.message
    assert f"at most {MAX_INFO_BYTES} can be kept" in event.refused.message
    assert (world.cluster.agents, world.outbox.writes) == ({}, [])
