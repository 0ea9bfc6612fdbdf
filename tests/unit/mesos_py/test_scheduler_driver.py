"""The callback driver against the fake master: callbacks and calls."""

import pytest

from mesos_py import AskedBack, asked_back
from mesos_py.errors import (
    Conflict,
    InvalidValue,
)
from mesos_py.resources import Resources
from mesos_py.scheduler import Scheduler, SchedulerDriver
from mesos_py.states import TASK_RUNNING
from mesos_py.testing.builders import (
    make_asking_back,
    make_framework,
    make_inverse_offer,
    make_offer,
    make_status,
    make_task,
)
from mesos_py.testing.fake_master import FakeMaster
from mesos_py.v1.scheduler_pb2 import Call, Event
from mesos_py.v1.types_pb2 import ExecutorID, ExecutorInfo, Offer
from tests.kit.scheduler_driver import LATER, QUICK, Recorder, drivers_on


@pytest.fixture
def master():
    with FakeMaster() as fake:
        yield fake


@pytest.fixture
def started(master):
    with drivers_on(master) as start:
        yield start


def test_framework_id_and_master_info_are_told_at_registration(master, started):
    scheduler = Recorder()
    driver = started(scheduler, wait=False)
    framework_id, info = scheduler.next("registered")
    assert framework_id == driver.framework_id == "framework-1"
    assert info.id == "fake-master"
    assert driver.connected


def test_each_event_has_its_callback(master, started):
    scheduler = Recorder()
    driver = started(scheduler)
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
    inverse = make_inverse_offer("i1", "a1", duration_s=60)
    master.inverse_offer(inverse)
    assert list(scheduler.next("inverse_offers")[0]) == [inverse]
    master.rescind_inverse_offer("i1")
    assert scheduler.next("inverse_offer_rescinded") == ("i1",)
    wanted = make_asking_back("t1", deadline_s=5.0)
    master.inverse_offer(wanted)
    (asked,) = scheduler.next("inverse_offers")[0]
    assert asked_back(asked) == AskedBack(
        wanted.id.value,
        "agent-1",
        Resources.of(cpus=1, mem=64),
        ("t1",),
        5.0,
        "another framework lacks what it needs",
    )
    assert asked_back(inverse) is None
    master.answer_needs(admitted=False, message="too much")
    (answer,) = scheduler.next("needs_answered")
    assert (answer.admitted, answer.message) == (False, "too much")
    master.guarantee(*Resources.of(cpus=3).to_proto())
    assert scheduler.next("guarantee_changed") == (Resources.of(cpus=3),)
    assert driver.guaranteed_share() == Resources.of(cpus=3)
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
        Event(type=Event.NEEDS),
        Event(type=Event.GUARANTEE),
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
    driver.state_waiting([("reduce", Resources.of(cpus=1), 3)])
    driver.send_framework_message("e1", "a1", b"x")
    driver.shutdown_executor("e1", "a1")
    driver.accept_inverse_offers(make_inverse_offer("i1"))
    driver.decline_inverse_offers(["i2", make_inverse_offer("i3")], 3)
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
    assert [(r.count, r.waiting) for r in said[Call.REQUEST].request.requests] == [
        (2, False),
        (3, True),
    ]
    assert said[Call.MESSAGE].message.data == b"x"
    assert said[Call.SHUTDOWN].shutdown.executor_id.value == "e1"
    declined = said[Call.DECLINE_INVERSE_OFFERS].decline_inverse_offers
    assert [each.value for each in declined.inverse_offer_ids] == ["i2", "i3"]
    assert declined.filters.refuse_seconds == 3
    assert said[Call.UPDATE_FRAMEWORK].update_framework.framework_info.name == "renamed"
    accepted = said[Call.ACCEPT_INVERSE_OFFERS].accept_inverse_offers
    assert [each.value for each in accepted.inverse_offer_ids] == ["i1"]
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


def test_a_group_is_launched_with_its_executor(master, started):
    scheduler = Recorder()
    driver = started(scheduler)
    master.offer(make_offer("o1", "a1"))
    scheduler.next("resource_offers")
    executor = ExecutorInfo(type=ExecutorInfo.DEFAULT, executor_id=ExecutorID(value="e"))
    tasks = [make_task("t1"), make_task("t2")]
    driver.launch_group("o1", executor, tasks, 0)
    (operation,) = master.wait_for(Call.ACCEPT)[0].accept.operations
    assert operation.type == Offer.Operation.LAUNCH_GROUP
    executor.framework_id.value = driver.framework_id
    assert operation.launch_group.executor == executor
    sent = operation.launch_group.task_group.tasks
    assert [(task.task_id.value, task.agent_id.value) for task in sent] == [
        ("t1", "a1"),
        ("t2", "a1"),
    ]


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
