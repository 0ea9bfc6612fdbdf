"""Offers: how they are made, and the ways in which one ends without being accepted."""

import math

import pytest

from master.allocator.base import Grant
from master.core import cluster, offers
from master.core.cluster import Options
from mesos_py.resources import EMPTY, Resources
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import World
from tests.kit.scripted import ScriptedWorld

MULTI_ROLE = pb.FrameworkInfo.Capability(type=pb.FrameworkInfo.Capability.MULTI_ROLE)
YEAR = 365 * 86400.0


@pytest.fixture
def world():
    made = World()
    yield made
    made.check()


@pytest.fixture
def scripted():
    """A world in which tests say who is granted what."""
    made = ScriptedWorld()
    yield made
    made.check()


def grant(world, framework, agent, text, role="*"):
    world.script.grants.append(Grant(framework.id, role, agent.id, Resources.parse(text)))
    world.cluster.want_allocation(world.clock.now())


# ---- What an offer says ----------------------------------------------------------


def test_an_offer_has_all_that_is_free_there_and_where_it_is(world):
    agent = world.agent("web1", "cpus:4;mem:4096;ports:[31000-31009]", rack="r1")
    framework = world.framework()
    (offer,) = framework.offers()
    assert offer.id.value == "m-O0"
    assert offer.framework_id.value == framework.id
    assert offer.agent_id.value == agent.id
    assert offer.hostname == "web1"
    assert Resources.from_proto("offer", offer.resources) == Resources.parse(
        "cpus:4;mem:4096;ports:[31000-31009]"
    )
    assert [(a.name, a.text.value) for a in offer.attributes] == [("rack", "r1")]
    assert not offer.HasField("allocation_info")
    assert not offer.HasField("domain")
    assert not offer.executor_ids


def test_all_offers_of_one_cycle_come_in_one_event(world):
    framework = world.framework()
    for _ in range(3):
        world.agent()
    world.settle()
    (event,) = [event for event in framework.take() if event.type == sched.Event.OFFERS]
    assert len(event.offers.offers) == 3


def test_only_multi_role_frameworks_are_told_the_role(world):
    world.agent()
    framework = world.framework(roles=["web"], capabilities=[MULTI_ROLE])
    (offer,) = framework.offers()
    assert offer.allocation_info.role == "web"
    assert {r.allocation_info.role for r in offer.resources} == {"web"}


def test_an_offer_names_the_domain_and_the_frameworks_own_executors_there(world):
    agent = world.agent()
    agent.disconnect()
    agent.info.domain.fault_domain.region.name = "eu"
    agent.register()
    ours, other = world.framework("ours"), world.framework("other")
    for framework in (ours, other):
        offer = framework.offers()
        if not offer:
            continue
        task = world.task("t1", text="cpus:1;mem:32")
        task.ClearField("command")
        task.executor.executor_id.value = f"e-{framework.info.name}"
        task.executor.command.value = "run"
        framework.launch(offer[0], task)
    world.settle()
    shown = [o for f in (ours, other) for o in f.offers()]
    assert len(shown) == 1
    owner = "ours" if shown[0].framework_id.value == ours.id else "other"
    assert [e.value for e in shown[0].executor_ids] in ([f"e-{owner}"], [])
    assert shown[0].domain.fault_domain.region.name == "eu"


# ---- Grants that do not hold ----------------------------------------------------------


def test_a_framework_holds_several_offers_of_one_agent(scripted):
    agent, framework = scripted.agent(), scripted.framework()
    grant(scripted, framework, agent, "cpus:1")
    assert len(framework.offers()) == 1
    grant(scripted, framework, agent, "cpus:2")
    assert len(framework.offers()) == 1
    assert len(scripted.cluster.offers) == 2
    assert scripted.cluster.ledger.offered(agent.id) == Resources.of(cpus=3)


@pytest.mark.parametrize("case", ["framework", "agent", "framework away", "agent away", "role"])
def test_a_grant_to_somebody_who_is_not_there_is_dropped_and_the_agent_looked_at_again(
    scripted, case
):
    agent = scripted.agent()
    framework = scripted.framework(failover_timeout=60.0)
    scripted.settle()
    to = Grant(framework.id, "*", agent.id, Resources.of(cpus=1))
    match case:
        case "framework":
            to = Grant("nobody", "*", agent.id, to.resources)
        case "agent":
            to = Grant(framework.id, "*", "nowhere", to.resources)
        case "framework away":
            framework.disconnect()
        case "agent away":
            agent.disconnect()
        case "role":
            to = Grant(framework.id, "web", agent.id, to.resources)
    scripted.script.grants.append(to)
    scripted.cluster.want_allocation(scripted.clock.now())
    assert framework.offers() == []
    assert scripted.outbox.drops[-1][0] == "grant-stale"
    assert scripted.cluster.offers == {}
    assert scripted.core.next_deadline_s() is not None


def test_a_grant_of_nothing_is_dropped(scripted):
    agent, framework = scripted.agent(), scripted.framework()
    assert (
        offers.make_offers(
            scripted.cluster, [Grant(framework.id, "*", agent.id, EMPTY)], scripted.clock.now()
        )
        == 0
    )


def test_a_grant_of_more_than_is_free_is_dropped_and_the_others_hold(scripted):
    agent, framework = scripted.agent(resources="cpus:4"), scripted.framework()
    grant(scripted, framework, agent, "cpus:5")
    grant(scripted, framework, agent, "cpus:3")
    grant(scripted, framework, agent, "cpus:2")
    assert [o.resources[0].scalar.value for o in framework.offers()] == [3]
    assert [reason for reason, _ in scripted.outbox.drops] == ["grant-refused"] * 2
    assert scripted.cluster.counters["dropped/grant-refused"] == 2


# ---- Expiry ----------------------------------------------------------


def test_an_offer_that_is_not_answered_goes_to_who_waits_within_a_cycle():
    world = World(Options(offer_timeout_s=5.0))
    world.agent()
    silent, waiting = world.framework("silent"), world.framework("waiting")
    holder = silent if silent.offers() else waiting
    other = waiting if holder is silent else silent
    assert other.offers() == []
    world.advance(5.0)
    assert "RESCIND" in holder.kinds()
    assert len(other.offers()) == 1
    world.check()


def test_an_offer_expires_once_and_to_the_moment():
    world = World(Options(offer_timeout_s=5.0, first_offer_timeout_s=5.0))
    world.agent()
    framework = world.framework()
    (offer,) = framework.offers()
    made_s = world.clock.monotonic_s
    world.advance(4.99)
    assert framework.take() == []
    world.advance(made_s + 5.0 - world.clock.monotonic_s)
    rescinded = [e.rescind.offer_id for e in framework.take() if e.type == sched.Event.RESCIND]
    assert rescinded == [offer.id]
    assert world.cluster.counters["offers_expired"] == 1
    assert "not answered within 5 s" in world.cluster.ended_offers[offer.id.value]


def test_offers_never_expire_if_the_operator_says_so():
    world = World(Options(offer_timeout_s=0.0))
    world.agent()
    framework = world.framework()
    framework.offers()
    world.advance(60)
    assert framework.take() == []


def test_an_expiry_says_that_the_framework_did_not_take_it_and_blocks_nothing(scripted):
    agent, framework = scripted.agent(), scripted.framework()
    grant(scripted, framework, agent, "cpus:1")
    framework.offers()
    scripted.advance(30.0)
    (refusal,) = scripted.script.refusals()
    assert refusal.resources == Resources.of(cpus=1)
    assert refusal.until_s <= scripted.clock.monotonic_s


# ---- Decline ----------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "effective"),
    [
        (None, 5.0),
        (0.0, 0.0),
        (0.25, 0.25),
        (3600.0, 3600.0),
        (-1.0, 5.0),
        (math.nan, 5.0),
        (math.inf, YEAR),
        (1e300, YEAR),
    ],
)
def test_a_declined_offer_is_refused_for(scripted, given, effective):
    agent, framework = scripted.agent(), scripted.framework()
    grant(scripted, framework, agent, "cpus:1;mem:5")
    (offer,) = framework.offers()
    framework.decline(offer, refuse_s=given)
    (refusal,) = scripted.script.refusals()
    assert (refusal.framework_id, refusal.role, refusal.agent_id) == (framework.id, "*", agent.id)
    assert refusal.resources == Resources.of(cpus=1, mem=5)
    assert refusal.until_s == scripted.clock.monotonic_s + effective
    assert scripted.cluster.ledger.offered(agent.id) == EMPTY
    assert scripted.cluster.ended_offers[offer.id.value] == "declined by the framework"


@pytest.mark.parametrize(("given", "told"), [(-1.0, 1), (math.nan, 1), (0.0, 0), (1e300, 0)])
def test_a_filter_that_is_no_time_is_said_to_be_none(world, given, told):
    world.agent()
    framework = world.framework()
    framework.decline(*framework.offers(), refuse_s=given)
    refusals = framework.refusals()
    assert len(refusals) == told
    if told:
        assert refusals[0].field == "filters.refuse_seconds"
        assert "took 5" in refusals[0].message


def test_filters_without_refuse_seconds_are_the_default(scripted):
    agent, framework = scripted.agent(), scripted.framework()
    grant(scripted, framework, agent, "cpus:1")
    (offer,) = framework.offers()
    call = sched.Call.Decline(offer_ids=[offer.id], filters=pb.Filters())
    framework.call(type=sched.Call.DECLINE, decline=call)
    assert scripted.script.refusals()[0].until_s == scripted.clock.monotonic_s + 5.0


def test_declining_what_is_gone_unknown_or_anothers_is_ignored(world):
    world.agent()
    framework, other = world.framework("a"), world.framework("b")
    (offer,) = framework.offers() + other.offers()
    owner = framework if offer.framework_id.value == framework.id else other
    stranger = other if owner is framework else framework
    stranger.decline(offer)
    assert offer.id.value in world.cluster.offers
    owner.decline(offer)
    owner.decline(offer)
    owner.decline(pb.Offer(id=pb.OfferID(value="nonsense")))
    assert [reason for reason, _ in world.outbox.drops] == ["decline-unknown-offer"] * 3
    assert owner.take() == []


def test_an_offer_named_twice_in_one_decline_is_declined_once(scripted):
    agent, framework = scripted.agent(), scripted.framework()
    grant(scripted, framework, agent, "cpus:1")
    (offer,) = framework.offers()
    framework.decline(offer, offer)
    assert len(scripted.script.refusals()) == 1
    assert scripted.cluster.counters["offers_declined"] == 1


def test_a_declined_agent_is_offered_again_when_the_filter_ends(world):
    world.agent()
    framework = world.framework()
    framework.decline(*framework.offers(), refuse_s=60)
    world.advance(59)
    assert framework.offers() == []
    world.advance(1.5)
    assert len(framework.offers()) == 1


def test_what_is_bigger_than_what_was_refused_passes_the_filter(world):
    agent = world.agent()
    framework = world.framework()
    framework.start("t1")
    framework.decline(*framework.offers(), refuse_s=3600)
    assert framework.offers() == []
    agent.report("t1", pb.TASK_FINISHED, framework)
    (offer,) = framework.offers()
    assert Resources.from_proto("o", offer.resources) == Resources.parse("cpus:4;mem:4096")


@pytest.mark.parametrize("how", ["revive", "subscribe again", "disconnect", "attributes"])
def test_a_filter_dies_early_when(world, how):
    agent = world.agent(rack="r1")
    framework = world.framework(failover_timeout=60.0)
    framework.decline(*framework.offers(), refuse_s=YEAR)
    assert framework.offers() == []
    match how:
        case "revive":
            framework.call(type=sched.Call.REVIVE)
        case "subscribe again":
            framework.subscribe()
        case "disconnect":
            framework.disconnect()
            framework.subscribe()
        case "attributes":
            agent.info.attributes[0].text.value = "r2"
            agent.register()
    assert len(framework.offers()) == 1


def test_a_filter_outlives_an_agent_that_comes_back_as_it_was(world):
    agent = world.agent(rack="r1")
    framework = world.framework()
    framework.decline(*framework.offers(), refuse_s=YEAR)
    agent.register()
    assert framework.offers() == []


# ---- Offers that are taken back ----------------------------------------------------------


def test_an_agent_that_disconnects_takes_its_offers_with_it_by_rescind(world):
    agent = world.agent()
    framework = world.framework()
    (offer,) = framework.offers()
    agent.disconnect()
    (event,) = framework.take()
    assert event.type == sched.Event.RESCIND
    assert event.rescind.offer_id == offer.id
    assert world.cluster.ended_offers[offer.id.value] == "the agent disconnected"


def test_a_framework_that_disconnects_is_told_nothing(world):
    agent = world.agent()
    framework = world.framework(failover_timeout=60.0)
    framework.offers()
    framework.disconnect()
    assert world.cluster.offers == {}
    assert world.cluster.ledger.free(agent.id) == Resources.parse("cpus:4;mem:4096")
    assert framework.take() == []


def test_why_an_offer_ended_is_kept_for_a_limited_number(scripted):
    agent, framework = scripted.agent(), scripted.framework()
    for number in range(cluster.MAX_ENDED_OFFERS + 5):
        scripted.cluster.remember_offer(f"x{number}", "test")
    assert len(scripted.cluster.ended_offers) == cluster.MAX_ENDED_OFFERS
    assert "x4" not in scripted.cluster.ended_offers
    grant(scripted, framework, agent, "cpus:1")
    assert len(framework.offers()) == 1


# ---- Who gets the next offer ----------------------------------------------------------


def test_a_busy_framework_among_ten_idle_ones_gets_an_offer_within_two_cycles(world):
    idle = [world.framework(f"idle{number}") for number in range(10)]
    world.agent()
    for _ in range(30):
        world.advance(1)
        for framework in idle:
            framework.decline(*framework.offers())
    busy = world.framework("busy")
    for _ in range(2):
        for framework in idle:
            framework.decline(*framework.offers())
        if busy.offers():
            return
    pytest.fail("the busy framework waits behind idle ones")


def test_a_suppressed_framework_gets_no_offer(world):
    framework = world.framework()
    framework.call(type=sched.Call.SUPPRESS)
    world.agent()
    assert framework.offers() == []
    framework.call(type=sched.Call.REVIVE)
    assert len(framework.offers()) == 1


@pytest.mark.parametrize("delay_s", [0.0, 0.001, 0.005, 0.0099, 0.01, 0.0101, 0.02, 1.0])
def test_a_revive_sent_while_an_offer_is_in_flight_leads_to_an_offer(world, delay_s):
    world.agent()
    framework = world.framework()
    (offer,) = framework.offers()
    framework.call(type=sched.Call.SUPPRESS)
    framework.call(type=sched.Call.REVIVE)
    world.advance(delay_s)
    framework.decline(offer, refuse_s=3600)
    framework.call(type=sched.Call.REVIVE)
    assert len(framework.offers()) == 1


def test_thirty_tasks_on_room_for_twenty_of_which_some_fail_all_run_without_a_restart(world):
    agent = world.agent(resources="cpus:20;mem:2000")
    framework = world.framework()
    waiting = [f"t{number}" for number in range(30)]
    running, done, failures = [], [], 5
    for _ in range(200):
        for offer in framework.offers():
            room = int(Resources.from_proto("o", offer.resources).scalar("cpus"))
            started, waiting = waiting[:room], waiting[room:]
            framework.launch(offer, *(world.task(name, text="cpus:1;mem:1") for name in started))
            running += started
        if not running:
            break
        name = running.pop(0)
        state = pb.TASK_FAILED if failures else pb.TASK_FINISHED
        uuid = agent.report(name, state, framework)
        framework.acknowledge(agent, name, uuid)
        if failures:
            failures -= 1
            waiting.append(f"{name}-again")
        else:
            done.append(name)
    assert len(done) == 30
    assert waiting == []


def test_a_freed_resource_is_offered_when_the_window_has_passed(world):
    agent = world.agent(resources="cpus:1;mem:100")
    framework = world.framework()
    framework.start("t1", text="cpus:1;mem:100")
    assert framework.offers() == []
    agent.report("t1", pb.TASK_FINISHED, framework)
    before = world.clock.monotonic_s
    assert len(framework.offers()) == 1
    assert world.clock.monotonic_s - before <= 0.05
