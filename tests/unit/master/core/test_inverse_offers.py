"""Inverse offers: who is asked to leave, when again, and what becomes of the answers."""

import pytest

from master.core import maintenance
from mesos_py.resources import Resources
from mesos_py.v1 import maintenance_pb2 as mt
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import World
from tests.kit.operators import Operator, machine, window

Call = sched.Call
Event = sched.Event
STATUS = mt.InverseOfferStatus


class Scene:
    """A framework with a task on web1, of two agents."""

    def __init__(self):
        self.world = World()
        self.operator = Operator(self.world)
        self.framework = self.world.framework(failover_timeout=1e6)
        self.agent = self.world.agent("web1")
        self.framework.start("t1", text="cpus:1;mem:32")
        self.agent.report("t1", pb.TASK_RUNNING, self.framework)
        self.other = self.world.agent("web2")
        self.framework.take()

    def schedule(self, *names, **times):
        self.operator.schedule(*([window(*names, **times)] if names else []))

    def asked(self, framework=None):
        """Settle; the inverse offers that have come since."""
        framework = framework or self.framework
        self.world.settle()
        return [
            offer
            for event in framework.take()
            if event.type == Event.INVERSE_OFFERS
            for offer in event.inverse_offers.inverse_offers
        ]

    def answer(self, *offers, accept=True, refuse_s=None, framework=None):
        ids = [each.id for each in offers]
        filters = None if refuse_s is None else pb.Filters(refuse_seconds=refuse_s)
        framework = framework or self.framework
        if accept:
            said = Call.AcceptInverseOffers(inverse_offer_ids=ids, filters=filters)
            framework.call(type=Call.ACCEPT_INVERSE_OFFERS, accept_inverse_offers=said)
        else:
            refused = Call.DeclineInverseOffers(inverse_offer_ids=ids, filters=filters)
            framework.call(type=Call.DECLINE_INVERSE_OFFERS, decline_inverse_offers=refused)

    def wait(self, seconds):
        """Time passes, and the agents are there."""
        for _ in range(int(seconds)):
            self.world.advance(1)
            self.agent.pong()
            self.other.pong()

    def statuses(self):
        """What the status says of web1: name of the status, by framework."""
        found = {}
        for each in maintenance.status(self.world.cluster).draining_machines:
            for status in each.statuses:
                assert each.id.hostname == "web1"
                found[status.framework_id.value] = STATUS.Status.Name(status.status)
        return found


@pytest.fixture
def scene():
    made = Scene()
    yield made
    made.world.check()


# ---- Who is asked ----------------------------------------------------------------------------


def test_who_has_something_there_is_asked(scene):
    scene.schedule("web1", start_s=5e8, duration_s=60)
    [offer] = scene.asked()
    assert offer.agent_id.value == scene.agent.id
    assert offer.framework_id.value == scene.framework.id
    assert Resources.from_proto("resources", offer.resources) == Resources.parse("cpus:1;mem:32")
    assert offer.unavailability.start.nanoseconds == 5e8 * 10**9
    assert offer.unavailability.duration.nanoseconds == 60 * 10**9
    assert scene.statuses() == {scene.framework.id: "UNKNOWN"}


def test_who_has_nothing_there_is_not(scene):
    idle = scene.world.framework("idle")
    scene.schedule("web1", "web2")
    assert [each.agent_id.value for each in scene.asked()] == [scene.agent.id]
    assert scene.asked(idle) == []


def test_executors_count_and_what_has_ended_does_not(scene):
    scene.agent.report("t1", pb.TASK_FINISHED, scene.framework)
    offers = {offer.hostname: offer for offer in scene.framework.offers()}
    scene.framework.launch(offers["web2"], scene.world.custom_task("t2"))
    scene.other.report("t2", pb.TASK_FINISHED, scene.framework)
    scene.schedule("web1", "web2")
    [offer] = scene.asked()
    assert offer.agent_id.value == scene.other.id
    assert Resources.from_proto("resources", offer.resources) == Resources.parse("cpus:0.5")


def test_one_question_at_a_time(scene):
    scene.schedule("web1")
    assert len(scene.asked()) == 1
    scene.world.framework("another")
    scene.world.agent()
    assert scene.asked() == []


def test_who_comes_to_such_a_machine_later_is_asked(scene):
    scene.schedule("web1", "web2")
    scene.world.settle()
    events = scene.framework.take()
    offers = {offer.hostname: offer for event in events for offer in event.offers.offers}
    scene.framework.launch(offers["web2"], scene.world.task("t2"))
    [asked] = scene.asked()
    assert asked.agent_id.value == scene.other.id


def test_an_agent_that_comes_back_with_tasks_is_asked_about(scene):
    scene.schedule("web1")
    scene.asked()
    scene.agent.disconnect()
    assert "RESCIND_INVERSE_OFFER" in scene.framework.kinds()
    assert scene.asked() == []
    task = scene.agent.task("t1", scene.framework, pb.TASK_RUNNING)
    scene.agent.register(tasks=[task], frameworks=[scene.framework.info])
    assert len(scene.asked()) == 1


def test_all_of_one_framework_comes_as_one_event(scene):
    offers = {offer.hostname: offer for offer in scene.framework.offers()}
    scene.framework.launch(offers["web2"], scene.world.task("t2"))
    scene.schedule("web1", "web2")
    scene.world.settle()
    events = [each for each in scene.framework.take() if each.type == Event.INVERSE_OFFERS]
    assert [len(each.inverse_offers.inverse_offers) for each in events] == [2]


# ---- Answers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("accept", "name"), [(True, "ACCEPT"), (False, "DECLINE")])
def test_an_answer_is_kept_and_shown(scene, accept, name):
    scene.schedule("web1")
    scene.answer(*scene.asked(), accept=accept)
    assert scene.statuses() == {scene.framework.id: name}
    assert scene.framework.kinds() == []


@pytest.mark.parametrize("accept", [True, False])
def test_it_is_asked_again_when_the_filter_is_over_and_the_answer_stays(scene, accept):
    scene.schedule("web1")
    scene.answer(*scene.asked(), accept=accept, refuse_s=8)
    said = scene.statuses()
    scene.wait(7)
    assert scene.asked() == []
    scene.wait(1)
    [again] = scene.asked()
    assert scene.statuses() == said
    scene.answer(again, accept=not accept)
    assert scene.statuses() != said


def test_without_filters_it_is_asked_again_after_five_seconds(scene):
    scene.schedule("web1")
    scene.answer(*scene.asked())
    scene.wait(4)
    assert scene.asked() == []
    scene.wait(1)
    assert len(scene.asked()) == 1


def test_not_even_with_no_filter_is_it_asked_without_end(scene):
    scene.schedule("web1")
    scene.answer(*scene.asked(), refuse_s=0)
    assert scene.asked() == []
    scene.wait(1)
    assert len(scene.asked()) == 1


def test_revive_ends_the_filters(scene):
    scene.schedule("web1")
    scene.answer(*scene.asked(), refuse_s=1000)
    scene.framework.call(type=Call.REVIVE)
    assert len(scene.asked()) == 1


def test_an_answer_to_what_is_gone_or_anothers_is_ignored(scene):
    scene.schedule("web1")
    [offer] = scene.asked()
    thief = scene.world.framework("thief")
    scene.answer(offer, framework=thief)
    assert scene.statuses() == {scene.framework.id: "UNKNOWN"}
    scene.answer(offer, offer)
    drops = [reason for reason, _ in scene.world.outbox.drops]
    assert drops.count("inverse-offer-unknown") == 2
    assert scene.statuses() == {scene.framework.id: "ACCEPT"}


# ---- Ends ------------------------------------------------------------------------------------


def test_when_the_window_changes_the_question_is_another_one(scene):
    scene.schedule("web1", start_s=10)
    [offer] = scene.asked()
    scene.schedule("web1", start_s=20)
    rescind = [e for e in scene.framework.take() if e.type == Event.RESCIND_INVERSE_OFFER]
    assert [e.rescind_inverse_offer.inverse_offer_id for e in rescind] == [offer.id]
    [again] = scene.asked()
    assert again.unavailability.start.nanoseconds == 20 * 10**9


def test_an_answer_to_another_window_does_not_count(scene):
    scene.schedule("web1", start_s=10)
    scene.answer(*scene.asked(), refuse_s=1000)
    scene.schedule("web1", start_s=20)
    assert len(scene.asked()) == 1
    assert scene.statuses() == {scene.framework.id: "UNKNOWN"}


def test_nobody_is_asked_about_a_machine_that_stays(scene):
    scene.schedule("web1")
    scene.asked()
    scene.schedule()
    assert "RESCIND_INVERSE_OFFER" in scene.framework.kinds()
    assert scene.asked() == []
    assert scene.world.cluster.inverse.statuses == {}


def test_one_that_is_not_answered_in_time_is_taken_back_and_comes_again(scene):
    scene.schedule("web1")
    scene.asked()
    scene.wait(31)
    assert "RESCIND_INVERSE_OFFER" in scene.framework.kinds()
    scene.wait(5)
    assert len(scene.asked()) == 1


def test_when_the_machine_is_taken_away_the_question_is_void(scene):
    scene.schedule("web1")
    scene.asked()
    scene.operator.start(machine("web1"))
    assert "RESCIND_INVERSE_OFFER" in scene.framework.kinds()
    assert scene.asked() == []
    assert scene.world.cluster.inverse.offers == {}


# ---- Streams ---------------------------------------------------------------------------------


def test_another_stream_of_the_framework_is_asked_anew(scene):
    scene.schedule("web1")
    [first] = scene.asked()
    scene.framework.subscribe()
    [second] = scene.asked()
    assert first.id != second.id
    scene.answer(first)
    assert scene.statuses() == {scene.framework.id: "UNKNOWN"}


def test_another_stream_has_no_filters(scene):
    scene.schedule("web1")
    scene.answer(*scene.asked(), refuse_s=1000)
    scene.framework.disconnect()
    scene.framework.subscribe()
    assert len(scene.asked()) == 1
    assert scene.statuses() == {scene.framework.id: "ACCEPT"}


def test_a_framework_that_is_away_is_not_asked(scene):
    scene.framework.disconnect()
    scene.schedule("web1")
    scene.world.settle()
    assert scene.world.cluster.inverse.offers == {}


def test_a_framework_that_ends_leaves_nothing_behind(scene):
    scene.schedule("web1")
    scene.answer(*scene.asked())
    scene.framework.call(type=Call.TEARDOWN)
    scene.agent.report("t1", pb.TASK_KILLED, scene.framework, uuid=b"")
    scene.world.settle()
    assert scene.world.cluster.inverse.statuses == {}
    assert scene.world.cluster.inverse.offers == {}
    assert scene.statuses() == {}


def test_a_successor_asks_again(scene):
    scene.schedule("web1")
    scene.asked()
    scene.world.records["maintenance"] = scene.world.cluster.machines.record.SerializeToString()
    successor = scene.world.successor()
    scene.world = scene.agent.world = scene.framework.world = successor
    scene.framework.subscribe()
    task = scene.agent.task("t1", scene.framework, pb.TASK_RUNNING)
    scene.agent.register(tasks=[task], frameworks=[scene.framework.info])
    assert len(scene.asked()) == 1
