"""A seed says what is done to a cluster."""

from __future__ import annotations

import pytest

from tests.kit.chaos.faults import FAULTS, Roster, schedule
from tests.kit.chaos.wires import Drop, table

ROSTER = Roster(
    ("master0", "master1"), ("agent0", "agent1"), ("scheduler0",), ("agent1",), ("zookeeper0",)
)


def test_the_same_seed_gives_the_same_schedule_and_another_one_another():
    assert schedule(7, ROSTER, 60) == schedule(7, ROSTER, 60)
    assert schedule(7, ROSTER, 60) != schedule(8, ROSTER, 60)


def test_every_fault_comes_up_and_only_for_those_that_can_have_it():
    steps = [step for seed in range(100) for step in schedule(seed, ROSTER, 60)]
    assert {step.fault for step in steps} == set(FAULTS)
    for step in steps:
        assert step.hosts in FAULTS[step.fault].targets(ROSTER)
        assert 0 < step.at_s < step.until_s or step.fault == "restart"


def test_a_daemon_that_is_down_is_not_taken_down_once_more():
    for seed in range(100):
        until: dict[tuple[str, ...], float] = {}
        for step in schedule(seed, ROSTER, 60):
            if FAULTS[step.fault].occupies:
                assert until.get(step.hosts, 0) < step.at_s
                until[step.hosts] = step.until_s


@pytest.mark.parametrize(
    ("drop", "rule"),
    [
        (Drop("1.1.1.1"), "ip saddr 1.1.1.1 counter drop"),
        (Drop(target="1.1.1.1", port=7), "ip daddr 1.1.1.1 tcp dport 7 counter drop"),
        (Drop(per_thousand=50), "numgen random mod 1000 < 50 counter drop"),
    ],
)
def test_what_vanishes_is_a_rule(drop, rule):
    assert f"    meta protocol ip {rule}\n" in table([drop])
