"""ACCEPT with offers that cannot be used: the whole call is void, and every task is answered."""

from typing import Any

import pytest

from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.scenes import PARTITION_AWARE, WHOLE, LaunchScene

Operation = pb.Offer.Operation
Reason = pb.TaskStatus
MULTI_ROLE = pb.FrameworkInfo.Capability(type=pb.FrameworkInfo.Capability.MULTI_ROLE)
ODD: Any = 77  # an enum's number that only a newer peer knows


@pytest.fixture
def scene():
    made = LaunchScene()
    yield made
    made.world.check()


def launch_of(*tasks):
    return Operation(type=Operation.LAUNCH, launch=Operation.Launch(task_infos=tasks))


# ---- A call that is void ----------------------------------------------------------


def two_offers_of_two_agents(scene):
    scene.world.agent(resources=WHOLE)
    (second,) = scene.framework.offers()
    return [scene.offer, second]


def two_offers_of_two_roles(scene):
    scene.framework.decline(scene.offer, refuse_s=0)
    info = scene.framework.info
    info.capabilities.add(type=pb.FrameworkInfo.Capability.MULTI_ROLE)
    info.roles.extend(["*", "web"])
    scene.framework.subscribe()
    (first,) = scene.framework.offers()
    scene.framework.launch(first, scene.task("t0"))
    (rest,) = scene.framework.offers()
    scene.framework.call(
        type=sched.Call.SUPPRESS,
        suppress=sched.Call.Suppress(roles=[rest.allocation_info.role]),
    )
    scene.agent.report("t0", pb.TASK_FINISHED, scene.framework)
    (other,) = scene.framework.offers()
    assert other.allocation_info.role != rest.allocation_info.role
    return [rest, other]


def anothers_offer(scene):
    stranger = scene.world.framework("stranger")
    scene.world.agent(resources=WHOLE)
    (offer,) = stranger.offers() + scene.framework.offers()
    if offer.framework_id.value == scene.framework.id:
        scene.framework.decline(offer, refuse_s=3600)
        (offer,) = stranger.offers()
    return [scene.offer, offer]


VOID = {
    "none": (lambda scene: [], "must name at least one"),
    "twice": (lambda scene: [scene.offer, scene.offer], "is in the call twice"),
    "unknown": (
        lambda scene: [scene.offer, pb.Offer(id=pb.OfferID(value="nonsense"))],
        "offer gone: unknown",
    ),
    "no id": (lambda scene: [pb.Offer(id=pb.OfferID())], "offer gone: unknown"),
    "another's": (anothers_offer, "another framework's offer"),
    "two agents": (two_offers_of_two_agents, "of several agents"),
    "two roles": (two_offers_of_two_roles, "of several roles"),
}


@pytest.mark.parametrize("case", VOID)
@pytest.mark.parametrize("aware", [False, True], ids=["non-PA", "PA"])
def test_a_call_with_offers_that_cannot_be_used_is_void(case, aware):
    scene = LaunchScene(capabilities=[PARTITION_AWARE] if aware else [], failover_timeout=9.0)
    make, why = VOID[case]
    offers = make(scene)
    mine = [o for o in offers if o.framework_id.value == scene.framework.id]
    scene.agent.take()
    scene.framework.take()
    scene.framework.accept(offers, [launch_of(scene.task("t1"), scene.task("t2"))])
    refused, *updates = scene.framework.take()
    assert refused.refused.call == sched.Call.ACCEPT
    assert refused.refused.field == "offer_ids"
    assert why in refused.refused.message
    state = pb.TASK_DROPPED if aware else pb.TASK_LOST
    for update, task_id in zip(updates, ["t1", "t2"], strict=True):
        status = update.update.status
        assert (status.task_id.value, status.state) == (task_id, state)
        assert status.reason == Reason.REASON_INVALID_OFFERS
        assert status.source == pb.TaskStatus.SOURCE_MASTER
        assert not status.HasField("uuid")
        assert why in status.message
    assert scene.ordered() == []
    # The framework's own offers are back, without a filter and without RESCIND.
    assert not any(offer.id.value in scene.world.cluster.offers for offer in mine)
    if mine and case != "two roles":
        assert len(scene.framework.offers()) >= 1
    scene.world.check()


def test_every_task_of_a_void_call_is_answered_also_of_groups(scene):
    group = Operation(
        type=Operation.LAUNCH_GROUP,
        launch_group=Operation.LaunchGroup(
            task_group=pb.TaskGroupInfo(tasks=[scene.task("g1"), scene.task("g2")])
        ),
    )
    scene.framework.accept([], [launch_of(scene.task("t1")), group, Operation(type=ODD)])
    assert [u.task_id.value for u in scene.framework.updates()] == ["t1", "g1", "g2"]


@pytest.mark.parametrize(
    ("end", "why"),
    [
        ("accept", "accepted already"),
        ("decline", "declined by the framework"),
        ("expire", "not answered within 2 s"),
        ("agent", "the agent disconnected"),
    ],
)
def test_a_late_accept_is_told_what_became_of_the_offer(scene, end, why):
    match end:
        case "accept":
            scene.framework.accept([scene.offer], [])
        case "decline":
            scene.framework.decline(scene.offer)
        case "expire":
            scene.world.advance(30)
        case "agent":
            scene.agent.disconnect()
    scene.framework.take()
    failed = scene.launch(scene.task("t1"))
    assert failed["t1"][:2] == (pb.TASK_LOST, Reason.REASON_INVALID_OFFERS)
    assert f"offer gone: {why}" in failed["t1"][2]
    assert scene.ordered() == []


def test_the_same_accept_twice_starts_its_tasks_once_and_does_not_call_them_lost(scene):
    operations = [launch_of(scene.task("t1"))]
    scene.framework.accept([scene.offer], operations)
    scene.framework.accept([scene.offer], operations)
    (refused,) = scene.framework.take()
    assert refused.refused.message.endswith("offer gone: accepted already")
    assert scene.ordered() == ["t1"]
    assert "refused-task-lives" in [reason for reason, _ in scene.world.outbox.drops]


def test_a_call_with_a_great_many_offer_ids_is_answered_shortly(scene):
    ids = [pb.OfferID(value="x" * 200)] * 100_000
    scene.framework.call(type=sched.Call.ACCEPT, accept=sched.Call.Accept(offer_ids=ids))
    (refusal,) = scene.framework.refusals()
    assert refusal.ByteSize() < 2000
