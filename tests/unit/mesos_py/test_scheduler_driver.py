"""The callback driver against the fake master: threads, links, ends."""

import queue
import threading
from typing import Any

import pytest

from mesos_py.errors import (
    Conflict,
    InvalidValue,
    MasterUnreachable,
    Refused,
    Unavailable,
    UnsupportedProtocol,
)
from mesos_py.resources import Resources
from mesos_py.rpc import LinkTimeouts
from mesos_py.scheduler import Scheduler, SchedulerDriver
from mesos_py.states import TASK_FINISHED, TASK_LOST, TASK_RUNNING
from mesos_py.testing.builders import make_framework, make_offer, make_status, make_task
from mesos_py.testing.fake_master import FakeMaster
from mesos_py.v1.scheduler_pb2 import Call, Event
from mesos_py.v1.types_pb2 import InverseOffer, OfferID

QUICK = LinkTimeouts(backoff_first_s=0.01, backoff_cap_s=0.02, connect_s=5)
PATIENCE_S = 10


# A kind of call that only a later protocol has.
LATER: Any = 4711


class Recorder(Scheduler):
    """Notes each callback as (name, what it got), and does what `on` says for its name."""

    def __init__(self, **on):
        self.notes: queue.Queue[tuple[str, tuple[Any, ...]]] = queue.Queue()
        self.on = on
        self.threads = set()

    def _note(self, name, driver, *args):
        self.threads.add(threading.current_thread().name)
        self.notes.put((name, args))
        if name in self.on:
            self.on[name](driver, *args)

    def next(self, name):
        """What the next callback got; it must be the one called `name`."""
        found, args = self.notes.get(timeout=PATIENCE_S)
        assert found == name
        return args


def _recording(name):
    def callback(self, driver, *args):
        self._note(name, driver, *args)

    return callback


for _name in [
    "registered",
    "reregistered",
    "disconnected",
    "resource_offers",
    "offer_rescinded",
    "inverse_offers",
    "inverse_offer_rescinded",
    "status_update",
    "framework_message",
    "agent_lost",
    "executor_lost",
    "call_refused",
    "error",
]:
    setattr(Recorder, _name, _recording(_name))


@pytest.fixture
def master():
    with FakeMaster() as fake:
        yield fake


@pytest.fixture
def started(master):
    """Starts a driver on the fake master, subscribed and registered; ends it at the end."""
    drivers = []

    def start(scheduler, wait=True, **options):
        options = {"timeouts": QUICK, **options}
        driver = SchedulerDriver(scheduler, make_framework(), master.address, **options)
        drivers.append(driver)
        driver.start()
        if wait:
            scheduler.next("registered")
        return driver

    yield start
    for driver in drivers:
        driver.abort()
        try:
            assert driver.join(PATIENCE_S)
        except Exception:
            assert not driver.connected  # the test has looked at the reason


def test_framework_id_and_master_info_are_told_at_registration(master, started):
    scheduler = Recorder()
    driver = started(scheduler, wait=False)
    framework_id, info = scheduler.next("registered")
    assert framework_id == driver.framework_id == "framework-1"
    assert info.id == "fake-master"
    assert driver.connected


def test_each_event_has_its_callback(master, started):
    scheduler = Recorder()
    started(scheduler)
    master.offer(make_offer("o1"), make_offer("o2"))
    [offers] = scheduler.next("resource_offers")
    assert [offer.id.value for offer in offers] == ["o1", "o2"]
    master.rescind("o1")
    assert scheduler.next("offer_rescinded") == ("o1",)
    status = make_status("t1")
    master.update(status)
    assert scheduler.next("status_update") == (status,)
    master.message("a1", "e1", b"hello")
    assert scheduler.next("framework_message") == ("a1", "e1", b"hello")
    master.failure("a1")
    assert scheduler.next("agent_lost") == ("a1",)
    master.failure("a1", "e1", 256)
    assert scheduler.next("executor_lost") == ("a1", "e1", 256)
    master.failure("a1", "e1")
    assert scheduler.next("executor_lost") == ("a1", "e1", -1)
    inverse = InverseOffer(id=OfferID(value="i1"))
    master.send(
        Event(
            type=Event.INVERSE_OFFERS,
            inverse_offers=Event.InverseOffers(inverse_offers=[inverse]),
        )
    )
    assert list(scheduler.next("inverse_offers")[0]) == [inverse]
    master.send(
        Event(
            type=Event.RESCIND_INVERSE_OFFER,
            rescind_inverse_offer=Event.RescindInverseOffer(inverse_offer_id=inverse.id),
        )
    )
    assert scheduler.next("inverse_offer_rescinded") == ("i1",)
    refused = Event.Refused(call=Call.KILL, message="no")
    master.send(Event(type=Event.REFUSED, refused=refused))
    assert scheduler.next("call_refused") == (refused,)


def test_callbacks_all_run_on_one_thread_of_their_own(master, started):
    scheduler = Recorder()
    started(scheduler)
    master.offer(make_offer("o1"))
    scheduler.next("resource_offers")
    master.cut()
    scheduler.next("disconnected")
    scheduler.next("reregistered")
    assert scheduler.threads == {"scheduler test callbacks"}


def test_scheduler_that_overrides_nothing_takes_everything(master, started):
    driver = started(Scheduler(), wait=False)
    master.wait_for_subscription()
    refused = Event.Refused(call=LATER, message="of a later protocol")
    master.send(
        Event(type=Event.OFFERS, offers=Event.Offers(offers=[make_offer()])),
        Event(type=Event.REFUSED, refused=refused),
        Event(type=Event.INVERSE_OFFERS),
        Event(type=Event.RESCIND_INVERSE_OFFER),
        Event(type=Event.MESSAGE),
        Event(type=Event.FAILURE),
        Event(type=Event.RESCIND),
    )
    master.update(make_status("t1"))
    master.wait_for(Call.ACKNOWLEDGE)
    assert driver.connected


# ---- Calls -------------------------------------------------------------------


def test_calls_of_all_kinds_reach_the_master(master, started):
    driver = started(Recorder())
    master.offer(*[make_offer(f"o{n}") for n in range(4)])
    master.send(Event(type=Event.HEARTBEAT))
    driver.kill_task("t1", "a1", grace_s=1.5)
    driver.reconcile_tasks([("t1", "a1"), "t2", make_status("t3")])
    driver.set_needs_offers(False)
    driver.set_needs_offers(True)
    driver.set_filters(hosts=["h1"], min_free=[Resources.of(cpus=1), Resources.of(mem=64)])
    driver.request_resources([("map", Resources.of(cpus=100), 2)])
    driver.send_framework_message("e1", "a1", b"x")
    driver.shutdown_executor("e1", "a1")
    driver.accept_inverse_offers("i1")
    driver.decline_inverse_offers(["i2"], 3)
    driver.update_framework(make_framework("renamed"))
    driver.stop()
    master.wait_for(Call.TEARDOWN)
    said = {call.type: call for call in master.calls}
    assert said[Call.KILL].kill.kill_policy.grace_period.nanoseconds == 1_500_000_000
    assert said[Call.KILL].kill.agent_id.value == "a1"
    assert [item.agent_id.value for item in said[Call.RECONCILE].reconcile.tasks] == [
        "a1",
        "",
        "agent-1",
    ]
    assert said[Call.REQUEST].request.requests[0].count == 2
    assert said[Call.MESSAGE].message.data == b"x"
    assert said[Call.SHUTDOWN].shutdown.executor_id.value == "e1"
    assert said[Call.DECLINE_INVERSE_OFFERS].decline_inverse_offers.filters.refuse_seconds == 3
    assert said[Call.UPDATE_FRAMEWORK].update_framework.framework_info.name == "renamed"
    assert Call.ACCEPT_INVERSE_OFFERS in said
    assert {Call.SUPPRESS, Call.REVIVE} <= set(said)


def test_launch_from_a_callback_and_from_another_thread(master, started):
    scheduler = Recorder(
        resource_offers=lambda driver, offers: driver.launch_tasks(offers[0], make_task("t1"), 0)
    )
    driver = started(scheduler)
    master.offer(make_offer("o1"), make_offer("o2"))
    master.wait_for(Call.ACCEPT)
    driver.launch_tasks("o2", [make_task("t2"), make_task("t3")])
    _, second = master.wait_for(Call.ACCEPT, 2)
    assert len(second.accept.operations[0].launch.task_infos) == 2


def test_bad_calls_raise_in_the_callers_thread_and_send_nothing(master, started):
    driver = started(Recorder())
    master.forget_calls()
    bad = [
        lambda: driver.launch_tasks("o9", make_task("t1")),
        lambda: driver.launch_tasks([], make_task("t1")),
        lambda: driver.launch_tasks(["o1", "o1"], make_task("t1")),
        lambda: driver.decline_offers("o1", -1),
        lambda: driver.decline_offers("o1", float("nan")),
        lambda: driver.kill_task(""),
        lambda: driver.kill_task("t1", grace_s=-1),
        lambda: driver.kill_task("t1", "a/b"),
        lambda: driver.set_needs_offers(True, "nobody"),
        lambda: driver.set_filters(hosts="h1"),
        lambda: driver.request_resources([("x", Resources.of(cpus=1), 0)]),
        lambda: driver.reconcile_tasks([""]),
        lambda: driver.update_framework(make_framework("")),
    ]
    for call in bad:
        with pytest.raises(InvalidValue):
            call()
    driver.stop()
    master.wait_for(Call.TEARDOWN)
    assert [call.type for call in master.calls] == [Call.TEARDOWN]


def test_acknowledging_by_hand_is_only_for_explicit_acknowledgements(master, started):
    driver = started(Recorder())
    with pytest.raises(Conflict, match="implicit_acknowledgements=False"):
        driver.acknowledge(make_status("t1"))


def test_explicit_acknowledgement_is_sent_when_asked_for(master, started):
    scheduler = Recorder()
    driver = started(scheduler, implicit_acknowledgements=False)
    status = make_status("t1")
    master.update(status)
    scheduler.next("status_update")
    driver.kill_task("t9")
    master.wait_for(Call.KILL)
    assert Call.ACKNOWLEDGE not in [call.type for call in master.calls]
    driver.acknowledge(status)
    [call] = master.wait_for(Call.ACKNOWLEDGE)
    assert call.acknowledge.uuid == status.uuid


def test_many_updates_are_acknowledged_in_few_messages(master, started):
    scheduler = Recorder()
    started(scheduler)
    master.update(*[make_status(f"t{n}", TASK_RUNNING) for n in range(1000)])
    calls = master.wait_for(Call.ACKNOWLEDGE, 1000)
    assert len({call.acknowledge.task_id.value for call in calls}) == 1000


def test_calls_before_the_start_are_sent_after_the_subscription(master):
    driver = SchedulerDriver(Recorder(), make_framework(), master.address, timeouts=QUICK)
    driver.set_needs_offers(False)
    driver.kill_task("t1")
    driver.start()
    master.wait_for(Call.KILL)
    assert list(master.calls[0].subscribe.suppressed_roles) == ["*"]
    driver.abort()
    driver.join()


# ---- Links -------------------------------------------------------------------


def test_lost_link_is_renewed_with_the_same_framework_id(master, started):
    scheduler = Recorder()
    started(scheduler)
    master.cut()
    scheduler.next("disconnected")
    scheduler.next("reregistered")
    first, second = master.wait_for(Call.SUBSCRIBE, 2)
    assert not first.framework_id.value
    assert second.framework_id.value == "framework-1"


def test_stream_that_the_master_ends_in_order_is_renewed_too(master, started):
    scheduler = Recorder()
    started(scheduler)
    master.end()
    scheduler.next("disconnected")
    scheduler.next("reregistered")


def test_master_that_dies_and_comes_back_is_found_again(master, started):
    scheduler = Recorder()
    started(scheduler)
    master.stop_server()
    scheduler.next("disconnected")
    master.start_server()
    scheduler.next("reregistered")


def test_silence_of_three_heartbeats_is_a_lost_link(started, master):
    master.heartbeat_s = 0.05
    scheduler = Recorder()
    started(scheduler)
    scheduler.next("disconnected")
    scheduler.next("reregistered")


def test_master_that_accepts_and_never_answers_is_given_up(master):
    master.silent = True
    timeouts = LinkTimeouts(backoff_first_s=0.01, backoff_cap_s=0.02, connect_s=0.05)
    driver = SchedulerDriver(
        Recorder(), make_framework(), master.address, timeouts=timeouts, connect_timeout_s=0.5
    )
    with pytest.raises(MasterUnreachable) as caught:
        driver.run()
    assert master.address in str(caught.value)
    assert "no answer" in str(caught.value)


def test_all_masters_of_a_list_are_tried(master):
    scheduler = Recorder()
    driver = SchedulerDriver(
        scheduler, make_framework(), f"127.0.0.1:1,{master.address}", timeouts=QUICK
    )
    driver.start()
    scheduler.next("registered")
    driver.stop()
    assert driver.join(PATIENCE_S)


def test_master_that_does_not_lead_sends_on_to_the_one_that_does(master):
    with FakeMaster() as other:
        other.does_not_lead(master.address)
        scheduler = Recorder()
        driver = SchedulerDriver(scheduler, make_framework(), other.address, timeouts=QUICK)
        driver.start()
        scheduler.next("registered")
        master.wait_for_subscription()
        driver.stop()
        assert driver.join(PATIENCE_S)


def test_masters_that_name_each_other_are_not_asked_without_a_pause():
    with FakeMaster() as one, FakeMaster() as two:
        one.does_not_lead(two.address)
        two.does_not_lead(one.address)
        driver = SchedulerDriver(
            Recorder(),
            make_framework(),
            one.address,
            timeouts=LinkTimeouts(backoff_first_s=5, backoff_cap_s=5),
            connect_timeout_s=0.5,
        )
        with pytest.raises(MasterUnreachable):
            driver.run()
        assert len(one.calls) + len(two.calls) <= 5


def test_nobody_there_ends_run_with_the_addresses_and_reasons_when_a_limit_is_set():
    scheduler = Recorder()
    driver = SchedulerDriver(
        scheduler,
        make_framework(),
        "127.0.0.1:1,127.0.0.1:2",
        timeouts=QUICK,
        connect_timeout_s=0.3,
    )
    with pytest.raises(MasterUnreachable) as caught:
        driver.run()
    assert caught.value.fields["addresses"] == ["127.0.0.1:1", "127.0.0.1:2"]
    assert "Connection refused" in str(caught.value)
    [message] = scheduler.next("error")
    assert message == str(caught.value)


def test_launch_on_an_offer_from_before_the_loss_becomes_a_lost_task(master, started):
    scheduler = Recorder()
    driver = started(scheduler)
    master.offer(make_offer("o1"))
    scheduler.next("resource_offers")
    master.cut()
    scheduler.next("disconnected")
    driver.launch_tasks("o1", make_task("t1"))
    names = {}
    for _ in range(2):
        name, args = scheduler.notes.get(timeout=PATIENCE_S)
        names[name] = args
    assert names["status_update"][0].state == TASK_LOST
    assert "reregistered" in names
    assert Call.ACCEPT not in [call.type for call in master.calls]


def test_update_repeated_after_its_acknowledgement_is_acknowledged_but_not_shown(master, started):
    scheduler = Recorder()
    started(scheduler)
    status = make_status("t1")
    master.update(status)
    master.wait_for(Call.ACKNOWLEDGE)
    master.update(status)
    master.wait_for(Call.ACKNOWLEDGE, 2)
    last = make_status("t1", TASK_FINISHED)
    master.update(last)
    assert scheduler.next("status_update") == (status,)
    assert scheduler.next("status_update") == (last,)


# ---- Ends --------------------------------------------------------------------


def test_stop_tears_the_framework_down_before_the_stream_ends(master, started):
    driver = started(Recorder())
    driver.stop()
    assert driver.join(PATIENCE_S)
    assert master.calls[-1].type == Call.TEARDOWN


def test_stop_in_a_callback_acknowledges_the_update_in_hand_first(master, started):
    scheduler = Recorder(status_update=lambda driver, status: driver.stop())
    driver = started(scheduler)
    master.update(make_status("t1"), make_status("t2"))
    assert driver.join(PATIENCE_S)
    scheduler.next("status_update")
    assert scheduler.notes.empty()
    last = master.calls[-2:]
    assert [call.type for call in last] == [Call.ACKNOWLEDGE, Call.TEARDOWN]
    assert last[0].acknowledge.task_id.value == "t1"


def test_stop_for_failover_leaves_the_framework_alone_but_acknowledges(master, started):
    scheduler = Recorder(status_update=lambda driver, status: driver.stop(failover=True))
    driver = started(scheduler)
    master.update(make_status("t1"))
    assert driver.join(PATIENCE_S)
    assert [call.type for call in master.calls] == [Call.SUBSCRIBE, Call.ACKNOWLEDGE]


def test_abort_sends_nothing(master, started):
    driver = started(Recorder())
    driver.abort()
    assert driver.join(PATIENCE_S)
    assert [call.type for call in master.calls] == [Call.SUBSCRIBE]


def test_teardown_finds_its_way_after_a_lost_link(master, started):
    scheduler = Recorder()
    driver = started(scheduler)
    master.stop_server()
    scheduler.next("disconnected")
    driver.stop()
    master.start_server()
    assert driver.join(PATIENCE_S)
    assert master.calls[-1].type == Call.TEARDOWN


def test_stop_gives_up_on_a_master_that_stays_away(master, started):
    scheduler = Recorder()
    driver = started(scheduler, stop_timeout_s=0.2)
    master.stop_server()
    scheduler.next("disconnected")
    driver.stop()
    assert driver.join(PATIENCE_S)


def test_stop_before_any_master_was_found_ends_at_once():
    driver = SchedulerDriver(
        Recorder(), make_framework(), "127.0.0.1:1", stop_timeout_s=60, timeouts=QUICK
    )
    driver.start()
    driver.stop()
    assert driver.join(PATIENCE_S)


def test_stop_before_the_start_makes_the_start_end(master):
    driver = SchedulerDriver(Recorder(), make_framework(), master.address, timeouts=QUICK)
    driver.stop()
    driver.start()
    assert driver.join(PATIENCE_S)


def test_error_from_the_master_ends_run_with_it_and_is_not_retried(master, started):
    scheduler = Recorder()
    driver = started(scheduler)
    master.error("Framework failed over")
    with pytest.raises(Refused, match="Framework failed over"):
        driver.join(PATIENCE_S)
    assert scheduler.next("error") == ("Framework failed over",)
    assert len(master.wait_for(Call.SUBSCRIBE)) == 1
    with pytest.raises(Unavailable, match="Framework failed over"):
        driver.kill_task("t1")


def test_events_before_the_error_are_still_told(master, started):
    scheduler = Recorder()
    driver = started(scheduler)
    master.update(*[make_status(f"t{n}") for n in range(50)])
    master.error("enough")
    with pytest.raises(Refused):
        driver.join(PATIENCE_S)
    for n in range(50):
        assert scheduler.next("status_update")[0].task_id.value == f"t{n}"
    scheduler.next("error")


@pytest.mark.parametrize(
    "refusal", [InvalidValue("framework.role", "?", "no"), UnsupportedProtocol("too new")]
)
def test_final_refusal_by_status_ends_run(master, refusal):
    master.refusal = refusal
    driver = SchedulerDriver(Recorder(), make_framework(), master.address, timeouts=QUICK)
    with pytest.raises(type(refusal), match=str(refusal).replace("?", r"\?")):
        driver.run()


def test_exception_in_a_callback_ends_the_driver_with_it_and_leaves_the_framework(
    master, started, caplog
):
    def fail(driver, offers):
        raise ZeroDivisionError("my bug")

    scheduler = Recorder(resource_offers=fail)
    driver = started(scheduler)
    master.offer(make_offer("o1"))
    with pytest.raises(ZeroDivisionError, match="my bug"):
        driver.join(PATIENCE_S)
    assert "a callback failed" in caplog.text
    assert "ZeroDivisionError" in caplog.text
    assert Call.TEARDOWN not in [call.type for call in master.calls]
    with pytest.raises(Unavailable, match="my bug"):
        driver.kill_task("t1")


def test_updates_before_a_failing_one_are_acknowledged(master, started):
    def fail(driver, status):
        if status.task_id.value == "t2":
            raise ValueError("t2")

    driver = started(Recorder(status_update=fail))
    master.update(make_status("t1"), make_status("t2"))
    with pytest.raises(ValueError, match="t2"):
        driver.join(PATIENCE_S)


def test_exception_in_error_does_not_hide_why_the_driver_ended(master, started):
    def fail(driver, message):
        raise ValueError("in error()")

    driver = started(Recorder(error=fail))
    master.error("the real reason")
    with pytest.raises(Refused, match="the real reason"):
        driver.join(PATIENCE_S)


def test_calls_after_stop_do_nothing(master, started):
    driver = started(Recorder())
    driver.stop()
    driver.kill_task("t1")
    assert driver.join(PATIENCE_S)
    driver.kill_task("t1")
    assert Call.KILL not in [call.type for call in master.calls]


def test_join_in_a_callback_and_join_before_start_are_mistakes(master, started):
    failed = []

    def join(driver, framework_id, info):
        try:
            driver.join()
        except RuntimeError as error:
            failed.append(error)

    started(Recorder(registered=join))
    driver = SchedulerDriver(Recorder(), make_framework(), master.address)
    with pytest.raises(RuntimeError, match="not started"):
        driver.join()
    driver.start()
    with pytest.raises(RuntimeError, match="once"):
        driver.start()
    driver.abort()
    driver.join(PATIENCE_S)
    assert len(failed) == 1


def test_join_with_a_time_limit_says_that_the_driver_still_runs(master, started):
    driver = started(Recorder())
    assert driver.join(0) is False


def test_interrupted_run_tears_down_and_raises_again(master, monkeypatch):
    driver = SchedulerDriver(Recorder(), make_framework(), master.address, timeouts=QUICK)

    def interrupted(timeout_s=None):
        master.wait_for_subscription()
        raise KeyboardInterrupt

    monkeypatch.setattr(driver, "join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        driver.run()
    assert master.calls[-1].type == Call.TEARDOWN


def test_slow_callback_does_not_cost_the_link(master, started):
    master.heartbeat_s = 0.1
    may_go_on = threading.Event()

    def wait(driver, offers):
        assert may_go_on.wait(PATIENCE_S)

    scheduler = Recorder(resource_offers=wait)
    driver = started(scheduler)
    master.offer(make_offer("o1"))
    scheduler.next("resource_offers")
    for _ in range(10):
        master.heartbeat()
    assert driver.connected
    may_go_on.set()
    driver.stop()
    assert driver.join(PATIENCE_S)


@pytest.mark.parametrize("text", ["", "nowhere", "h:0", "zk://h/p", "h:1,h:1"])
def test_malformed_master_is_an_error_at_once(text):
    with pytest.raises(InvalidValue, match="master"):
        SchedulerDriver(Recorder(), make_framework(), text)
