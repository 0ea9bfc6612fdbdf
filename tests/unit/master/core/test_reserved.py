"""Amounts that agents reserve for roles: who is offered them, in which form, and who may use
them."""

import pytest

from master.core import quotas
from mesos_py.resources import EMPTY, Resources
from mesos_py.v1 import agent_pb2
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import World

Capability = pb.FrameworkInfo.Capability
MULTI_ROLE = Capability(type=Capability.MULTI_ROLE)
REFINES = Capability(type=Capability.RESERVATION_REFINEMENT)
TOTAL = "cpus:1;mem:100;cpus(ads):3;mem(ads):200;ports(ads):[31000-31009]"


def amount(text):
    return Resources.parse_reserved(text)


def of(message):
    return Resources.from_proto("resources", message.resources)


@pytest.fixture
def world():
    made = World()
    yield made
    made.check()


def test_an_offer_mixes_what_is_reserved_with_what_is_not(world):
    world.agent(resources=TOTAL)
    (offer,) = world.framework(roles=["ads"], capabilities=[MULTI_ROLE, REFINES]).offers()
    assert of(offer) == amount(TOTAL)
    shown = {(each.name, len(each.reservations)): each for each in offer.resources}
    assert not shown["cpus", 0].HasField("role")
    assert shown["cpus", 1].reservations[0] == pb.Resource.ReservationInfo(
        role="ads", type=pb.Resource.ReservationInfo.STATIC
    )
    assert not shown["cpus", 1].HasField("role")
    assert {each.allocation_info.role for each in offer.resources} == {"ads"}


def test_who_does_not_know_of_refined_reservations_reads_the_role(world):
    world.agent(resources=TOTAL)
    (offer,) = world.framework(role="ads").offers()
    assert of(offer) == amount(TOTAL)
    assert sorted((each.name, each.role) for each in offer.resources) == [
        ("cpus", ""),
        ("cpus", "ads"),
        ("mem", ""),
        ("mem", "ads"),
        ("ports", "ads"),
    ]
    assert not any(each.reservations for each in offer.resources)


def test_other_roles_are_offered_what_is_not_reserved(world):
    world.agent(resources=TOTAL)
    (offer,) = world.framework(role="web").offers()
    assert of(offer) == amount("cpus:1;mem:100")


@pytest.mark.parametrize("capabilities", [[MULTI_ROLE], [MULTI_ROLE, REFINES]])
def test_a_task_on_it_is_launched_and_charged_to_its_role(world, capabilities):
    agent = world.agent(resources=TOTAL)
    framework = world.framework(roles=["ads"], capabilities=capabilities)
    (offer,) = framework.offers()
    agent.take()
    task = world.task("t1", agent.id)
    task.ClearField("resources")
    reserved = [each for each in offer.resources if each.reservations or each.HasField("role")]
    task.resources.extend(reserved)
    framework.launch(offer, task)
    (order,) = agent.take()
    assert of(order.run_tasks.tasks[0]) == amount(
        "cpus(ads):3;mem(ads):200;ports(ads):[31000-31009]"
    )
    ledger = world.cluster.ledger
    assert ledger.free(agent.id) + ledger.offered(agent.id) == amount("cpus:1;mem:100")
    assert ledger.held_by_role("ads")["cpus"] in (3000, 4000)
    agent.report("t1", pb.TASK_FINISHED, framework)
    assert ledger.allocated(agent.id) == EMPTY


def test_a_task_cannot_take_reserved_for_unreserved_or_the_other_way_round(world):
    agent = world.agent(resources="cpus:1;mem:100;cpus(ads):3")
    framework = world.framework(role="ads")
    (offer,) = framework.offers()
    too_much = world.task("t1", agent.id, text="cpus:2")
    elsewhere = world.task("t2", agent.id, text="cpus(web):1")
    framework.launch(offer, too_much, elsewhere)
    assert [(each.task_id.value, each.state) for each in framework.updates()] == [
        ("t1", pb.TASK_ERROR),
        ("t2", pb.TASK_ERROR),
    ]


def test_a_limit_is_compared_with_what_is_reserved_too(world):
    agent = world.agent(resources="cpus(ads):3")
    framework = world.framework(role="ads")
    (offer,) = framework.offers()
    task = world.task("t1", agent.id, text="cpus(ads):2")
    task.limits["cpus"].value = 1
    framework.launch(offer, task)
    assert [each.state for each in framework.updates()] == [pb.TASK_ERROR]


def test_a_decline_lets_it_come_back_to_the_role(world):
    agent = world.agent(resources="cpus(ads):3")
    framework = world.framework(role="ads")
    (offer,) = framework.offers()
    framework.decline(offer, refuse_s=5)
    world.advance(5)
    (again,) = framework.offers()
    assert of(again) == amount("cpus(ads):3")
    assert again.agent_id.value == agent.id


def test_a_new_master_knows_it_from_the_agent(world):
    agent = world.agent(resources=TOTAL)
    framework = world.framework(roles=["ads"], capabilities=[MULTI_ROLE])
    (offer,) = framework.offers()
    framework.launch(offer, world.task("t1", agent.id, text="cpus(ads):2;mem:10"))
    agent.disconnect()
    running = agent.task("t1", framework, pb.TASK_RUNNING, "cpus(ads):2;mem:10")
    running.allocation_role = "ads"
    new = World()
    agent.world = new
    agent.info.ClearField("id")
    agent.register()
    agent.disconnect()
    agent.register(tasks=[running], frameworks=[framework.info])
    ledger = new.cluster.ledger
    assert ledger.total(agent.id) == amount(TOTAL)
    assert ledger.allocated(agent.id) == amount("cpus(ads):2;mem:10")
    assert ledger.held_by_role("ads") == {"cpus": 2000, "mem": 10000}
    new.check()


def test_needs_and_policies_are_of_what_is_not_reserved(world):
    framework = world.framework(role="ads")
    asked = sched.Call.Request(requests=[pb.Request(resources=amount("cpus(ads):1").to_proto())])
    framework.call(type=sched.Call.REQUEST, request=asked)
    (refused,) = framework.refusals()
    assert "cannot be named here" in refused.message


def test_what_is_reserved_for_a_role_counts_in_its_quota_once(world):
    agent = world.agent(resources="cpus:4;cpus(ads):3;cpus(ads/x):1;cpus(web):9")
    assert quotas.consumed(world.cluster, "ads") == {"cpus": 4000}
    framework = world.framework(role="ads")
    (offer,) = framework.offers()
    assert quotas.consumed(world.cluster, "ads") == {"cpus": 4000}
    framework.launch(offer, world.task("t1", agent.id, text="cpus(ads):2;cpus:1"))
    assert quotas.consumed(world.cluster, "ads") == {"cpus": 5000}


def test_what_an_agent_that_is_gone_had_reserved_counts_no_more(world):
    agent = world.agent(resources="cpus:1;cpus(ads):3")
    agent.disconnect()
    world.advance(3600)
    assert world.cluster.agents[agent.id].unreachable is not None
    assert quotas.consumed(world.cluster, "ads") == {}
    world.agent(resources="cpus:1;cpus(ads):3")
    assert quotas.consumed(world.cluster, "ads") == {"cpus": 3000}


@pytest.mark.parametrize("more", ["", ";cpus(ads):12;mem(ads):1200"])
def test_what_is_reserved_is_nobodys_fair_share(world, more):
    """So what is taken back for those that need it is the same."""
    agent = world.agent(resources="cpus:4;mem:400" + more)
    first = world.framework("f", role="b")
    (offer,) = first.offers()
    tasks = [world.task(f"t{n}", agent.id, text="cpus:1;mem:100") for n in range(4)]
    first.launch(offer, *tasks)
    for task in tasks:
        agent.report(task.task_id.value, pb.TASK_RUNNING, first)
    second = world.framework("g", role="c")
    needs = [pb.Request(resources=amount("cpus:1;mem:100").to_proto(), count=2)]
    second.call(type=sched.Call.REQUEST, request=sched.Call.Request(requests=needs))
    killed = []
    for _ in range(20):
        world.advance(1)
        agent.pong()
        killed += agent.take(agent_pb2.Event.KILL_TASK)
    assert len(killed) == 2


def test_why_a_task_is_not_launched_is_kept_in_few_words(world):
    world.agent(resources=TOTAL)
    framework = world.framework(role="ads")
    (offer,) = framework.offers()
    text = "names:{" + ",".join(f"n{n}" for n in range(5000)) + "}"
    framework.launch(offer, world.task("t1", text=text))
    (update,) = framework.updates()
    assert update.state == pb.TASK_ERROR
    assert len(update.message) <= 2000
