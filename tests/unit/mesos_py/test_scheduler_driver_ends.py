"""The callback driver against the fake master: how it ends."""

import threading

import pytest

from mesos_py.errors import (
    InvalidValue,
    Refused,
    Unavailable,
    UnsupportedProtocol,
)
from mesos_py.scheduler import SchedulerDriver
from mesos_py.testing.builders import make_framework, make_offer, make_status
from mesos_py.testing.fake_master import FakeMaster
from mesos_py.v1.scheduler_pb2 import Call
from tests.kit.scheduler_driver import PATIENCE_S, QUICK, Recorder, drivers_on


@pytest.fixture
def master():
    with FakeMaster() as fake:
        yield fake


@pytest.fixture
def started(master):
    with drivers_on(master) as start:
        yield start


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


@pytest.mark.parametrize("text", ["", "nowhere", "h:0", "zk://h", "h:1,h:1"])
def test_malformed_master_is_an_error_at_once(text):
    with pytest.raises(InvalidValue, match="master"):
        SchedulerDriver(Recorder(), make_framework(), text)
