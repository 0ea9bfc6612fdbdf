"""UPDATE_ROLES and GET_ROLES: what goes in comes out, and what is refused says why."""

import grpc
import pytest

from mesos_py.policy import RolePolicy
from mesos_py.resources import Resources
from mesos_py.v1 import operator_pb2 as op
from mesos_py.v1 import types_pb2 as pb
from tests.unit.master.api.test_operator import Scene

Call = op.Call
ANY_ROLE = [pb.FrameworkInfo.Capability(type=pb.FrameworkInfo.Capability.MULTI_ROLE)]


@pytest.fixture
async def scene():
    made = Scene()
    yield made
    await made.channels.close()
    made.shell.stop()
    made.world.check()


def changes(*items, force=False):
    """Of (role, fields, cpus that are its limit and guarantee, other fields of its policy)."""
    made = Call.UpdateRoles(force=force)
    for role, fields, policy in items:
        made.changes.add(role=role, fields=fields, policy=policy)
    return {"update_roles": made}


def policy(guarantee=None, limit=None, **fields):
    made = pb.RolePolicy(**fields)
    if guarantee is not None:
        made.guarantees["cpus"].value = guarantee
    if limit is not None:
        made.limits["cpus"].value = limit
    return made


async def shown(scene):
    return {role.name: role for role in (await scene.ask(Call.GET_ROLES)).get_roles.roles}


async def test_a_role_that_has_nothing_but_what_agents_reserve_for_it_is_shown(scene):
    made = scene.world.agent(resources="cpus:1;mem:100;ports(eng/web):[1-9]")
    roles = await shown(scene)
    assert list(roles) == ["eng", "eng/web"]
    assert not any(role.HasField("policy") or role.resources for role in roles.values())
    made.disconnect()
    scene.world.advance(scene.world.cluster.options.agent_timeout_s + 1)
    assert await shown(scene) == {}


async def test_what_is_said_of_roles_is_shown_with_what_they_hold(scene):
    scene.world.agent()
    framework = scene.world.framework(roles=["eng/web"], capabilities=ANY_ROLE)
    framework.start("t1")
    said = policy(guarantee=1.5, limit=3, weight=2.0, priority=-1, agents=["h2", "h1"])
    answer = await scene.ask(
        Call.UPDATE_ROLES, **changes(("eng", [], said), ("ops", [], policy(limit=0)))
    )
    assert answer.type == op.Response.DONE
    roles = await shown(scene)
    assert list(roles) == ["eng", "eng/web", "ops"]
    eng, web, ops = roles.values()
    said.agents[:] = ["h1", "h2"]
    assert eng.policy == said
    assert (eng.weight, list(eng.frameworks)) == (2.0, [])
    assert ops.policy.limits["cpus"].value == 0
    assert not web.HasField("policy")
    for role in (eng, web):
        assert Resources.from_proto("", role.resources) == Resources.parse("cpus:1;mem:32")
    assert [each.value for each in web.frameworks] == [framework.id]
    assert web.HasField("share")


async def test_a_role_above_others_is_shown_though_nothing_is_said_of_it(scene):
    scene.world.framework(roles=["a/b/c"], capabilities=ANY_ROLE)
    roles = await shown(scene)
    assert list(roles) == ["a", "a/b", "a/b/c"]
    assert (roles["a"].weight, roles["a"].HasField("policy")) == (1.0, False)


@pytest.mark.parametrize(
    ("code", "items", "details"),
    [
        (
            grpc.StatusCode.INVALID_ARGUMENT,
            [("web", [], policy(limit=-1))],
            "changes[web].policy.limits.cpus: -1.0: must be above zero",
        ),
        (
            grpc.StatusCode.INVALID_ARGUMENT,
            [("web", ["colour"], policy())],
            "changes[web].fields: 'colour': is none of weight, priority, guarantees, limits, "
            "need_limits, agents",
        ),
        (
            grpc.StatusCode.ABORTED,
            [("a", [], policy(limit=1)), ("a/b", [], policy(limit=2))],
            "changes[a/b].policy.limits.cpus: 2: is above the limit of a, 1",
        ),
        (
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            [("web", [], policy(guarantee=4.5))],
            "changes[web].policy.guarantees.cpus: 4.5: all guarantees come to 4.5 cpus, "
            "the cluster has 4 (can be forced)",
        ),
    ],
)
async def test_what_is_refused_says_which_field_and_why(scene, code, items, details):
    scene.world.agent()
    refused = await scene.refused(
        Call.UPDATE_ROLES, **changes(("good", [], policy(limit=1)), *items)
    )
    assert refused == (code, details)
    assert scene.world.cluster.policies == {}


async def test_by_force_more_is_guaranteed_than_there_is(scene):
    wanted = changes(("web", ["guarantees"], policy(guarantee=4.5)), force=True)
    await scene.ask(Call.UPDATE_ROLES, **wanted)
    assert scene.world.cluster.policies == {"web": RolePolicy(guarantee={"cpus": 4500})}


async def test_a_weight_by_its_own_call_is_part_of_the_policy(scene):
    await scene.ask(Call.UPDATE_ROLES, **changes(("web", [], policy(priority=7))))
    weights = Call.UpdateWeights(weight_infos=[pb.WeightInfo(role="web", weight=3)])
    await scene.ask(Call.UPDATE_WEIGHTS, update_weights=weights)
    assert scene.world.cluster.policies == {"web": RolePolicy(weight=3.0, priority=7)}
