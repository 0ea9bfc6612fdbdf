"""Several instances of one scheduler against the fake master; and detectors that change
their mind."""

import asyncio
import contextlib

import pytest

from mesos_py.address import Address, parse_address
from mesos_py.election import Detector
from mesos_py.errors import InvalidValue, Refused
from mesos_py.resources import Resources
from mesos_py.scheduler import SchedulerDriver
from mesos_py.scheduler.aio import SchedulerClient
from mesos_py.states import TASK_LOST
from mesos_py.testing.builders import make_framework, make_offer, make_task
from mesos_py.testing.fake_cluster import FakeCluster
from mesos_py.testing.fake_master import FakeMaster
from mesos_py.v1.scheduler_pb2 import Call, Event
from tests.kit.raw import RawScheduler
from tests.kit.scheduler_driver import PATIENCE_S, QUICK, Recorder


@pytest.fixture
def master():
    with FakeMaster() as fake:
        yield fake


@pytest.fixture
def instance(master):
    """Starts instances of the framework "fw"; ends them all."""
    drivers = []

    def start(scheduler, first=None, at=None, **options):
        options = {"standby": True, "timeouts": QUICK, **options}
        framework = make_framework(id="fw")
        driver = SchedulerDriver(scheduler, framework, at or master.address, **options)
        drivers.append(driver)
        driver.start()
        if first is not None:
            scheduler.next(first)
        return driver

    yield start
    for driver in drivers:
        driver.abort()
        with contextlib.suppress(Refused):
            assert driver.join(PATIENCE_S)


def types_of(master):
    return [Call.Type.Name(call.type) for call in master.calls]


@pytest.mark.parametrize(
    "make", [SchedulerClient, lambda *a, **k: SchedulerDriver(Recorder(), *a, **k)]
)
def test_a_standby_must_be_given_the_id_of_its_framework(make):
    with pytest.raises(InvalidValue) as caught:
        make(make_framework(), "127.0.0.1:1", standby=True)
    assert caught.value.field == "framework.id"


def test_the_next_takes_over_from_an_instance_that_has_gone(instance):
    one, two, three = Recorder(), Recorder(), Recorder()
    active = instance(one, "registered")
    second = instance(two)
    assert two.next("standby") == (0,)
    third = instance(three)
    assert three.next("standby") == (1,)
    assert (second.connected, second.standing_by) == (False, True)
    active.abort()
    framework_id, _ = two.next("registered")
    assert framework_id == "fw"
    assert (second.connected, second.standing_by) == (True, False)
    assert three.next("standby") == (0,)
    second.abort()
    three.next("registered")
    assert third.connected


def test_an_instance_that_lost_its_link_finds_another_one_active(instance, master):
    one, two = Recorder(), Recorder()
    driver = instance(one, "registered")
    instance(two, "standby")
    master.cut()
    one.next("disconnected")
    assert one.next("standby") == (0,)
    two.next("registered")
    assert driver.standing_by
    master.cut()
    two.next("disconnected")
    one.next("reregistered")


@pytest.mark.parametrize("failover", [False, True])
def test_a_standby_that_stops_leaves_alone(instance, master, failover):
    one, two = Recorder(), Recorder()
    active = instance(one, "registered")
    standby = instance(two, "standby")
    standby.stop(failover=failover)
    assert standby.join(PATIENCE_S)
    assert "TEARDOWN" not in types_of(master)
    active.stop()
    assert active.join(PATIENCE_S)
    assert types_of(master)[-1] == "TEARDOWN"


def test_one_that_is_promoted_while_it_stops_leaves_alone_too(instance, master):
    one, two = Recorder(), Recorder()
    active = instance(one, "registered")
    drivers = []

    def stop_when_the_other_has_gone(driver, ahead):
        active.abort()
        master.wait_for_subscription(2)
        driver.stop()

    two.on["standby"] = stop_when_the_other_has_gone
    drivers.append(instance(two))
    assert drivers[0].join(PATIENCE_S)
    assert "TEARDOWN" not in types_of(master)


def test_a_teardown_that_finds_another_instance_active_ends_nobody(instance, master):
    one, two = Recorder(), Recorder()
    one.on["disconnected"] = lambda driver: driver.stop()
    driver = instance(one, "registered")
    instance(two, "standby")
    master.cut()
    two.next("registered")
    assert driver.join(PATIENCE_S)
    assert "TEARDOWN" not in types_of(master)


def test_calls_of_one_that_stands_by_again_are_answered(instance, master):
    one = Recorder()
    driver = instance(one, "registered")
    instance(Recorder(), "standby")
    master.offer(make_offer("o1"))
    one.next("resource_offers")
    master.cut()
    one.next("disconnected")
    one.next("standby")
    driver.kill_task("t1")
    (refusal,) = one.next("call_refused")
    assert (refusal.call, refusal.value) == (Call.KILL, "t1")
    assert "stands by" in refusal.message
    driver.launch_tasks("o1", make_task("t2"))
    (status,) = one.next("status_update")
    assert (status.task_id.value, status.state) == ("t2", TASK_LOST)


def test_silence_of_the_master_is_noticed_while_standing_by(instance, master):
    one, two = Recorder(), Recorder()
    instance(one, "registered")
    master.heartbeat_s = 0.05
    instance(two, "standby")
    two.next("disconnected")
    two.next("standby")


def test_a_standby_has_found_its_master_in_time(instance):
    one, two = Recorder(), Recorder()
    instance(one, "registered")
    driver = instance(two, "standby", connect_timeout_s=0.2)
    assert not driver.join(0.4)


def test_an_instance_that_does_not_stand_by_displaces_nobody_who_waits(instance):
    one, two, three = Recorder(), Recorder(), Recorder()
    instance(one, "registered")
    instance(two, "standby")
    plain = instance(three, "registered", standby=False)
    plain.abort()
    two.next("registered")


def test_the_fake_refuses_what_a_standby_calls_for(instance, master):
    """Raw, since the session would answer by itself."""
    instance(Recorder(), "registered")
    info = make_framework(id="fw")
    with RawScheduler(master.address) as raw:
        raw.call(Call.SUBSCRIBE, subscribe=Call.Subscribe(framework_info=info, standby=True))
        raw.event(Event.STANDBY)
        master.wait_for_standby()
        raw.call(Call.KILL)
        assert raw.event(Event.REFUSED).refused.call == Call.KILL
        master.wait_for(Call.KILL)


def test_an_asyncio_client_gets_standby_as_an_event(instance, master):
    async def main(active):
        framework = make_framework(id="fw")
        kinds = []
        async with SchedulerClient(framework, master.address, standby=True) as client:
            async for event in client:
                kinds.append(Event.Type.Name(event.type))
                if event.type == Event.STANDBY:
                    assert client.standing_by
                    active.abort()
                else:
                    client.stop(failover=True)
        return kinds

    active = instance(Recorder(), "registered")
    assert asyncio.run(main(active)) == ["STANDBY", "SUBSCRIBED"]


def test_tasks_of_a_fake_cluster_go_to_the_instance_that_takes_over(instance):
    with FakeCluster({"a1": Resources.of(cpus=2)}, outcome=lambda _: ()) as cluster:
        one, two = Recorder(), Recorder()
        driver = instance(one, "registered", at=cluster.address)
        (offers,) = one.next("resource_offers")
        driver.launch_tasks(offers[0], make_task("t1", resources=Resources.of(cpus=1)))
        cluster.wait_for(Call.ACCEPT)
        other = instance(two, "standby", at=cluster.address)
        driver.abort()
        two.next("registered")
        (offers,) = two.next("resource_offers")
        assert Resources.from_proto("offer", offers[0].resources).scalar("cpus") == 1
        other.kill_task("t1")
        (status,) = two.next("status_update")
        assert status.task_id.value == "t1"


# ---- Detectors -------------------------------------------------------------------


class TestDetector(Detector):
    """Says what it is told to say."""

    __test__ = False

    def __init__(self, address):
        self.address: Address | None = parse_address(address)
        self.loop: asyncio.AbstractEventLoop | None = None
        self.changed = asyncio.Event()
        self.seen = asyncio.Event()

    async def leader(self):
        self.loop = asyncio.get_running_loop()
        return self.address

    async def watch(self):
        while True:
            self.changed.clear()
            yield self.address
            await self.changed.wait()

    def say(self, address):
        """From the test's thread: this master leads (None: nobody)."""

        def change():
            self.address = None if address is None else parse_address(address)
            self.changed.set()

        assert self.loop is not None
        self.loop.call_soon_threadsafe(change)


@pytest.fixture
def detector(master):
    return TestDetector(master.address)


def test_the_link_leaves_at_once_for_another_leader(master, detector, instance):
    with FakeMaster() as other:
        scheduler = Recorder()
        instance(scheduler, "registered", at=detector, standby=False)
        detector.say(other.address)
        scheduler.next("disconnected")
        scheduler.next("reregistered")
        other.wait_for_subscription()


def test_a_standby_leaves_for_another_leader_too(master, detector, instance):
    with FakeMaster() as other:
        scheduler = Recorder()
        instance(Recorder(), "registered")
        instance(scheduler, "standby", at=detector)
        detector.say(other.address)
        scheduler.next("disconnected")
        scheduler.next("registered")


def test_the_link_is_kept_while_nobody_is_known_to_lead(master, detector, instance):
    scheduler = Recorder()
    driver = instance(scheduler, "registered", at=detector, standby=False)
    detector.say(None)
    driver.kill_task("t1")
    master.wait_for(Call.KILL)
    master.message("a1", "e1", b"still here")
    scheduler.next("framework_message")


def test_a_master_that_names_nonsense_as_the_leader_ends_nothing(master, instance):
    master.does_not_lead("no address at all")
    scheduler = Recorder()
    instance(scheduler)
    master.wait_for(Call.SUBSCRIBE, 3)
    master.refusal = None
    scheduler.next("registered")
