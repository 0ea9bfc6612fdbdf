"""What frameworks say that they wait for and need, and what becomes of it."""

import pytest

from master.allocator.base import FrameworkChanged, RolePolicy
from master.core import explain, needs
from mesos_py.allocation import Need
from mesos_py.resources import Resources
from mesos_py.v1 import scheduler_pb2 as sched
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import World
from tests.kit.scripted import ScriptedWorld

Call = sched.Call
MULTI_ROLE = pb.FrameworkInfo.Capability(type=pb.FrameworkInfo.Capability.MULTI_ROLE)


@pytest.fixture
def world():
    made = ScriptedWorld()
    yield made
    made.check()


def record(framework):
    return framework.world.cluster.frameworks[framework.id]


def need(text="cpus:1", **fields):
    return pb.Request(resources=Resources.parse(text).to_proto(), **fields)


def state(framework, *requests):
    framework.call(type=Call.REQUEST, request=Call.Request(requests=requests))


def answers(framework):
    framework.world.settle()
    return [event.needs for event in framework.take() if event.type == sched.Event.NEEDS]


def rows(world):
    """The needs of each row that the allocator was told since the last time."""
    told = [e.framework.needs for e in world.script.heard if isinstance(e, FrameworkChanged)]
    world.script.heard.clear()
    return told


# ---- What is stated -------------------------------------------------------------------


def test_stated_needs_replace_the_older_ones(world):
    framework = world.framework(failover_timeout=60.0)
    state(framework, need("cpus:1"), need("cpus:2"))
    assert len(record(framework).requests) == 2
    state(framework)
    assert record(framework).requests == []
    assert record(framework).needs.rows == ()


def test_the_allocator_is_told_of_needs_and_the_framework_that_they_count(world):
    framework = world.framework(roles=["a", "b"], capabilities=[MULTI_ROLE])
    rows(world)
    state(
        framework,
        need("cpus:2;mem:64", count=3, name="rank", mandatory=True, role="b"),
        need("cpus:1", agent_id=pb.AgentID(value="x")),
    )
    expected = (
        Need("b", Resources.parse("cpus:2;mem:64"), 3, mandatory=True, name="rank"),
        Need("a", Resources.parse("cpus:1"), 1, agent_id="x"),
    )
    assert rows(world) == [expected]
    (answer,) = answers(framework)
    assert (answer.admitted, answer.message) == (True, "")
    assert [(item.role, item.count) for item in answer.accepted] == [("b", 3), ("a", 1)]


def test_what_only_waits_explains_and_is_not_answered(world):
    framework = world.framework()
    rows(world)
    state(framework, need("cpus:100", waiting=True, name="big"))
    assert rows(world) == []
    assert answers(framework) == []
    found = explain.findings(world.cluster, record(framework), world.clock.now())
    assert any("'big' needs" in line for line in found)


def test_needs_that_come_twice_are_answered_twice_and_told_once(world):
    framework = world.framework()
    rows(world)
    for _ in range(2):
        state(framework, need())
        assert len(answers(framework)) == 1
    assert len(rows(world)) == 1


def test_needs_that_are_taken_back_are_answered_once_more(world):
    framework = world.framework()
    state(framework, need())
    answers(framework)
    state(framework, need(waiting=True))
    (answer,) = answers(framework)
    assert not answer.accepted
    state(framework)
    assert answers(framework) == []


@pytest.mark.parametrize(
    ("bad", "field"),
    [
        (
            pb.Request(resources=[pb.Resource(name="cpus", scalar=pb.Value.Scalar(value=-1))]),
            "cpus",
        ),
        (pb.Request(), "requests.resources"),
        (need(count=0), "requests.count"),
        (need(role="foreign"), "requests.role"),
        (need(role=""), "requests.role"),
        (need(agent_id=pb.AgentID(value="a/b")), "requests.agent_id"),
    ],
)
def test_needs_that_cannot_be_are_refused_and_the_older_ones_stay(world, bad, field):
    framework = world.framework()
    state(framework, need())
    answers(framework)
    state(framework, need("cpus:7"), bad)
    (refusal,) = framework.refusals()
    assert field in refusal.field
    assert [row.resources for row in record(framework).needs.rows] == [Resources.parse("cpus:1")]
    assert len(record(framework).requests) == 1


def test_too_many_are_refused(world):
    framework = world.framework()
    state(framework, *[pb.Request()] * (needs.MAX_NEEDS + 1))
    (refusal,) = framework.refusals()
    assert "at most 1000" in refusal.message


@pytest.mark.parametrize("waiting", [False, True])
def test_more_bytes_than_an_answer_should_have_are_refused(world, waiting):
    framework = world.framework()
    state(framework, need(name="x" * needs.MAX_BYTES, waiting=waiting))
    (refusal,) = framework.refusals()
    assert (refusal.field, "bytes" in refusal.message) == ("requests", True)
    assert record(framework).requests == []


def test_a_framework_without_roles_can_need_nothing(world):
    framework = world.framework(capabilities=[MULTI_ROLE])
    state(framework, need())
    (refusal,) = framework.refusals()
    assert refusal.field == "requests.role"


# ---- What operators allow ---------------------------------------------------------------


def limit(world, role, **amounts):
    world.core.set_policy(
        role, RolePolicy(need_limit={k: v * 1000 for k, v in amounts.items()}), world.clock.now()
    )


def test_needs_are_cut_in_their_order_first_in_number_then_as_a_whole(world):
    limit(world, "a", cpus=10)
    framework = world.framework(role="a")
    state(
        framework,
        need("cpus:2;mem:5", count=3, name="one"),
        need("cpus:2", count=5, name="two"),
        need("cpus:1", name="three"),
        need("mem:1000", name="four"),
    )
    (answer,) = answers(framework)
    assert [(item.name, item.count) for item in answer.accepted] == [
        ("one", 3),
        ("two", 2),
        ("four", 1),
    ]
    assert answer.message == (
        "need 'two': cut from 5 to 2, role 'a' allows needs of 10 cpus at most; "
        "need 'three': left out, role 'a' allows needs of 10 cpus at most"
    )
    found = explain.findings(world.cluster, record(framework), world.clock.now())
    assert any("cut by an operator's limit: need 'three'" in line for line in found)


def test_the_nearest_role_with_a_limit_counts_and_all_roles_below_it_together(world):
    limit(world, "a", cpus=3)
    limit(world, "a/x", cpus=1)
    framework = world.framework(roles=["a/b", "a/c", "a/x"], capabilities=[MULTI_ROLE])
    state(framework, *(need("cpus:1", count=2, role=role) for role in ("a/b", "a/c", "a/x")))
    (answer,) = answers(framework)
    assert [(i.role, i.count) for i in answer.accepted] == [("a/b", 2), ("a/c", 1), ("a/x", 1)]


def test_each_framework_has_the_limit_for_itself(world):
    limit(world, "a", cpus=1)
    for name in ("f", "g"):
        framework = world.framework(name, role="a")
        state(framework, need())
        assert answers(framework)[0].message == ""


def test_a_changed_limit_is_told_to_those_whom_it_concerns(world):
    framework, other = world.framework(role="a"), world.framework("other", role="b")
    for each in (framework, other):
        state(each, need("cpus:1", count=4))
        answers(each)
    rows(world)
    limit(world, "a", cpus=2)
    assert [[row.count for row in told] for told in rows(world)] == [[2]]
    assert answers(framework)[0].accepted[0].count == 2
    limit(world, "a", cpus=9)
    assert answers(framework)[0].accepted[0].count == 4
    assert answers(other) == []


def test_needs_of_a_role_that_the_framework_leaves_are_left_out(world):
    framework = world.framework(roles=["a", "b"], capabilities=[MULTI_ROLE], failover_timeout=100.0)
    state(framework, need(role="a"), need(role="b"))
    answers(framework)
    info = pb.FrameworkInfo()
    info.CopyFrom(framework.info)
    del info.roles[1]
    update = Call.UpdateFramework(framework_info=info)
    framework.call(type=Call.UPDATE_FRAMEWORK, update_framework=update)
    (answer,) = answers(framework)
    assert [item.role for item in answer.accepted] == ["a"]
    assert "has not the role 'b' any more" in answer.message


def test_needs_of_a_role_that_the_framework_joins_again_count_again(world):
    framework = world.framework(roles=["a", "b"], capabilities=[MULTI_ROLE], failover_timeout=100.0)
    state(framework, need(role="b", name="x"))
    answers(framework)
    for roles, accepted in ((["a"], []), (["a", "b"], ["b"])):
        info = pb.FrameworkInfo()
        info.CopyFrom(framework.info)
        info.roles[:] = roles
        update = Call.UpdateFramework(framework_info=info)
        framework.call(type=Call.UPDATE_FRAMEWORK, update_framework=update)
        assert [item.role for item in answers(framework)[0].accepted] == accepted
        assert [row.role for row in rows(world)[-1]] == accepted


# ---- Admission ----------------------------------------------------------------------------


def test_a_framework_hears_when_it_is_admitted_and_when_it_is_not(world):
    agent, framework = world.agent(), world.framework()
    world.script.turned_away = {framework.id: "4 cpus are not to be had"}
    state(framework, need("cpus:4", mandatory=True))
    (answer,) = answers(framework)
    assert (answer.admitted, answer.message) == (False, "not admitted: 4 cpus are not to be had")
    world.cluster.freed(agent.id, world.clock.now())
    assert answers(framework) == []
    world.script.turned_away = {}
    world.cluster.freed(agent.id, world.clock.now())
    (answer,) = answers(framework)
    assert answer.admitted


# ---- Streams ------------------------------------------------------------------------------


def instance(framework, name, attempt):
    return framework.subscribe(instance=name, attempt=attempt)


def test_a_framework_that_is_away_keeps_its_needs_and_its_own_next_stream_has_them(world):
    framework = world.framework(failover_timeout=60.0)
    instance(framework, "one", 1)
    state(framework, need())
    framework.disconnect()
    told = [e.framework for e in world.script.heard if isinstance(e, FrameworkChanged)][-1]
    assert (told.active, len(told.needs)) == (False, 1)
    instance(framework, "one", 2)
    assert len(record(framework).needs.rows) == 1


@pytest.mark.parametrize("away", [True, False])
def test_another_instance_begins_without_needs(world, away):
    framework = world.framework(failover_timeout=60.0)
    instance(framework, "one", 1)
    state(framework, need())
    if away:
        framework.disconnect()
    instance(framework, "two", 1)
    assert record(framework).needs.rows == ()
    assert record(framework).requests == []
    told = [e.framework for e in world.script.heard if isinstance(e, FrameworkChanged)][-1]
    assert (told.active, told.needs) == (True, ())


@pytest.mark.parametrize("end", ["disconnect", "subscribe"])
def test_what_waited_is_not_said_of_the_next_instance(end):
    world = World()
    framework = world.framework(failover_timeout=60.0)
    state(framework, need(waiting=True))
    getattr(framework, end)()
    assert record(framework).requests == []


def test_a_framework_that_ends_before_its_answer_leaves_nothing_behind(world):
    framework = world.framework()
    state(framework, need())
    framework.call(type=Call.TEARDOWN)
    world.settle()
    assert not world.cluster.needs.unanswered
