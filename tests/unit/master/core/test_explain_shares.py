"""Where a role or a framework stands, in sentences."""

import pytest

from master.allocator.base import AllocatorOptions, Standing
from master.core import explain_shares
from mesos_py.errors import NotFound
from mesos_py.policy import RolePolicy
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import World
from tests.kit.standings import ToldStandings

MULTI_ROLE = pb.FrameworkInfo.Capability(type=pb.FrameworkInfo.Capability.MULTI_ROLE)


@pytest.fixture
def allocator():
    return ToldStandings(AllocatorOptions())


@pytest.fixture
def world(allocator):
    return World(allocator=allocator)


def standing(role, framework_id="", position=1, contenders=1, **fields):
    chosen = {"share": 0.25, "weighted_share": 0.25, "weight": 1.0, **fields}
    return Standing(
        role=role, framework_id=framework_id, position=position, contenders=contenders, **chosen
    )


def role_findings(world, role):
    return explain_shares.role_findings(world.cluster, role, world.clock.now())


def test_a_framework_stands_below_its_role_and_the_roles_above_that(world, allocator):
    framework = world.framework("f", roles=["a/b"], capabilities=[MULTI_ROLE])
    own = standing("a/b", framework.id, 2, 3, lacking={"cpus": 1500})
    allocator.told = (
        own,
        standing("a/b", weight=2.0, weighted_share=0.125),
        standing("a", priority=7),
        standing("c"),
        standing("a/b", "somebody else"),
    )
    record = world.cluster.frameworks[framework.id]
    listed = explain_shares.of_framework(world.cluster, record)
    assert [(each.role, each.framework_id) for each in listed] == [
        ("a", ""),
        ("a/b", ""),
        ("a/b", framework.id),
    ]
    assert explain_shares.framework_sentences(world.cluster, record) == [
        "role 'a' holds a share of 0.250, place 1 of 1 roles in the order, priority 7",
        "role 'a/b' holds a share of 0.250, 0.125 by its weight of 2, "
        "place 1 of 1 roles in the order",
        "in role 'a/b' it holds a share of 0.250, place 2 of 3 frameworks in the order, "
        "lacks cpus:1.5 of what it needs",
    ]


def test_of_a_role_those_below_it_are_listed_in_their_order(world, allocator):
    world.framework("f", roles=["a/b"], capabilities=[MULTI_ROLE])
    allocator.told = (
        standing("a/c", position=0, contenders=1),
        standing("a/b", position=1),
        standing("a"),
        standing("a", "g", 2, 2),
        standing("a", "h", 1, 2),
        standing("b"),
    )
    listed = explain_shares.of_role(world.cluster, "a")
    assert [(each.role, each.framework_id) for each in listed] == [
        ("a", ""),
        ("a/b", ""),
        ("a/c", ""),
        ("a", "h"),
        ("a", "g"),
    ]


def test_whoever_wants_nothing_is_not_in_the_order(world, allocator):
    world.framework("f", role="a")
    allocator.told = (standing("a", position=0, contenders=2),)
    assert role_findings(world, "a")[0] == (
        "role 'a' holds a share of 0.250, not in the order, since it wants nothing"
    )


def test_what_is_said_of_a_role_is_told_with_what_it_lacks_and_what_binds(world):
    world.agent(resources="cpus:4;mem:400")
    framework = world.framework("f", role="a/b")
    framework.start("t", text="cpus:2;mem:100")
    now = world.clock.now()
    guarantee, limit = {"cpus": 3000}, {"cpus": 2000}
    ruled = RolePolicy(
        guarantee=guarantee, agents=frozenset({"nowhere"}), need_limit={"cpus": 1000}
    )
    world.core.set_policy("a/b", ruled, now)
    world.core.set_policy("a", RolePolicy(limit=limit), now)
    found = role_findings(world, "a/b")
    assert found[:5] == [
        "it is guaranteed cpus:3, and lacks cpus:1 of that",
        "the limit of role 'a' is reached: cpus:2",
        "a framework of it may state needs of cpus:1 at most",
        "agents kept for it: nowhere",
        "of these are not registered: nowhere",
    ]
    world.core.set_policy("a", RolePolicy(limit={"cpus": 5000}), now)
    assert "the limit of role 'a' is cpus:5" in role_findings(world, "a/b")


def test_each_framework_of_the_role_says_what_it_waits_for(world):
    busy = world.framework("busy", role="a")
    away = world.framework("away", role="a", failover_timeout=60)
    away.disconnect()
    found = role_findings(world, "a")
    assert (
        f"framework 'busy' ({busy.id}): no agent is registered with the master (no-agents)" in found
    )
    assert f"framework 'away' ({away.id}) is not connected" in found


def test_roles_below_are_named_and_an_empty_role_says_so(world):
    world.framework("f", roles=["a/b/c", "a/d"], capabilities=[MULTI_ROLE])
    found = role_findings(world, "a")
    assert found == ["roles below it: a/b/c, a/d", "no framework is in the role itself"]


def test_a_role_that_nobody_has_is_not_found(world):
    with pytest.raises(NotFound, match="'b'"):
        role_findings(world, "b")
