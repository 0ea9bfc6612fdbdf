"""What is shown of a farm, and in which words."""

import time

from frameworks.webfarm.cli.view import headline
from frameworks.webfarm.core.policy import Decision
from frameworks.webfarm.core.report import Report
from tests.kit.webfarm_world import World


def shown(world, report, **more):
    status = report.of(world.farm, world.reading(), world.now_s)
    return {**status, "running": True, "at_s": time.time(), **more}


def test_rows_say_what_each_server_does():
    world = World(wanted=2).steps(3)
    report = Report(target=40.0)
    report.measured(60.0, Decision(2, "60.0 sessions/s need 2"))
    report.of(world.farm, world.reading(), world.now_s)
    world.set(world.slot_of("t1").name, total=300, sessions=2)
    world.now_s += 10
    report.measured(60.0, Decision(2, "60.0 sessions/s need 2"))
    rows = {row["task_id"]: row for row in shown(world, report)["servers"]}
    assert rows["t1"] | {"slot": "s1"} == {
        "task_id": "t1",
        "host": "agent-0",
        "at": "10.0.0.1:31000",
        "version": 1,
        "phase": "serving",
        "slot": "s1",
        "well": True,
        "sessions": 2,
        "rate": 30.0,
    }
    assert rows["t2"]["rate"] == 0.0


def test_the_headline_says_how_it_is_and_what_is_waited_for():
    world = World(wanted=2).steps(3)
    report = Report(target=40.0)
    report.measured(60.0, Decision(2, ""))
    assert headline(shown(world, report)) == [
        "2 of 2 servers; 60.0 sessions/s, 30.0 per server (target 40)",
        "haproxy: 0 sessions, 0 answered with an error, 0 tried again",
        "site: one (version 1)",
    ]
    report.missing, report.waits = 3, ["needs 100 cpus, the largest agent has 2"]
    report.trouble = "t9 on host: it died"
    report.measured(None, Decision(2, ""))
    world.farm.rollout.begin("two")
    world.farm.rollout.failed("no such file")
    lines = headline(shown(world, report, running=False, balancer=None))
    assert lines[:2] == ["2 of 2 servers; load not measured", "haproxy: no answer"]
    assert lines[2] == "site: one (version 1); last deployment: failed: no such file"
    assert lines[3] == "3 more to be launched; waits: needs 100 cpus, the largest agent has 2"
    assert lines[4] == "last trouble: t9 on host: it died"
    assert lines[5].startswith("nobody looks after it: this was 0 s ago")


def test_a_balancer_that_does_not_answer_is_no_reading():
    world = World().steps(3)
    status = Report(1.0).of(world.farm, None, world.now_s)
    assert status["balancer"] is None
    assert status["servers"][0]["slot"] is None
