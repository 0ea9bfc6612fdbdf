"""The maintenance schedule: what follows from it, and what from machines that are down."""

import pytest

from master.core import maintenance
from master.core.cluster import Options
from mesos_py.errors import Conflict, InvalidValue
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import maintenance_pb2 as mt
from mesos_py.v1 import registry_pb2 as reg
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import World
from tests.kit.operators import Operator, machine, window
from tests.kit.scenes import PARTITION_AWARE

Event = agent_pb2.Event
AT = 2e9
STATUS = mt.InverseOfferStatus


class Scene:
    """Two agents; a framework with a task on web1."""

    def __init__(self, aware=False):
        self.world = World(Options(durable=True))
        self.operator = Operator(self.world)
        self.framework = self.world.framework(
            failover_timeout=1e6, capabilities=[PARTITION_AWARE] if aware else []
        )
        self.agent = self.world.agent("web1")
        self.framework.start("t1")
        self.agent.report("t1", pb.TASK_RUNNING, self.framework)
        self.other = self.world.agent("web2")
        self.agent.take()
        self.framework.take()

    def schedule(self, *windows):
        done = self.operator.schedule(*windows)
        self.world.stored()
        assert len(done) == 1

    def down(self):
        self.schedule(window("web1", start_s=AT))
        self.framework.offers()
        self.framework.take()
        self.operator.start(machine("web1"))
        self.world.stored()

    def record(self):
        value = self.world.records.get("maintenance")
        return None if value is None else reg.Maintenance.FromString(value)

    def offers(self):
        """What has been offered since, by host name."""
        return {offer.hostname: offer for offer in self.framework.offers()}

    def register(self, **what):
        events = self.agent.register(**what)
        self.world.stored()
        return events + self.agent.greeted()

    def running(self):
        task = self.agent.task("t1", self.framework, pb.TASK_RUNNING)
        return {"tasks": [task], "frameworks": [self.framework.info]}


@pytest.fixture
def scene():
    made = Scene()
    yield made
    made.world.check()


# ---- The schedule ----------------------------------------------------------------------------


def test_nothing_is_told_of_a_schedule_before_it_is_stored(scene):
    scene.offers()
    done = scene.operator.schedule(window("web1"))
    assert (done, scene.framework.kinds(), scene.record()) == ([], [], None)
    scene.world.stored()
    assert len(done) == 1
    assert scene.framework.kinds() == ["RESCIND"]
    assert [each.mode for each in scene.record().machines] == [pb.MachineInfo.DRAINING]


def test_offers_of_such_a_machine_come_back_once_and_then_say_so(scene):
    before = scene.offers()
    assert set(before) == {"web1", "web2"}
    assert not before["web1"].HasField("unavailability")
    scene.schedule(window("WEB1", start_s=AT, duration_s=60))
    [event] = scene.framework.take()
    assert event.rescind.offer_id == before["web1"].id
    after = scene.offers()
    assert set(after) == {"web1"}
    assert after["web1"].unavailability.start.nanoseconds == AT * 10**9
    assert after["web1"].unavailability.duration.nanoseconds == 60 * 10**9


def test_a_schedule_that_changes_nothing_for_an_agent_does_not_touch_its_offers(scene):
    scene.schedule(window("web1"))
    scene.offers()
    scene.schedule(window("web1"), window("web9"))
    assert scene.framework.kinds() == []


def test_a_machine_that_is_scheduled_no_more_is_offered_as_before(scene):
    scene.schedule(window("web1"))
    scene.offers()
    scene.schedule()
    assert "RESCIND" in scene.framework.kinds()
    assert not scene.offers()["web1"].HasField("unavailability")
    assert scene.record() is None


def test_an_agent_that_comes_later_is_on_its_machine(scene):
    scene.schedule(window("web3"))
    scene.world.agent("web3")
    assert scene.offers()["web3"].HasField("unavailability")


def test_nothing_happens_when_the_window_begins(scene):
    scene.offers()
    scene.schedule(window("web1", start_s=scene.world.clock.wall_s + 5, duration_s=5))
    scene.offers()
    scene.framework.take()
    for _ in range(20):
        scene.world.advance(1)
        scene.agent.pong()
        scene.other.pong()
    assert scene.agent.orders() == []
    assert scene.world.cluster.agents[scene.agent.id].connected


def test_what_is_decided_counts_before_it_is_stored(scene):
    scene.operator.schedule(window("web1"))
    done = scene.operator.start(machine("web1"))
    with pytest.raises(InvalidValue, match="down already"):
        scene.operator.start(machine("web1"))
    assert (done, scene.agent.orders()) == ([], [])
    scene.world.stored()
    assert len(done) == 1


def test_a_schedule_that_is_refused_changes_nothing(scene):
    with pytest.raises(InvalidValue):
        scene.operator.schedule(window())
    assert scene.world.outbox.writes == []


def test_an_agent_in_the_schedule_cannot_be_drained(scene):
    scene.schedule(window("web1"))
    with pytest.raises(Conflict, match="its machine is in the maintenance schedule"):
        scene.operator.drain(scene.agent)
    scene.operator.deactivate(scene.agent)
    scene.world.stored()


def test_a_successor_goes_on_with_it(scene):
    scene.schedule(window("web1"))
    successor = scene.world.successor()
    scene.world = scene.agent.world = scene.framework.world = successor
    scene.framework.subscribe()
    scene.agent.register(**scene.running())
    successor.advance(11)
    offer = scene.offers().get("web1")
    assert offer is None or offer.HasField("unavailability")
    assert successor.cluster.agents[scene.agent.id].unavailability is not None
    with pytest.raises(Conflict, match="maintenance schedule"):
        Operator(successor).drain(scene.agent)


def test_a_damaged_record_is_passed_over(scene):
    scene.world.records["maintenance"] = b"\xff"
    successor = scene.world.successor()
    assert [reason for reason, _ in successor.outbox.drops] == ["registry-record-damaged"]
    assert not successor.cluster.machines


# ---- Down ------------------------------------------------------------------------------------


@pytest.mark.parametrize("aware", [False, True])
def test_agents_of_a_machine_that_is_taken_away_are_sent_away_and_their_tasks_lost(aware):
    scene = Scene(aware)
    scene.down()
    assert scene.agent.orders() == ["SHUTDOWN"]
    assert scene.agent.id not in scene.world.cluster.agents
    kinds = scene.framework.take()
    [status] = [each.update.status for each in kinds if each.HasField("update")]
    assert (status.state, status.reason) == (pb.TASK_LOST, pb.TaskStatus.REASON_AGENT_REMOVED)
    assert "down for maintenance" in status.message
    assert scene.other.id in scene.world.cluster.agents
    assert f"agent/{scene.agent.id}" not in scene.world.records
    assert [each.mode for each in scene.record().machines] == [pb.MachineInfo.DOWN]
    scene.world.check()


def test_nothing_is_told_before_it_is_stored(scene):
    scene.schedule(window("web1"))
    scene.agent.take()
    scene.operator.start(machine("web1"))
    assert scene.agent.orders() == []
    assert scene.agent.id in scene.world.cluster.agents
    scene.world.stored()


def test_an_agent_that_comes_while_its_machine_is_down_is_to_ask_again(scene):
    scene.down()
    scene.agent.info.ClearField("id")
    [event] = scene.register()
    refused = event.refused
    assert (refused.code, refused.final, refused.shut_down) == ("machine-down", False, False)
    assert "machine web1 is down for maintenance" in refused.message


def test_an_agent_that_brings_tasks_there_is_to_end_them(scene):
    scene.down()
    [event] = scene.register(**scene.running())
    assert (event.refused.final, event.refused.shut_down) == (True, True)


def test_an_agent_whose_tasks_there_have_ended_waits(scene):
    scene.down()
    ended = scene.agent.task("t1", scene.framework, pb.TASK_KILLED)
    [event] = scene.register(tasks=[ended], frameworks=[scene.framework.info])
    assert (event.refused.final, event.refused.shut_down) == (False, False)


def test_nobody_is_told_to_end_tasks_before_it_is_stored_that_the_machine_is_down(scene):
    scene.schedule(window("web1"))
    scene.agent.disconnect()
    scene.operator.start(machine("web1"))
    [event] = scene.agent.register(**scene.running())
    assert (event.refused.final, event.refused.shut_down) == (False, False)
    scene.world.stored()


def test_an_agent_that_is_being_admitted_meanwhile_is_not_admitted(scene):
    scene.schedule(window("web1"))
    scene.agent.disconnect()
    scene.world.advance(75)
    scene.world.stored()
    assert scene.agent.register() == []
    scene.operator.start(machine("web1"))
    scene.world.stored()
    [event] = scene.agent.take()
    assert event.type == Event.REFUSED
    cluster = scene.world.cluster
    assert scene.agent.id not in cluster.agents
    assert scene.agent.id not in cluster.expected
    assert f"agent/{scene.agent.id}" not in scene.world.records


def test_an_agent_that_is_expected_there_is_expected_no_more(scene):
    scene.schedule(window("web1"))
    successor = scene.world.successor()
    Operator(successor).start(machine("web1"))
    successor.stored()
    assert scene.agent.id not in successor.cluster.expected
    assert scene.other.id in successor.cluster.expected
    assert f"agent/{scene.agent.id}" not in successor.records
    successor.check()


def test_an_agent_that_was_marked_as_gone_stays_so(scene):
    scene.operator.mark_gone(scene.agent)
    scene.schedule(window("web1"))
    scene.operator.start(machine("web1"))
    scene.world.stored()
    assert f"agent/{scene.agent.id}" in scene.world.records


def test_a_successor_refuses_agents_there_as_well(scene):
    scene.down()
    scene.world = scene.agent.world = scene.world.successor()
    [event] = scene.register()
    assert event.refused.code == "machine-down"


# ---- Up again --------------------------------------------------------------------------------


def test_agents_register_again_once_it_is_stored_that_the_machine_is_back(scene):
    scene.down()
    done = scene.operator.stop(machine("web1"))
    assert (done, scene.agent.register()) == ([], [])
    scene.world.stored()
    assert len(done) == 1
    assert scene.record() is None
    assert scene.agent.greeted()[0].type == Event.REGISTERED
    scene.framework.take()
    assert not scene.offers()["web1"].HasField("unavailability")


# ---- Status ----------------------------------------------------------------------------------


def test_the_status_names_draining_and_down_machines(scene):
    scene.schedule(window("web1"), window("web9"))
    scene.operator.start(machine("web9"))
    scene.world.stored()
    status = maintenance.status(scene.world.cluster)
    assert [each.id.hostname for each in status.draining_machines] == ["web1"]
    assert [each.hostname for each in status.down_machines] == ["web9"]
