"""The statuses that are kept of a task."""

from master.core.history import MAX_STATUSES, Statuses
from mesos_py.states import TASK_FINISHED, TASK_RUNNING, TASK_STARTING, TASK_UNREACHABLE
from mesos_py.v1 import types_pb2 as pb

HEALTH = pb.TaskStatus.REASON_TASK_HEALTH_CHECK_STATUS_UPDATED


def kept(*statuses: pb.TaskStatus) -> list[pb.TaskStatus]:
    made = Statuses()
    for each in statuses:
        made.keep(each)
    return list(made)


def status(state, message="", **more) -> pb.TaskStatus:
    return pb.TaskStatus(state=state, message=message, **more)


def test_of_each_state_the_newest_is_kept_without_its_data():
    starting, first = status(TASK_STARTING), status(TASK_RUNNING, "a", data=b"x")
    second = status(TASK_RUNNING, "b", data=b"y")
    assert kept(starting, first, second) == [starting, status(TASK_RUNNING, "b")]


def test_what_checks_say_does_not_hide_when_the_task_began_to_run():
    running = status(TASK_RUNNING, timestamp=1)
    ill = status(TASK_RUNNING, reason=HEALTH, healthy=False, timestamp=2)
    well = status(TASK_RUNNING, reason=HEALTH, healthy=True, timestamp=3)
    ended = status(TASK_FINISHED)
    assert kept(running, ill, well, ended) == [running, well, ended]


def test_a_task_that_comes_and_goes_keeps_its_first_and_its_last():
    states = [TASK_RUNNING, TASK_UNREACHABLE] * 50
    found = kept(*(status(state, str(n)) for n, state in enumerate(states)))
    assert len(found) == MAX_STATUSES
    assert [found[0].message, found[-1].message] == ["0", "99"]
