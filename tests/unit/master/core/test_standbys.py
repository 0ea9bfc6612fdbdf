"""Standbys: who waits, who is promoted when, and what all of them are told."""

from __future__ import annotations

from typing import Any

import pytest

from master.core.cluster import Options
from master.core.explain import findings
from mesos_py.states import TASK_RUNNING
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import FakeFramework, FCall, World

Event = sched.Event
HOLD_S = Options().standby_hold_s


class Instance(FakeFramework):
    """One of several schedulers of a framework: a process with streams of its own."""

    def __init__(self, world: World, name: str, **info: Any) -> None:
        info.setdefault("failover_timeout", 0.0)
        proto = pb.FrameworkInfo(name="fw", user="nobody", id=pb.FrameworkID(value="fw"), **info)
        proto.hostname = f"host-{name}"
        super().__init__(world, proto)
        self.name = name
        self.attempt = 0

    def come(self, standby: bool = True, **fields: Any) -> list[str]:
        """Subscribe on a new stream; what comes back."""
        self.attempt += 1
        fields.setdefault("instance", self.name)
        fields.setdefault("attempt", self.attempt)
        return told(self.subscribe(standby=standby, **fields))

    def heard(self) -> list[str]:
        return told(self.take())

    @property
    def closed(self) -> str | None:
        return self.world.outbox.closed.get(self.link)


def told(events: list[Any]) -> list[str]:
    """Events as words: STANDBY with the place, ERROR with its text."""
    words = []
    for event in events:
        word = Event.Type.Name(event.type)
        if event.type == Event.STANDBY:
            word += f" {event.standby.ahead}"
        elif event.type == Event.ERROR:
            word += f" {event.error.message}"
        words.append(word)
    return words


def instances(world: World, *names: str, **info: Any) -> list[Instance]:
    """The first is active, the others wait in order."""
    made = [Instance(world, name, **info) for name in names]
    assert made[0].come(was_active=True) == ["SUBSCRIBED"]
    for ahead, each in enumerate(made[1:]):
        assert each.come() == [f"STANDBY {ahead}"]
    return made


@pytest.fixture
def world():
    made = World()
    yield made
    made.check()


# ---- Who waits -------------------------------------------------------------------


def test_the_first_instance_of_an_id_that_is_new_to_the_master_waits_a_moment(world: World):
    one = Instance(world, "one")
    assert one.come() == ["STANDBY 0"]
    world.check()
    world.advance(HOLD_S - 0.1)
    assert one.heard() == []
    world.advance(0.1)
    assert one.heard() == ["SUBSCRIBED"]


def test_with_no_hold_it_is_active_at_once():
    world = World(Options(standby_hold_s=0.0))
    one = Instance(world, "one")
    assert one.come() == ["SUBSCRIBED"]
    world.check()


def test_an_instance_that_was_active_does_not_wait_for_others(world: World):
    one, two = Instance(world, "one"), Instance(world, "two")
    assert one.come() == ["STANDBY 0"]
    assert two.come(was_active=True) == ["SUBSCRIBED"]
    world.advance(10 * HOLD_S)
    assert one.heard() == []
    two.disconnect()
    assert one.heard() == ["SUBSCRIBED"]


def test_an_instance_that_was_active_waits_when_another_is_active_now(world: World):
    instances(world, "one")
    assert Instance(world, "two").come(was_active=True) == ["STANDBY 0"]


def test_one_that_does_not_stand_by_ends_the_hold(world: World):
    one, plain = Instance(world, "one"), Instance(world, "plain")
    assert one.come() == ["STANDBY 0"]
    assert plain.come(standby=False) == ["SUBSCRIBED"]
    world.advance(10 * HOLD_S)
    assert one.heard() == []


def test_a_framework_known_from_its_agents_alone_is_held_for_its_active_instance(world: World):
    agent = world.agent()
    agent.disconnect()
    task = agent.task("t", "fw", TASK_RUNNING)
    info = pb.FrameworkInfo(name="fw", user="nobody", id=pb.FrameworkID(value="fw"))
    agent.register(tasks=[task], frameworks=[info])
    one = Instance(world, "one")
    assert one.come() == ["STANDBY 0"]
    framework = world.cluster.frameworks["fw"]
    assert "1 standby waits, for 2 s, for the instance that was active" in findings(
        world.cluster, framework, world.clock.now()
    )
    world.advance(HOLD_S)
    assert one.heard() == ["SUBSCRIBED"]
    assert "t" in framework.tasks


def test_a_framework_that_is_away_is_taken_over_at_once(world: World):
    (one,) = instances(world, "one", failover_timeout=60.0)
    one.disconnect()
    assert Instance(world, "two", failover_timeout=60.0).come() == ["SUBSCRIBED"]
    world.advance(100)
    assert "fw" in world.cluster.frameworks


def test_a_long_stop_of_the_master_does_not_end_the_hold(world: World):
    one = Instance(world, "one")
    one.come()
    world.clock.advance(60)
    world.core.tick(world.clock.now())
    assert one.heard() == []
    world.advance(61)
    assert one.heard() == ["SUBSCRIBED"]


def test_a_standby_needs_the_id_of_a_framework(world: World):
    framework = FakeFramework(world, pb.FrameworkInfo(name="f", user="nobody"))
    events = framework.subscribe(standby=True)
    assert told(events) == [
        "ERROR framework_info.id: '': a standby names the framework it waits for"
    ]


@pytest.mark.parametrize(
    ("info", "fields", "reason"),
    [
        ({"principal": "other"}, {}, "cannot change from ''"),
        ({"role": "a b"}, {}, "framework_info.role"),
        ({"failover_timeout": -1.0}, {}, "failover_timeout"),
        ({}, {"suppressed_roles": ["other"]}, "is not a role of the framework"),
        ({}, {"protocol_version": 99}, "speaks protocol 99"),
    ],
)
def test_a_standby_is_checked_like_a_subscriber(
    world: World, info: dict[str, Any], fields: dict[str, Any], reason: str
):
    instances(world, "one")
    two = Instance(world, "two", **info)
    [error] = two.come(**fields)
    assert error.startswith("ERROR")
    assert reason in error
    assert two.closed is not None


def test_the_standbys_of_a_framework_are_of_a_bounded_number():
    world = World(Options(max_standbys=2))
    instances(world, "one", "two", "three")
    four = Instance(world, "four")
    assert four.come() == ["ERROR framework fw: 2 standbys wait already, at most 2 may"]
    assert four.closed is not None
    world.check()


def test_a_framework_that_has_ended_has_no_standbys(world: World):
    (one,) = instances(world, "one")
    one.call(type=FCall.TEARDOWN)
    assert Instance(world, "two").come() == ["ERROR framework fw: Framework has been removed"]


# ---- Promotion -------------------------------------------------------------------


def test_the_next_is_promoted_in_the_step_in_which_the_active_one_goes(world: World):
    one, two, three = instances(world, "one", "two", "three")
    agent = world.agent()
    offer = one.start("t")
    agent.report("t", TASK_RUNNING, one)
    one.disconnect()
    assert two.heard() == ["SUBSCRIBED"]
    assert three.heard() == ["STANDBY 0"]
    assert "t" in world.cluster.frameworks["fw"].tasks
    assert offer.id.value not in world.cluster.offers
    world.advance(3600)
    assert "fw" in world.cluster.frameworks


def test_offers_of_the_old_instance_are_void_and_what_it_refused_binds_nobody(world: World):
    one, two = instances(world, "one", "two")
    world.agent()
    (first,) = one.offers()
    one.decline(first, refuse_s=3600)
    one.disconnect()
    two.heard()
    (second,) = two.offers()
    two.launch(first, world.task("t"))
    [status] = two.updates()
    assert status.reason == pb.TaskStatus.REASON_INVALID_OFFERS
    assert second.id.value in world.cluster.offers


def test_updates_go_to_the_instance_that_was_promoted(world: World):
    one, two = instances(world, "one", "two")
    agent = world.agent()
    one.start("t")
    one.disconnect()
    two.heard()
    agent.report("t", TASK_RUNNING, two)
    assert [status.task_id.value for status in two.updates()] == ["t"]


def test_a_subscriber_that_does_not_stand_by_displaces_the_active_one_only(world: World):
    one, two = instances(world, "one", "two")
    plain = Instance(world, "plain")
    assert plain.come(standby=False) == ["SUBSCRIBED"]
    assert one.heard() == ["ERROR Framework failed over"]
    assert two.heard() == []
    one.disconnect()
    assert two.heard() == []
    plain.disconnect()
    assert two.heard() == ["SUBSCRIBED"]


def test_its_own_framework_info_is_applied_when_it_is_promoted(world: World):
    one, two = instances(world, "one", "two")
    two.info.role = "other"
    two.disconnect()
    two.come()
    assert world.cluster.frameworks["fw"].roles == ("*",)
    one.disconnect()
    assert world.cluster.frameworks["fw"].roles == ("other",)
    assert world.cluster.frameworks["fw"].info.hostname == "host-two"


def test_one_that_is_refused_when_its_turn_comes_is_passed_over(world: World):
    one = Instance(world, "one", principal="a")
    two = Instance(world, "two", principal="b")
    three = Instance(world, "three", principal="a")
    for each in (one, two, three):
        each.come()  # nobody knows yet whose framework it is
    world.advance(HOLD_S)
    assert one.heard() == ["STANDBY 0", "SUBSCRIBED"][1:]
    two.heard(), three.heard()
    one.disconnect()
    [error] = two.heard()
    assert "cannot change from 'a'" in error
    assert two.closed is not None
    assert three.heard() == ["SUBSCRIBED"]


def test_when_all_are_refused_the_failover_timeout_runs(world: World):
    one = Instance(world, "one", principal="a", failover_timeout=60.0)
    two = Instance(world, "two", principal="b")
    one.come(), two.come()
    world.advance(HOLD_S)
    one.disconnect()
    world.check()
    assert not world.cluster.frameworks["fw"].connected
    world.advance(61)
    assert "fw" in world.cluster.completed_frameworks


def test_a_master_that_is_told_late_of_an_expired_failover_promotes_who_holds(world: World):
    (one,) = instances(world, "one", failover_timeout=60.0)
    one.disconnect()
    world.cluster.frameworks["fw"].recovered = True
    two = Instance(world, "two")
    assert two.come() == ["STANDBY 0"]
    world.cluster.timers.set("failover", "fw", world.clock.now().monotonic_s)
    world.core.tick(world.clock.now())
    assert two.heard() == ["SUBSCRIBED"]


def test_it_wanders_through_all_instances(world: World):
    waiting = instances(world, "one", "two", "three")
    for _ in range(9):
        active = waiting.pop(0)
        active.disconnect()
        assert waiting[0].heard() == ["SUBSCRIBED"]
        assert waiting[1].heard() == ["STANDBY 0"]
        assert active.come(was_active=True) == ["STANDBY 1"]
        waiting.append(active)
        world.check()
    assert world.cluster.counters["standbys_promoted"] == 9
    assert world.cluster.counters["standbys_joined"] == 11


# ---- Waiting ---------------------------------------------------------------------


def test_those_behind_one_that_leaves_are_told_that_they_move_up(world: World):
    one, two, three, four = instances(world, "one", "two", "three", "four")
    three.disconnect()
    assert two.heard() == []
    assert four.heard() == ["STANDBY 1"]
    world.check()
    two.disconnect()
    four.disconnect()
    one.disconnect()
    assert not world.cluster.standbys
    assert "fw" in world.cluster.completed_frameworks  # failover time-out 0, as ever


def test_the_answer_names_framework_master_and_heartbeat(world: World):
    instances(world, "one")
    two = Instance(world, "two")
    two.come()
    world.outbox.to.clear()
    two.disconnect()
    [standby] = [e.standby for e in two.subscribe(standby=True)]
    assert standby.framework_id.value == "fw"
    assert standby.heartbeat_interval_seconds == world.cluster.options.heartbeat_s
    assert standby.master_info.id == "m"
    assert standby.protocol_version == 1


def test_standbys_hear_heartbeats_as_long_as_they_wait(world: World):
    _, two, three = instances(world, "one", "two", "three")
    world.outbox.to.clear()
    world.advance(world.cluster.options.heartbeat_s)
    for each in (two, three):
        kinds = [event.type for event in world.outbox.take(each.link)]
        assert kinds == [Event.HEARTBEAT]
    two.disconnect()
    three.disconnect()
    world.advance(10 * world.cluster.options.heartbeat_s)
    assert two.link not in world.outbox.to


@pytest.mark.parametrize("kind", sorted(set(FCall.Type.values()) - {FCall.UNKNOWN}))
def test_whatever_a_standby_calls_for_is_refused(world: World, kind: int):
    one, two = instances(world, "one", "two")
    two.call(type=kind)
    [refusal] = two.refusals()
    assert (refusal.call, refusal.code) == (kind, "refused")
    assert "stands by" in refusal.message
    assert "fw" in world.cluster.frameworks
    assert one.heard() == []
    assert two.closed is None


def test_a_call_of_no_known_kind_is_refused_too(world: World):
    _, two = instances(world, "one", "two")
    two.call(type=4711)
    [refusal] = two.refusals()
    assert refusal.call == FCall.UNKNOWN
    assert world.cluster.counters["dropped/standby-call"] == 1


# ---- Streams of one process --------------------------------------------------------


def test_a_process_that_comes_again_keeps_its_place(world: World):
    _, two, three = instances(world, "one", "two", "three")
    old = two.link
    assert two.come() == ["STANDBY 0"]
    assert old in world.outbox.closed
    world.core.framework_disconnected(old, world.clock.now())
    assert three.heard() == []
    assert len(world.cluster.standbys["fw"]) == 2


def test_one_that_comes_again_is_taken_even_if_no_more_fit():
    world = World(Options(max_standbys=1))
    _, two = instances(world, "one", "two")
    assert two.come() == ["STANDBY 0"]
    world.check()


def test_the_active_process_does_not_wait_behind_its_own_dead_stream(world: World):
    one, two = instances(world, "one", "two")
    old = one.link
    assert one.come(was_active=True) == ["SUBSCRIBED"]
    assert two.heard() == []
    world.core.framework_disconnected(old, world.clock.now())
    assert two.heard() == []


def test_a_process_that_no_longer_stands_by_leaves_its_place(world: World):
    _, two, three = instances(world, "one", "two", "three")
    assert two.come(standby=False) == ["SUBSCRIBED"]
    assert three.heard() == ["STANDBY 0"]


def test_a_process_whose_new_stream_is_refused_has_left_its_place(world: World):
    _, two, three = instances(world, "one", "two", "three")
    [error] = two.come(suppressed_roles=["none"])
    assert error.startswith("ERROR")
    assert three.heard() == ["STANDBY 0"]


def test_a_stream_that_was_overtaken_by_a_later_one_is_dropped(world: World):
    _, two = instances(world, "one", "two")
    two.come(attempt=9)
    late = Instance(world, "two")
    assert late.come(attempt=3) == []
    assert late.closed == "a later stream of the framework has come before"
    assert two.closed is None


def test_instances_without_a_name_are_different_ones(world: World):
    instances(world, "one")
    nameless = [Instance(world, "") for _ in range(2)]
    assert [each.come() for each in nameless] == [["STANDBY 0"], ["STANDBY 1"]]


# ---- Ends ------------------------------------------------------------------------


@pytest.mark.parametrize("by_operator", [False, True])
def test_teardown_ends_those_who_wait_as_well(world: World, by_operator: bool):
    one, two, three = instances(world, "one", "two", "three")
    if by_operator:
        world.core.teardown("fw", world.clock.now())
    else:
        one.call(type=FCall.TEARDOWN)
    for each in (two, three):
        assert each.heard() == ["ERROR Framework has been removed"]
        assert each.closed is not None
        each.disconnect()
    assert not world.cluster.standbys
    assert not world.cluster.standby_of_link


def test_standbys_are_counted_and_explained(world: World):
    one, two, three = instances(world, "one", "two", "three")
    framework = world.cluster.frameworks["fw"]
    found = findings(world.cluster, framework, world.clock.now())
    assert "2 standbys wait behind its active instance" in found
    names = [each.name for each in world.cluster.standbys["fw"]]
    assert names == ["host-two two", "host-three three"]
    three.disconnect()
    found = findings(world.cluster, framework, world.clock.now())
    assert "1 standby waits behind its active instance" in found
    nameless = FakeFramework(world, pb.FrameworkInfo(name="fw", id=one.info.id))
    nameless.subscribe(standby=True)
    assert world.cluster.standbys["fw"][-1].name == f"link {nameless.link}"
    two.disconnect()
