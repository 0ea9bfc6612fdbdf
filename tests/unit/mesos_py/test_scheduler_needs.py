"""What a framework needs, waits for, is guaranteed and is asked back, on the SDK's side."""

import pytest

import mesos_py
from mesos_py.errors import InvalidValue, MesosPyError
from mesos_py.resources import EMPTY, Resources
from mesos_py.scheduler.needs import Need, asked_back, requests_of
from mesos_py.states import TASK_FAILED, TASK_KILLED, is_preempted
from mesos_py.testing.builders import (
    make_asking_back,
    make_inverse_offer,
    make_offer,
    make_status,
    make_task,
)
from mesos_py.v1.scheduler_pb2 import Call, Event
from mesos_py.v1.types_pb2 import TaskStatus
from tests.kit.scheduler_session import (
    heartbeat,
    kinds,
    make_session,
    offers,
    rescind,
    run,
    statuses,
    subscribe,
    subscribed_session,
    taken,
)

CPU = Resources.of(cpus=1)


# ---- Needs -----------------------------------------------------------------------------


@pytest.mark.parametrize(("count"), [0, -1, 1.5, True, 2**32, "1"])
def test_bad_count_of_a_need_is_an_error(count):
    with pytest.raises(InvalidValue, match="count"):
        requests_of([("x", CPU, count)])


def test_too_many_needs_are_an_error():
    with pytest.raises(InvalidValue, match="at most 1000"):
        requests_of([("x", CPU, 1)] * 1001)


def test_a_need_of_nothing_is_an_error_but_may_wait():
    with pytest.raises(InvalidValue, match="must be of something"):
        requests_of([("x", EMPTY, 1)])
    assert len(requests_of([("x", EMPTY, 1)], waiting=True)) == 1


def test_an_agent_id_that_cannot_be_is_an_error():
    with pytest.raises(InvalidValue, match="agent_id"):
        requests_of([Need("x", CPU, agent_id="a/b")])


def test_a_tuple_says_what_a_need_says():
    assert requests_of([("x", CPU, 2)]) == requests_of([Need("x", CPU, 2)])


def test_all_that_a_need_says_is_on_the_wire():
    need = mesos_py.Need("x", CPU, 2, role="r", agent_id="a1", mandatory=True)
    (request,) = requests_of([need])
    assert (request.name, request.count, request.role) == ("x", 2, "r")
    assert (request.agent_id.value, request.mandatory) == ("a1", True)
    assert not request.HasField("waiting")
    (plain,) = requests_of([("x", CPU, 1)])
    for field in ("role", "agent_id", "mandatory", "waiting"):
        assert not plain.HasField(field)


def requested(sess):
    """The last REQUEST that is written: what is needed, and what only waits."""
    call = [call for call in taken(sess) if call.type == Call.REQUEST][-1]
    items = call.request.requests
    return (
        [item.name for item in items if not item.waiting],
        [item.name for item in items if item.waiting],
    )


def test_needs_and_what_waits_are_stated_together_and_replaced_apart():
    sess = subscribed_session()
    sess.request([("a", CPU, 1)])
    sess.wait_for([("b", CPU, 1), ("c", CPU, 1)])
    assert requested(sess) == (["a"], ["b", "c"])
    sess.request([("d", CPU, 1)])
    assert requested(sess) == (["d"], ["b", "c"])
    sess.wait_for([])
    assert requested(sess) == (["d"], [])


def test_what_was_stated_already_is_not_said_again():
    sess = subscribed_session()
    for _ in range(2):
        sess.request([("a", CPU, 1)])
        sess.wait_for([("b", CPU, 1)])
    assert kinds(taken(sess)) == ["REQUEST", "REQUEST"]


def test_together_they_are_not_too_many_and_then_nothing_has_changed():
    sess = subscribed_session()
    sess.wait_for([("x", CPU, 1)] * 600)
    with pytest.raises(InvalidValue, match="with what waits"):
        sess.request([("x", CPU, 1)] * 401)
    assert len(sess.wants.requests) == 600


def test_more_bytes_than_a_master_takes_are_an_error_and_then_nothing_has_changed():
    sess = subscribed_session()
    with pytest.raises(MesosPyError, match="needs"):
        sess.request([("x" * 1024 * 1024, CPU, 1)])
    assert sess.wants.requests == []


def test_both_are_stated_again_on_a_new_subscription_as_they_were_last():
    sess = subscribed_session()
    sess.request([("a", CPU, 1)])
    taken(sess)
    sess.lost("gone")
    sess.wait_for([("b", CPU, 1)])
    subscribe(sess)
    assert requested(sess) == (["a"], ["b"])


@pytest.mark.parametrize("written", [True, False])
def test_needs_that_were_taken_back_are_taken_back_on_the_next_subscription_too(written):
    """The master has kept them meanwhile, and the words may have gone down with the link."""
    sess = subscribed_session()
    sess.request([("a", CPU, 1)])
    taken(sess)
    if written:
        sess.request([])
        assert requested(sess) == ([], [])
        sess.lost("gone")
    else:
        sess.lost("gone")
        sess.request([])
    subscribe(sess)
    assert requested(sess) == ([], [])


def test_needs_stated_by_a_standby_are_said_when_it_is_promoted():
    sess = make_session(standby=True, id={"value": "f1"})
    sess.opening()
    sess.receive([Event(type=Event.STANDBY)])
    sess.request([("a", CPU, 1)])
    assert taken(sess) == []
    subscribe(sess)
    assert requested(sess) == (["a"], [])


def test_the_answer_is_shown():
    sess = subscribed_session()
    answer = Event(type=Event.NEEDS, needs=Event.Needs(admitted=False, message="no"))
    sess.receive([answer])
    assert sess.take_items() == [answer]


# ---- Guarantees --------------------------------------------------------------------------


def guarantee(text):
    share = Event.Guarantee(resources=Resources.parse(text).to_proto())
    return Event(type=Event.GUARANTEE, guarantee=share)


def test_the_newest_guarantee_counts_before_anybody_has_seen_it():
    sess = subscribed_session()
    sess.receive([guarantee("cpus:2"), guarantee("cpus:3")])
    assert sess.guaranteed_share == Resources.of(cpus=3)
    assert len(sess.take_items()) == 2


def test_it_stays_over_a_lost_link_and_the_next_subscription_says_another():
    sess = subscribed_session()
    sess.receive([guarantee("cpus:2")])
    sess.lost("gone")
    assert sess.guaranteed_share == Resources.of(cpus=2)
    subscribe(sess, guaranteed_share=Resources.of(cpus=5).to_proto())
    assert sess.guaranteed_share == Resources.of(cpus=5)
    subscribe(sess)
    assert sess.guaranteed_share == EMPTY


# ---- Given back -----------------------------------------------------------------------------


def test_an_inverse_offer_is_about_one_thing_or_the_other():
    asked = asked_back(make_asking_back("t1", "t2", resources=CPU, deadline_s=7.5, reason="why"))
    assert asked is not None
    assert (asked.task_ids, asked.resources, asked.deadline_s) == (("t1", "t2"), CPU, 7.5)
    assert asked.reason == "why"
    assert asked.role == ""
    assert asked_back(make_inverse_offer()) is None


def test_what_is_asked_back_says_in_which_role_the_framework_holds_it():
    offer = make_asking_back("t1", resources=CPU)
    offer.resources[0].allocation_info.role = "b"
    asked = asked_back(offer)
    assert asked is not None
    assert (asked.role, asked.resources) == ("b", CPU)


@pytest.mark.parametrize(
    ("state", "reason", "preempted"),
    [
        (TASK_KILLED, TaskStatus.REASON_CONTAINER_PREEMPTED, True),
        (TASK_FAILED, TaskStatus.REASON_CONTAINER_PREEMPTED, False),
        (TASK_KILLED, TaskStatus.REASON_AGENT_DRAINING, False),
    ],
)
def test_only_a_task_that_was_killed_for_its_room_was_preempted(state, reason, preempted):
    assert is_preempted(make_status("t1", state, reason=reason)) is preempted


def test_a_kill_without_a_reason_is_none():
    assert not is_preempted(make_status("t1", TASK_KILLED))


# ---- Late answers ---------------------------------------------------------------------------


def late(*offer_ids):
    """A session whose offers were rescinded before it answered."""
    sess = subscribed_session(*(make_offer(offer_id) for offer_id in offer_ids))
    sess.receive([rescind(offer_id) for offer_id in offer_ids])
    return sess


def declined(sess):
    calls = [call for call in taken(sess) if call.type == Call.DECLINE]
    return [item.value for call in calls for item in call.decline.offer_ids]


def test_a_late_launch_is_answered_here_and_the_master_hears_that_we_are_there():
    sess = late("o1")
    run(sess, "o1", make_task("t1"))
    assert [status.task_id.value for status in statuses(sess)] == ["t1"]
    assert declined(sess) == ["o1"]


def test_a_late_decline_is_said_once():
    sess = late("o1", "o2")
    for _ in range(2):
        sess.decline(["o1", "o2"], None)
    assert declined(sess) == ["o1", "o2"]


def test_offers_of_an_earlier_stream_are_not_declined_on_this_one():
    sess = late("o1")
    sess.lost("gone")
    subscribe(sess)
    sess.decline(["o1"], None)
    assert declined(sess) == []


def test_an_offer_that_was_answered_before_it_was_rescinded_is_not_answered_again():
    sess = subscribed_session()
    sess.receive([offers(make_offer("o1")), heartbeat()])
    sess.decline(["o1"], None)
    sess.receive([rescind("o1")])
    with pytest.raises(InvalidValue, match="declined before"):
        sess.decline(["o1"], None)
    assert declined(sess) == ["o1"]
