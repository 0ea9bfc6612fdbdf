"""What frameworks want: filters, UPDATE_FRAMEWORK, SUPPRESS, REVIVE."""

import pytest

from master.allocator.priority import PriorityAllocator
from mesos_py.constraints import hosts_only
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import FakeFramework, World

Call = sched.Call
Capability = pb.FrameworkInfo.Capability
MULTI_ROLE = Capability(type=Capability.MULTI_ROLE)
PARTITION_AWARE = Capability(type=Capability.PARTITION_AWARE)
GPU = Capability(type=Capability.GPU_RESOURCES)


@pytest.fixture
def world():
    made = World()
    yield made
    made.check()


def record(framework):
    return framework.world.cluster.frameworks[framework.id]


def filters(*names):
    """Offer filters for the role "*" with the given amounts, as (name, value)."""
    quantities = pb.OfferFilters.ResourceQuantities()
    for name, value in names:
        quantities.quantities[name].value = value
    least = pb.OfferFilters.MinAllocatableResources(quantities=[quantities])
    return pb.OfferFilters(min_allocatable_resources=least)


def hosts(*names, role="*"):
    return sched.OfferConstraints(role_constraints={role: hosts_only(list(names))})


# ---- What agents are offered --------------------------------------------------------------------


def test_only_these_hosts(world):
    world.agent("web1")
    world.agent("web2")
    framework = FakeFramework(world, pb.FrameworkInfo(name="f", user="u"))
    framework.subscribe(offer_constraints=hosts("web2"))
    assert [offer.hostname for offer in framework.offers()] == ["web2"]
    assert record(framework).constraints_proto.role_constraints


def test_at_least_so_much_free(world):
    world.agent("small", "cpus:1;mem:100")
    world.agent("large", "cpus:8;mem:100")
    framework = world.framework(offer_filters={"*": filters(("cpus", 2.0))})
    assert [offer.hostname for offer in framework.offers()] == ["large"]


def test_a_filter_without_amounts_is_none(world):
    world.agent()
    framework = world.framework(offer_filters={"*": pb.OfferFilters()})
    assert record(framework).min_free == {}
    assert len(framework.offers()) == 1


def test_agents_with_gpus_go_to_those_who_can_use_them(world):
    world.agent("gpu", "cpus:4;mem:100;gpus:2")
    plain, able = world.framework("plain"), world.framework("able", capabilities=[GPU])
    assert plain.offers() == []
    assert len(able.offers()) == 1


# ---- UPDATE_FRAMEWORK ---------------------------------------------------------------------------


def update(framework, suppressed=(), allowed=None, **changes):
    info = pb.FrameworkInfo()
    info.CopyFrom(framework.info)
    for name, value in changes.items():
        setattr(info, name, value)
    wanted = Call.UpdateFramework(
        framework_info=info, suppressed_roles=suppressed, offer_constraints=allowed
    )
    framework.call(type=Call.UPDATE_FRAMEWORK, update_framework=wanted)


def test_an_update_replaces_suppressed_roles_and_constraints(world):
    world.agent("web1")
    framework = world.framework()
    update(framework, suppressed=["*"], allowed=hosts("web1"), webui_url="http://x")
    assert framework.offers() == []
    assert record(framework).info.webui_url == "http://x"
    update(framework)
    assert len(framework.offers()) == 1
    assert record(framework).constraints_proto is None


def test_a_priority_is_told_to_the_allocator_and_so_is_another():
    made = World(allocator=PriorityAllocator())
    first, other = made.framework("first", priority=-1), made.framework("other")
    made.agent("web1")
    assert (first.offers(), len(other.offers())) == ([], 1)
    update(first, priority=1)
    made.agent("web2")
    assert (len(first.offers()), other.offers()) == (1, [])
    made.check()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"user": "root"}, "framework_info.user"),
        ({"principal": "mallory"}, "framework_info.principal"),
        ({"checkpoint": True}, "framework_info.checkpoint"),
        ({"failover_timeout": -5.0}, "framework_info.failover_timeout"),
        ({"role": "a b"}, "framework_info.role"),
        ({"name": "a\tb"}, "framework_info.name"),
        ({"suppressed": ["web"]}, "suppressed_roles"),
    ],
)
def test_an_update_is_all_or_nothing(world, changes, field):
    framework = world.framework()
    before = record(framework).info
    update(framework, **{"webui_url": "http://x", **changes})
    (refusal,) = framework.refusals()
    assert (refusal.call, refusal.field) == (Call.UPDATE_FRAMEWORK, field)
    assert record(framework).info == before


def test_an_update_of_another_framework_is_refused(world):
    framework = world.framework()
    wanted = Call.UpdateFramework(
        framework_info=pb.FrameworkInfo(user="nobody", id=pb.FrameworkID(value="other"))
    )
    framework.call(type=Call.UPDATE_FRAMEWORK, update_framework=wanted)
    (refusal,) = framework.refusals()
    assert refusal.field == "framework_info.id"


# ---- SUPPRESS, REVIVE ------------------------------------------------------------------


def roles_call(framework, kind, *roles):
    name = "suppress" if kind == Call.SUPPRESS else "revive"
    message = (Call.Suppress if kind == Call.SUPPRESS else Call.Revive)(roles=roles)
    framework.call(type=kind, **{name: message})


def test_no_roles_named_means_all(world):
    framework = world.framework(roles=["a", "b"], capabilities=[MULTI_ROLE])
    roles_call(framework, Call.SUPPRESS)
    assert record(framework).suppressed == {"a", "b"}
    roles_call(framework, Call.REVIVE)
    assert record(framework).suppressed == frozenset()


def test_only_the_named_roles_are_meant(world):
    framework = world.framework(roles=["a", "b"], capabilities=[MULTI_ROLE])
    roles_call(framework, Call.SUPPRESS, "a")
    assert record(framework).suppressed == {"a"}
    roles_call(framework, Call.REVIVE, "b")
    assert record(framework).suppressed == {"a"}


@pytest.mark.parametrize("kind", [Call.SUPPRESS, Call.REVIVE])
def test_one_wrong_role_and_nothing_is_done(world, kind):
    framework = world.framework(roles=["a", "b"], capabilities=[MULTI_ROLE])
    roles_call(framework, Call.SUPPRESS, "b")
    roles_call(framework, kind, "a", "b", "nonsense")
    assert record(framework).suppressed == {"b"}
    (refusal,) = framework.refusals()
    assert (refusal.call, refusal.value) == (kind, "nonsense")


def test_suppressing_leaves_offers_that_are_out(world):
    world.agent()
    framework = world.framework()
    (offer,) = framework.offers()
    roles_call(framework, Call.SUPPRESS)
    assert offer.id.value in world.cluster.offers
    assert framework.take() == []
