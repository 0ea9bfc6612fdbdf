"""ACCEPT of tasks for custom executors, what is still ending, and exact amounts."""

import pytest

from master.core.ledger import Holder
from master.core.records import Task
from mesos_py.resources import EMPTY, Resources
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.scenes import WHOLE, LaunchScene

Operation = pb.Offer.Operation
MULTI_ROLE = pb.FrameworkInfo.Capability(type=pb.FrameworkInfo.Capability.MULTI_ROLE)


@pytest.fixture
def scene():
    made = LaunchScene()
    yield made
    made.world.check()


# ---- Custom executors ----------------------------------------------------------


def test_an_executor_is_charged_once_for_all_its_tasks(scene):
    scene.launch(scene.custom("t1"), scene.custom("t2"))
    assert scene.used == Resources.parse("cpus:2.5;mem:128")
    (scene.offer,) = scene.framework.offers()
    scene.launch(scene.custom("t3"))
    assert scene.used == Resources.parse("cpus:3.5;mem:160")
    assert scene.framework.offers()[0].executor_ids[0].value == "e1"


def test_the_executors_framework_is_filled_in(scene):
    scene.launch(scene.custom("t1"))
    (event,) = scene.agent.take()
    assert event.run_tasks.tasks[0].executor.framework_id.value == scene.framework.id


def test_a_group_of_tenths_and_its_executor_take_exactly_four_tenths(scene):
    tasks = [scene.custom(f"t{n}", text="cpus:0.1", own="cpus:0.1") for n in range(3)]
    scene.launch(*tasks)
    assert scene.used == Resources.of(cpus=0.4)


def test_two_executors_with_one_id_in_one_call_the_second_fails(scene):
    other = scene.custom("t2")
    other.executor.command.value = "another"
    failed = scene.launch(scene.custom("t1"), other)
    assert "an executor with this id and another description" in failed["t2"][2]
    assert scene.ordered() == ["t1"]


def test_another_executor_under_the_id_of_a_running_one_fails(scene):
    scene.launch(scene.custom("t1"))
    (scene.offer,) = scene.framework.offers()
    failed = scene.launch(scene.custom("t2", own="cpus:0.6;mem:64"))
    assert "another description" in failed["t2"][2]


def test_an_executor_is_the_same_in_the_other_form_of_its_reservations(scene):
    """Its framework has taken up RESERVATION_REFINEMENT meanwhile."""
    first = scene.custom("t1")
    first.executor.resources[0].role = "*"
    scene.launch(first)
    (scene.offer,) = scene.framework.offers()
    scene.launch(scene.custom("t2"))
    assert scene.ordered() == ["t1", "t2"]


def test_a_multi_role_frameworks_executor_is_told_for_which_role_it_has_its_resources():
    """Its own, also with tasks of another role."""
    scene = LaunchScene(roles=["a", "b"], capabilities=[MULTI_ROLE])
    first = scene.offer.allocation_info.role
    scene.launch(scene.custom("t1"))
    (scene.offer,) = scene.framework.offers()
    second = scene.offer.allocation_info.role
    assert first != second
    scene.launch(scene.custom("t2"))
    runs = scene.agent.take(agent_pb2.Event.RUN_TASKS)
    one, two = (info for run in runs for info in run.run_tasks.tasks)
    for task, role in ((one, first), (two, second)):
        assert {each.allocation_info.role for each in task.resources} == {role}
        assert {each.allocation_info.role for each in task.executor.resources} == {first}


def test_an_executor_does_not_fit_where_its_task_alone_would(scene):
    failed = scene.launch(scene.custom("t1", text="cpus:4;mem:32"))
    assert failed["t1"][2] == "resources.cpus: 4.5 wanted, the offers have 4 left"
    assert scene.used == EMPTY
    framework = scene.world.cluster.frameworks[scene.framework.id]
    assert framework.executors == {}


def test_an_executor_whose_first_task_fails_is_planned_with_the_next(scene):
    failed = scene.launch(scene.custom("t1", text="cpus:4"), scene.custom("t2"))
    assert list(failed) == ["t1"]
    assert scene.used == Resources.parse("cpus:1.5;mem:96")


def test_an_executor_without_resources_is_charged_nothing(scene):
    scene.launch(scene.custom("t1", own=""))
    assert scene.used == Resources.parse("cpus:1;mem:32")
    framework = scene.world.cluster.frameworks[scene.framework.id]
    assert list(framework.executors) == [(scene.agent.id, "e1")]


# ---- What is still ending ----------------------------------------------------------


def come_again_under_the_same_id(scene):
    """The framework is torn down and forgotten, its processes are not gone yet."""
    scene.framework.call(type=sched.Call.TEARDOWN)
    scene.world.cluster.completed_frameworks.clear()
    scene.framework.subscribe()
    (scene.offer,) = scene.framework.offers()


def test_the_id_of_a_task_that_is_still_ending_cannot_be_used_there(scene):
    scene.launch(scene.task("t1"))
    come_again_under_the_same_id(scene)
    failed = scene.launch(scene.task("t1"), scene.task("t2"))
    assert "still ending" in failed["t1"][2]
    assert list(failed) == ["t1"]


def test_the_id_of_an_executor_that_is_still_ending_cannot_be_used_there(scene):
    scene.launch(scene.custom("t1"))
    come_again_under_the_same_id(scene)
    failed = scene.launch(scene.custom("t2"))
    assert "still ends" in failed["t2"][2]


# ---- Exactness ----------------------------------------------------------


def test_amounts_are_exact_after_many_fractional_tasks_come_and_go():
    scene = LaunchScene()
    sizes = ["cpus:0.1;mem:1.5", "cpus:0.2;mem:0.001", "cpus:0.66;mem:33.333"]
    for batch in range(20):
        tasks = [scene.task(f"{batch}-{n}", sizes[n % 3]) for n in range(9)]
        assert scene.launch(*tasks) == {}
        for n, task in enumerate(tasks):
            state = pb.TASK_FINISHED if n % 2 else pb.TASK_FAILED
            uuid = scene.agent.report(task.task_id.value, state, scene.framework)
            scene.framework.acknowledge(scene.agent, task.task_id.value, uuid)
        assert scene.used == EMPTY
        scene.framework.take()
        (scene.offer,) = scene.framework.offers()
        assert Resources.from_proto("o", scene.offer.resources) == Resources.parse(WHOLE)
    scene.world.check()


def test_a_task_is_one_record():
    assert Task("f", "t", "a", "n", "*", EMPTY).holder == Holder("f", "*", "task", "t")
