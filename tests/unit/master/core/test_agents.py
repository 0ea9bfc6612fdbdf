"""Agents: registration, row by row, pings, and the loss of the link."""

import pytest

from mesos_py.resources import Resources
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import FakeAgent, World

Call = agent_pb2.Call
Event = agent_pb2.Event
PARTITION_AWARE = pb.FrameworkInfo.Capability(type=pb.FrameworkInfo.Capability.PARTITION_AWARE)
WHOLE = Resources.parse("cpus:4;mem:4096")


@pytest.fixture
def world():
    made = World()
    yield made
    made.check()


@pytest.fixture(params=[False, True], ids=["non-PA", "PA"])
def aware(request):
    return request.param


def subscribed(world, aware=False, **info):
    capabilities = [PARTITION_AWARE] if aware else []
    return world.framework(**{"failover_timeout": 1e6, "capabilities": capabilities, **info})


def row(agent):
    return agent.world.cluster.agents[agent.id]


def attempt(world, agent=None, **fields):
    """REGISTER with what may be refused: the refusal, None if it is not."""
    agent = agent or FakeAgent(world, "host", "cpus:4", {})
    link = world.link()
    register = Call.Register(
        **{"agent_info": agent.info, "version": "0.1.0", "protocol_version": 1, **fields}
    )
    world.core.agent_call(link, Call(type=Call.REGISTER, register=register), world.clock.now())
    events = world.outbox.take(link)
    if events[0].type == Event.REGISTERED:
        return None
    (event,) = events
    assert event.type == Event.REFUSED
    assert event.refused.final
    assert world.outbox.closed[link] == event.refused.message
    return event.refused


# ---- Registration ------------------------------------------------------------------------


def test_a_new_agent_gets_an_id_and_is_told_how_long_to_wait_for_pings(world):
    agent = FakeAgent(world, "web1", "cpus:4;mem:4096", {})
    (registered,) = agent.register()
    assert registered.registered.agent_id.value == "m-S0"
    assert registered.registered.ping_timeout_seconds == 75
    assert registered.registered.master_info.id == "m"
    assert registered.registered.protocol_version == 1
    assert world.cluster.ledger.free(agent.id) == WHOLE
    assert world.cluster.counters["agents_registered"] == 1


def test_an_id_that_this_master_does_not_know_is_taken_as_it_is(world):
    agent = FakeAgent(world, "web1", "cpus:4", {})
    agent.info.id.value = "old-master-S3"
    agent.register()
    assert list(world.cluster.agents) == ["old-master-S3"]


def test_a_new_id_is_never_one_that_somebody_brought(world):
    agent = FakeAgent(world, "web1", "cpus:4", {})
    agent.info.id.value = "m-S0"
    agent.register()
    assert world.agent().id == "m-S1"
    assert len(world.cluster.agents) == 2


def test_the_same_register_twice_on_a_stream_changes_nothing(world):
    agent = world.agent()
    for info in (agent.info, pb.AgentInfo(hostname="x", resources=agent.info.resources)):
        register = Call.Register(agent_info=info, protocol_version=1)
        agent.call(type=Call.REGISTER, register=register)
    assert agent.take() == []
    assert list(world.cluster.agents) == [agent.id]
    assert agent.link not in world.outbox.closed
    assert [reason for reason, _ in world.outbox.drops] == ["agent-registered-twice"] * 2


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda info: info.ClearField("hostname"), "agent_info.hostname: '': must not be empty"),
        (lambda info: info.ClearField("resources"), "agent_info.resources: '': must not be empty"),
        (lambda info: setattr(info.id, "value", "a/b"), "agent_info.id: 'a/b'"),
        (
            lambda info: setattr(info.resources[0].scalar, "value", -4),
            "agent_info.resources.cpus: -4.0",
        ),
    ],
)
def test_an_agent_that_cannot_be_is_refused_and_not_kept(world, change, why):
    agent = FakeAgent(world, "web1", "cpus:4", {})
    change(agent.info)
    assert attempt(world, agent).message.startswith(why)
    assert world.cluster.agents == {}


def test_a_newer_agent_is_refused_in_words_that_name_both_versions(world):
    refused = attempt(world, protocol_version=9, version="7.0")
    assert refused.code == "unsupported-protocol"
    assert refused.message == ("the agent (version 7.0) speaks protocol 9, this master at most 1")


def test_a_known_id_under_another_host_name_is_refused(world):
    agent = world.agent("web1")
    other = FakeAgent(world, "web2", "cpus:4", {})
    other.info.id.CopyFrom(agent.info.id)
    assert "the agent was web1 before" in attempt(world, other).message
    assert row(agent).connected


def test_a_refusal_repeats_only_so_much_of_what_was_sent(world):
    agent = FakeAgent(world, "web1", "cpus:4", {})
    agent.info.resources[0].name = "x" * 100_000
    assert len(attempt(world, agent).message) <= 500


def test_an_agent_with_less_than_its_tasks_use_is_refused_and_nothing_changes(world):
    agent = world.agent(resources="cpus:4;mem:4096")
    framework = subscribed(world)
    framework.start("t1", text="cpus:3;mem:32")
    small = FakeAgent(world, agent.info.hostname, "cpus:2;mem:4096", {})
    small.info.id.CopyFrom(agent.info.id)
    refused = attempt(world, small)
    assert refused.code == "conflict"
    assert refused.message == "tasks on the agent use 3 cpus, it has 2"
    assert row(agent).total == WHOLE
    assert row(agent).connected


def test_two_tasks_on_one_port_are_refused(world):
    agent = FakeAgent(world, "web1", "cpus:4;ports:[1-5]", {})
    tasks = [agent.task(n, "f", pb.TASK_RUNNING, "cpus:1;ports:[2-2]") for n in ("t1", "t2")]
    assert "overlaps" in attempt(world, agent, tasks=tasks).message
    assert world.cluster.agents == {}


# ---- Registering again -------------------------------------------------------------------


def test_an_agent_that_is_back_takes_the_place_of_its_old_stream(world):
    agent = world.agent()
    framework = subscribed(world)
    (offer,) = framework.offers()
    old_link = agent.link
    agent.register()
    assert world.outbox.closed[old_link] == "the agent registered again"
    assert [e.rescind.offer_id for e in framework.take()] == [offer.id]
    assert len(framework.offers()) == 1
    # The end of the old stream, which comes later, is no news.
    world.core.agent_disconnected(old_link, world.clock.now())
    assert row(agent).connected
    assert row(agent).reregistered is not None


def test_what_comes_over_the_old_stream_is_not_heard(world):
    agent = world.agent()
    framework = subscribed(world)
    framework.start("t1")
    old_link, new_link = agent.link, None
    agent.register()
    new_link, agent.link = agent.link, old_link
    agent.report("t1", pb.TASK_FINISHED, framework)
    agent.link = new_link
    assert world.cluster.ledger.allocated(agent.id) == Resources.parse("cpus:1;mem:32")


def test_changed_resources_and_attributes_are_taken_over(world):
    agent = world.agent("web1", "cpus:4", rack="r1")
    framework = subscribed(world)
    bigger = FakeAgent(world, "web1", "cpus:8;mem:100", {"rack": "r2"})
    bigger.info.id.CopyFrom(agent.info.id)
    bigger.register()
    (offer,) = framework.offers()
    assert Resources.from_proto("o", offer.resources) == Resources.parse("cpus:8;mem:100")
    assert offer.attributes[0].text.value == "r2"


def test_a_new_agent_at_the_address_of_one_that_is_away_replaces_it(world):
    old = world.agent("web1")
    framework = subscribed(world)
    framework.start("t1")
    old.disconnect()
    framework.take()
    new = FakeAgent(world, "web1", "cpus:4", {})
    new.info.port = old.info.port
    new.register()
    assert new.id != old.id
    assert list(world.cluster.agents) == [new.id]
    lost = [e.update.status for e in framework.take() if e.type == sched.Event.UPDATE]
    assert [(s.task_id.value, s.state) for s in lost] == [("t1", pb.TASK_LOST)]


@pytest.mark.parametrize("field", ["port", "ip", "hostname", "no port", "connected"])
def test_a_new_agent_at_another_address_replaces_nobody(world, field):
    old = world.agent("web1")
    new = FakeAgent(world, "web1", "cpus:4", {})
    new.info.port = old.info.port
    if field != "connected":
        old.disconnect()
    match field:
        case "port":
            new.info.port = 1
        case "ip":
            new.info.ip = "127.0.0.9"
        case "hostname":
            new.info.hostname = "web2"
        case "no port":
            new.info.ClearField("port")
    new.register()
    assert len(world.cluster.agents) == 2


# ---- Pings ------------------------------------------------------------------------------------


def test_an_agent_is_pinged_and_its_pongs_keep_it(world):
    agent = world.agent()
    for number in range(1, 20):
        world.advance(15)
        (ping,) = agent.take(Event.PING)
        assert ping.ping.sequence == number
        agent.pong()
    assert row(agent).connected


def test_five_pings_without_a_pong_and_the_agent_is_unreachable(world):
    agent = world.agent()
    world.advance(15 * 5)
    assert len(agent.take(Event.PING)) == 5
    assert row(agent).connected
    world.advance(15)
    assert row(agent).unreachable is not None
    assert "5 pings went unanswered" in world.outbox.closed[agent.link]
    assert world.cluster.agent_of_link == {}
    # The end of its stream, which follows, is no news.
    agent.disconnect()
    assert row(agent).unreachable is not None


def test_one_late_pong_is_enough(world):
    agent = world.agent()
    world.advance(15 * 5)
    agent.pong()
    world.advance(15 * 5)
    assert row(agent).connected


def test_nobody_pings_an_agent_that_is_away(world):
    agent = world.agent()
    agent.disconnect()
    world.advance(60)
    assert agent.take() == []


# ---- Disconnected -----------------------------------------------------------------------------


def test_an_agent_that_is_away_keeps_its_tasks_and_is_offered_to_nobody(world):
    agent = world.agent()
    framework = subscribed(world)
    framework.start("t1")
    agent.disconnect()
    framework.take()
    assert framework.offers() == []
    assert world.cluster.ledger.allocated(agent.id) == Resources.parse("cpus:1;mem:32")
    assert list(world.cluster.frameworks[framework.id].tasks) == ["t1"]


def test_back_within_its_time_an_agent_was_never_gone(world):
    agent = world.agent()
    framework = subscribed(world)
    framework.start("t1")
    agent.disconnect()
    world.advance(74)
    framework.take()
    running = agent.task("t1", framework, pb.TASK_RUNNING)
    agent.register(tasks=[running], frameworks=[framework.info])
    world.advance(74)
    assert row(agent).connected
    assert [e for e in framework.take() if e.type == sched.Event.UPDATE] == []
