import pytest

from frameworks.common.endings import has_ended, is_fault, words_of
from mesos_py import (
    TASK_DROPPED,
    TASK_FAILED,
    TASK_FINISHED,
    TASK_GONE,
    TASK_KILLED,
    TASK_LOST,
    TASK_RUNNING,
    TASK_UNREACHABLE,
    TaskStatus,
)


@pytest.mark.parametrize(
    ("state", "ended", "fault"),
    [
        (TASK_FINISHED, True, True),
        (TASK_FAILED, True, True),
        (TASK_KILLED, True, True),
        (TASK_LOST, True, False),
        (TASK_GONE, True, False),
        (TASK_DROPPED, True, False),
        (TASK_UNREACHABLE, True, False),
    ],
)
def test_ends_and_whose_fault_they_may_be(state, ended, fault):
    status = TaskStatus(state=state)
    assert (has_ended(status), is_fault(status)) == (ended, fault)


def test_what_runs_has_not_ended():
    assert not has_ended(TaskStatus(state=TASK_RUNNING))


def test_a_reason_of_the_clusters_is_no_fault_and_another_is():
    drained = TaskStatus(state=TASK_FAILED, reason=TaskStatus.REASON_AGENT_DRAINING)
    own = TaskStatus(state=TASK_FAILED, reason=TaskStatus.REASON_COMMAND_EXECUTOR_FAILED)
    assert not is_fault(drained)
    assert is_fault(own)


@pytest.mark.parametrize(("message", "words"), [("", "failed"), ("it is\n so", "failed: it is so")])
def test_the_words_are_one_line(message, words):
    assert words_of(TaskStatus(state=TASK_FAILED, message=message)) == words
