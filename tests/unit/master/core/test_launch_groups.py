"""ACCEPT with LAUNCH_GROUP: all tasks of a group are launched, or none."""

import pytest

from mesos_py.resources import EMPTY, Resources
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import types_pb2 as pb
from tests.kit.scenes import LaunchScene

Operation = pb.Offer.Operation
Reason = pb.TaskStatus.Reason
HTTP_CHECK = pb.HealthCheck(type=pb.HealthCheck.HTTP, http=pb.HealthCheck.HTTPCheckInfo(port=80))


class GroupScene(LaunchScene):
    def __init__(self):
        super().__init__(resources="cpus:4;mem:4096;disk:1000")

    def executor(self, type=pb.ExecutorInfo.DEFAULT, own="cpus:0.5;mem:64;disk:10", **more):
        return pb.ExecutorInfo(
            type=type,
            executor_id=pb.ExecutorID(value="e1"),
            resources=Resources.parse(own).to_proto(),
            **more,
        )

    def custom_executor(self):
        return self.executor(pb.ExecutorInfo.CUSTOM, command=pb.CommandInfo(value="run"))

    def group(self, *tasks, executor=None):
        for task in tasks:
            task.agent_id.value = self.agent.id
        return Operation(
            type=Operation.LAUNCH_GROUP,
            launch_group=Operation.LaunchGroup(
                executor=executor or self.executor(), task_group=pb.TaskGroupInfo(tasks=tasks)
            ),
        )

    def accept(self, *operations):
        """What became of the tasks that were not launched: state and reason by id."""
        self.framework.accept([self.offer], list(operations), refuse_s=0)
        updates = self.framework.updates()
        assert all(update.source == pb.TaskStatus.SOURCE_MASTER for update in updates)
        return {u.task_id.value: (u.state, u.reason, u.message) for u in updates}

    def runs(self):
        """What the agent was ordered: whether it is a group, its tasks, the new executors."""
        return [
            (
                event.run_tasks.group,
                [info.task_id.value for info in event.run_tasks.tasks],
                [each.value for each in event.run_tasks.new_executors],
            )
            for event in self.agent.take(agent_pb2.Event.RUN_TASKS)
        ]


@pytest.fixture
def scene():
    made = GroupScene()
    yield made
    made.world.check()


def of_all(failed):
    """The one message that all tasks of the group were told."""
    assert {told[:2] for told in failed.values()} == {
        (pb.TASK_ERROR, Reason.REASON_TASK_GROUP_INVALID)
    }
    (message,) = {told[2] for told in failed.values()}
    return message


def test_a_group_goes_to_the_agent_in_one_order_with_its_executor_charged_once(scene):
    assert scene.accept(scene.group(scene.task("a"), scene.task("b"))) == {}
    (event,) = scene.agent.take(agent_pb2.Event.RUN_TASKS)
    assert event.run_tasks.group
    assert [each.value for each in event.run_tasks.new_executors] == ["e1"]
    for info in event.run_tasks.tasks:
        assert info.command.value == "true"
        assert info.executor.type == pb.ExecutorInfo.DEFAULT
        assert info.executor.framework_id.value == scene.framework.id
    assert scene.used == Resources.parse("cpus:2.5;mem:128;disk:10")
    (offer,) = scene.framework.offers()
    assert [each.value for each in offer.executor_ids] == ["e1"]


def test_a_second_group_joins_the_executor_that_runs(scene):
    scene.accept(scene.group(scene.task("a")))
    (scene.offer,) = scene.framework.offers()
    assert scene.accept(scene.group(scene.task("b"))) == {}
    assert scene.runs() == [(True, ["a"], ["e1"]), (True, ["b"], [])]
    assert scene.used == Resources.parse("cpus:2.5;mem:128;disk:10")


def test_groups_and_single_tasks_of_one_call_keep_their_order(scene):
    failed = scene.accept(
        Operation(
            type=Operation.LAUNCH, launch=Operation.Launch(task_infos=[scene.task("t", "cpus:1")])
        ),
        scene.group(scene.task("a", "cpus:0.1"), scene.task("b", "cpus:0.1")),
        Operation(
            type=Operation.LAUNCH, launch=Operation.Launch(task_infos=[scene.task("u", "cpus:1")])
        ),
        scene.group(scene.task("c", "cpus:0.1")),
    )
    assert failed == {}
    assert scene.runs() == [
        (False, ["t"], []),
        (True, ["a", "b"], ["e1"]),
        (False, ["u"], []),
        (True, ["c"], []),
    ]


def test_one_task_that_does_not_fit_keeps_its_whole_group_from_running(scene):
    group = scene.group(scene.task("a"), scene.task("b", "cpus:4"), scene.task("c"))
    failed = scene.accept(group, scene.group(scene.task("d")))
    assert list(failed) == ["a", "b", "c"]
    assert of_all(failed) == ("task_group: 'b': resources.cpus: 4 wanted, the offers have 2.5 left")
    # The executor is planned anew for the group that fits.
    assert scene.runs() == [(True, ["d"], ["e1"])]
    assert scene.used == Resources.parse("cpus:1.5;mem:96;disk:10")


def test_the_executor_counts_towards_what_must_fit(scene):
    failed = scene.accept(scene.group(scene.task("a", "cpus:3.8")))
    assert "4.3 wanted" in of_all(failed)
    assert scene.used == EMPTY
    assert scene.runs() == []


def test_one_id_twice_in_a_group_or_in_the_call_fails_the_group(scene):
    assert "is in this call twice" in of_all(
        scene.accept(scene.group(scene.task("a"), scene.task("a")))
    )
    (scene.offer,) = scene.framework.offers()
    failed = scene.accept(
        scene.group(scene.task("b")), scene.group(scene.task("c"), scene.task("b"))
    )
    assert "'b'" in of_all(failed)
    assert scene.runs() == [(True, ["b"], ["e1"])]


def test_a_group_without_tasks_is_refused(scene):
    scene.framework.accept([scene.offer], [scene.group()])
    (refusal,) = scene.framework.refusals()
    assert "at least one task" in refusal.message


def test_a_group_for_an_executor_of_the_framework_takes_what_its_tasks_carry(scene):
    task = scene.task("a")
    task.ClearField("command")
    task.data = b"what"
    equal = scene.task("b")
    equal.executor.CopyFrom(scene.custom_executor())
    group = scene.group(task, equal, executor=scene.custom_executor())
    assert scene.accept(group) == {}
    assert scene.runs() == [(True, ["a", "b"], ["e1"])]


def test_another_executor_with_the_id_of_one_that_runs_fails_the_group(scene):
    scene.accept(scene.group(scene.task("a")))
    (scene.offer,) = scene.framework.offers()
    other = scene.executor(own="cpus:0.1;mem:64;disk:10")
    assert "another description" in of_all(
        scene.accept(scene.group(scene.task("b"), scene.task("c"), executor=other))
    )


def test_a_launch_cannot_use_the_default_executor(scene):
    task = scene.task("a")
    task.ClearField("command")
    task.executor.CopyFrom(scene.executor())
    failed = scene.launch(task)
    assert failed["a"][1] == Reason.REASON_TASK_INVALID
    assert "must be CUSTOM for a LAUNCH" in failed["a"][2]


def changed(scene, what):
    """A group with one fault, which is its first task's or its executor's."""
    task, other = scene.task("a"), scene.task("b")
    executor = scene.executor()
    match what:
        case "no type":
            executor = scene.executor(pb.ExecutorInfo.UNKNOWN)
        case "a command":
            executor.command.value = "run"
        case "an image":
            executor.container.mesos.image.type = pb.Image.DOCKER
        case "no command":
            executor = scene.executor(pb.ExecutorInfo.CUSTOM)
        case "no cpus":
            executor = scene.executor(own="mem:64;disk:10")
        case "little memory":
            executor = scene.executor(own="cpus:0.5;mem:31;disk:10")
        case "no disk":
            executor = scene.executor(own="cpus:0.5;mem:64")
        case "a stranger":
            executor.framework_id.value = "another"
        case "docker executor":
            executor.container.type = pb.ContainerInfo.DOCKER
        case "docker task":
            task.container.type = pb.ContainerInfo.DOCKER
        case "another executor":
            task.executor.executor_id.value = "e2"
        case "task without a command":
            task.ClearField("command")
        case "no resources":
            task.ClearField("resources")
        case "a network and a check":
            task.container.network_infos.add()
            task.health_check.CopyFrom(HTTP_CHECK)
        case "limits":
            task.limits["cpus"].value = 4
        case "cgroups of one":
            task.container.linux_info.share_cgroups = False
    return scene.group(task, other, executor=executor)


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("no type", "must be DEFAULT or CUSTOM for a group"),
        ("a command", "executor.command: 'run': must not be there"),
        ("an image", "executor.container"),
        ("no command", "executor.command: '': is missing"),
        ("no cpus", "executor.resources.cpus: 0.0: must be at least 0.01"),
        ("little memory", "executor.resources.mem: 31.0: must be at least 32"),
        ("no disk", "executor.resources.disk"),
        ("a stranger", "is not this framework's id"),
        ("docker executor", "in no docker containers"),
        ("docker task", "task a: container: 'DOCKER'"),
        ("another executor", "its executor ('e2') differs from the group's"),
        ("task without a command", "'a': needs a command"),
        ("no resources", "must ask for some resources"),
        ("a network and a check", "network of its own"),
        ("limits", "share_cgroups"),
        ("cgroups of one", "unlike the others"),
    ],
)
def test_what_is_wrong_with_one_is_told_of_all(scene, what, words):
    failed = scene.accept(changed(scene, what))
    assert list(failed) == ["a", "b"]
    assert words in of_all(failed)
    assert scene.runs() == []
    assert scene.used == EMPTY


def test_a_group_that_is_too_large_with_its_executor_in_each_task_is_refused(scene):
    executor = scene.custom_executor()
    executor.data = b"x" * 1_000_000
    tasks = [scene.world.task(f"t{n}", text="cpus:0.001;mem:1") for n in range(17)]
    failed = scene.accept(scene.group(*tasks, executor=executor))
    assert len(failed) == 17
    assert "at most 16777216" in of_all(failed)
    assert scene.runs() == []


def test_groups_of_one_call_have_one_limit_together(scene):
    executor = scene.custom_executor()
    executor.data = b"x" * 1_000_000
    groups = [
        scene.group(
            *(scene.world.task(f"{g}-{n}", text="cpus:0.001;mem:1") for n in range(8)),
            executor=executor,
        )
        for g in range(2)
    ]
    failed = scene.accept(*groups)
    assert set(failed) == {f"1-{n}" for n in range(8)}
    assert [name[:2] for _, names, _ in scene.runs() for name in names] == ["0-"] * 8
