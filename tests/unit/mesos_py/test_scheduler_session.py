"""The scheduler's session: calls in, messages out, without IO."""

from typing import Any

import pytest

from mesos_py.clock import ManualClock
from mesos_py.errors import (
    InvalidValue,
    Refused,
    TooLarge,
    Unavailable,
    UnsupportedProtocol,
)
from mesos_py.resources import EMPTY, Resources
from mesos_py.scheduler import checks, session
from mesos_py.scheduler.session import Disconnected, SchedulerSession
from mesos_py.states import (
    TASK_DROPPED,
    TASK_FINISHED,
    TASK_GONE,
    TASK_KILLED,
    TASK_LOST,
    TASK_RUNNING,
    TASK_UNKNOWN,
)
from mesos_py.tasks import launch
from mesos_py.testing.builders import make_framework, make_offer, make_status, make_task
from mesos_py.v1.scheduler_pb2 import Call, Event
from mesos_py.v1.types_pb2 import (
    Filters,
    FrameworkID,
    FrameworkInfo,
    Offer,
    OfferID,
    TaskID,
    TaskStatus,
)

PARTITION_AWARE = FrameworkInfo.Capability(type=FrameworkInfo.Capability.PARTITION_AWARE)


# A kind of event that only a later protocol has.
LATER: Any = 4711


def make_session(implicit: bool = True, max_call_bytes: int = 1_000_000, **fields):
    info = checks.complete_framework(make_framework(**fields), "user-1", "host-0")
    return SchedulerSession(
        info,
        clock=ManualClock(),
        client="test 1",
        implicit_acknowledgements=implicit,
        max_call_bytes=max_call_bytes,
    )


def subscribe(sess, framework_id="f1", **fields):
    sess.opening()
    subscribed = Event.Subscribed(framework_id=FrameworkID(value=framework_id), **fields)
    sess.receive([Event(type=Event.SUBSCRIBED, subscribed=subscribed), heartbeat()])
    return sess


def heartbeat():
    return Event(type=Event.HEARTBEAT)


def offers(*made):
    return Event(type=Event.OFFERS, offers=Event.Offers(offers=made))


def rescind(offer_id):
    return Event(type=Event.RESCIND, rescind=Event.Rescind(offer_id=OfferID(value=offer_id)))


def update(status):
    return Event(type=Event.UPDATE, update=Event.Update(status=status))


def subscribed_session(*made, **fields):
    sess = subscribe(make_session(**fields))
    if made:
        sess.receive([offers(*made)])
    sess.take_items()
    return sess


def taken(sess):
    """All that is to be written, as one list."""
    calls = []
    while (batch := sess.take_calls()) is not None:
        calls.extend(batch.calls)
    return calls


def kinds(calls):
    return [Call.Type.Name(call.type) for call in calls]


def statuses(sess):
    return [
        item.update.status
        for item in sess.take_items()
        if isinstance(item, Event) and item.type == Event.UPDATE
    ]


def run(sess, offer_id, *tasks, filters=None):
    sess.accept([offer_id], [launch(tasks)], filters)


# ---- Subscription ------------------------------------------------------------


def test_opening_is_one_subscribe_with_version_and_client():
    [call] = make_session(name="n").opening().calls
    assert call.type == Call.SUBSCRIBE
    assert not call.HasField("framework_id")
    assert call.subscribe.framework_info.name == "n"
    assert call.subscribe.framework_info.failover_timeout == 3600
    assert (call.subscribe.protocol_version, call.subscribe.client) == (1, "test 1")


def test_second_opening_carries_the_id_at_both_places():
    sess = subscribed_session()
    sess.lost("gone")
    [call] = sess.opening().calls
    assert call.framework_id.value == call.subscribe.framework_info.id.value == "f1"


def test_subscribed_is_shown_and_its_facts_are_kept():
    sess = make_session()
    subscribe(
        sess,
        heartbeat_interval_seconds=3,
        guaranteed_share=Resources.of(cpus=2).to_proto(),
    )
    [item] = sess.take_items()
    assert item.type == Event.SUBSCRIBED
    assert sess.subscribed
    assert sess.framework_id == "f1"
    assert sess.heartbeat_s == 3
    assert sess.guaranteed_share == Resources.of(cpus=2)


def test_master_that_names_no_heartbeat_or_a_strange_share_is_taken_as_the_default():
    bad = Resources.of(cpus=1).to_proto()[0]
    odd = type(bad)()
    odd.CopyFrom(bad)
    odd.scalar.value = -1
    sess = subscribe(make_session(), guaranteed_share=[odd])
    assert sess.heartbeat_s == session.DEFAULT_HEARTBEAT_S
    assert sess.guaranteed_share == EMPTY


def test_error_is_final():
    sess = subscribed_session()
    sess.receive([Event(type=Event.ERROR, error=Event.Error(message="Framework failed over"))])
    assert isinstance(sess.fatal, Refused)
    assert str(sess.fatal) == "Framework failed over"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("unsupported-protocol", UnsupportedProtocol),
        ("invalid-value", InvalidValue),
        ("refused", Refused),
    ],
)
def test_refusal_before_the_subscription_is_final(code, kind):
    sess = make_session()
    sess.opening()
    refused = Event.Refused(call=Call.SUBSCRIBE, code=code, field="f", value="v", message="no")
    sess.receive([Event(type=Event.REFUSED, refused=refused)])
    assert type(sess.fatal) is kind
    assert "no" in str(sess.fatal)


def test_refusal_of_a_later_call_is_shown():
    sess = subscribed_session()
    refused = Event(type=Event.REFUSED, refused=Event.Refused(call=Call.REQUEST, message="no"))
    sess.receive([refused])
    assert sess.take_items() == [refused]
    assert sess.fatal is None


def test_event_of_a_later_protocol_is_counted_and_passed_over():
    sess = subscribed_session()
    sess.receive([Event(type=LATER)])
    assert sess.take_items() == []
    assert sess.ignored == 1


def test_loss_is_shown_once_and_only_after_a_subscription():
    sess = make_session()
    sess.opening()
    sess.lost("refused")
    assert sess.take_items() == []
    subscribe(sess)
    sess.take_items()
    sess.lost("cut")
    sess.lost("cut again")
    assert sess.take_items() == [Disconnected("cut")]


def test_nothing_is_written_before_the_subscription():
    sess = make_session()
    sess.opening()
    sess.kill(Call.Kill(task_id=TaskID(value="t1")))
    assert sess.take_calls() is None
    assert not sess.writable


# ---- Accept and decline ------------------------------------------------------


def test_launch_goes_out_with_the_agent_filled_in_and_the_callers_task_untouched():
    sess = subscribed_session(make_offer("o1", "a1"))
    task = make_task("t1")
    run(sess, "o1", task, filters=Filters(refuse_seconds=1))
    [call] = taken(sess)
    assert call.type == Call.ACCEPT
    assert call.framework_id.value == "f1"
    assert [item.value for item in call.accept.offer_ids] == ["o1"]
    assert call.accept.operations[0].launch.task_infos[0].agent_id.value == "a1"
    assert call.accept.filters.refuse_seconds == 1
    assert not task.HasField("agent_id")


def test_launch_of_no_tasks_declines():
    sess = subscribed_session(make_offer("o1"))
    run(sess, "o1", filters=Filters(refuse_seconds=9))
    [call] = taken(sess)
    assert call.type == Call.DECLINE
    assert call.decline.filters.refuse_seconds == 9


def test_several_offers_of_one_agent_are_merged():
    sess = subscribed_session(make_offer("o1", "a1"), make_offer("o2", "a1"))
    sess.accept(["o1", "o2"], [launch(make_task("t1"))], None)
    [call] = taken(sess)
    assert [item.value for item in call.accept.offer_ids] == ["o1", "o2"]


@pytest.mark.parametrize("call", ["accept", "decline"])
def test_unknown_offer_is_an_error_naming_it(call):
    sess = subscribed_session()
    make = {
        "accept": lambda: run(sess, "o9", make_task("t1")),
        "decline": lambda: sess.decline(["o9"], None),
    }
    with pytest.raises(InvalidValue, match="offer_ids: 'o9': is not known here"):
        make[call]()
    assert taken(sess) == []


@pytest.mark.parametrize("first", ["accepted", "declined"])
def test_offer_used_twice_is_an_error_saying_how_it_was_used(first):
    sess = subscribed_session(make_offer("o1"))
    if first == "accepted":
        run(sess, "o1", make_task("t1"))
    else:
        sess.decline(["o1"], None)
    with pytest.raises(InvalidValue, match=f"has been {first} before"):
        run(sess, "o1", make_task("t2"))
    assert len(taken(sess)) == 1


def test_offers_of_two_agents_are_an_error_and_stay_usable():
    sess = subscribed_session(make_offer("o1", "a1"), make_offer("o2", "a2"))
    with pytest.raises(InvalidValue, match="offers of one agent"):
        sess.accept(["o1", "o2"], [launch(make_task("t1"))], None)
    run(sess, "o1", make_task("t1"))
    assert kinds(taken(sess)) == ["ACCEPT"]


def test_offers_of_two_roles_are_an_error():
    sess = subscribed_session(make_offer("o1", role="a"), make_offer("o2", role="b"))
    with pytest.raises(InvalidValue, match="offers of one role"):
        sess.accept(["o1", "o2"], [launch(make_task("t1"))], None)


def test_two_tasks_with_one_id_in_a_call_are_an_error():
    sess = subscribed_session(make_offer("o1"))
    with pytest.raises(InvalidValue, match="task_id: 't1': is in this call twice"):
        run(sess, "o1", make_task("t1"), make_task("t1"))


def test_task_without_an_id_is_an_error():
    sess = subscribed_session(make_offer("o1"))
    task = make_task("t1")
    task.ClearField("task_id")
    with pytest.raises(InvalidValue, match="task_id: '': must not be empty"):
        run(sess, "o1", task)


def test_task_for_another_agent_is_an_error():
    sess = subscribed_session(make_offer("o1", "a1"))
    with pytest.raises(InvalidValue, match="the offers are of agent a1"):
        run(sess, "o1", make_task("t1", "a2"))


def test_launch_over_the_message_limit_is_an_error_and_the_offer_stays_usable():
    sess = subscribed_session(make_offer("o1"), max_call_bytes=2000)
    with pytest.raises(TooLarge, match="at most 2000"):
        run(sess, "o1", make_task("t1", data=b"x" * 3000))
    run(sess, "o1", make_task("t1"))
    assert kinds(taken(sess)) == ["ACCEPT"]


def test_rescinded_offer_yields_lost_tasks_at_once_without_a_uuid():
    sess = subscribed_session(make_offer("o1"))
    sess.receive([rescind("o1")])
    sess.take_items()
    run(sess, "o1", make_task("t1"), make_task("t2"))
    first, second = statuses(sess)
    assert (first.task_id.value, second.task_id.value) == ("t1", "t2")
    assert first.state == TASK_LOST
    assert first.source == TaskStatus.SOURCE_MASTER
    assert first.reason == TaskStatus.REASON_INVALID_OFFERS
    assert first.message == "offer o1 is gone: rescinded by the master"
    assert not first.HasField("uuid")
    assert taken(sess) == []


def test_partition_aware_frameworks_get_dropped_in_place_of_lost():
    sess = subscribed_session(make_offer("o1"), capabilities=[PARTITION_AWARE])
    sess.receive([rescind("o1")])
    run(sess, "o1", make_task("t1"))
    assert statuses(sess)[0].state == TASK_DROPPED


def test_live_offers_beside_a_gone_one_are_given_back_without_a_filter():
    sess = subscribed_session(make_offer("o1"), make_offer("o2"))
    sess.receive([rescind("o1")])
    sess.accept(["o1", "o2"], [launch(make_task("t1"))], None)
    [call] = taken(sess)
    assert call.type == Call.DECLINE
    assert [item.value for item in call.decline.offer_ids] == ["o2"]
    assert call.decline.filters.refuse_seconds == 0


def test_other_operations_on_a_gone_offer_are_refused_aloud():
    sess = subscribed_session(make_offer("o1"))
    sess.receive([rescind("o1")])
    sess.take_items()
    sess.accept(["o1"], [Offer.Operation(type=Offer.Operation.RESERVE)], None)
    [item] = sess.take_items()
    assert item.type == Event.REFUSED
    assert (item.refused.call, item.refused.field, item.refused.value) == (
        Call.ACCEPT,
        "offer_ids",
        "o1",
    )


def test_launch_on_offers_of_a_dead_subscription_is_answered_here():
    sess = subscribed_session(make_offer("o1"))
    sess.lost("cut")
    subscribe(sess)
    sess.take_items()
    run(sess, "o1", make_task("t1"))
    assert statuses(sess)[0].message == "offer o1 is gone: its subscription has ended"
    assert taken(sess) == []


def test_decline_of_a_gone_offer_is_passed_over():
    sess = subscribed_session(make_offer("o1"), make_offer("o2"))
    sess.receive([rescind("o1")])
    sess.decline(["o1", "o2"], None)
    [call] = taken(sess)
    assert [item.value for item in call.decline.offer_ids] == ["o2"]
    sess.decline(["o1"], None)
    assert taken(sess) == []


def test_launch_that_was_not_written_when_the_link_broke_is_lost_aloud():
    sess = subscribed_session(make_offer("o1"))
    run(sess, "o1", make_task("t1"))
    sess.lost("cut")
    items = sess.take_items()
    assert items[0].update.status.task_id.value == "t1"
    assert items[0].update.status.state == TASK_LOST
    assert items[1] == Disconnected("cut")
    subscribe(sess)
    assert taken(sess) == []


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


def kill(sess, task_id):
    sess.kill(Call.Kill(task_id=TaskID(value=task_id)))


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
    sess.shutdown(Call.Shutdown())
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
    assert taken(sess) == []


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


# ---- End ---------------------------------------------------------------------


def test_teardown_comes_after_what_waits_and_nothing_after_it():
    sess = subscribed_session()
    kill(sess, "t1")
    sess.close(teardown=True)
    kill(sess, "t2")
    assert kinds(taken(sess)) == ["KILL", "TEARDOWN"]


def test_teardown_without_a_link_is_all_that_the_next_one_says():
    sess = subscribed_session()
    kill(sess, "t1")
    sess.lost("cut")
    sess.take_items()
    sess.close(teardown=True)
    subscribe(sess)
    assert kinds(taken(sess)) == ["TEARDOWN"]
    assert sess.take_items() == []


def test_closed_session_sends_no_more_but_what_was_queued():
    sess = subscribed_session()
    kill(sess, "t1")
    sess.close(teardown=False)
    kill(sess, "t2")
    assert kinds(taken(sess)) == ["KILL"]


def test_gone_offers_are_remembered_for_a_while_only():
    sess = subscribed_session(*[make_offer(f"o{n}") for n in range(10_001)])
    sess.lost("cut")
    subscribe(sess)
    sess.take_items()
    run(sess, "o10000", make_task("t1"))
    assert len(statuses(sess)) == 1
    with pytest.raises(InvalidValue, match="not known"):
        run(sess, "o0", make_task("t2"))


def test_finished_task_is_terminal_for_its_kill():
    sess = subscribed_session()
    kill(sess, "t1")
    sess.receive([update(make_status("t1", TASK_FINISHED))])
    taken(sess)
    sess.lost("cut")
    subscribe(sess)
    assert taken(sess) == []
