"""The published scenarios, in virtual time, against what is expected of them."""

import pytest

from bench.revocation.scenario import EXPECTED, REACTIVE_S, READINGS
from bench.revocation.simulated import Simulation, options
from master.allocator.drf import DrfAllocator

CASES = [pytest.param(*key, id=f"{key[0]}: {key[1].name}") for key in EXPECTED]


def run(scenario, reading, revocation=True, greedy=True, **more):
    allocator = DrfAllocator(options(revocation=revocation))
    simulation = Simulation(allocator, needs=revocation, **more)
    return simulation.run(scenario, reading, greedy=greedy)


def mean(values):
    return sum(values) / len(values)


@pytest.mark.parametrize(("scenario", "reading"), CASES)
def test_without_revocation_the_reactive_one_waits_for_the_greedy_ones_tasks(scenario, reading):
    story = run(scenario, reading, revocation=False)
    least, average, most = EXPECTED[scenario, reading].without
    latencies = story.latencies()
    assert min(latencies) == least
    assert mean(latencies) == pytest.approx(average, abs=0.15)
    assert max(latencies) == most
    assert story.killed() == []
    assert story.reactive()[0].start_s == 180


@pytest.mark.long
@pytest.mark.parametrize(("scenario", "reading"), CASES)
def test_with_revocation_it_is_as_if_it_was_alone(scenario, reading):
    story = run(scenario, reading)
    alone = run(scenario, reading, greedy=False).latencies()
    assert set(alone) == {REACTIVE_S}
    assert mean(story.latencies()) <= 1.1 * mean(alone)
    first = next(reading.arrivals(scenario))
    # The patience that a lack has to last.
    assert story.reactive()[0].start_s == pytest.approx(first + 1.0)


@pytest.mark.parametrize(("scenario", "reading"), CASES)
def test_no_more_is_killed_than_is_needed_and_nothing_after_the_first_round(scenario, reading):
    story = run(scenario, reading)
    expected = EXPECTED[scenario, reading]
    killed = story.killed()
    assert len(killed) == expected.kills
    assert {one.framework for one in killed} == {"greedy"}
    # One second each, the patience, is on top of what was published.
    assert story.lost_s() == pytest.approx(expected.lost_s + expected.kills)
    first = next(reading.arrivals(scenario))
    last_new = first + (reading.need / reading.tasks - 1) * reading.every_s
    assert max(one.end_s for one in killed) <= last_new + 1.0


@pytest.mark.parametrize("ask_s", [0.5, 1.5])
def test_time_to_choose_what_to_give_up_is_added_to_the_first_tasks_only(ask_s):
    story = run("A", READINGS[0], ask_s=ask_s)
    waited = [one.start_s - one.wanted_s for one in story.reactive()]
    assert waited[:4] == pytest.approx([1.0 + ask_s] * 4)
    assert len(story.killed()) == 4
    assert mean(story.latencies()) <= 1.1 * REACTIVE_S


@pytest.mark.parametrize("answer_s", [0.5, 1.0, 5.0])
@pytest.mark.parametrize(("scenario", "reading"), CASES)
def test_frameworks_that_take_their_time_to_answer_cost_no_more_tasks(scenario, reading, answer_s):
    story = run(scenario, reading, answer_s=answer_s)
    assert len(story.killed()) == EXPECTED[scenario, reading].kills
    assert mean(story.latencies()) <= 1.1 * REACTIVE_S


def test_the_greedy_one_keeps_what_it_is_guaranteed():
    story = run("A", READINGS[0])
    assert all(story.goodput("greedy", at_s) >= 4 for at_s in range(181, 1000))
    # All slots are in use, but for the moments in which one follows the other.
    used = [story.goodput("greedy", t) + story.goodput("reactive", t) for t in range(200, 1000)]
    assert mean(used) >= 7.9


def test_the_same_run_is_the_same_story():
    assert run("B", READINGS[1]).ran == run("B", READINGS[1]).ran
