"""How long a framework may think, and what its silence costs it."""

import pytest

from master.allocator.base import FrameworkChanged
from master.core.cluster import Options
from master.core.patience import DUTY, Patience
from mesos_py.states import TASK_FINISHED, TASK_RUNNING
from mesos_py.v1 import scheduler_pb2 as sched
from tests.kit.core import World
from tests.kit.scripted import ScriptedWorld


def rescinded(framework):
    return [e for e in framework.take() if e.type == sched.Event.RESCIND]


# ---- The rule -----------------------------------------------------------------------


def test_the_time_doubles_up_to_the_most():
    patience = Patience(2.0, 30.0)
    given = []
    for _ in range(6):
        given.append(patience.timeout_s)
        patience.expired(patience.timeout_s, 1.0, 0.0)
    assert given == [2, 4, 8, 16, 30, 30]


def test_many_offers_that_end_together_count_once():
    patience = Patience(2.0, 30.0)
    for _ in range(100):
        patience.expired(2.0, 1.0, 50.0)
    assert patience.timeout_s == 4
    assert patience.silent_until_s == pytest.approx(50 + 4 * 24)


def test_quick_answers_halve_it_down_to_the_first_and_many_at_once_count_once():
    patience = Patience(2.0, 30.0)
    for given in (2.0, 4.0, 8.0):
        patience.expired(given, 1.0, 0.0)
    for _ in range(100):
        patience.answered(16.0, 1.0, 0.0)
    assert patience.timeout_s == 8
    patience.answered(8.0, 1.0, 0.0)
    patience.answered(4.0, 1.0, 0.0)
    patience.answered(2.0, 0.1, 0.0)
    assert patience.timeout_s == 2


def test_who_always_needs_three_seconds_loses_one_offer_only():
    patience = Patience(2.0, 30.0)
    lost = 0
    for _ in range(50):
        given = patience.timeout_s
        if given < 3:
            patience.expired(given, 1.0, 0.0)
            lost += 1
        else:
            patience.answered(given, 3.0, 0.0)
    assert lost == 1


@pytest.mark.parametrize(
    ("first", "most", "begins", "later"),
    [(2.0, 0.5, 0.5, 0.5), (0.0, 30.0, 30.0, 30.0), (2.0, 0.0, 0.0, 0.0), (2.0, 3.0, 2.0, 3.0)],
)
def test_the_time_is_never_above_the_most(first, most, begins, later):
    patience = Patience(first, most)
    assert patience.timeout_s == begins
    patience.expired(begins, 1.0, 0.0)
    assert patience.timeout_s == later


def test_who_never_answers_has_at_no_time_held_offers_for_more_than_a_small_part():
    patience = Patience(2.0, 30.0)
    now = patience.expired(2.0, 1.0, 2.0)
    assert now is not None
    began, held = 2.0, 0.0
    for _ in range(20):
        given = patience.timeout_s
        held, now = held + given, now + given
        assert held / (now - began) <= DUTY + 1e-9
        until = patience.expired(given, 1.0, now)
        assert until is not None
        now = until


def test_who_answered_another_offer_since_is_there_and_not_silent():
    patience = Patience(2.0, 30.0)
    patience.answered(2.0, 0.5, 10.0)
    assert patience.expired(2.0, 9.5, 11.5) is None
    assert not patience.silent
    assert patience.timeout_s == 4.0
    assert patience.expired(4.0, 11.0, 15.0) is not None
    assert patience.silent


def advance(world, seconds, *agents):
    """Let time pass for agents that answer."""
    whole, rest = divmod(seconds, 10)
    for step in [10] * int(whole) + [rest]:
        world.advance(step)
        for agent in agents:
            agent.pong()


# ---- In the core ----------------------------------------------------------------------


def test_a_silent_framework_is_offered_nothing_for_a_while_and_again_after_it():
    world = World()
    agent = world.agent()
    framework = world.framework()
    assert len(framework.offers()) == 1
    world.advance(2.0)
    assert len(rescinded(framework)) == 1
    advance(world, 4 * 24 - 1, agent)
    assert framework.offers() == []
    world.advance(1)
    (offer,) = framework.offers()
    world.advance(3.9)
    assert rescinded(framework) == []
    world.advance(0.2)
    assert len(rescinded(framework)) == 1
    assert offer.id.value in world.cluster.ended_offers
    world.check()


def accept_late(framework, offer):
    framework.launch(offer, framework.world.task("t1"))


@pytest.mark.parametrize(
    "say",
    [
        accept_late,
        lambda framework, offer: framework.decline(offer, refuse_s=0.0),
        lambda framework, _: framework.call(type=sched.Call.REVIVE),
        lambda framework, _: framework.call(type=sched.Call.REQUEST),
        lambda framework, _: framework.subscribe(),
    ],
    ids=["accept", "decline", "revive", "request", "subscribe"],
)
def test_whatever_a_silent_framework_says_ends_its_wait(say):
    world = World()
    world.agent()
    framework = world.framework(failover_timeout=100.0)
    (offer,) = framework.offers()
    world.advance(3)
    assert framework.offers() == []
    say(framework, offer)
    assert len(framework.offers()) == 1
    assert not world.cluster.timers.has("silent", framework.id)
    world.check()


def test_an_acknowledgement_is_no_answer_to_an_offer():
    world = World()
    agent = world.agent()
    framework = world.framework()
    framework.start("t1")
    uuid = agent.report("t1", TASK_RUNNING, framework)
    framework.offers()
    world.advance(3)
    framework.acknowledge(agent, "t1", uuid)
    assert framework.offers() == []


def test_a_silent_framework_that_goes_away_leaves_no_timer_behind():
    for end in ("teardown", "disconnect"):
        world = World()
        world.agent()
        framework = world.framework(failover_timeout=10.0)
        framework.offers()
        world.advance(3)
        if end == "teardown":
            framework.call(type=sched.Call.TEARDOWN)
        else:
            framework.disconnect()
        assert not world.cluster.timers.has("silent", framework.id)
        world.advance(1000)
        world.check()


def test_explain_says_that_it_is_left_alone_since_it_was_silent():
    world = World()
    world.agent()
    framework = world.framework()
    framework.offers()
    world.advance(3)
    now_s = world.clock.monotonic_s
    (skip,) = world.cluster.allocator.explain(framework.id, world.cluster.ledger, now_s)
    assert skip.code == "silent"
    assert "left offers unanswered" in skip.message


def test_what_a_silent_framework_has_refused_stays_refused():
    world = World()
    first = world.agent("a")
    second = world.agent("b")
    framework = world.framework()
    offers = framework.offers()
    (declined,) = [offer for offer in offers if offer.agent_id.value == first.id]
    framework.decline(declined, refuse_s=1000.0)
    advance(world, 120, first, second)
    (again,) = framework.offers()
    assert again.hostname == "b"


@pytest.mark.parametrize("leaves", [True, False])
def test_what_it_has_refused_is_forgotten_with_its_stream_while_it_is_silent(leaves):
    world = World()
    first = world.agent("a")
    world.agent("b")
    framework = world.framework(failover_timeout=100.0)
    offers = framework.offers()
    framework.decline(*(o for o in offers if o.agent_id.value == first.id), refuse_s=1000.0)
    world.advance(3)
    if leaves:
        framework.disconnect()
    framework.subscribe()
    assert {offer.hostname for offer in framework.offers()} == {"a", "b"}


def test_a_silent_framework_takes_little_from_a_busy_one():
    """One agent, tasks of a second: the busy one keeps 95 % of what it can have."""
    world = World()
    agent = world.agent()
    busy = world.framework("busy")
    world.framework("silent")
    done = 0
    for number in range(600):
        agent.pong()
        for offer in busy.offers():
            name = f"t{number}"
            busy.launch(offer, world.task(name, text="cpus:4;mem:4096"))
            world.advance(1)
            busy.acknowledge(agent, name, agent.report(name, TASK_FINISHED, busy))
            done += 1
            break
        else:
            world.advance(1)
    assert done >= 0.95 * 600
    world.check()


def test_frameworks_that_answer_at_once_lose_nothing():
    world = World()
    world.agent()
    frameworks = [world.framework(name) for name in ("a", "b")]
    for _ in range(100):
        for framework in frameworks:
            if offers := framework.offers():
                framework.decline(*offers, refuse_s=0.0)
        world.advance(0.5)
    assert world.cluster.counters["offers_rescinded"] == 0


def test_the_allocator_is_told_once_that_a_framework_is_silent():
    world = ScriptedWorld()
    framework = world.framework()
    for name in ("a", "b", "c"):
        world.grant(framework, world.agent(name))
    world.script.heard.clear()
    world.advance(3)
    rows = [each.framework for each in world.script.heard if isinstance(each, FrameworkChanged)]
    assert [(row.active, row.silent) for row in rows] == [(False, True)]


def test_without_a_time_out_nobody_is_ever_silent():
    world = World(Options(offer_timeout_s=0.0))
    world.agent()
    framework = world.framework()
    framework.offers()
    world.advance(60)
    assert rescinded(framework) == []


def test_of_one_that_answers_others_an_offer_that_it_leaves_counts_as_declined_there():
    world = World()
    first, second = world.agent(), world.agent()
    framework = world.framework()
    offers = {offer.agent_id.value: offer for offer in framework.offers()}
    world.advance(1.0)
    framework.launch(offers[first.id], world.task("t1"), refuse_s=3600.0)
    world.advance(1.5)
    assert "RESCIND" in framework.kinds()
    record = world.cluster.frameworks[framework.id]
    assert not record.silent
    # Twice the 2 s that it sat on it, or what a decline without a word of it counts.
    world.advance(4.0)
    assert framework.offers() == []
    world.advance(1.5)
    assert [offer.agent_id.value for offer in framework.offers()] == [second.id]
    world.check()
