"""What operators are shown of what is over."""

import pytest

from agent.core.past import MAX_STATUSES, MAX_TASKS, Past, note_end, note_status
from agent.core.records import Executor, Framework, Task
from mesos_py.clock import Now
from mesos_py.states import short_name
from mesos_py.v1 import types_pb2 as pb
from tests.kit.agent_core import FRAMEWORK, AgentWorld, command, for_executor, framework_info
from tests.kit.agent_core import status as reported


def executor(container_id="c1"):
    return Executor((FRAMEWORK, "e"), container_id, Framework(framework_info()), ("s",), None)


def task(of, task_id="t1", **info):
    named = pb.TaskInfo(task_id=pb.TaskID(value=task_id), **info)
    return Task((FRAMEWORK, task_id), named, of, Now(0.0, 0.0))


def story(of):
    return [short_name(each.state) for each in of.statuses]


def status(state, **fields):
    return pb.TaskStatus(state=state, **fields)


def test_a_command_that_has_ended_is_remembered_with_its_story():
    world = AgentWorld()
    world.run(command("t1"))
    world.started("t1", pid=7)
    world.ended("t1")
    (ended,) = world.core.state.past
    assert ended.key == (FRAMEWORK, "t1")
    (its,) = ended.completed
    assert story(its) == ["STARTING", "RUNNING", "FINISHED"]
    tally = world.core.state.tally
    assert (tally.updates, tally.executors_ended, tally.ended) == (3, 1, {pb.TASK_FINISHED: 1})


def test_a_command_that_could_not_be_started_is_counted():
    world = AgentWorld()
    world.run(command("t1"))
    world.failed("t1", "no such user")
    assert world.core.state.tally.launches_failed == 1
    assert [each.key[1] for each in world.core.state.past] == ["t1"]


def test_a_custom_executor_that_runs_on_has_had_tasks():
    world = AgentWorld()
    world.run(for_executor("t1"), for_executor("t2"))
    world.started("ex", pid=7)
    world.subscribe("ex")
    world.report("ex", reported("t1", pb.TASK_FINISHED))
    (running,) = world.core.state.executors.values()
    assert [each.key[1] for each in running.completed] == ["t1"]
    assert list(running.tasks) == ["t2"]
    assert not len(world.core.state.past)


def test_what_waits_for_its_acknowledgement_is_known_after_a_restart():
    world = AgentWorld()
    world.run(command("t1"))
    world.started("t1", pid=7)
    world.ended("t1")
    world.restart()
    (ended,) = world.core.state.past
    assert [story(each) for each in ended.completed] == [["FINISHED"]]


def test_a_story_repeats_nothing_and_has_an_end():
    told = task(executor())
    note_status(told, status(pb.TASK_RUNNING, message="first"))
    note_status(told, status(pb.TASK_RUNNING, message="second"))
    assert [each.message for each in told.statuses] == ["second"]
    for _ in range(MAX_STATUSES):
        note_status(told, status(pb.TASK_KILLING))
        note_status(told, status(pb.TASK_RUNNING))
    assert len(told.statuses) == MAX_STATUSES


def test_data_is_not_kept_but_stays_with_the_update():
    its = executor()
    told = task(its, data=b"x" * 1000, executor=pb.ExecutorInfo(data=b"y"))
    given, info = status(pb.TASK_FINISHED, data=b"z"), told.info
    note_status(told, given)
    note_end(told)
    assert not told.statuses[0].data
    assert given.data == b"z"
    (kept,) = its.completed
    assert (kept.info.data, kept.info.executor.data) == (b"", b"")
    assert info.data == b"x" * 1000
    assert kept.info.HasField("executor")


def test_an_info_without_data_is_not_copied():
    told = task(executor())
    info = told.info
    note_end(told)
    assert told.info is info
    assert not told.info.HasField("executor")


def test_an_executor_remembers_its_newest_tasks():
    its = executor()
    for number in range(MAX_TASKS + 2):
        note_end(task(its, f"t{number}"))
    assert [each.key[1] for each in (its.completed[0], its.completed[-1])] == [
        "t2",
        f"t{MAX_TASKS + 1}",
    ]


@pytest.mark.parametrize(("limit", "left"), [(0, []), (1, ["c3"]), (3, ["c2", "c3"])])
def test_the_oldest_executors_are_forgotten_with_their_tasks(limit, left):
    past = Past(limit)
    for number, tasks in ((1, 2), (2, 2), (3, 1)):
        its = executor(f"c{number}")
        for at in range(tasks):
            note_end(task(its, f"t{at}"))
        past.add(its)
    assert [each.container_id for each in past] == left
    assert [past.get(each) is not None for each in ("c1", "c3")] == [False, bool(left)]


def test_an_executor_that_is_added_again_is_counted_anew():
    past, its, other = Past(2), executor("c1"), executor("c2")
    past.add(its)
    note_end(task(its))
    past.add(its)
    past.add(other)
    note_end(task(other))
    past.add(other)
    assert [each.container_id for each in past] == ["c1", "c2"]
