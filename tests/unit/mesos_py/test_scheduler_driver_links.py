"""The callback driver against the fake master: links that break, masters to find."""

import threading

import pytest

from mesos_py.errors import (
    MasterUnreachable,
)
from mesos_py.rpc import LinkTimeouts
from mesos_py.scheduler import SchedulerDriver
from mesos_py.states import TASK_FINISHED, TASK_LOST
from mesos_py.testing.builders import make_framework, make_offer, make_status, make_task
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
        connect_timeout_s=0.5,
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


def test_link_is_held_back_while_the_callbacks_have_very_much_to_do(master, started, monkeypatch):
    monkeypatch.setattr("mesos_py.drivers.MAX_WAITING", 5)
    monkeypatch.setattr("mesos_py.inbox.MAX_WAITING", 5)
    may_go_on = threading.Event()
    scheduler = Recorder(resource_offers=lambda *_: may_go_on.wait(PATIENCE_S))
    started(scheduler)
    master.offer(make_offer("o1"))
    for n in range(100):
        master.update(make_status(f"t{n}"))
    scheduler.next("resource_offers")
    may_go_on.set()
    for n in range(100):
        assert scheduler.next("status_update")[0].task_id.value == f"t{n}"


def test_abort_ends_a_link_that_is_held_back(master, started, monkeypatch):
    monkeypatch.setattr("mesos_py.drivers.MAX_WAITING", 1)
    may_go_on = threading.Event()
    scheduler = Recorder(resource_offers=lambda *_: may_go_on.wait(PATIENCE_S))
    driver = started(scheduler)
    master.offer(make_offer("o1"))
    scheduler.next("resource_offers")
    master.update(make_status("t1"), make_status("t2"))
    driver.abort()
    may_go_on.set()
    assert driver.join(PATIENCE_S)
