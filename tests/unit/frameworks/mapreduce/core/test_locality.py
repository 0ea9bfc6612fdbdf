"""Delay scheduling in virtual time: what share of maps finds its input on its host.

40 hosts of 2 slots, blocks on 3 hosts each, many small jobs at once: those to which a strict
order of turns does most harm (Zaharia et al., EuroSys 2010).
"""

from __future__ import annotations

import heapq
import random

import pytest

from frameworks.mapreduce.core.journal import Launched
from tests.kit.mapreduce_brain import Shell, options, spec, splits

HOSTS = 40
JOBS = 25
MAPS = 16
TASK_S = 4.0


def locality(wait_s: float) -> tuple[float, float, float]:
    """(share on the host, share on host or rack, seconds until all jobs are done)."""
    dice = random.Random(7)
    shell = Shell(options())
    names = [f"h{n}" for n in range(HOSTS)]
    for n, name in enumerate(names):
        shell.agent(name, rack=f"r{n % 5}")
    for number in range(1, JOBS + 1):
        places = [tuple(dice.sample(names, 3)) for _ in range(MAPS)]
        made = spec(
            number,
            0,
            mesos__locality__wait__host=str(wait_s),
            mesos__locality__wait__rack=str(wait_s),
        )
        shell.submit(made, splits(MAPS, places))
    _run(shell, dice)
    levels = [record.level for record in shell.records() if isinstance(record, Launched)]
    near = sum(level != "any" for level in levels)
    return levels.count("host") / len(levels), near / len(levels), shell.now_s - 1000.0


def _run(shell: Shell, dice: random.Random) -> None:
    """Attempts end after their time; what is free is offered again every tenth of a second."""
    ends: list[tuple[float, str]] = []
    known = 0
    while known < JOBS * MAPS or ends:
        shell.offer()
        for attempt in shell.launched[known:]:
            heapq.heappush(ends, (shell.now_s + TASK_S * dice.uniform(0.8, 1.2), attempt))
        known = len(shell.launched)
        shell.tick(0.1)
        while ends and ends[0][0] <= shell.now_s:
            shell.finish(heapq.heappop(ends)[1])
        shell.commit()
        shell.complete()
        assert shell.now_s < 2000.0


@pytest.mark.long
def test_waiting_a_little_brings_nearly_all_maps_to_their_input():
    without, near_without, took_without_s = locality(0.0)
    second, near_second, took_second_s = locality(1.0)
    five, near_five, _took_s = locality(5.0)
    assert without < 0.5
    assert second > 0.9
    assert five > 0.95
    assert near_without < near_second <= near_five
    # And it costs no time to speak of.
    assert took_second_s < 1.05 * took_without_s


@pytest.mark.parametrize("name", ["h0.example", "h0"])
def test_places_are_names_of_hosts_or_of_agents(name):
    shell = Shell(options())
    shell.agent("h0")
    shell.submit(spec(reduces=0), splits(2, [("elsewhere",), (name,)]))
    shell.offer()
    assert shell.launched == ["attempt_1_0001_m_000001_0"]
    assert shell.brain.tasks("job_1_0001")[1].attempts[0].locality == "host"


def test_a_job_waits_for_the_host_then_for_the_rack():
    shell = Shell(options())
    shell.agent("far", rack="r2", cpus=1.1)
    shell.agent("near", rack="r1", cpus=1.1)
    shell.agent("here", rack="r1", cpus=1.1)
    made = spec(reduces=0, mesos__locality__wait__host="1", mesos__locality__wait__rack="2")
    shell.submit(made, splits(4, [("here",)] * 4))
    shell.offer()
    # One is launched where its input is; the others wait for that host.
    assert set(shell.agent_of.values()) == {"here"}
    assert "waits for a host" in shell.brain.view("job_1_0001").waiting_for
    assert shell.agents["far"].refused_until_s == pytest.approx(shell.now_s + 1)
    shell.sleep(1)
    shell.offer()
    assert shell.agent_of["attempt_1_0001_m_000001_0"] == "near"
    # From now on only two seconds for a rack.
    shell.offer_all()
    shell.sleep(1.9)
    shell.offer_all()
    assert len(shell.launched) == 2
    shell.sleep(0.2)
    shell.offer_all()
    assert shell.agent_of["attempt_1_0001_m_000002_0"] == "far"
    view = shell.brain.view("job_1_0001").maps
    assert (view.on_host, view.on_rack, view.elsewhere) == (1, 1, 1)


def test_input_that_lies_nowhere_is_not_waited_for():
    shell = Shell(options())
    shell.agent("h0")
    shell.submit(spec(reduces=0), splits(2))
    shell.offer()
    assert len(shell.launched) == 2
    view = shell.brain.view("job_1_0001").maps
    assert (view.on_host, view.on_rack, view.elsewhere) == (0, 0, 0)
    assert shell.brain.tasks("job_1_0001")[0].attempts[0].locality == ""
