"""The scheduler's session: tasks, acknowledgements, kills, wants; without IO."""

import pytest

from mesos_py.errors import (
    InvalidValue,
    TooLarge,
    Unavailable,
)
from mesos_py.resources import Resources
from mesos_py.scheduler import checks, session
from mesos_py.scheduler.written import ARRIVED_S
from mesos_py.states import (
    TASK_FINISHED,
    TASK_GONE,
    TASK_KILLED,
    TASK_RUNNING,
    TASK_UNKNOWN,
)
from mesos_py.testing.builders import make_framework, make_offer, make_status, make_task
from mesos_py.v1.scheduler_pb2 import Call, Event
from mesos_py.v1.types_pb2 import ExecutorID, TaskStatus
from tests.kit.scheduler_session import (
    heartbeat,
    kill,
    kinds,
    make_session,
    run,
    statuses,
    subscribe,
    subscribed_session,
    taken,
    update,
)

# ---- Launches in doubt -------------------------------------------------------


def test_launch_that_was_written_before_the_link_broke_is_asked_for():
    sess = subscribed_session(make_offer("o1", "a1"))
    run(sess, "o1", make_task("t1"))
    taken(sess)
    sess.lost("cut")
    subscribe(sess)
    assert taken(sess) == []  # agents may still have to come back
    sess.receive([heartbeat()])
    [call] = taken(sess)
    [asked] = call.reconcile.tasks
    assert (asked.task_id.value, asked.agent_id.value) == ("t1", "a1")


def test_launch_in_doubt_is_asked_for_until_something_is_heard_of_it():
    sess = subscribed_session(make_offer("o1", "a1"))
    run(sess, "o1", make_task("t1"))
    taken(sess)
    sess.lost("cut")
    subscribe(sess)
    sess.receive([heartbeat(), heartbeat()])
    assert kinds(taken(sess)) == ["RECONCILE", "RECONCILE"]
    sess.receive([update(make_status("t1", TASK_GONE, acknowledged=False)), heartbeat()])
    assert taken(sess) == []


def test_task_that_has_reported_is_not_in_doubt():
    sess = subscribed_session(make_offer("o1"))
    run(sess, "o1", make_task("t1"))
    taken(sess)
    sess.receive([update(make_status("t1"))])
    sess.lost("cut")
    subscribe(sess)
    sess.receive([heartbeat(), heartbeat()])
    assert kinds(taken(sess)) == []


# ---- Updates and acknowledgements --------------------------------------------


def test_acknowledgement_repeats_agent_task_and_uuid():
    sess = subscribed_session()
    status = make_status("t1", agent_id="a1")
    sess.receive([update(status)])
    assert statuses(sess) == [status]
    sess.acknowledge([status])
    [call] = taken(sess)
    assert call.acknowledge == Call.Acknowledge(
        agent_id=status.agent_id, task_id=status.task_id, uuid=status.uuid
    )


def test_status_without_a_uuid_is_not_acknowledged():
    sess = subscribed_session()
    sess.acknowledge([make_status("t1", acknowledged=False)])
    assert taken(sess) == []


def test_update_that_comes_again_after_its_acknowledgement_is_acknowledged_again_only():
    sess = subscribed_session()
    status = make_status("t1")
    sess.receive([update(status)])
    sess.acknowledge([status])
    taken(sess)
    sess.take_items()
    sess.receive([update(status)])
    assert sess.take_items() == []
    assert kinds(taken(sess)) == ["ACKNOWLEDGE"]


def test_same_after_a_new_subscription_since_the_acknowledgement_may_have_been_lost():
    sess = subscribed_session()
    status = make_status("t1")
    sess.receive([update(status)])
    sess.acknowledge([status])
    taken(sess)
    sess.lost("cut")
    subscribe(sess)
    sess.take_items()
    sess.receive([update(status)])
    assert sess.take_items() == []
    assert kinds(taken(sess)) == ["ACKNOWLEDGE"]


def test_update_that_still_waits_for_its_callback_is_not_shown_twice():
    sess = subscribed_session()
    status = make_status("t1")
    sess.receive([update(status), update(status)])
    assert len(statuses(sess)) == 1
    assert taken(sess) == []


def test_explicit_acknowledgements_let_an_unacknowledged_update_come_again():
    sess = subscribed_session(implicit=False)
    status = make_status("t1")
    sess.receive([update(status)])
    sess.receive([update(status)])
    assert len(statuses(sess)) == 2


def test_acknowledgement_made_without_a_link_waits_for_the_next():
    sess = subscribed_session()
    status = make_status("t1")
    sess.receive([update(status)])
    sess.lost("cut")
    sess.acknowledge([status])
    assert sess.take_calls() is None
    subscribe(sess)
    assert kinds(taken(sess)) == ["ACKNOWLEDGE"]


def test_acknowledgements_of_a_batch_go_out_in_one_message():
    sess = subscribed_session()
    many = [make_status(f"t{n}") for n in range(500)]
    sess.receive([update(status) for status in many])
    sess.acknowledge(many)
    assert len(sess.take_calls().calls) == 500
    assert sess.take_calls() is None


# ---- Kills and what else is kept ---------------------------------------------


def test_kill_is_said_again_on_a_new_subscription_until_the_task_has_ended():
    sess = subscribed_session()
    kill(sess, "t1")
    assert kinds(taken(sess)) == ["KILL"]
    for _ in range(2):
        sess.lost("cut")
        subscribe(sess)
        assert kinds(taken(sess)) == ["KILL"]
    sess.receive([update(make_status("t1", TASK_KILLED))])
    sess.lost("cut")
    subscribe(sess)
    assert taken(sess) == []


def test_running_does_not_settle_a_kill_but_unknown_does():
    sess = subscribed_session()
    kill(sess, "t1")
    taken(sess)
    sess.receive([update(make_status("t1", TASK_RUNNING))])
    sess.lost("cut")
    subscribe(sess)
    assert kinds(taken(sess)) == ["KILL"]
    sess.receive([update(make_status("t1", TASK_UNKNOWN, acknowledged=False))])
    sess.lost("cut")
    subscribe(sess)
    assert taken(sess) == []


def test_kill_of_an_earlier_task_does_not_hit_a_new_one_with_its_id():
    sess = subscribed_session(make_offer("o1"))
    kill(sess, "t1")
    run(sess, "o1", make_task("t1"))
    taken(sess)
    sess.lost("cut")
    subscribe(sess)
    assert taken(sess) == []


def test_refused_kill_is_not_said_again():
    sess = subscribed_session()
    kill(sess, "t1")
    taken(sess)
    refused = Event.Refused(call=Call.KILL, field="task_id", value="t1", message="no")
    sess.receive([Event(type=Event.REFUSED, refused=refused)])
    sess.lost("cut")
    subscribe(sess)
    assert taken(sess) == []


def test_calls_made_without_a_link_are_sent_later_in_order():
    sess = make_session()
    kill(sess, "t1")
    sess.reconcile(["t2"])
    kill(sess, "t3")
    sess.say(Call.SHUTDOWN, shutdown=Call.Shutdown())
    subscribe(sess)
    assert kinds(taken(sess)) == ["KILL", "RECONCILE", "KILL", "SHUTDOWN"]


def test_calls_that_were_queued_when_the_link_broke_are_sent_later():
    sess = subscribed_session()
    sess.reconcile([])
    kill(sess, "t1")
    sess.lost("cut")
    subscribe(sess)
    assert kinds(taken(sess)) == ["RECONCILE", "KILL"]


def test_calls_kept_are_bounded_and_acknowledgements_are_what_may_be_dropped(monkeypatch):
    monkeypatch.setattr(session, "MAX_KEPT", 3)
    sess = make_session()
    for n in range(3):
        kill(sess, f"t{n}")
    with pytest.raises(Unavailable, match="3 calls wait"):
        kill(sess, "t9")
    sess.acknowledge([make_status("t1")])
    subscribe(sess)
    assert len(taken(sess)) == 3


def test_a_link_that_is_lost_under_more_calls_than_are_kept_loses_none_of_them(monkeypatch):
    monkeypatch.setattr(session, "MAX_KEPT", 3)
    sess = subscribed_session()
    for n in range(5):
        kill(sess, f"t{n}")
    sess.say(Call.SHUTDOWN, shutdown=Call.Shutdown(executor_id=ExecutorID(value="e")))
    sess.lost("cut")
    [told] = sess.take_items()
    assert told.reason == "cut"
    subscribe(sess)
    calls = taken(sess)
    assert {f"t{n}" for n in range(5)} == {
        c.kill.task_id.value for c in calls if c.type == Call.KILL
    }
    assert "SHUTDOWN" in kinds(calls)


def test_message_without_a_link_is_refused_aloud():
    sess = make_session()
    sess.message(Call.Message(data=b"x"))
    [item] = sess.take_items()
    assert item.refused.call == Call.MESSAGE
    assert "no link" in item.refused.message


def test_message_over_the_limit_is_an_error():
    sess = subscribed_session(max_call_bytes=2000)
    with pytest.raises(TooLarge):
        sess.message(Call.Message(data=b"x" * 2001))


def test_batches_are_bounded_in_bytes_and_in_number():
    sess = subscribed_session()
    for _ in range(3):
        sess.message(Call.Message(data=b"x" * 1000))
    assert len(sess.take_calls(max_bytes=2600).calls) == 2
    assert len(sess.take_calls(max_bytes=1).calls) == 1
    for n in range(5):
        kill(sess, f"t{n}")
    assert [len(sess.take_calls(max_calls=2).calls) for _ in range(3)] == [2, 2, 1]


def test_long_reconciliation_is_split():
    sess = subscribed_session()
    sess.reconcile([f"t{n}" for n in range(2500)])
    assert [len(call.reconcile.tasks) for call in taken(sess)] == [1000, 1000, 500]


def test_reconciliation_of_everything_is_one_empty_call():
    sess = subscribed_session()
    sess.reconcile([])
    [call] = taken(sess)
    assert call.type == Call.RECONCILE
    assert not call.reconcile.tasks


# ---- Wants -------------------------------------------------------------------


def test_suppression_is_stated_anew_in_the_next_subscription():
    sess = subscribed_session(roles=["a", "b"])
    sess.set_needs_offers(False, "a")
    [call] = taken(sess)
    assert list(call.suppress.roles) == ["a"]
    sess.lost("cut")
    [opening] = sess.opening().calls
    assert list(opening.subscribe.suppressed_roles) == ["a"]


def test_suppressing_twice_is_said_once_and_reviving_every_time():
    sess = subscribed_session()
    sess.set_needs_offers(False, None)
    sess.set_needs_offers(False, None)
    sess.set_needs_offers(True, None)
    sess.set_needs_offers(True, None)  # also clears refusals
    assert kinds(taken(sess)) == ["SUPPRESS", "REVIVE", "REVIVE"]


def test_suppression_before_the_first_subscription_is_part_of_it():
    sess = make_session()
    sess.set_needs_offers(False, None)
    [opening] = sess.opening().calls
    assert list(opening.subscribe.suppressed_roles) == ["*"]


def test_foreign_role_is_an_error():
    with pytest.raises(InvalidValue, match="roles: 'c'"):
        make_session(roles=["a"]).set_needs_offers(True, ["a", "c"])


def test_needs_are_stated_anew_and_only_when_they_change():
    sess = subscribed_session()
    needs = [("map", Resources.of(cpus=1), 3)]
    sess.request(needs)
    sess.request(needs)
    [call] = taken(sess)
    [request] = call.request.requests
    assert (request.name, request.count) == ("map", 3)
    sess.lost("cut")
    subscribe(sess)
    assert kinds(taken(sess)) == ["REQUEST"]
    sess.request([])
    [call] = taken(sess)
    assert not call.request.requests
    sess.lost("cut")
    subscribe(sess)
    # None are needed any more: the master may not have heard that.
    [call] = taken(sess)
    assert not call.request.requests


def test_filters_go_out_at_once_and_with_each_subscription():
    sess = subscribed_session()
    sess.set_filters(["h1", "h2"], Resources.of(cpus=2), None)
    [call] = taken(sess)
    sess.lost("cut")
    [opening] = sess.opening().calls
    for said in (call.update_framework, opening.subscribe):
        assert len(said.offer_constraints.role_constraints["*"].groups) == 2
        minimum = said.framework_info.offer_filters["*"].min_allocatable_resources
        assert minimum.quantities[0].quantities["cpus"].value == 2
    assert call.update_framework.framework_info.id.value == "f1"


def test_cleared_filters_are_gone():
    sess = subscribed_session()
    sess.set_filters(["h1"], Resources.of(cpus=2), None)
    sess.set_filters(None, None, None)
    call = taken(sess)[-1]
    assert not call.update_framework.HasField("offer_constraints")
    assert not call.update_framework.framework_info.offer_filters


def test_wrong_filters_change_nothing():
    sess = subscribed_session()
    sess.set_filters(["h1"], None, None)
    taken(sess)
    with pytest.raises(InvalidValue):
        sess.set_filters([], Resources.of(cpus=1), None)
    with pytest.raises(InvalidValue, match="min_free"):
        sess.set_filters(["h2"], Resources.of(ports=[(1, 2)]), None)
    [opening] = sess.opening().calls
    groups = opening.subscribe.offer_constraints.role_constraints["*"].groups
    assert groups[0].attribute_constraints[0].predicate.text_equals.value == "h1"


def test_update_of_the_framework_keeps_its_id_and_refuses_what_is_fixed():
    sess = subscribed_session(name="n")
    sess.update_framework(checks.complete_framework(make_framework("m"), "user-1", "host-0"))
    [call] = taken(sess)
    assert call.update_framework.framework_info.name == "m"
    assert call.update_framework.framework_info.id.value == "f1"
    other = checks.complete_framework(make_framework("m", user="u2"), "user-1", "host-0")
    with pytest.raises(InvalidValue, match=r"framework\.user"):
        sess.update_framework(other)


def test_framework_over_the_limit_is_an_error():
    with pytest.raises(TooLarge):
        make_session(name="n" * 1000, max_call_bytes=1500)


# ---- Written, and perhaps not arrived -------------------------------------------


def test_a_question_that_was_written_just_before_the_loss_is_asked_again():
    sess = subscribed_session()
    sess.reconcile(["t1"])
    asked = taken(sess)
    sess.lost("gone")
    subscribe(sess)
    assert taken(sess) == asked
    sess.lost("gone")
    subscribe(sess)
    assert taken(sess) == asked  # nor does this one say that it has arrived


@pytest.mark.parametrize(
    "answer",
    [
        make_status("t1", acknowledged=False, reason=TaskStatus.REASON_RECONCILIATION),
        make_status("t1", TASK_FINISHED),
    ],
)
def test_a_question_that_was_answered_or_whose_task_has_ended_is_not_asked_again(answer):
    """A master that has forgotten the task would say that it is gone."""
    sess = subscribed_session()
    sess.reconcile(["t1", "t2"])
    sess.reconcile(["t1"])
    taken(sess)
    sess.receive([update(answer)])
    sess.lost("gone")
    subscribe(sess)
    [again] = taken(sess)
    assert [task.task_id.value for task in again.reconcile.tasks] == ["t2"]


def test_a_question_about_a_task_of_which_older_news_came_is_asked_again():
    sess = subscribed_session()
    sess.reconcile(["t1"])
    asked = taken(sess)
    sess.receive([update(make_status("t1"))])
    sess.lost("gone")
    subscribe(sess)
    assert taken(sess) == asked


def test_a_question_about_everything_is_asked_again_whatever_came():
    sess = subscribed_session()
    sess.reconcile([])
    asked = taken(sess)
    sess.receive([update(make_status("t1", TASK_FINISHED))])
    sess.lost("gone")
    subscribe(sess)
    assert taken(sess) == asked


def test_a_question_of_long_ago_has_arrived():
    sess = subscribed_session()
    sess.reconcile(["t1"])
    taken(sess)
    sess._clock.advance(ARRIVED_S + 1)
    sess.lost("gone")
    subscribe(sess)
    assert taken(sess) == []


def test_a_shutdown_that_may_not_have_arrived_is_told_and_not_repeated():
    sess = subscribed_session()
    sess.say(Call.SHUTDOWN, shutdown=Call.Shutdown(executor_id=ExecutorID(value="e1")))
    taken(sess)
    sess.take_items()
    sess.lost("gone")
    refused, _ = sess.take_items()
    assert (refused.refused.call, refused.refused.value) == (Call.SHUTDOWN, "e1")
    assert "may not have arrived" in refused.refused.message
    subscribe(sess)
    assert taken(sess) == []
