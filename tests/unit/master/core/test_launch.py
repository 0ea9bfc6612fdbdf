"""ACCEPT that holds: what is claimed and ordered, and which tasks fail alone."""

import pytest

from master.core.cluster import Options
from mesos_py.resources import EMPTY, Resources
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import World
from tests.kit.scenes import WHOLE, LaunchScene

Operation = pb.Offer.Operation
Reason = pb.TaskStatus
MULTI_ROLE = pb.FrameworkInfo.Capability(type=pb.FrameworkInfo.Capability.MULTI_ROLE)


@pytest.fixture
def scene():
    made = LaunchScene()
    yield made
    made.world.check()


def launch_of(*tasks):
    return Operation(type=Operation.LAUNCH, launch=Operation.Launch(task_infos=tasks))


# ---- A call that holds ----------------------------------------------------------


def test_a_launch_claims_what_the_task_asks_and_orders_it(scene):
    assert scene.launch(scene.task("t1", "cpus:1;mem:32;ports:[31000-31001]")) == {}
    (event,) = scene.agent.take()
    assert event.run_tasks.framework_info == scene.framework.info
    assert [info.task_id.value for info in event.run_tasks.tasks] == ["t1"]
    assert scene.used == Resources.parse("cpus:1;mem:32;ports:[31000-31001]")
    task = scene.world.cluster.frameworks[scene.framework.id].tasks["t1"]
    assert (task.state, task.name, task.role) == (pb.TASK_STAGING, "t1", "*")
    assert task.launched_wall_s == scene.world.clock.wall_s
    assert task.extras is None


def test_many_tasks_go_in_one_order_in_their_order(scene):
    scene.launch(*(scene.task(f"t{number}", "cpus:0.1;mem:1") for number in range(30)))
    assert len(scene.agent.take(agent_pb2.Event.RUN_TASKS)) == 1
    assert scene.used == Resources.of(cpus=3, mem=30)


def test_what_is_left_of_the_offer_comes_back_with_the_calls_filter(scene):
    scene.framework.accept([scene.offer], [launch_of(scene.task())], refuse_s=60)
    assert scene.framework.offers() == []
    scene.world.advance(60)
    (offer,) = scene.framework.offers()
    assert Resources.from_proto("o", offer.resources) == Resources.parse(WHOLE) - Resources.parse(
        "cpus:1;mem:32"
    )


def test_a_launch_that_takes_everything_leaves_nothing_to_offer(scene):
    scene.launch(scene.task("t1", WHOLE))
    assert scene.free == EMPTY
    assert scene.framework.offers() == []


@pytest.mark.parametrize("operations", [[], [Operation(type=Operation.LAUNCH)]])
def test_an_accept_without_tasks_is_a_decline(scene, operations):
    scene.framework.accept([scene.offer], operations)
    assert scene.ordered() == []
    assert scene.free == Resources.parse(WHOLE)
    assert scene.framework.offers() == []
    scene.world.advance(5)
    assert len(scene.framework.offers()) == 1


def test_several_offers_of_one_agent_are_merged(scene):
    scene.launch(scene.task("t1", "cpus:3;mem:4000"))
    (rest,) = scene.framework.offers()
    scene.agent.report("t1", pb.TASK_FINISHED, scene.framework)
    (more,) = scene.framework.offers()
    big = scene.task("t2", "cpus:4;mem:4096;ports:[31000-31005]")
    scene.framework.accept([rest, more], [launch_of(big)])
    assert scene.framework.updates() == []
    assert scene.used == Resources.parse(WHOLE)


def test_several_launches_in_one_call_draw_on_the_same_offers(scene):
    first, second, third = (scene.task(f"t{n}", "cpus:2;mem:32") for n in range(3))
    scene.framework.accept([scene.offer], [launch_of(first), launch_of(second, third)], refuse_s=0)
    (update,) = scene.framework.updates()
    assert (update.task_id.value, update.state) == ("t2", pb.TASK_ERROR)
    assert update.message == "resources.cpus: 2 wanted, the offers have 0 left"
    assert scene.ordered() == ["t0", "t1"]


def test_a_kill_that_was_meant_for_an_older_task_of_the_id_is_forgotten():
    scene = LaunchScene(id=pb.FrameworkID(value="old-1"), failover_timeout=1e6)
    scene.framework.kill("t1")
    scene.framework.kill("t2")
    scene.launch(scene.task("t1"))
    record = scene.world.cluster.frameworks["old-1"]
    assert list(record.early_kills) == ["t2"]


def test_labels_and_the_like_are_kept_to_be_shown(scene):
    task = scene.task()
    task.labels.labels.add(key="a", value="b")
    task.command.user = "nobody"
    task.kill_policy.grace_period.nanoseconds = 5
    task.discovery.name = "web"
    task.limits["cpus"].value = 2
    scene.launch(task)
    extras = scene.world.cluster.frameworks[scene.framework.id].tasks["t1"].extras
    assert extras.labels.labels[0].key == "a"
    assert extras.user == "nobody"
    assert extras.kill_policy.grace_period.nanoseconds == 5
    assert extras.discovery.name == "web"
    assert extras.limits["cpus"].value == 2
    assert not extras.resources


def test_a_multi_role_frameworks_tasks_are_told_their_role():
    scene = LaunchScene(roles=["web"], capabilities=[MULTI_ROLE])
    scene.launch(scene.task())
    (event,) = scene.agent.take()
    resources = event.run_tasks.tasks[0].resources
    assert {resource.allocation_info.role for resource in resources} == {"web"}
    assert scene.world.cluster.ledger.held(scene.framework.id, "web")["cpus"] == 1000


def test_a_task_of_another_role_than_the_offers_is_an_error():
    scene = LaunchScene(roles=["web", "db"], capabilities=[MULTI_ROLE])
    task = scene.task()
    role = "db" if scene.offer.allocation_info.role == "web" else "web"
    task.resources[0].allocation_info.role = role
    assert scene.launch(task)["t1"][:2] == (pb.TASK_ERROR, Reason.REASON_TASK_INVALID)


# ---- Ports ----------------------------------------------------------


def test_from_six_ports_four_and_two_go_to_two_tasks_and_a_seventh_is_refused(scene):
    ports = Resources.from_proto("offer", scene.offer.resources)
    texts = []
    for wanted in (4, 2):
        picked = [(port, port) for port in ports.pick("ports", wanted)]
        ports = ports - Resources.of(ports=picked)
        texts.append(str(Resources.of(cpus=0.1, ports=picked)))
    tasks = [scene.task(f"t{number}", text) for number, text in enumerate(texts)]
    failed = scene.launch(*tasks, scene.task("t2", "cpus:0.1;ports:[31005-31005]"))
    assert failed == {
        "t2": (
            pb.TASK_ERROR,
            Reason.REASON_TASK_INVALID,
            "resources.ports: [31005-31005] wanted, the offers have [] left",
        )
    }
    assert scene.ordered() == ["t0", "t1"]
    assert scene.used.ranges == {"ports": ((31000, 31005),)}


def test_of_two_tasks_that_name_the_same_port_the_second_alone_is_refused(scene):
    text = "cpus:0.1;ports:[31003-31003]"
    failed = scene.launch(scene.task("t1", text), scene.task("t2", text), scene.task("t3"))
    assert list(failed) == ["t2"]
    assert (
        "ports: [31003-31003] wanted, the offers have [31000-31002, 31004-31005] left"
        in (failed["t2"][2])
    )
    assert scene.ordered() == ["t1", "t3"]


def test_a_port_that_was_not_offered_is_refused(scene):
    failed = scene.launch(scene.task("t1", "cpus:0.1;ports:[80-80]"))
    assert "[80-80] wanted" in failed["t1"][2]


def test_a_task_and_its_new_executor_cannot_share_a_port(scene):
    task = scene.custom("t1", text="cpus:1;ports:[31000-31000]", own="cpus:1;ports:[31000-31000]")
    assert "overlaps" in scene.launch(task)["t1"][2]
    assert scene.used == EMPTY


# ---- Tasks that fail alone ----------------------------------------------------------


def test_an_invalid_task_is_an_error_and_the_others_start(scene):
    bad = scene.task("bad")
    bad.ClearField("resources")
    failed = scene.launch(scene.task("t1"), bad, scene.task("t2"))
    assert failed == {
        "bad": (
            pb.TASK_ERROR,
            Reason.REASON_TASK_INVALID,
            "resources: '': a task must ask for some resources",
        )
    }
    assert scene.ordered() == ["t1", "t2"]


def test_a_task_that_failed_is_in_the_history_with_its_reason(scene):
    scene.launch(scene.task("t1", "cpus:100"))
    framework = scene.world.cluster.frameworks[scene.framework.id]
    (task,) = framework.completed_tasks
    assert (task.task_id, task.state, task.resources) == ("t1", pb.TASK_ERROR, EMPTY)
    assert task.statuses[-1].message == "resources.cpus: 100 wanted, the offers have 4 left"
    assert task.launched_wall_s is None
    assert task.ended_wall_s == scene.world.clock.wall_s
    (tally,) = framework.refusals.values()
    assert (tally.code, tally.count) == ("insufficient-resources", 1)


def test_a_task_larger_than_its_offers_changes_nothing(scene):
    scene.launch(scene.task("t1", "cpus:4.001"))
    assert scene.used == EMPTY
    assert scene.free == Resources.parse(WHOLE)


def test_two_tasks_with_one_id_in_one_call_the_second_fails(scene):
    scene.framework.launch(scene.offer, scene.task("t1"), scene.task("t1"))
    (update,) = scene.framework.updates()
    assert "is in this call twice" in update.message
    assert scene.ordered() == ["t1"]
    framework = scene.world.cluster.frameworks[scene.framework.id]
    assert framework.tasks["t1"].state == pb.TASK_STAGING
    assert not framework.completed_tasks


def test_the_id_of_a_task_that_runs_cannot_be_used_again(scene):
    scene.launch(scene.task("t1"))
    (scene.offer,) = scene.framework.offers()
    assert "has not ended yet" in scene.launch(scene.task("t1"))["t1"][2]
    framework = scene.world.cluster.frameworks[scene.framework.id]
    assert framework.tasks["t1"].state == pb.TASK_STAGING
    assert not framework.completed_tasks


def test_the_id_of_a_task_that_is_over_may_be_used_again(scene):
    scene.launch(scene.task("t1"))
    uuid = scene.agent.report("t1", pb.TASK_FINISHED, scene.framework)
    scene.framework.acknowledge(scene.agent, "t1", uuid)
    (scene.offer,) = scene.framework.offers()
    assert scene.launch(scene.task("t1")) == {}


def test_a_task_without_an_id_fails_and_is_not_remembered(scene):
    assert "task_id: '': must not be empty" in scene.launch(scene.task(""))[""][2]
    assert not scene.world.cluster.frameworks[scene.framework.id].completed_tasks


def test_a_huge_task_is_refused():
    world = World(Options(max_task_bytes=1000))
    world.agent()
    framework = world.framework()
    (offer,) = framework.offers()
    task = world.task("t1")
    task.data = b"x" * 1000
    framework.launch(offer, task)
    (update,) = framework.updates()
    assert "at most 1000 are taken" in update.message


def test_an_operation_that_is_not_supported_is_refused_and_the_others_are_done(scene):
    operations = [Operation(type=Operation.CREATE_DISK), launch_of(scene.task("t1"))]
    scene.framework.accept([scene.offer], operations)
    (refusal,) = scene.framework.refusals()
    assert refusal.value == "CREATE_DISK"
    assert scene.ordered() == ["t1"]


@pytest.mark.parametrize("number", [0, 77, -1])
def test_an_operation_of_no_known_type_is_refused(scene, number):
    scene.framework.accept([scene.offer], [Operation(type=number), launch_of(scene.task("t1"))])
    (refusal,) = scene.framework.refusals()
    assert refusal.field == "operations.type"
    assert refusal.value == ("UNKNOWN" if number == 0 else str(number))
    assert scene.ordered() == ["t1"]
