"""Which task states end a task, and which may follow which."""

import itertools
from typing import Any

import pytest

from mesos_py import states
from mesos_py.states import (
    REPORTED,
    STORED,
    TASK_FINISHED,
    TASK_KILLING,
    TASK_LOST,
    TASK_RUNNING,
    TASK_STAGING,
    TASK_STARTING,
    TASK_UNKNOWN,
    TASK_UNREACHABLE,
    TERMINAL,
    TaskState,
    is_terminal,
    may_follow,
    short_name,
)

ON_ITS_WAY = [TASK_STAGING, TASK_STARTING, TASK_RUNNING, TASK_KILLING]
NO_STATE: Any = 77


def test_terminal_states_are_those_of_mesos():
    ended = {
        "TASK_FINISHED",
        "TASK_FAILED",
        "TASK_KILLED",
        "TASK_ERROR",
        "TASK_LOST",
        "TASK_DROPPED",
        "TASK_GONE",
        "TASK_GONE_BY_OPERATOR",
    }
    assert {TaskState.Name(state) for state in TERMINAL} == ended
    assert {TaskState.Name(s) for s in TaskState.values() if is_terminal(s)} == ended


def test_every_state_but_unknown_may_be_stored_and_unreachable_is_no_agents_to_say():
    assert set(TaskState.values()) - STORED == {TASK_UNKNOWN}
    assert {TASK_UNREACHABLE} == STORED - REPORTED


def test_a_terminal_state_is_never_left():
    for old, new in itertools.product(TERMINAL, TaskState.values()):
        assert not may_follow(old, new)


def test_a_task_only_moves_on():
    for old, new in itertools.product(ON_ITS_WAY, ON_ITS_WAY):
        assert may_follow(old, new) == (ON_ITS_WAY.index(new) >= ON_ITS_WAY.index(old))


@pytest.mark.parametrize("old", [*ON_ITS_WAY, TASK_UNREACHABLE])
def test_any_end_may_follow_a_state_that_is_none(old):
    assert all(may_follow(old, new) for new in TERMINAL)


@pytest.mark.parametrize("state", ON_ITS_WAY)
def test_unreachable_comes_after_any_state_and_goes_back_to_any(state):
    assert may_follow(state, TASK_UNREACHABLE)
    assert may_follow(TASK_UNREACHABLE, state)


@pytest.mark.parametrize("old", [TASK_STAGING, TASK_RUNNING, TASK_UNREACHABLE, TASK_LOST])
@pytest.mark.parametrize("new", [TASK_UNKNOWN, NO_STATE, -1])
def test_what_is_no_state_follows_nothing(old, new):
    assert not may_follow(old, new)


def test_short_names():
    assert short_name(TASK_FINISHED) == "FINISHED"
    assert short_name(NO_STATE) == "77"


def test_all_names_of_the_module_are_there():
    assert all(hasattr(states, name) for name in states.__all__)
