"""The policy on a simulated clock: spikes, swings, gaps, and what is not a load."""

import math
import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frameworks.webfarm.core.policy import SAMPLES, Limits, Meter, Policy
from mesos_py.errors import InvalidValue

PERIOD_S = 15.0
SAMPLE_S = PERIOD_S / SAMPLES
LIMITS = Limits(minimum=1, maximum=20, target=100.0)


class Simulated:
    """A policy, a clock, and what was decided."""

    def __init__(self, limits=LIMITS, servers=1):
        self.policy = Policy(limits, servers)
        self.now_s = 1000.0
        self.decided = []

    def feed(self, *loads):
        for load in loads:
            self.now_s += SAMPLE_S
            self.decided.append(self.policy.decide(self.now_s, load).servers)
        return self.policy.servers

    def steady(self, load, seconds):
        return self.feed(*[load] * math.ceil(seconds / SAMPLE_S))

    @property
    def changes(self):
        return sum(a != b for a, b in pairwise(self.decided))


def test_there_are_as_many_as_the_target_asks_for():
    farm = Simulated()
    assert farm.steady(100, 10) == 1
    assert farm.steady(101, 10) == 2
    assert farm.steady(950, 10) == 10


@pytest.mark.parametrize("servers", [1, 3, 10])
@pytest.mark.parametrize("wave", ["alternating", "slow", "sawtooth", "random"])
@pytest.mark.parametrize("threshold", ["up", "down"])
def test_a_load_that_swings_by_a_tenth_for_an_hour_changes_little(servers, wave, threshold):
    farm = Simulated(servers=servers)
    at = servers * 100.0 * (1 if threshold == "up" else LIMITS.margin)
    dice = random.Random(7)
    swing = {
        "alternating": lambda i: 1 if i % 2 else -1,
        "slow": lambda i: math.sin(i / 40),
        "sawtooth": lambda i: (i % 24) / 12 - 1,
        "random": lambda i: dice.uniform(-1, 1),
    }[wave]
    farm.feed(*[at * (1 + 0.1 * swing(i)) for i in range(int(3600 / SAMPLE_S))])
    assert farm.changes <= 4
    assert farm.changes <= 2  # what it is: up once, or down once more


def test_ten_times_the_load_is_followed_with_its_second_sample():
    farm = Simulated()
    farm.steady(90, 120)
    assert farm.feed(900) == 1
    assert farm.feed(900) == 9
    # The most that one step adds; the next sample brings the rest.
    other = Simulated()
    other.steady(100, 120)
    assert [other.feed(2000) for _ in range(4)] == [1, 9, 18, 20]


@given(load=st.floats(1, 2000), before=st.floats(0, 2000), at=st.floats(0.001, 1))
def test_the_target_is_held_one_period_after_the_load_has_changed(load, before, at):
    """at: the part of a sample that was over when it changed.  Nobody waits for a whole sample
    of the new load: the three of one period are it."""
    farm = Simulated(Limits(minimum=1, maximum=40, target=100.0, step_up=40))
    farm.steady(before, 10 * PERIOD_S)
    farm.feed(before * at + load * (1 - at), *[load] * (SAMPLES - 1))
    assert load / farm.policy.servers <= 100 * (1 + 1e-9)


def test_a_single_odd_sample_changes_nothing():
    farm = Simulated()
    farm.steady(90, 120)
    for odd in (900, 0, 1e12):
        assert farm.feed(odd, 90, 90, 90) == 1
    assert farm.changes == 0


def test_one_fewer_at_a_time_each_after_the_cool_down():
    farm = Simulated()
    farm.steady(1000, 60)
    begun = farm.now_s
    falls = []
    while farm.policy.servers > 1:
        before = farm.policy.servers
        if farm.feed(10) != before:
            falls.append((farm.now_s - begun, farm.policy.servers))
    assert [servers for _, servers in falls] == list(range(9, 0, -1))
    # The peak leaves the window of calm first.
    assert falls[0][0] >= LIMITS.calm_s
    gaps = [b[0] - a[0] for a, b in pairwise(falls)]
    assert set(gaps) == {LIMITS.cool_down_s}


def test_what_was_not_measured_is_no_small_load():
    farm = Simulated()
    farm.steady(1000, 60)
    farm.feed(*[None] * 1000)
    assert farm.policy.servers == 10
    # A gap in each while: never calm for long enough.
    for _ in range(50):
        farm.steady(10, LIMITS.calm_s - SAMPLE_S)
        farm.feed(None)
    assert farm.policy.servers == 10
    assert farm.steady(10, LIMITS.calm_s + 4 * SAMPLE_S) == 9


@pytest.mark.parametrize("nonsense", [math.nan, math.inf, -1.0])
def test_nonsense_counts_as_not_measured(nonsense):
    farm = Simulated(servers=5)
    assert farm.feed(*[nonsense] * 100) == 5


def test_a_load_that_no_number_of_servers_could_take_is_served_by_all():
    assert Simulated().feed(1e308, 1e308, 1e308) == 20


def test_it_begins_with_those_there_are_between_the_limits():
    assert Policy(LIMITS, 0).servers == 1
    assert Policy(LIMITS, 7).servers == 7
    assert Policy(LIMITS, 21).servers == 20


def test_a_decision_says_why():
    policy = Policy(LIMITS, 1)
    policy.decide(0, 50)
    policy.decide(5, 250)
    assert policy.decide(10, 250).why == "250.0 sessions/s: 3 servers instead of 1"
    assert policy.decide(15, 250).why == "250.0 sessions/s need 3"
    assert policy.decide(20, None).why == "the load was not measured"


@pytest.mark.parametrize(
    ("field", "limits"),
    [
        ("min", {"minimum": 0}),
        ("max", {"minimum": 3, "maximum": 2}),
        ("target-sessions", {"target": 0}),
        ("target-sessions", {"target": math.nan}),
        ("margin", {"margin": 1}),
        ("calm_s", {"calm_s": -1}),
        ("cool_down_s", {"cool_down_s": math.inf}),
        ("step_up", {"step_up": 0}),
        ("step_down", {"step_down": 0}),
    ],
)
def test_limits_that_cannot_be_are_refused_by_name(field, limits):
    with pytest.raises(InvalidValue) as caught:
        Limits(**limits)
    assert caught.value.field == field


# --- the meter ----------------------------------------------------------------


def test_a_rate_is_of_the_time_between_two_readings():
    meter = Meter()
    assert meter.read(0, "a", 100) is None
    assert meter.read(5, "a", 600) == 100
    # Readings that failed in between are just not there.
    assert meter.read(25, "a", 2600) == 100
    assert meter.read(30, "a", 2600) == 0


def test_a_counter_that_began_anew_is_no_rate():
    meter = Meter()
    meter.read(0, "a", 1000)
    assert meter.read(5, "a", 10) is None  # smaller than it was
    assert meter.read(10, "a", 60) == 10
    assert meter.read(15, "b", 100) is None  # another process, though it is larger
    assert meter.read(20, "b", 150) == 10
    assert meter.read(20, "b", 150) is None  # no time has passed
