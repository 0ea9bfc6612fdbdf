"""A program that is not there: told at once when no agent has it, and found where one has."""

from __future__ import annotations

from frameworks.mapreduce.core.orders import Failed
from frameworks.mapreduce.core.results import MISSING_ON
from frameworks.mapreduce.work import Failure
from tests.kit.mapreduce_brain import Shell, job_id, options, spec, splits

MISSING = Failure(blame="place", message="mapper: nothere: there is none", missing="nothere")


def shell_with(agents: int, maps: int) -> Shell:
    shell = Shell(options())
    for number in range(agents):
        shell.agent(f"a{number}", cpus=1.1)
    shell.submit(spec(), splits(maps))
    shell.offer()
    return shell


def lacks(shell: Shell, attempt: str) -> None:
    shell.end(attempt, Failed(MISSING))


def test_on_the_only_agent_one_attempt_tells_it():
    shell = shell_with(1, 3)
    [name] = shell.running()
    lacks(shell, name)
    view = shell.brain.view(job_id())
    assert view.state in ("stopping", "finishing")
    assert view.failure is not None
    assert view.failure.message == "mapper: nothere: there is none (so on a0.example)"
    assert view.failed_attempt == name
    assert len(shell.launched) == 1


def test_all_that_run_are_heard_first():
    shell = shell_with(2, 2)
    first, second = shell.running()
    lacks(shell, first)
    assert shell.brain.view(job_id()).state == "running"
    lacks(shell, second)
    view = shell.brain.view(job_id())
    assert view.failure is not None
    assert view.failure.message.endswith("(so on a0.example, a1.example)")


def test_where_one_has_it_the_others_are_no_matter():
    shell = shell_with(MISSING_ON + 1, MISSING_ON + 1)
    *others, last = shell.running()
    for name in others:
        lacks(shell, name)
    assert shell.brain.view(job_id()).state == "running"
    shell.finish(last)
    shell.run()
    view = shell.brain.view(job_id())
    assert view.state == "succeeded"
    assert view.maps.attempts_failed == MISSING_ON


def test_of_many_agents_some_are_enough_also_after_a_restart():
    shell = shell_with(MISSING_ON + 3, 1)
    for number in range(MISSING_ON):
        [name] = shell.running()
        shell.restart()
        lacks(shell, name)
        assert (shell.brain.view(job_id()).state == "running") == (number < MISSING_ON - 1)
        shell.offer_all()
    assert len(shell.launched) == MISSING_ON


def test_after_a_restart_the_only_agent_known_may_not_be_the_only_one():
    shell = shell_with(1, 1)
    [name] = shell.running()
    shell.sleep(1)
    shell.restart()
    lacks(shell, name)
    assert shell.brain.view(job_id()).state == "running"
    shell.agent("a1")
    shell.offer_all()
    shell.finish(*shell.running())
    assert shell.brain.view(job_id()).maps.done == 1
