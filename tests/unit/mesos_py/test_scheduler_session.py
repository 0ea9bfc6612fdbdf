"""The scheduler's session: subscriptions, offers, the end; without IO."""

import pytest

from mesos_py.errors import (
    InvalidValue,
    Refused,
    TooLarge,
    UnsupportedProtocol,
)
from mesos_py.resources import EMPTY, Resources
from mesos_py.scheduler import session
from mesos_py.scheduler.session import Disconnected
from mesos_py.states import (
    TASK_DROPPED,
    TASK_FINISHED,
    TASK_LOST,
)
from mesos_py.tasks import launch
from mesos_py.testing.builders import make_offer, make_status, make_task
from mesos_py.v1.scheduler_pb2 import Call, Event
from mesos_py.v1.types_pb2 import (
    Filters,
    Offer,
    TaskID,
    TaskStatus,
)
from tests.kit.scheduler_session import (
    LATER,
    PARTITION_AWARE,
    kill,
    kinds,
    make_session,
    offers,
    rescind,
    run,
    statuses,
    subscribe,
    subscribed_session,
    taken,
    update,
)

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


def test_streams_of_one_process_are_numbered_so_that_a_late_one_is_known():
    sess = make_session()
    first, second = [sess.opening().calls[0].subscribe for _ in range(2)]
    assert first.instance == second.instance == "process 1"
    assert first.attempt < second.attempt


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


@pytest.mark.parametrize("short", ["o1", "o2"])
def test_offers_for_short_tasks_and_for_any_are_an_error(short):
    offers = [make_offer("o1"), make_offer("o2")]
    for offer in offers:
        if offer.id.value == short:
            offer.max_task_duration.nanoseconds = 10**9
    sess = subscribed_session(*offers)
    with pytest.raises(InvalidValue, match=f"{short} is kept for short tasks"):
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
    assert kinds(taken(sess)) == ["DECLINE"]


def test_a_task_for_a_gone_offer_may_name_its_agent():
    sess = subscribed_session(make_offer("o1", "a1"))
    sess.receive([rescind("o1")])
    sess.take_items()
    run(sess, "o1", make_task("t1", "a1"))
    [status] = statuses(sess)
    assert (status.task_id.value, status.agent_id.value) == ("t1", "a1")


def test_partition_aware_frameworks_get_dropped_in_place_of_lost():
    sess = subscribed_session(make_offer("o1"), capabilities=[PARTITION_AWARE])
    sess.receive([rescind("o1")])
    run(sess, "o1", make_task("t1"))
    assert statuses(sess)[0].state == TASK_DROPPED


def test_live_offers_beside_a_gone_one_are_given_back_without_a_filter():
    sess = subscribed_session(make_offer("o1"))
    sess.lost("gone")
    subscribe(sess)
    sess.receive([offers(make_offer("o2"))])
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


def test_decline_of_an_offer_of_an_earlier_subscription_is_passed_over():
    sess = subscribed_session(make_offer("o1"))
    sess.lost("gone")
    subscribe(sess)
    sess.receive([offers(make_offer("o2"))])
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


@pytest.mark.long
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
