"""EXPLAIN as messages."""

import pytest

from master.api import explaining
from mesos_py.constraints import hosts_only
from mesos_py.v1 import operator_pb2 as op
from mesos_py.v1 import scheduler_pb2 as sched
from tests.kit.core import World


@pytest.fixture
def world():
    return World()


def told(framework) -> op.Response.Explain.Framework:
    world = framework.world
    record = world.cluster.frameworks[framework.id]
    return explaining.framework_answer(world.cluster, record, world.clock.now())


def test_where_a_framework_stands_is_told_with_its_role_before_it(world):
    world.agent(resources="cpus:4;mem:100")
    framework = world.framework("f", role="web")
    framework.start("t", text="cpus:1;mem:10")
    role, own = told(framework).standings
    assert (role.role, role.HasField("framework_id")) == ("web", False)
    assert own.framework_id.value == framework.id
    assert (own.position, own.contenders, own.share) == (1, 1, 0.25)
    assert [(each.name, each.scalar.value) for each in own.held] == [("cpus", 1), ("mem", 10)]


def test_how_often_and_when_it_was_passed_over_is_told_by_reason(world):
    framework = world.framework("f")
    only = sched.OfferConstraints(role_constraints={"*": hosts_only(["elsewhere"])})
    framework.subscribe(offer_constraints=only)
    agent = world.agent()
    world.settle()
    at = world.clock.now().wall_s
    world.advance(5.0)
    (refusal,) = told(framework).refusals
    assert (refusal.code, refusal.count, refusal.agent_id) == ("constraint", 1, agent.id)
    assert refusal.last_time == pytest.approx(at, abs=0.1)


def test_a_role_is_told_with_what_is_below_it(world):
    framework = world.framework("f", role="web")
    world.settle()
    answer = explaining.role_answer(world.cluster, "web", world.clock.now())
    assert [(each.role, each.framework_id.value) for each in answer.standings] == [
        ("web", ""),
        ("web", framework.id),
    ]
    assert answer.findings
