"""The scheduler's session while it stands by: what it says, keeps and answers."""

import pytest

from mesos_py.scheduler.session import Disconnected
from mesos_py.states import TASK_FINISHED, TASK_LOST
from mesos_py.testing.builders import make_offer, make_status, make_task
from mesos_py.v1.scheduler_pb2 import Call, Event
from mesos_py.v1.types_pb2 import ExecutorID, FrameworkID
from tests.kit.scheduler_session import (
    heartbeat,
    kill,
    kinds,
    make_session,
    offers,
    run,
    statuses,
    subscribe,
    taken,
    update,
)


def standby_session():
    return make_session(standby=True, id="fw")


def stand_by(sess, ahead=0, **fields):
    """Answer a new stream with STANDBY."""
    opening = sess.opening().calls[0].subscribe
    sess.receive([standby(ahead, **fields), heartbeat()])
    return opening


def standby(ahead, **fields):
    event = Event.Standby(framework_id=FrameworkID(value="fw"), ahead=ahead, **fields)
    return Event(type=Event.STANDBY, standby=event)


def promote(sess):
    subscribed = Event.Subscribed(framework_id=FrameworkID(value="fw"))
    sess.receive([Event(type=Event.SUBSCRIBED, subscribed=subscribed), heartbeat()])


def refusals(sess):
    return [
        (Call.Type.Name(item.refused.call), item.refused.field, item.refused.value)
        for item in sess.take_items()
        if isinstance(item, Event) and item.type == Event.REFUSED
    ]


def test_it_asks_to_stand_by_and_says_whether_it_was_active():
    sess = standby_session()
    first = sess.opening().calls[0].subscribe
    assert (first.standby, first.was_active) == (True, False)
    promote(sess)
    sess.lost("gone")
    assert sess.opening().calls[0].subscribe.was_active
    sess.receive([standby(0)])
    sess.lost("gone")
    assert not sess.opening().calls[0].subscribe.was_active


def test_one_that_does_not_stand_by_says_nothing_of_it():
    subscribe = make_session().opening().calls[0].subscribe
    assert not subscribe.HasField("standby")
    assert not subscribe.HasField("was_active")


def test_standby_is_shown_again_with_each_place_and_is_no_subscription():
    sess = standby_session()
    stand_by(sess, ahead=1, heartbeat_interval_seconds=3)
    sess.receive([standby(0)])
    assert [item.standby.ahead for item in sess.take_items()] == [1, 0]
    assert (sess.subscribed, sess.standing_by, sess.linked) == (False, True, True)
    assert sess.heartbeat_s == 15.0
    sess.receive([standby(0, heartbeat_interval_seconds=3)])
    assert sess.heartbeat_s == 3


def test_promotion_is_an_ordinary_subscription():
    sess = standby_session()
    stand_by(sess)
    promote(sess)
    assert [item.type for item in sess.take_items()] == [Event.STANDBY, Event.SUBSCRIBED]
    assert (sess.subscribed, sess.standing_by) == (True, False)
    sess.receive([offers(make_offer("o1"))])
    run(sess, "o1", make_task("t1"))
    assert kinds(taken(sess)) == ["ACCEPT"]


def test_the_loss_of_a_place_is_told_like_that_of_a_subscription():
    sess = standby_session()
    stand_by(sess)
    sess.take_items()
    sess.lost("gone")
    assert sess.take_items() == [Disconnected("gone")]
    assert not sess.linked


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda s: kill(s, "t1"), ("KILL", "task_id", "t1")),
        (lambda s: s.reconcile(["t1", "t2"]), ("RECONCILE", "tasks", "t1")),
        (lambda s: s.reconcile([]), ("RECONCILE", "tasks", "")),
        (
            lambda s: s.say(
                Call.SHUTDOWN, shutdown=Call.Shutdown(executor_id=ExecutorID(value="e1"))
            ),
            ("SHUTDOWN", "executor_id", "e1"),
        ),
        (lambda s: s.message(Call.Message()), ("MESSAGE", "agent_id", "")),
    ],
)
def test_a_call_made_while_standing_by_is_answered_and_not_kept(call, told):
    sess = standby_session()
    stand_by(sess)
    call(sess)
    assert refusals(sess) == [told]
    promote(sess)
    assert taken(sess) == []


def test_a_launch_while_standing_by_is_answered_with_its_status():
    sess = subscribe(standby_session(), "fw")
    sess.receive([offers(make_offer("o1"))])
    sess.lost("gone")
    stand_by(sess)
    run(sess, "o1", make_task("t1"))
    [status] = statuses(sess)
    assert (status.task_id.value, status.state) == ("t1", TASK_LOST)


def test_acknowledgements_while_standing_by_are_left_to_the_active_instance():
    sess = standby_session()
    stand_by(sess)
    status = make_status("t1", TASK_FINISHED)
    sess.acknowledge([status])
    assert refusals(sess) == []
    promote(sess)
    assert taken(sess) == []
    # The agent has it still: it was not acknowledged by the other instance either.
    sess.receive([update(status)])
    assert kinds(taken(sess)) == ["ACKNOWLEDGE"]
    assert statuses(sess) == []


def test_what_waited_for_a_subscription_is_answered_when_another_is_active():
    sess = subscribe(standby_session(), "fw")
    kill(sess, "written")
    taken(sess)
    kill(sess, "not-written")
    sess.lost("gone")
    kill(sess, "later")
    sess.reconcile(["t1"])
    sess.take_items()
    stand_by(sess)
    assert refusals(sess) == [
        ("KILL", "task_id", "written"),
        ("KILL", "task_id", "not-written"),
        ("KILL", "task_id", "later"),
        ("RECONCILE", "tasks", "t1"),
    ]
    promote(sess)
    assert taken(sess) == []


def test_a_refusal_by_the_master_while_standing_by_is_shown_and_ends_nothing():
    sess = standby_session()
    stand_by(sess)
    refused = Event.Refused(call=Call.KILL, code="refused", field="type", value="KILL")
    sess.receive([Event(type=Event.REFUSED, refused=refused)])
    assert refusals(sess) == [("KILL", "type", "KILL")]
    assert sess.fatal is None


def test_launches_in_doubt_are_asked_for_after_promotion_only():
    sess = subscribe(standby_session(), "fw")
    sess.receive([offers(make_offer("o1"))])
    run(sess, "o1", make_task("t1"))
    taken(sess)
    sess.lost("gone")
    stand_by(sess)
    for _ in range(3):
        sess.receive([heartbeat()])
    assert refusals(sess) == []
    promote(sess)
    sess.receive([heartbeat()])
    [call] = taken(sess)
    assert [asked.task_id.value for asked in call.reconcile.tasks] == ["t1"]


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.set_needs_offers(False, None),
        lambda s: s.set_filters(["a"], None, None),
    ],
)
@pytest.mark.parametrize("waits", [False, True])
def test_state_that_changed_since_the_stream_began_is_stated_when_it_is_active(change, waits):
    sess = standby_session()
    sess.opening()
    if waits:
        sess.receive([standby(0)])
    change(sess)
    promote(sess)
    [call] = taken(sess)
    assert call.type == Call.UPDATE_FRAMEWORK
    assert call.update_framework == sess.wants.update_framework()
    assert call.framework_id.value == "fw"
    sess.lost("gone")
    subscribe(sess, "fw")
    assert taken(sess) == []  # SUBSCRIBE has said it


def test_a_kill_that_was_refused_is_not_said_again_after_promotion():
    sess = standby_session()
    stand_by(sess)
    kill(sess, "t1")
    promote(sess)
    sess.lost("gone")
    subscribe(sess, "fw")
    assert taken(sess) == []


def test_teardown_that_finds_another_instance_active_is_given_up():
    sess = subscribe(standby_session(), "fw")
    sess.lost("gone")
    sess.close(teardown=True)
    assert sess.tearing_down
    stand_by(sess)
    assert not sess.tearing_down
    promote(sess)
    assert taken(sess) == []
