"""The face of the core: streams, operators, and time: windows, deadlines, pauses of our own."""

import math

import pytest

from master.allocator.base import Allocator, Failure, PolicyChanged
from master.core.cluster import Options
from master.core.master import BEHIND_MOST_S, BEHIND_S, MANY_OFFERS, Master
from mesos_py.errors import InvalidValue, NotFound
from mesos_py.ids import MasterIds
from mesos_py.policy import RolePolicy
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import RecordingOutbox, World

Call = agent_pb2.Call


@pytest.fixture
def world():
    made = World()
    yield made
    made.check()


class Counting(Allocator):
    """Counts its cycles, grants nothing, and raises what it is told to."""

    def __init__(self):
        self.cycles = []
        self.error = None
        self.wake_s = None
        self.heard = []

    def tell(self, event):
        self.heard.append(event)

    def allocate(self, view, now_s):
        self.cycles.append(now_s)
        if self.error is not None:
            raise self.error
        return []

    def next_wake_s(self):
        return self.wake_s

    def explain(self, framework_id, view, now_s):
        return []

    def shares(self, view):
        return {}


class CountingWorld(World):
    def __init__(self, options):
        self.script = Counting()
        super().__init__(options, self.script)


def counting(**options):
    return CountingWorld(Options(**options))


# ---- Streams ---------------------------------------------------------------------------


def test_a_new_master_has_nothing_to_do():
    outbox = RecordingOutbox()
    master = Master(
        Options(), pb.MasterInfo(id="m"), MasterIds("m", lambda: b""), outbox, Counting()
    )
    assert master.next_deadline_s() is None


@pytest.mark.parametrize("kind", [Call.UPDATE, Call.PONG, 77])
def test_an_agent_that_has_not_registered_is_cut_off(world, kind):
    link = world.link()
    world.core.agent_call(link, Call(type=kind), world.clock.now())
    assert world.outbox.closed[link] == "the agent is not registered on this stream"


@pytest.mark.parametrize("kind", [Call.UNKNOWN, 77, -1])
def test_a_call_that_no_agent_makes_is_dropped(world, kind):
    agent = world.agent()
    agent.call(type=kind)
    assert world.outbox.drops == [("agent-call-unknown", {"agent": agent.id, "call": kind})]
    assert world.cluster.agents[agent.id].connected


def test_the_end_of_a_stream_that_never_registered_is_nothing(world):
    world.core.agent_disconnected(world.link(), world.clock.now())
    assert world.outbox.drops == []


@pytest.mark.parametrize("kind", sorted(Call.Type.values()))
def test_an_empty_call_of_an_agent_stops_nothing(world, kind):
    agent, other = world.agent(), world.agent()
    agent.call(type=kind)
    assert world.cluster.agents[other.id].connected


# ---- Operators -------------------------------------------------------------------------


@pytest.mark.parametrize("weight", [0.0, -1.0, math.nan, math.inf])
def test_a_weight_that_is_none_is_refused_and_changes_nothing(weight):
    world = counting()
    with pytest.raises(InvalidValue, match=r"weights\[web\]"):
        world.core.set_weight("web", weight, world.clock.now())
    assert world.cluster.weights == {}
    assert world.script.heard == []


def test_a_weight_of_what_is_no_role_is_refused():
    with pytest.raises(InvalidValue, match="role"):
        counting().core.set_weight("a b", 1.0, World().clock.now())


def test_a_weight_takes_effect_with_the_next_allocation():
    world = counting()
    world.core.set_weight("web", 2.5, world.clock.now())
    assert world.cluster.weights == {"web": 2.5}
    assert world.script.heard == [PolicyChanged("web", RolePolicy(weight=2.5))]
    world.settle()
    assert len(world.script.cycles) == 1


def test_a_weight_shifts_what_the_next_offers_are(world):
    world.core.set_weight("heavy", 10.0, world.clock.now())
    light = world.framework("light", role="light")
    heavy = world.framework("heavy", role="heavy")
    for _ in range(22):
        world.agent(resources="cpus:1;mem:100")
    world.settle()
    counts = [len(framework.offers()) for framework in (light, heavy)]
    assert counts == [2, 20]


def test_an_operator_tears_a_framework_down(world):
    framework = world.framework()
    world.core.teardown(framework.id, world.clock.now())
    ended = world.cluster.completed_frameworks[framework.id]
    assert ended.unregistered is not None
    assert world.outbox.closed[framework.link] == "the framework was torn down by an operator"
    with pytest.raises(NotFound, match="has ended already"):
        world.core.teardown(framework.id, world.clock.now())
    with pytest.raises(NotFound, match="unknown"):
        world.core.teardown("nobody", world.clock.now())


def test_an_operator_kills_a_task(world):
    agent, framework = world.agent(), world.framework()
    framework.start("t1")
    agent.take()
    task = world.cluster.frameworks[framework.id].tasks["t1"]
    policy = pb.KillPolicy(grace_period=pb.DurationInfo(nanoseconds=5))
    world.core.kill_task(task, policy)
    (event,) = agent.take()
    assert event.kill_task.task_id.value == "t1"
    assert event.kill_task.kill_policy == policy


# ---- Allocation ------------------------------------------------------------------------


def test_all_changes_within_the_window_make_one_cycle():
    world = counting(allocation_window_s=0.01)
    for _ in range(5):
        world.agent()
    assert world.script.cycles == []
    start = world.clock.monotonic_s
    world.advance(0.5)
    assert world.script.cycles == [pytest.approx(start + 0.01)]
    assert world.cluster.counters["allocation_cycles"] == 1


def test_an_idle_master_allocates_nothing():
    world = counting()
    world.agent()
    world.settle()
    world.advance(60)
    assert len(world.script.cycles) == 1


def test_allocation_never_takes_more_than_its_share_of_the_time():
    world = counting(allocation_window_s=0.01, allocation_load=0.2)
    readings = iter([0.0, 2.0, 10.0, 10.1])
    world.agent()
    world.clock.advance(0.01)
    world.core.tick(world.clock.now(), lambda: next(readings))
    world.agent()
    # It took 2 s, so that the next one may begin 10 s after it did.
    assert world.core.next_deadline_s() == pytest.approx(world.clock.monotonic_s + 10)
    world.clock.advance(9.9)
    world.core.tick(world.clock.now(), lambda: next(readings))
    assert len(world.script.cycles) == 1
    world.clock.advance(0.1)
    world.core.tick(world.clock.now(), lambda: next(readings))
    assert len(world.script.cycles) == 2


def test_while_the_shell_is_behind_a_cycle_waits_but_not_for_ever():
    world = counting(allocation_window_s=0.01)
    world.agent()
    waited_s = 0.0
    while not world.script.cycles:
        due_s = world.core.next_deadline_s()
        assert due_s > world.clock.monotonic_s
        waited_s += due_s - world.clock.monotonic_s
        world.clock.advance(due_s - world.clock.monotonic_s)
        world.core.tick(world.clock.now(), behind=True)
    assert BEHIND_S <= waited_s <= BEHIND_S + 0.03
    # The next one waits as long again.
    world.agent()
    world.clock.advance(0.01)
    world.core.tick(world.clock.now(), behind=True)
    assert len(world.script.cycles) == 1
    world.clock.advance(0.01)
    world.core.tick(world.clock.now())
    assert len(world.script.cycles) == 2


def test_it_waits_longer_while_many_answers_are_on_their_way():
    world = counting(allocation_window_s=0.01)
    world.agent()
    world.cluster.offers.update({f"o{n}": None for n in range(MANY_OFFERS + 1)})
    begun_s = world.clock.monotonic_s
    while not world.script.cycles:
        world.clock.advance(world.core.next_deadline_s() - world.clock.monotonic_s)
        world.core.tick(world.clock.now(), behind=True)
    assert BEHIND_MOST_S <= world.clock.monotonic_s - begun_s <= BEHIND_MOST_S + 0.03


def test_an_offer_whose_answer_may_be_unread_does_not_expire_but_not_for_ever():
    world = World(Options(offer_timeout_s=5.0, first_offer_timeout_s=1.0))
    world.agent()
    framework = world.framework()
    framework.offers()
    (offer,) = world.cluster.offers.values()
    while world.cluster.offers:
        deadline_s = world.core.next_deadline_s()
        assert deadline_s is not None
        world.clock.advance(deadline_s - world.clock.monotonic_s)
        world.core.tick(world.clock.now(), behind=True)
    assert 6.0 <= world.clock.monotonic_s - offer.made_s <= 6.5


def test_when_all_is_read_an_offer_without_an_answer_is_over():
    world = World(Options(offer_timeout_s=5.0, first_offer_timeout_s=1.0))
    world.agent()
    world.framework().offers()
    world.clock.advance(1)
    world.core.tick(world.clock.now(), behind=True)
    assert world.cluster.offers
    world.clock.advance(0.25)
    world.core.tick(world.clock.now())
    assert not world.cluster.offers


def test_the_time_that_cycles_take_is_counted():
    world = counting(allocation_window_s=0.01)
    readings = iter([0.0, 2.0, 10.0, 10.5])
    for _ in range(2):
        world.agent()
        world.clock.advance(60)
        world.core.tick(world.clock.now(), lambda: next(readings))
    assert world.cluster.allocation.seconds == 2.5
    assert world.cluster.allocation.longest_s == 2.0


def test_the_allocator_is_woken_when_it_asked_to_be():
    world = counting()
    world.agent()
    world.settle()
    world.script.wake_s = world.clock.monotonic_s + 5
    assert world.core.next_deadline_s() == world.script.wake_s
    world.clock.advance(5)
    world.core.tick(world.clock.now())
    world.script.wake_s = None
    world.settle()
    assert len(world.script.cycles) == 2


def test_an_allocator_that_raises_is_asked_again_a_second_later_and_nothing_is_forgotten():
    world = counting()
    world.agent()
    world.script.error = ZeroDivisionError("a plug-in's fault")
    world.clock.advance(0.01)
    with pytest.raises(ZeroDivisionError):
        world.core.tick(world.clock.now())
    assert world.core.next_deadline_s() == world.clock.monotonic_s + 1
    world.script.error = None
    world.advance(1)
    assert len(world.script.cycles) == 2


def test_a_record_that_the_allocator_could_not_use_is_said_once_for_each_time():
    world = counting()
    world.script.failures = lambda: {"m-0000": Failure(world.failed, "RuntimeError: odd")}
    for world.failed in (1, 1, 2):
        world.cluster.want_allocation(world.clock.now())
        world.settle()
    said = ("allocator-record-failed", {"record": "m-0000", "why": "RuntimeError: odd"})
    assert world.outbox.drops == [said, said]


def test_a_step_that_raises_leaves_the_others_due():
    world = World()
    first, second = world.agent(), world.agent()
    world.cluster.timers.set("ping", "nobody", world.clock.monotonic_s + 10)
    world.clock.advance(10)
    with pytest.raises(KeyError):
        world.core.tick(world.clock.now())
    world.clock.advance(5)
    world.core.tick(world.clock.now())
    for agent in (first, second):
        assert len(agent.take(agent_pb2.Event.PING)) == 1


# ---- When this process was stopped ----------------------------------------------------------


def stop(world, seconds):
    """SIGSTOP, and SIGCONT `seconds` later: nothing is read in between."""
    world.clock.advance(seconds)
    world.core.tick(world.clock.now())


def test_a_pause_of_the_master_makes_no_agent_unreachable(world):
    agents = [world.agent() for _ in range(20)]
    world.advance(15)
    stop(world, 30)
    assert world.outbox.drops == [("late-wake-up", {"seconds": 15.0})]
    stop(world, 300)
    stop(world, 3600)
    assert all(world.cluster.agents[agent.id].connected for agent in agents)
    assert world.cluster.counters["agents_unreachable"] == 0


def test_after_a_pause_an_agent_has_the_full_time_to_come_back(world):
    agent, framework = world.agent(), world.framework(failover_timeout=1e6)
    framework.start("t1")
    agent.disconnect()
    world.advance(74)
    stop(world, 120)
    assert world.cluster.agents[agent.id].unreachable is None
    world.advance(74)
    assert world.cluster.agents[agent.id].unreachable is None
    world.advance(2)
    assert world.cluster.agents[agent.id].unreachable is not None


def test_after_a_pause_pings_are_counted_anew(world):
    agent = world.agent()
    world.advance(75)
    assert world.cluster.agents[agent.id].pings_unanswered == 5
    stop(world, 30)
    world.advance(59)
    assert world.cluster.agents[agent.id].connected
    world.advance(30)
    assert world.cluster.agents[agent.id].unreachable is not None


def test_after_a_pause_offers_may_be_answered_as_long_as_ever():
    world = World(Options(first_offer_timeout_s=30.0))
    world.agent()
    framework = world.framework()
    (offer,) = framework.offers()
    world.advance(29)
    stop(world, 60)
    assert offer.id.value in world.cluster.offers
    world.advance(29)
    assert offer.id.value in world.cluster.offers
    world.advance(2)
    assert offer.id.value not in world.cluster.offers


@pytest.mark.parametrize(("timeout", "left"), [(10.0, 10.0), (80.0, 75.0), (1000.0, 925.0)])
def test_after_a_pause_a_framework_has_time_to_come_back(world, timeout, left):
    """As much as it had left (our own timers tell to 15 s when the pause began), and at
    least its whole time-out, of a long one as much as an agent gets."""
    world.agent()
    framework = world.framework(failover_timeout=timeout)
    framework.disconnect()
    world.advance(min(60.0, timeout - 1))
    stop(world, timeout + 100)
    world.advance(left - 1)
    assert framework.id in world.cluster.frameworks
    world.advance(17)
    assert framework.id not in world.cluster.frameworks


def test_a_short_pause_gives_the_time_back_and_as_much_again_to_be_heard(world):
    agent = world.agent()
    agent.disconnect()
    world.advance(74)
    stop(world, 3)  # two seconds late for the agent's end
    assert world.cluster.agents[agent.id].unreachable is None
    world.advance(1.9)
    assert world.cluster.agents[agent.id].unreachable is None
    world.advance(0.2)
    assert world.cluster.agents[agent.id].unreachable is not None


def test_short_pauses_one_after_the_other_do_not_keep_a_silent_agent(world):
    agent = world.agent()
    pauses = 0
    while (deadline_s := world.core.next_deadline_s()) is not None:
        stop(world, deadline_s - world.clock.monotonic_s + 2)
        world.settle()
        pauses += 1
        assert pauses < 20
    assert world.cluster.agents[agent.id].unreachable is not None


def test_a_wake_up_that_is_a_little_late_is_none(world):
    world.agent()
    stop(world, 15.9)
    assert world.outbox.drops == []


@pytest.mark.parametrize("step_s", [3600.0, -3600.0])
def test_a_step_of_the_wall_clock_ends_nothing(world, step_s):
    agent, framework = world.agent(), world.framework(failover_timeout=60.0)
    framework.offers()
    framework.disconnect()
    world.clock.wall_s += step_s
    world.core.tick(world.clock.now())
    world.advance(15)
    assert framework.id in world.cluster.frameworks
    assert world.cluster.agents[agent.id].connected
    assert world.outbox.drops == []


# ---- One bad record --------------------------------------------------------------------------


def test_one_frameworks_broken_record_does_not_starve_the_others(world):
    class Broken(dict):
        def get(self, key, default=None):
            raise RuntimeError("a record that cannot be read")

    broken, sound = world.framework("broken"), world.framework("sound")
    world.cluster.frameworks[broken.id].constraints = Broken()
    record = world.cluster.frameworks[broken.id]
    world.cluster.tell_framework(record, world.clock.now())
    for _ in range(5):
        world.agent()
    world.settle()
    assert len(sound.offers()) == 5
    assert world.cluster.allocator.failures()[broken.id].count >= 1
    assert sched.Event.OFFERS not in [event.type for event in broken.take()]
