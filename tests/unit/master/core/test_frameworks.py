"""Frameworks: subscription, row by row, and subscribing again."""

import math
import re

import pytest

from mesos_py.constraints import hosts_only
from mesos_py.resources import Resources
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import FakeFramework, World

AgentEvent = agent_pb2.Event
Call = sched.Call
Capability = pb.FrameworkInfo.Capability
MULTI_ROLE = Capability(type=Capability.MULTI_ROLE)
PARTITION_AWARE = Capability(type=Capability.PARTITION_AWARE)
WHOLE = Resources.parse("cpus:4;mem:4096")


@pytest.fixture
def world():
    made = World()
    yield made
    made.check()


def record(framework):
    return framework.world.cluster.frameworks[framework.id]


def attempt(world, info=None, **fields):
    """SUBSCRIBE with what may be refused: the error's text, None if it is not."""
    framework = FakeFramework(world, info or pb.FrameworkInfo(name="f", user="u"))
    events = framework.subscribe(**fields)
    if events[0].type != sched.Event.ERROR:
        return None
    assert len(events) == 1
    message = events[0].error.message
    assert world.outbox.closed[framework.link] == message
    assert framework.link not in world.cluster.framework_of_link
    return message


def filters(*names):
    """Offer filters for the role "*" with the given amounts, as (name, value)."""
    quantities = pb.OfferFilters.ResourceQuantities()
    for name, value in names:
        quantities.quantities[name].value = value
    least = pb.OfferFilters.MinAllocatableResources(quantities=[quantities])
    return pb.OfferFilters(min_allocatable_resources=least)


def hosts(*names, role="*"):
    return sched.OfferConstraints(role_constraints={role: hosts_only(list(names))})


# ---- Subscribing ----------------------------------------------------------------------------


def test_a_new_framework_gets_an_id_the_master_and_a_heartbeat(world):
    framework = FakeFramework(world, pb.FrameworkInfo(name="f", user="u"))
    framework.link = world.link()
    call = Call(type=Call.SUBSCRIBE, subscribe=Call.Subscribe(framework_info=framework.info))
    world.core.framework_call(framework.link, call, world.clock.now())
    subscribed, heartbeat = world.outbox.take(framework.link)
    assert subscribed.subscribed.framework_id.value == "m-0000"
    assert subscribed.subscribed.heartbeat_interval_seconds == 15
    assert subscribed.subscribed.master_info.id == "m"
    assert subscribed.subscribed.protocol_version == 1
    assert heartbeat.type == sched.Event.HEARTBEAT


def test_heartbeats_come_as_often_as_they_were_said_to(world):
    framework = world.framework()
    world.outbox.take(framework.link)
    world.advance(45)
    beats = world.outbox.take(framework.link)
    assert [event.type for event in beats] == [sched.Event.HEARTBEAT] * 3


def test_no_heartbeats_go_to_who_has_left(world):
    framework = world.framework(failover_timeout=1000.0)
    framework.disconnect()
    world.outbox.take(framework.link)
    world.advance(60)
    assert world.outbox.take(framework.link) == []


@pytest.mark.parametrize(("client", "spoken"), [(None, 1), (0, 1), (1, 1)])
def test_the_protocol_is_what_both_speak(world, client, spoken):
    framework = FakeFramework(world, pb.FrameworkInfo(name="f", user="u"))
    (subscribed,) = framework.subscribe(protocol_version=client)
    assert subscribed.subscribed.protocol_version == spoken


def test_a_newer_client_is_refused_in_words_that_name_both_versions(world):
    text = attempt(world, protocol_version=9, client="mesos-py 7.0")
    assert text == "the client (mesos-py 7.0) speaks protocol 9, this master at most 1"
    assert "unnamed" in attempt(world, protocol_version=9)


def test_an_empty_subscribe_is_refused(world):
    link = world.link()
    world.core.framework_call(link, Call(type=Call.SUBSCRIBE), world.clock.now())
    (event,) = world.outbox.take(link)
    assert event.error.message == "subscribe: '': is missing"
    assert world.cluster.frameworks == {}


def test_an_id_that_nobody_knows_is_taken_as_it_is(world):
    info = pb.FrameworkInfo(name="f", user="u", id=pb.FrameworkID(value="old-master-0007"))
    assert attempt(world, info) is None
    assert list(world.cluster.frameworks) == ["old-master-0007"]


def test_an_empty_id_is_none(world):
    info = pb.FrameworkInfo(name="f", user="u", id=pb.FrameworkID())
    assert attempt(world, info) is None
    assert list(world.cluster.frameworks) == ["m-0000"]


def test_a_new_id_is_never_one_that_somebody_brought(world):
    for number in range(2):
        info = pb.FrameworkInfo(name="f", user="u", id=pb.FrameworkID(value=f"m-000{number}"))
        assert attempt(world, info) is None
    ended = pb.FrameworkInfo(name="f", user="u", id=pb.FrameworkID(value="m-0002"))
    framework = FakeFramework(world, ended)
    framework.subscribe()
    framework.call(type=Call.TEARDOWN)
    assert world.framework().id == "m-0003"
    assert len(world.cluster.frameworks) == 3


@pytest.mark.parametrize("framework_id", ["a/b", "..", "x" * 256, "a\nb"])
def test_an_id_that_cannot_be_is_refused(world, framework_id):
    info = pb.FrameworkInfo(name="f", user="u", id=pb.FrameworkID(value=framework_id))
    assert attempt(world, info).startswith("framework_info.id: ")
    assert world.cluster.frameworks == {}


def test_the_two_ids_of_a_subscription_must_agree(world):
    link = world.link()
    call = Call(
        type=Call.SUBSCRIBE,
        framework_id=pb.FrameworkID(value="other"),
        subscribe=Call.Subscribe(framework_info=pb.FrameworkInfo(name="f", user="u")),
    )
    world.core.framework_call(link, call, world.clock.now())
    (event,) = world.outbox.take(link)
    assert "differs from subscribe.framework_info.id" in event.error.message


@pytest.mark.parametrize(
    ("info", "why"),
    [
        ({"role": ""}, "framework_info.role: '': must not be empty"),
        ({"role": "a//b"}, "slash"),
        ({"roles": ["a"]}, "needs the capability MULTI_ROLE"),
        ({"roles": ["a", "a"], "capabilities": [MULTI_ROLE]}, "has a role twice"),
        ({"roles": ["a", "-b"], "capabilities": [MULTI_ROLE]}, "starts with '-'"),
        ({"role": "a", "capabilities": [MULTI_ROLE]}, "MULTI_ROLE frameworks use roles"),
        ({"failover_timeout": -1.0}, "must be seconds"),
        ({"failover_timeout": math.nan}, "must be seconds"),
        ({"failover_timeout": math.inf}, "must be seconds"),
        ({"failover_timeout": 1e12}, "must be seconds"),
        ({"name": "a\nb"}, "framework_info.name"),
        ({"user": "a\0b"}, "framework_info.user"),
        ({"offer_filters": {"web": pb.OfferFilters()}}, "is not a role of the framework"),
        (
            {"offer_filters": {"*": filters(("cpus", -1.0))}},
            r"framework_info.offer_filters\[\*\].cpus: -1.0",
        ),
        ({"offer_filters": {"*": filters(("cpus", math.nan))}}, "finite"),
    ],
)
def test_a_framework_info_that_cannot_be_is_refused_and_nothing_is_kept(world, info, why):
    text = attempt(world, pb.FrameworkInfo(**{"name": "f", "user": "u", **info}))
    assert re.search(why, text)
    assert world.cluster.frameworks == {}


def test_suppressed_roles_and_constraints_must_be_of_the_frameworks_roles(world):
    assert "suppressed_roles: 'web'" in attempt(world, suppressed_roles=["web"])
    assert "no such role" in attempt(world, offer_constraints=hosts("h", role="web"))


def test_a_refusal_repeats_only_so_much_of_what_was_sent(world):
    assert len(attempt(world, offer_constraints=hosts("h", role="x" * 100_000))) <= 500


def test_a_multi_role_framework_may_have_no_role_and_gets_nothing(world):
    world.agent()
    framework = world.framework(capabilities=[MULTI_ROLE])
    assert record(framework).roles == ()
    assert framework.offers() == []
    for kind in (Call.SUPPRESS, Call.REVIVE):
        framework.call(type=kind)
    assert framework.take() == []


def test_the_same_subscribe_twice_on_a_stream_changes_nothing(world):
    framework = world.framework()
    for info in (framework.info, pb.FrameworkInfo(name="g", user="u")):
        call = Call(type=Call.SUBSCRIBE, subscribe=Call.Subscribe(framework_info=info))
        world.core.framework_call(framework.link, call, world.clock.now())
        (refusal,) = framework.refusals()
        assert "has subscribed already" in refusal.message
    assert list(world.cluster.frameworks) == [framework.id]
    assert framework.link not in world.outbox.closed


# ---- Subscribing again ------------------------------------------------------------------------


def test_a_second_instance_displaces_the_first(world):
    agent = world.agent()
    framework = world.framework()
    (offer,) = framework.offers()
    old_link = framework.link
    events = framework.subscribe()
    assert [event.type for event in events] == [sched.Event.SUBSCRIBED]
    assert events[0].subscribed.framework_id.value == framework.id
    (error,) = world.outbox.take(old_link)
    assert error.error.message == "Framework failed over"
    assert old_link in world.outbox.closed
    # Its offers are void without a word, and made anew.
    assert offer.id.value not in world.cluster.offers
    assert len(framework.offers()) == 1
    assert world.cluster.ledger.offered(agent.id) == WHOLE
    # The end of the old stream, which comes later, is no news.
    world.core.framework_disconnected(old_link, world.clock.now())
    assert record(framework).connected


def test_what_the_displaced_instance_still_says_is_not_heard(world):
    framework = world.framework()
    old_link = framework.link
    framework.subscribe()
    world.core.framework_call(old_link, Call(type=Call.TEARDOWN), world.clock.now())
    assert framework.id in world.cluster.frameworks


def test_back_within_its_failover_timeout_a_framework_goes_on(world):
    agent = world.agent()
    framework = world.framework(failover_timeout=60.0)
    framework.start("t1")
    framework.disconnect()
    world.advance(59)
    framework.subscribe()
    agent.pong()
    world.advance(70)
    assert record(framework).tasks["t1"]
    assert record(framework).reregistered is not None


def test_each_disconnect_starts_a_new_failover_clock(world):
    framework = world.framework(failover_timeout=60.0)
    for _ in range(3):
        framework.disconnect()
        world.advance(59)
        framework.subscribe()
    assert record(framework).connected


def test_leadership_lost_and_regained_three_times_leaves_the_counts_unchanged(world):
    agent = world.agent()
    framework = world.framework(failover_timeout=60.0)
    framework.start("t1")
    for _ in range(3):
        framework.disconnect()
        framework.subscribe()
        assert list(record(framework).tasks) == ["t1"]
        assert [s.task_id.value for s in framework.reconcile()] == ["t1"]
    assert len(agent.take(agent_pb2.Event.RUN_TASKS)) == 1
    assert len(world.cluster.frameworks) == 1


def test_who_was_removed_can_never_subscribe_again(world):
    framework = world.framework()
    framework.call(type=Call.TEARDOWN)
    text = attempt(world, framework.info)
    assert text == f"framework {framework.id}: Framework has been removed"


def test_another_principal_is_refused(world):
    framework = world.framework(principal="alice", failover_timeout=60.0)
    other = pb.FrameworkInfo()
    other.CopyFrom(framework.info)
    other.principal = "mallory"
    text = attempt(world, other)
    assert text == "framework_info.principal: 'mallory': cannot change from 'alice'"
    assert record(framework).connected
    other.ClearField("principal")
    assert "cannot change" in attempt(world, other)


@pytest.mark.parametrize("before", [None, False, True])
@pytest.mark.parametrize("after", [None, False, True])
def test_user_and_checkpoint_silently_stay_as_they_were(world, before, after):
    fields = {} if before is None else {"checkpoint": before}
    framework = world.framework(failover_timeout=60.0, **fields)
    framework.info.user = "somebody-else"
    framework.info.ClearField("checkpoint")
    if after is not None:
        framework.info.checkpoint = after
    framework.subscribe()
    kept = record(framework).info
    assert kept.user == "nobody"
    assert kept.HasField("checkpoint") == (before is not None)
    assert kept.checkpoint == bool(before)


def test_what_may_change_is_taken_over_and_the_agents_are_told(world):
    agent = world.agent()
    framework = world.framework(failover_timeout=60.0)
    framework.start("t1")
    agent.take()
    framework.info.name = "new name"
    framework.info.capabilities.append(PARTITION_AWARE)
    framework.subscribe()
    (event,) = agent.take(AgentEvent.UPDATE_FRAMEWORK)
    assert event.update_framework.framework_info.name == "new name"
    assert record(framework).partition_aware
    framework.subscribe()
    assert agent.take(AgentEvent.UPDATE_FRAMEWORK) == []


def test_who_subscribes_anew_has_all_its_agents_repeat_what_it_has_not_acknowledged(world):
    agent, other = world.agent(), world.agent()
    framework, stranger = world.framework(failover_timeout=60.0), world.framework("stranger")
    framework.start("t1")
    holder = agent if world.cluster.agents[agent.id].tasks else other
    idle = other if holder is agent else agent
    uuid = holder.report("t1", pb.TASK_FINISHED, framework)
    framework.take()
    framework.disconnect()
    holder.take(), idle.take()
    # The end was told to a scheduler that is gone: the task waits for its acknowledgement.
    for again in range(3):
        framework.subscribe()
        (event,) = holder.take()
        assert event.type == AgentEvent.REPEAT_UPDATES, again
        assert event.repeat_updates.framework_id.value == framework.id
        assert idle.take() == []
    holder.report("t1", pb.TASK_FINISHED, framework, uuid=uuid)
    assert [status.uuid for status in framework.updates()] == [uuid]
    framework.acknowledge(holder, "t1", uuid)
    holder.take()
    framework.subscribe()
    stranger.subscribe()
    assert holder.take() == []


def test_an_agent_without_a_link_is_not_asked_to_repeat_and_nothing_waits_for_it(world):
    agent = world.agent()
    framework = world.framework(failover_timeout=60.0)
    framework.start("t1")
    agent.disconnect()
    agent.take()
    framework.subscribe()
    assert agent.take() == []
    # It sends all that is not acknowledged when it has registered, by itself.
    running = agent.task("t1", framework, pb.TASK_RUNNING, "cpus:1;mem:32")
    events = agent.register(tasks=[running], frameworks=[record(framework).info])
    assert [event.type for event in events] == [AgentEvent.REGISTERED]


def test_after_a_change_of_leader_what_agents_sent_before_their_framework_was_back_is_repeated(
    world,
):
    agent = world.agent()
    framework = world.framework(failover_timeout=60.0)
    running = agent.task("t1", framework, pb.TASK_RUNNING, "cpus:1;mem:32")
    agent.world = framework.world = world.successor()
    agent.register(tasks=[running], frameworks=[framework.info])
    agent.report("t1", pb.TASK_RUNNING, framework)
    framework.subscribe()
    assert [event.type for event in agent.take()] == [AgentEvent.REPEAT_UPDATES]
    agent.world.check()


def test_an_agent_that_is_away_is_told_of_the_change_when_it_is_back(world):
    agent = world.agent()
    framework = world.framework(failover_timeout=60.0)
    framework.start("t1")
    old = pb.FrameworkInfo()
    old.CopyFrom(record(framework).info)
    agent.disconnect()
    framework.info.name = "new name"
    framework.subscribe()
    running = agent.task("t1", framework, pb.TASK_RUNNING, "cpus:1;mem:32")
    events = agent.register(tasks=[running], frameworks=[old])
    names = [
        e.update_framework.framework_info.name for e in events if e.HasField("update_framework")
    ]
    assert names == ["new name"]
    events = agent.register(tasks=[running], frameworks=[record(framework).info])
    assert not any(e.HasField("update_framework") for e in events)


def test_offers_of_a_role_that_was_left_are_rescinded(world):
    framework = world.framework(roles=["a", "b"], capabilities=[MULTI_ROLE])
    world.agent()
    (offer,) = framework.offers()
    other = "b" if offer.allocation_info.role == "a" else "a"
    info = pb.FrameworkInfo()
    info.CopyFrom(framework.info)
    del info.roles[:]
    info.roles.append(other)
    update = Call.UpdateFramework(framework_info=info)
    framework.call(type=Call.UPDATE_FRAMEWORK, update_framework=update)
    rescind, *more = framework.take()
    assert rescind.rescind.offer_id == offer.id
    world.settle()
    (again,) = [o for e in [*more, *framework.take()] for o in e.offers.offers]
    assert again.allocation_info.role == other


def test_subscribing_without_suppressed_roles_unsuppresses_everything(world):
    world.agent()
    framework = FakeFramework(world, pb.FrameworkInfo(name="f", user="u", failover_timeout=9.0))
    framework.subscribe(suppressed_roles=["*"])
    assert framework.offers() == []
    framework.subscribe()
    assert len(framework.offers()) == 1
