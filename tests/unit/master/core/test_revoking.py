"""Taking back: asked, then made to; what counts as given up, and when it is over."""

import pytest

from master.core.cluster import Options
from mesos_py.states import TASK_FINISHED
from mesos_py.v1 import types_pb2 as pb
from tests.kit.revoking import PREEMPTED, Call, Event, Scene
from tests.kit.scripted import ScriptedWorld


@pytest.fixture
def scene():
    made = Scene()
    yield made
    made.world.check()


def at_once():
    return Scene(Options(revocation_grace_s=0.0))


# ---- Asked ------------------------------------------------------------------------------


def test_the_framework_is_told_what_until_when_which_and_why(scene):
    scene.take_back()
    (offer,) = scene.asked()
    assert not offer.HasField("unavailability")
    assert offer.agent_id.value == scene.agent.id
    assert offer.resources[0].scalar.value == 2
    left_s = offer.revocation.deadline.nanoseconds / 1e9 - scene.world.clock.wall_s
    assert left_s == pytest.approx(5.0, abs=0.1)
    assert [item.value for item in offer.revocation.task_ids] == ["t1", "t2"]
    assert offer.revocation.reason == "for a test"
    assert scene.kills() == []
    assert "it is asked to give up cpus:2" in scene.explained()
    assert "t1, t2 are killed in" in scene.explained()


def test_a_framework_of_several_roles_hears_in_which_one_it_is_asked():
    """What it gives up in another one does not count."""
    world = ScriptedWorld()
    several = pb.FrameworkInfo.Capability(type=pb.FrameworkInfo.Capability.MULTI_ROLE)
    agent, framework = world.agent(), world.framework(roles=["a", "b"], capabilities=[several])
    offer = world.grant(framework, agent)
    role = offer.allocation_info.role
    framework.launch(offer, world.task("t1"))
    world.take_back(framework, agent, "cpus:1", "t1")
    (asked,) = [
        each
        for event in framework.take()
        if event.type == Event.INVERSE_OFFERS
        for each in event.inverse_offers.inverse_offers
    ]
    assert [each.allocation_info.role for each in asked.resources] == [role]
    world.check()


def test_what_it_gives_up_by_itself_ends_it_whichever_tasks_those_are(scene):
    scene.take_back()
    (offer,) = scene.asked()
    scene.end("t3", TASK_FINISHED)
    assert scene.ends() == []
    scene.end("t4")
    assert scene.ends() == [(("t1", "t2"), True)]
    voided = [e for e in scene.framework.take() if e.type == Event.RESCIND_INVERSE_OFFER]
    assert [e.rescind_inverse_offer.inverse_offer_id for e in voided] == [offer.id]
    scene.world.advance(60)
    assert scene.kills() == []
    assert scene.counters["tasks_preempted"] == 0


def test_offers_that_it_hands_back_there_count(scene):
    scene.end("t4")
    offer = scene.world.grant(scene.framework, scene.agent, "cpus:1;mem:100")
    scene.take_back("cpus:1", "t1")
    scene.framework.decline(offer)
    scene.world.settle()
    assert scene.ends() == [(("t1",), True)]


def test_what_it_is_offered_there_meanwhile_does_not_hide_what_it_gives_up(scene):
    scene.end("t4")
    scene.take_back("cpus:1", "t1")
    scene.world.grant(scene.framework, scene.agent, "cpus:1;mem:100")
    scene.end("t2")
    assert scene.ends() == [(("t1",), True)]


def test_what_ends_elsewhere_does_not_count(scene):
    elsewhere = scene.world.agent("elsewhere")
    offer = scene.world.grant(scene.framework, elsewhere)
    scene.take_back("cpus:1", "t1")
    scene.framework.decline(offer)
    scene.world.settle()
    assert scene.ends() == []


def test_declining_saves_nothing_and_accepting_no_more(scene):
    for say in (scene.decline, scene.accept):
        task = {scene.decline: "t1", scene.accept: "t2"}[say]
        scene.take_back("cpus:1", task)
        (offer,) = scene.asked()
        say(offer)
        assert ("accepted" if say == scene.accept else "declined") in scene.explained()
        scene.world.advance(5)
        assert scene.killed() == [task]
        assert scene.framework.take() == []  # it has answered: nothing is rescinded
        scene.end(task)
    assert scene.counters["revocations/accepted"] == scene.counters["revocations/declined"] == 1


def test_an_answer_that_comes_twice_or_late_or_from_another_is_dropped(scene):
    scene.take_back("cpus:1", "t1")
    (offer,) = scene.asked()
    call = Call.AcceptInverseOffers(inverse_offer_ids=[offer.id])
    scene.other.call(type=Call.ACCEPT_INVERSE_OFFERS, accept_inverse_offers=call)
    scene.accept(offer)
    scene.accept(offer)
    scene.world.advance(6)
    scene.decline(offer)
    assert scene.counters["dropped/inverse-offer-unknown"] == 3


def test_maintenance_and_revocation_are_answered_apart(scene):
    """Answers to one leave the other open, and expiry asks about maintenance only."""
    cluster = scene.world.cluster
    record = cluster.agents[scene.agent.id]
    record.unavailability = pb.Unavailability(start=pb.TimeInfo(nanoseconds=10**18))
    cluster.tell_agent(record, scene.world.clock.now())
    scene.take_back("cpus:1", "t1")
    offers = scene.asked()
    (leave,) = [offer for offer in offers if offer.HasField("unavailability")]
    (give,) = [offer for offer in offers if offer.HasField("revocation")]
    assert not leave.HasField("revocation")
    scene.accept(leave)
    assert cluster.revoking.by_offer.keys() == {give.id.value}
    scene.accept(give)
    assert cluster.inverse.statuses[scene.agent.id, scene.framework.id].status == 2


# ---- Made to ----------------------------------------------------------------------------


def test_at_the_deadline_chosen_tasks_are_killed_with_the_reason(scene):
    scene.take_back()
    (offer,) = scene.asked()
    scene.world.advance(4.9)
    assert scene.kills() == []
    scene.world.advance(0.1)
    orders = scene.kills()
    assert [order.task_id.value for order in orders] == ["t1", "t2"]
    assert {(order.reason, order.message) for order in orders} == {
        (PREEMPTED, "Preempted: for a test")
    }
    assert [e.type for e in scene.framework.take()] == [Event.RESCIND_INVERSE_OFFER]
    assert scene.ends() == []
    assert "are taken back from it" in scene.explained()
    scene.end("t1")
    scene.end("t2")
    assert scene.ends() == [(("t1", "t2"), True)]
    assert offer.id.value not in scene.world.cluster.revoking.by_offer
    assert scene.counters["tasks_preempted"] == 2


def test_no_more_are_killed_than_it_takes(scene):
    scene.take_back()
    scene.end("t4")
    scene.world.advance(5)
    assert scene.killed() == ["t1"]


def test_what_is_ending_already_is_waited_for_in_place_of_another_kill(scene):
    scene.take_back()
    scene.framework.kill("t3")
    scene.framework.kill("t1")
    assert scene.killed() == ["t3", "t1"]
    scene.world.advance(5)
    assert scene.kills() == []
    scene.end("t1")
    scene.end("t3")
    assert scene.ends() == [(("t1", "t2"), True)]


def test_a_kill_with_a_grace_of_an_hour_is_no_way_to_keep_it(scene):
    scene.take_back("cpus:1", "t1")
    scene.framework.kill("t1", grace_s=3600)
    scene.agent.take()
    scene.world.advance(5)
    (order,) = scene.kills()
    assert order.kill_policy.grace_period.nanoseconds == 30 * 10**9


def test_a_task_with_a_grace_of_an_hour_of_its_own_gets_less():
    scene = Scene()
    scene.end("t4")
    offer = scene.world.grant(scene.framework, scene.agent, "cpus:1;mem:100")
    task = scene.world.task("long", text="cpus:1;mem:100")
    task.kill_policy.grace_period.nanoseconds = 3600 * 10**9
    scene.framework.launch(offer, task)
    scene.agent.take()
    scene.take_back("cpus:1", "long")
    scene.world.advance(5)
    (order,) = scene.kills()
    assert order.kill_policy.grace_period.nanoseconds == 30 * 10**9
    scene.world.settle()
    assert scene.kills() == []


def test_without_grace_it_is_killed_at_once_and_nobody_is_asked():
    scene = at_once()
    scene.take_back("cpus:1", "t2")
    assert scene.asked() == []
    assert scene.killed() == ["t2"]
    scene.end("t2")
    assert scene.ends() == [(("t2",), True)]


def test_what_has_no_tasks_is_taken_out_of_its_offers_at_once(scene):
    scene.end("t4")
    offer = scene.world.grant(scene.framework, scene.agent, "cpus:1;mem:100")
    scene.world.take_back(scene.framework, scene.agent, "cpus:1")
    rescinded = [e.rescind.offer_id for e in scene.framework.take() if e.type == Event.RESCIND]
    assert rescinded == [offer.id]
    assert scene.ends() == [((), True)]
    assert "taken back: for a test" in scene.world.cluster.ended_offers[offer.id.value]
    assert scene.kills() == []


def test_no_offers_and_no_tasks_frees_nothing(scene):
    scene.world.take_back(scene.framework, scene.agent, "cpus:1")
    assert scene.ends() == [((), False)]


def test_a_framework_that_is_away_has_the_same_deadline(scene):
    scene.framework.disconnect()
    scene.take_back("cpus:1", "t1")
    scene.world.advance(5)
    assert scene.killed() == ["t1"]


def test_a_new_stream_is_asked_again_and_the_deadline_stays(scene):
    scene.take_back("cpus:1", "t1")
    (first,) = scene.asked()
    scene.world.advance(3)
    scene.framework.disconnect()
    events = scene.framework.subscribe()
    (again,) = [
        offer
        for event in events
        if event.type == Event.INVERSE_OFFERS
        for offer in event.inverse_offers.inverse_offers
    ]
    assert again.id != first.id
    assert again.revocation == first.revocation
    scene.accept(first)
    assert scene.counters["dropped/inverse-offer-unknown"] == 1
    scene.world.advance(2)
    assert scene.killed() == ["t1"]


def test_one_that_has_answered_is_not_asked_again(scene):
    scene.take_back("cpus:1", "t1")
    scene.accept(scene.asked()[0])
    scene.framework.disconnect()
    assert Event.INVERSE_OFFERS not in [e.type for e in scene.framework.subscribe()]


def test_another_instance_is_asked_what_the_last_one_has_promised(scene):
    scene.framework.subscribe(instance="one", attempt=1)
    scene.take_back("cpus:1", "t1")
    scene.accept(scene.asked()[0])
    scene.framework.disconnect()
    events = scene.framework.subscribe(instance="two", attempt=1)
    (again,) = [e for e in events if e.type == Event.INVERSE_OFFERS]
    assert [task.value for task in again.inverse_offers.inverse_offers[0].revocation.task_ids] == [
        "t1"
    ]


# ---- Several ----------------------------------------------------------------------------


def test_what_becomes_free_counts_once_for_two_that_are_in_progress(scene):
    scene.take_back("cpus:1", "t1")
    scene.take_back("cpus:1", "t2")
    scene.end("t4")
    assert scene.ends() == [(("t1",), True)]
    scene.world.advance(5)
    assert scene.killed() == ["t2"]
    scene.end("t2")
    assert scene.ends() == [(("t2",), True)]


def test_two_plans_are_both_made_good_at_their_deadlines(scene):
    scene.take_back("cpus:1", "t1")
    scene.world.advance(2)
    scene.take_back("cpus:2", "t2", "t3")
    scene.world.advance(3.5)
    assert scene.killed() == ["t1"]
    scene.world.advance(2)
    assert scene.killed() == ["t2", "t3"]
    for task_id in ("t1", "t2", "t3"):
        scene.end(task_id)
    assert scene.ends() == [(("t1",), True), (("t2", "t3"), True)]
