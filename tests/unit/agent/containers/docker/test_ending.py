"""How a container ended, by what dockerd says of it."""

import pytest

from agent.containers.docker.ending import standing_of
from agent.core.records import Exit


def standing(**state):
    config = {"Labels": {"k": "v"}}
    return standing_of({"Id": "abc", "State": {"Status": "exited", **state}, "Config": config})


def test_a_look_at_one_that_runs():
    found = standing(Status="running", Pid=7)
    assert (found.docker_id, found.pid, found.alive, found.is_new) == ("abc", 7, True, False)
    assert found.labels == {"k": "v"}


@pytest.mark.parametrize(
    ("status", "alive"),
    [
        *(("running", True), ("paused", True), ("restarting", True)),
        *(("created", False), ("exited", False), ("dead", False), ("removing", False)),
    ],
)
def test_only_what_has_processes_is_alive(status, alive):
    assert standing(Status=status).alive is alive


@pytest.mark.parametrize(
    ("exit_code", "sent", "exit"),
    [
        (0, None, Exit(0)),
        (3, None, Exit(3 << 8)),
        (137, None, Exit(137 << 8)),
        (137, 9, Exit(9)),
        (143, 15, Exit(15)),
        (137, 15, Exit(137 << 8)),
        (0, 15, Exit(0)),
    ],
)
def test_a_signal_is_one_only_if_it_was_sent(exit_code, sent, exit):
    assert standing(ExitCode=exit_code).exit(sent) == exit


@pytest.mark.parametrize(
    ("exit_code", "oom_killed", "out_of_memory"),
    [(137, True, True), (1, True, True), (0, True, False), (137, False, False)],
)
def test_memory_is_the_cause_only_if_dockerd_says_so_and_it_ended_badly(
    exit_code, oom_killed, out_of_memory
):
    found = standing(ExitCode=exit_code, OOMKilled=oom_killed)
    assert found.out_of_memory is out_of_memory


def test_an_answer_without_its_parts_is_no_error():
    found = standing_of({})
    assert (found.status, found.pid, found.alive, found.labels) == ("", 0, False, {})
