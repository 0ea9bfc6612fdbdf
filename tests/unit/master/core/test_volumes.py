"""Persistent volumes of frameworks: operations on them, and tasks that use them."""

import pytest

from master.core import reserving
from mesos_py import conversions
from mesos_py.persistent import Volume
from mesos_py.reserved import Reservation, key_of
from mesos_py.resources import EMPTY, Resources
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import FakeAgent, World
from tests.kit.reserving import (
    Operation,
    amount,
    by,
    create,
    destroy,
    finished,
    grow,
    launch,
    ordered,
    reserve,
    shrink,
    statuses,
    tell,
    unreserve,
    volume,
)

ADS = by("ads", "alice")
DISK = amount(ADS, disk=100)


def mine(disk_mb=40, volume_id="v1", path="data", stack=ADS, **more):
    return volume(stack, disk_mb, volume_id, path, **{"principal": "alice", **more})


def of(messages):
    return Resources.from_proto("resources", messages)


@pytest.fixture
def world():
    made = World()
    yield made
    made.check()


@pytest.fixture
def agent(world):
    return world.agent(resources="cpus:4;mem:400;disk:200")


@pytest.fixture
def framework(world, agent):
    return world.framework(role="ads", principal="alice", failover_timeout=60)


def offered(framework):
    (offer,) = framework.offers()
    return offer


def using(world, agent, resources, task_id="t1", **fields):
    task = world.task(task_id, agent.id, **fields)
    task.ClearField("resources")
    task.resources.extend((resources + amount(mem=32)).to_proto())
    return task


# ---- What operations change ------------------------------------------------------------


def test_reserve_create_and_launch_in_one_call(world, agent, framework):
    task = using(world, agent, mine())
    framework.accept(
        [offered(framework)], [reserve(DISK), create(mine(), "op"), launch(task)], refuse_s=0
    )
    kinds = [order.info.type for order in ordered(agent)]
    assert kinds == [Operation.RESERVE, Operation.CREATE]
    ledger = world.cluster.ledger
    assert ledger.allocated(agent.id) == mine() + amount(mem=32)
    assert ledger.free(agent.id).contains(amount(ADS, disk=60))
    agent.report("t1", pb.TASK_FINISHED, framework)
    again = offered(framework)
    assert of(again.resources).contains(mine())


def test_destroy_gives_the_disk_back(world, agent, framework):
    operations = [reserve(DISK), create(mine()), destroy(mine())]
    framework.accept([offered(framework)], operations, refuse_s=0)
    assert len(ordered(agent)) == 3
    assert world.cluster.agents[agent.id].total == DISK + amount(cpus=4, mem=400, disk=100)


def test_a_volume_grows_and_shrinks(world, agent, framework):
    operations = [
        reserve(DISK),
        create(mine()),
        grow(mine(), amount(ADS, disk=20)),
        shrink(mine(60), 35),
    ]
    framework.accept([offered(framework)], operations, refuse_s=0)
    assert not framework.refusals()
    total = world.cluster.agents[agent.id].total
    assert total.contains(mine(25) + amount(ADS, disk=75))


def test_a_volume_is_told_by_its_id_whoever_names_it(world, agent, framework):
    operations = [reserve(DISK), create(mine()), destroy(mine(principal=None))]
    framework.accept([offered(framework)], operations, refuse_s=0)
    assert not framework.refusals()
    assert world.cluster.agents[agent.id].total.contains(DISK)


def test_whoever_names_the_volume_may_say_another_place(world, agent, framework):
    operations = [reserve(DISK), create(mine()), destroy(mine(path="elsewhere"))]
    framework.accept([offered(framework)], operations, refuse_s=0)
    assert not framework.refusals()
    assert world.cluster.agents[agent.id].total.contains(DISK)


def test_a_volume_outlives_its_framework_and_is_of_its_role(world, agent, framework):
    both = amount(ADS, cpus=1, mem=100, disk=100)
    framework.accept([offered(framework)], [reserve(both), create(mine())], refuse_s=0)
    other = world.framework("web", role="web")
    framework.call(type=sched.Call.TEARDOWN)
    assert world.cluster.ledger.total(agent.id).contains(mine())
    assert not of(offered(other).resources).has_reserved
    again = world.framework("next", role="ads")
    assert of(offered(again).resources).contains(mine())


def in_offer(offer):
    (shown,) = [each for each in offer.resources if each.HasField("disk")]
    return shown


def test_offers_say_it_in_the_form_that_the_framework_knows(world, agent, framework):
    framework.accept([offered(framework)], [reserve(DISK), create(mine())], refuse_s=0)
    older = in_offer(offered(framework))
    assert (older.role, older.reservation.principal) == ("ads", "alice")
    assert not older.reservations
    framework.call(type=sched.Call.TEARDOWN)
    refines = pb.FrameworkInfo.Capability(type=pb.FrameworkInfo.Capability.RESERVATION_REFINEMENT)
    newer = in_offer(offered(world.framework("n", role="ads", capabilities=[refines])))
    assert (newer.HasField("role"), newer.reservations[0].role) == (False, "ads")
    assert older.disk == newer.disk == mine().to_proto()[0].disk


def test_the_older_form_will_do_for_operations_and_tasks(world, agent, framework):
    framework.accept([offered(framework)], [reserve(DISK), create(mine())], refuse_s=0)
    offer = offered(framework)
    task = using(world, agent, EMPTY)
    task.resources.append(in_offer(offer))
    framework.accept([offer], [launch(task)], refuse_s=0)
    assert world.cluster.ledger.allocated(agent.id) == mine() + amount(mem=32)
    agent.report("t1", pb.TASK_FINISHED, framework)
    offer = offered(framework)
    operation = Operation(type=Operation.DESTROY)
    operation.destroy.volumes.append(in_offer(offer))
    framework.accept([offer], [operation], refuse_s=0)
    assert world.cluster.ledger.total(agent.id).contains(DISK)


def test_of_static_reservations_there_are_volumes_too(world):
    agent = world.agent(resources="cpus:4;mem:400;disk(ads):50")
    framework = world.framework(role="ads", principal="alice")
    made = Resources.parse_reserved("disk(ads):50").renamed(
        lambda _: key_of("disk", (Reservation("ads"),), Volume("v1", "d", "alice"))
    )
    framework.accept([offered(framework)], [create(made)], refuse_s=0)
    assert world.cluster.agents[agent.id].total.contains(made)


def test_the_outcome_is_told(world, agent, framework):
    framework.accept([offered(framework)], [reserve(DISK), create(mine(), "op")], refuse_s=0)
    (_, order) = ordered(agent)
    assert order.info.id.value == "op"
    finished(agent, order)
    (status,) = statuses(framework)
    assert (status.operation_id.value, status.state) == ("op", pb.OPERATION_FINISHED)


# ---- What is refused -------------------------------------------------------------------


def no_id():
    operation = create(mine())
    operation.create.volumes[0].disk.persistence.id = ""
    return operation


def of_role(role):
    operation = create(mine())
    operation.create.volumes[0].allocation_info.role = role
    return operation


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        (create(amount(ADS, disk=10)), "is no persistent volume"),
        (create(EMPTY), "create.volumes: '': must not be empty"),
        (Operation(type=Operation.DESTROY), "operations.destroy: '': is missing"),
        (Operation(type=Operation.SHRINK_VOLUME), "operations.shrink_volume: '': is missing"),
        (no_id(), "create.volumes.disk.persistence.id: '': must not be empty"),
        (create(mine(150)), "150 wanted"),
        (create(mine(volume_id="old", path="x")), "create.volumes.disk.persistence.id: 'old': the"),
        (create(mine(principal="bob")), "'bob': must be the framework's principal, 'alice'"),
        (create(mine(principal=None)), "'': must be the framework's principal, 'alice'"),
        (create(mine(read_only=True)), "create.volumes.disk.volume.mode: 'RO': must be RW"),
        (of_role("web"), "allocation_info.role: 'web': the offers are of ads"),
        (destroy(mine(volume_id="none")), "destroy.disk.persistence.id: 'none': the agent has no"),
        (destroy(mine(10, "old")), "'10': the volume old has 20 and is taken whole"),
        (grow(mine(20, "old"), amount(disk=5)), "must be an amount of what the volume is made"),
        (grow(mine(20, "old"), amount(ADS, disk=500)), "500 wanted"),
        (grow(mine(25, "old"), amount(ADS, disk=5)), "'25': the volume old has 20"),
        (shrink(mine(20, "old"), 20), "20.0: must be less than the volume, which has 20"),
        (shrink(mine(20, "old"), 0), "shrink_volume.subtract"),
        (shrink(mine(20, "old"), -1), "shrink_volume.subtract"),
        (unreserve(mine(20, "old")), "is a volume, which has to be destroyed first"),
        (reserve(mine(20, "old")), "is a volume, which has to be destroyed first"),
    ],
)
def test_what_cannot_be_is_refused_and_the_rest_goes_on(world, agent, framework, operation, why):
    old = [reserve(DISK), create(mine(20, "old"))]
    framework.accept([offered(framework)], old, refuse_s=0)
    before = world.cluster.ledger.total(agent.id)
    offer = offered(framework)
    operation.id.value = "op"
    agent.take()
    framework.accept([offer], [operation, launch(world.task("t1", agent.id))])
    (status,) = statuses(framework)
    assert (status.operation_id.value, status.state) == ("op", pb.OPERATION_ERROR)
    assert why in status.message
    assert agent.orders() == ["RUN_TASKS"]
    assert world.cluster.ledger.total(agent.id) == before


@pytest.mark.parametrize(
    "operation", [destroy(mine()), grow(mine(), amount(ADS, disk=10)), shrink(mine(), 10)]
)
def test_a_volume_in_use_stays_as_it_is(world, agent, framework, operation):
    task = using(world, agent, mine())
    framework.accept(
        [offered(framework)], [reserve(DISK), create(mine()), launch(task)], refuse_s=0
    )
    operation.id.value = "op"
    framework.accept([offered(framework)], [operation])
    (status,) = statuses(framework)
    assert status.state == pb.OPERATION_ERROR
    assert "disk.persistence.id: 'v1': is in use" in status.message
    assert world.cluster.ledger.total(agent.id).contains(mine())


def test_an_agent_that_knows_no_volumes_is_not_sent_any(world):
    agent = FakeAgent(world, "old", "cpus:4;mem:400;disk:200", {})
    agent.capabilities.remove(pb.AgentInfo.Capability.RESIZE_VOLUME)
    agent.register()
    framework = world.framework(role="ads", principal="alice")
    framework.accept([offered(framework)], [reserve(DISK), create(mine(), "op")], refuse_s=0)
    (status,) = statuses(framework)
    assert "has no persistent volumes: it is older than this master" in status.message
    assert [order.info.type for order in ordered(agent)] == [Operation.RESERVE]


def test_what_an_agent_has_to_say_of_volumes_is_bounded(monkeypatch, agent, framework):
    monkeypatch.setattr(reserving, "MAX_NAMES", 3)
    volumes = [create(mine(10, f"v{number}")) for number in range(3)]
    framework.accept([offered(framework)], [reserve(DISK), *volumes], refuse_s=0)
    (refusal,) = framework.refusals()
    assert "have 4 amounts" in refusal.message
    assert len(ordered(agent)) == 3


def test_a_call_of_many_volumes_looks_at_few_closely(monkeypatch, world, agent, framework):
    """Else a small call keeps the master busy for seconds."""
    looked_at = []

    def counted(key, original=conversions._role_and_id):
        looked_at.append(key)
        return original(key)

    monkeypatch.setattr(conversions, "_role_and_id", counted)
    many = [mine(0.5, f"v{number}") for number in range(100)]
    framework.accept([offered(framework)], [reserve(DISK), *map(create, many)], refuse_s=0)
    framework.accept([offered(framework)], [shrink(each, 0.1) for each in many], refuse_s=0)
    assert not framework.refusals()
    assert len(ordered(agent)) == 201
    assert len(looked_at) < 10 * 100


@pytest.mark.parametrize(
    ("left", "was", "refused"),
    [
        (mine(40), mine(40), mine(40)),
        (mine(50), mine(40), EMPTY),
        (mine(30), mine(40), EMPTY),
        (mine(40), amount(ADS, disk=40), EMPTY),
        (amount(ADS, disk=20), amount(ADS, disk=60), amount(ADS, disk=20)),
    ],
)
def test_a_volume_of_another_size_is_fresh(left, was, refused):
    assert reserving.without_fresh(left, was) == refused


# ---- Tasks -----------------------------------------------------------------------------


@pytest.fixture
def stored(world, agent, framework):
    """There is a volume."""
    framework.accept([offered(framework)], [reserve(DISK), create(mine())], refuse_s=0)
    agent.take()
    return offered(framework)


def test_a_task_says_itself_where_it_sees_a_volume(world, agent, framework, stored):
    framework.accept([stored], [launch(using(world, agent, mine(path="here")))])
    assert world.cluster.ledger.allocated(agent.id) == mine() + amount(mem=32)
    ((told,),) = [event.run_tasks.tasks for event in agent.take()]
    (shown,) = [each for each in told.resources if each.HasField("disk")]
    assert shown.disk.volume.container_path == "here"


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        (mine(20), "'v1': the volume of ads is had whole or not at all, and has 40"),
        (mine(volume_id="v2"), "'v2': the volume of ads is not in the offers"),
        (mine() + mine(path="b"), "is there twice"),
        (mine(path="/data"), "'/data': must be relative"),
        (mine(read_only=True), "RO: can be kept in containers of images only"),
    ],
)
def test_a_task_that_cannot_have_a_volume_so(world, agent, framework, stored, wanted, why):
    framework.accept([stored], [launch(using(world, agent, wanted))])
    (update,) = framework.updates()
    assert (update.state, update.reason) == (pb.TASK_ERROR, pb.TaskStatus.REASON_TASK_INVALID)
    assert why in update.message.replace("'RO'", "RO")


@pytest.mark.parametrize("fields", [{"path": "/data"}, {"read_only": True}])
def test_in_a_container_of_an_image_it_can(world, agent, framework, stored, fields):
    task = using(world, agent, mine(**fields))
    task.container.type = pb.ContainerInfo.DOCKER
    task.container.docker.image = "busybox"
    framework.accept([stored], [launch(task)])
    assert not framework.updates()
    assert world.cluster.ledger.allocated(agent.id).contains(mine())


def test_one_volume_is_used_by_one_task(world, agent, framework, stored):
    tasks = [using(world, agent, mine(path=name), name) for name in ("t1", "t2")]
    framework.accept([stored], [launch(*tasks)])
    (update,) = framework.updates()
    assert (update.task_id.value, update.state) == ("t2", pb.TASK_ERROR)
    assert "is used by an earlier task of the call" in update.message


def with_executor(task, resources):
    task.ClearField("command")
    task.executor.executor_id.value = "e"
    task.executor.command.value = "run"
    task.executor.resources.extend(resources.to_proto())
    return task


def test_a_task_and_its_executor_do_not_have_one_volume(world, agent, framework, stored):
    task = with_executor(using(world, agent, mine()), mine(path="other"))
    framework.accept([stored], [launch(task)])
    (update,) = framework.updates()
    assert "the task has the same volume as its executor" in update.message
    assert not agent.orders()


def test_an_executor_may_have_one(world, agent, framework, stored):
    task = with_executor(using(world, agent, EMPTY), mine(path="other"))
    framework.accept([stored], [launch(task)])
    assert not framework.updates()
    assert world.cluster.ledger.allocated(agent.id) == mine() + amount(mem=32)


def test_of_a_group_one_task_has_a_volume(world, agent, framework, stored):
    tasks = [using(world, agent, mine(path=name), name) for name in ("t1", "t2")]
    executor = pb.ExecutorInfo(type=pb.ExecutorInfo.DEFAULT)
    executor.executor_id.value = "g"
    executor.resources.extend(amount(cpus=0.1, mem=32, disk=10).to_proto())
    group = Operation.LaunchGroup(executor=executor, task_group=pb.TaskGroupInfo(tasks=tasks))
    framework.accept([stored], [Operation(type=Operation.LAUNCH_GROUP, launch_group=group)])
    updates = framework.updates()
    assert {update.state for update in updates} == {pb.TASK_ERROR}
    assert all("'v1'" in update.message for update in updates)
    assert world.cluster.ledger.allocated(agent.id) == EMPTY


# ---- Agents that come back ---------------------------------------------------------------


def test_a_task_that_another_master_launched_uses_the_volume_of_its_agent(world):
    agent = FakeAgent(world, "host", "cpus:4;mem:400;disk:200", {})
    agent.info.id.value = "m-S1"
    info = pb.FrameworkInfo(name="f", user="root", roles=["ads"], failover_timeout=600)
    info.id.value = "m-F1"
    there = mine() + amount(ADS, disk=60)
    task = pb.Task(name="t", state=pb.TASK_RUNNING, allocation_role="ads")
    task.task_id.value, task.framework_id.value = "t1", "m-F1"
    task.resources.extend((mine(path="elsewhere") + amount(mem=32)).to_proto())
    executor = pb.ExecutorInfo()
    executor.executor_id.value, executor.framework_id.value = "e", "m-F1"
    agent.register([task], [executor], [info], reserved=there.to_proto())
    assert world.cluster.ledger.allocated(agent.id) == mine() + amount(mem=32)
    assert world.cluster.ledger.free(agent.id).contains(amount(ADS, disk=60))
    world.check()


def not_destroyed(agent, framework, offer, task, new):
    """The agent does neither the DESTROY nor the CREATE, and runs the task on what is there.
    What it is sent once it has registered anew."""
    framework.accept([offer], [destroy(mine()), create(new), launch(task)], refuse_s=0)
    assert len(ordered(agent)) == 2
    agent.disconnect()
    item = pb.Task(task_id=task.task_id, agent_id=agent.info.id, state=pb.TASK_RUNNING)
    item.framework_id.value, item.name = framework.id, task.task_id.value
    item.resources.extend(task.resources)
    executors = []
    if task.HasField("executor"):
        task.executor.framework_id.value = framework.id
        item.executor_id.CopyFrom(task.executor.executor_id)
        executors = [task.executor]
    there = mine() + amount(ADS, disk=60)
    return agent.register(
        tasks=[item],
        executors=executors,
        frameworks=[framework.info],
        reserved=there.to_proto(),
    )


def test_a_task_on_a_volume_that_was_not_made_anew_uses_the_old_one(
    world, agent, framework, stored
):
    new = mine(path="other")
    answers = not_destroyed(agent, framework, stored, using(world, agent, new), new)
    assert answers[0].type == agent_pb2.Event.REGISTERED
    task = world.cluster.frameworks[framework.id].tasks["t1"]
    assert task.resources == mine() + amount(mem=32)
    agent.report("t1", pb.TASK_FINISHED, framework.id)
    assert of(offered(framework).resources).contains(mine())


def test_nor_does_an_executor_use_another(world, agent, framework, stored):
    new = mine(path="other")
    task = world.custom_task("t1")
    task.agent_id.CopyFrom(agent.info.id)
    task.executor.resources.extend(new.to_proto())
    answers = not_destroyed(agent, framework, stored, task, new)
    assert answers[0].type == agent_pb2.Event.REGISTERED
    (executor,) = world.cluster.frameworks[framework.id].executors.values()
    assert executor.resources.contains(mine())


def test_of_each_operation_that_was_not_done_its_own_reason_is_told(
    world, agent, framework, stored
):
    """The stream is closed at the first, and the agent says the others when it registers."""
    new = mine(path="other")
    framework.accept([stored], [destroy(mine()), create(new, "c1")])
    first, second = ordered(agent)
    for each, why in ((first, "it is busy"), (second, "there is one")):
        each.latest_status.state, each.latest_status.message = pb.OPERATION_DROPPED, why
    tell(agent, first)
    assert agent.link in world.outbox.closed
    there = mine() + amount(ADS, disk=60)
    framework.take()
    agent.register(not_done=[first, second], reserved=there.to_proto())
    (told,) = statuses(framework)
    assert (told.operation_id.value, told.state) == ("c1", pb.OPERATION_DROPPED)
    assert told.message == "there is one"


def test_tasks_on_a_volume_that_never_arrived_are_dropped(world, agent):
    capability = pb.FrameworkInfo.Capability(type=pb.FrameworkInfo.Capability.PARTITION_AWARE)
    framework = world.framework(role="ads", principal="alice", capabilities=[capability])
    task = using(world, agent, mine())
    framework.accept([offered(framework)], [reserve(DISK), create(mine()), launch(task)])
    agent.disconnect()
    agent.register(reserved=DISK.to_proto())
    (update,) = framework.updates()
    assert (update.task_id.value, update.state) == ("t1", pb.TASK_DROPPED)
    assert world.cluster.ledger.total(agent.id).contains(DISK)
