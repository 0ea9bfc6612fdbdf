"""The checker finds each thing that must not be, and nothing where all is well."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.kit.chaos.checker import AgentView, View, findings, of_rest
from tests.kit.chaos.ledger import Entry
from tests.kit.chaos.marks import Run, runs


def launched(task_id: str, at: float = 1.0) -> Entry:
    work = task_id.partition(".")[0]
    launch = {"at": at, "kind": "launch", "work": work, "task": task_id}
    return {**launch, "agent": "A1", "host": "agent0"}


def told(task_id: str, *states: str) -> list[Entry]:
    return [{"at": 2.0, "kind": "update", "task": task_id, "state": state} for state in states]


def run(task_id: str, begun: float = 1.0, ended: float | None = 2.0) -> Run:
    return Run(task_id, f"{task_id} {begun}", 100, begun, ended)


def one(*states: str, ran: list[Run], may_fail: Sequence[str] = ()) -> list[str]:
    """What is found of a single task; that its work was not done is left out."""
    ledger = [launched("short0.1"), *told("short0.1", *states)]
    found = findings(1, 0, ledger, ran, may_fail=may_fail)
    return [each for each in found if not each.startswith("work that")]


def test_a_task_that_ran_once_and_finished_is_well():
    assert one("STARTING", "RUNNING", "FINISHED", ran=[run("short0.1")]) == []


def test_the_same_end_may_be_told_twice():
    assert one("FINISHED", "FINISHED", ran=[run("short0.1")]) == []


def test_unreachable_is_no_end_and_may_be_left():
    assert one("RUNNING", "UNREACHABLE", "RUNNING", "FINISHED", ran=[run("short0.1")]) == []


@pytest.mark.parametrize("state", ["DROPPED", "GONE", "LOST", "UNKNOWN"])
def test_a_task_that_never_ran_may_end_so(state):
    assert one(state, ran=[]) == []


@pytest.mark.parametrize("state", ["DROPPED", "GONE", "LOST", "UNKNOWN"])
def test_a_task_that_has_run_may_not(state):
    [found] = one(state, ran=[run("short0.1")])
    assert found.startswith(f"short0.1: ended as {state} and has run")


@pytest.mark.parametrize("states", [(), ("RUNNING",), ("RUNNING", "UNREACHABLE")])
def test_a_task_without_an_end_is_found(states):
    found = one(*states, ran=[])
    assert found[0].startswith("short0.1: has no final state")


def test_two_ends_are_found():
    found = one("FINISHED", "LOST", ran=[run("short0.1")])
    assert found == ["short0.1: has several final states, was told FINISHED LOST"]


def test_a_state_after_the_end_is_found():
    found = one("FINISHED", "RUNNING", ran=[run("short0.1")])
    assert found == ["short0.1: was told something else after its end: FINISHED RUNNING"]


def test_a_finished_task_that_left_no_mark_is_found():
    assert "has left no mark" in one("FINISHED", ran=[])[0]
    assert "has left no mark" in one("FINISHED", ran=[run("short0.1", ended=None)])[0]


@pytest.mark.parametrize(
    ("second", "how"), [(run("short0.1", 1.5), "twice at once"), (run("short0.1", 3.0), "twice")]
)
def test_a_second_run_is_found(second, how):
    found = one("FINISHED", ran=[run("short0.1"), second])
    assert found[0].startswith(f"short0.1: ran {how}: ")


def test_a_run_without_a_launch_is_found():
    found = findings(0, 0, [], [run("short0.1")])
    assert "short0.1: ran and was never launched" in found


@pytest.mark.parametrize("state", ["FAILED", "KILLED"])
def test_an_end_that_nobody_asked_for_is_found(state):
    found = one(state, ran=[run("short0.1")])
    assert found[0].startswith(f"short0.1: nobody ended it, and it ended as {state}")


def test_tasks_may_fail_where_that_is_what_was_done_to_them():
    assert one("FAILED", ran=[run("short0.1")], may_fail=["agent0"]) == []
    assert one("FAILED", ran=[run("short0.1")], may_fail=["agent1"]) != []


def test_work_that_was_not_done_is_found():
    ledger = [launched("short0.1"), *told("short0.1", "DROPPED")]
    assert findings(2, 0, ledger, []) == ["work that was never done: short0 short1"]


def test_marks_are_read_as_runs():
    marks = ["t r1 start 1.25 7", "u r2 start 1.5 8", "t r1 end 2.5 7"]
    assert runs(marks) == [Run("t", "r1", 7, 1.25, 2.5), Run("u", "r2", 8, 1.5)]


CALM = AgentView("agent0", "connected", "cpus:4", "", "cpus:4", 0)


def agent(**changed: object) -> AgentView:
    return AgentView(**{**{f: getattr(CALM, f) for f in CALM.__dataclass_fields__}, **changed})


@pytest.mark.parametrize(
    ("view", "part"),
    [
        (View((), ()), "1 agents were started"),
        (View((CALM,), ("t1",)), "still has tasks: t1"),
        (View((CALM,), (), 2), "2 internal errors"),
        (View((agent(state="unreachable"),), ()), "agent0 is unreachable"),
        (View((agent(allocated="cpus:1"),), ()), "allocated are 'cpus:1' for 0 tasks"),
        (View((agent(running_tasks=1),), ()), "allocated are '' for 1 tasks"),
        (View((agent(containers=("c1",)),), ()), "still has containers: c1"),
    ],
)
def test_a_cluster_that_is_not_at_rest_is_found(view, part):
    [found] = of_rest(view, 1)
    assert part in found


def test_a_cluster_at_rest_is_well():
    assert of_rest(View((CALM,), ()), 1) == []
