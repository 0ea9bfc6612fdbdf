"""Operators' words about roles: merged, checked, stored, in effect, and recovered."""

import pytest

from master.core.cluster import Options
from master.core.policies import Change, unknown_agents
from mesos_py.errors import Conflict, InsufficientResources, InvalidValue, TooLarge
from mesos_py.policy import RolePolicy, policy_to_proto
from mesos_py.v1 import registry_pb2 as reg
from mesos_py.v1 import types_pb2 as pb
from tests.kit.core import World
from tests.kit.scenes import agent_record, recovered

ANY_ROLE = [pb.FrameworkInfo.Capability(type=pb.FrameworkInfo.Capability.MULTI_ROLE)]


def amounts(**given):
    return {name: pb.Value.Scalar(value=value) for name, value in given.items()}


def message(guarantee=None, limit=None, need_limit=None, **fields):
    return pb.RolePolicy(
        guarantees=amounts(**(guarantee or {})),
        limits=amounts(**(limit or {})),
        need_limits=amounts(**(need_limit or {})),
        **fields,
    )


def change(role, *fields, **policy):
    return Change(role, message(**policy), fields)


class Scene:
    """A master with a registry, and what it was told to have stored."""

    def __init__(self, agents=1):
        self.world = World(Options(durable=True))
        self.agents = [self.world.agent(f"h{number}") for number in range(agents)]
        self.said, self.done = 0, []

    @property
    def c(self):
        return self.world.cluster

    def say(self, *changes, force=False, stored=True):
        number, self.said = self.said, self.said + 1

        def done():
            self.done.append(number)

        self.world.core.update_roles(changes, self.world.clock.now(), done, force=force)
        if stored:
            self.world.stored()

    def refused(self, *changes, error=InvalidValue, **how):
        """The text of the refusal, after which nothing has changed."""
        before = dict(self.c.policies), dict(self.c.decided_policies)
        with pytest.raises(error) as caught:
            self.say(*changes, **how)
        assert (self.c.policies, self.c.decided_policies) == before
        assert self.world.outbox.writes == []
        assert caught.value.fields["field"] in caught.value.message
        return caught.value.message

    def records(self):
        return {key: value for key, value in self.world.records.items() if "agent/" not in key}

    def framework(self, role, **fields):
        return self.world.framework(role, roles=[role], capabilities=ANY_ROLE, **fields)


@pytest.fixture
def scene():
    made = Scene()
    yield made
    made.world.check()


# ---- Merging ---------------------------------------------------------------------------


def test_fields_that_are_named_are_replaced_and_the_others_stay(scene):
    scene.say(change("web", weight=2.0, priority=3, limit={"cpus": 8}, agents=["h0"]))
    scene.say(change("web", "priority", "need_limits", priority=4, need_limit={"mem": 1}))
    expected = RolePolicy(
        weight=2.0,
        priority=4,
        limit={"cpus": 8000},
        need_limit={"mem": 1000},
        agents=frozenset({"h0"}),
    )
    assert scene.c.policies == scene.c.decided_policies == {"web": expected}


def test_without_fields_all_of_it_is_replaced(scene):
    scene.say(change("web", weight=2.0, priority=3))
    scene.say(change("web", limit={"cpus": 8}))
    assert scene.c.policies == {"web": RolePolicy(limit={"cpus": 8000})}
    assert list(scene.records()) == ["role/web"]


def test_a_policy_that_says_nothing_has_no_records(scene):
    scene.say(change("web", weight=2.0, guarantee={"cpus": 1}))
    assert sorted(scene.records()) == ["role/web", "weight/web"]
    scene.say(change("web"))
    assert scene.c.policies == scene.c.decided_policies == scene.records() == {}


def test_a_guarantee_of_nothing_says_nothing_and_a_limit_of_nothing_does(scene):
    scene.say(change("web", guarantee={"cpus": 0}, limit={"cpus": 0}))
    assert scene.c.policies == {"web": RolePolicy(limit={"cpus": 0})}


def test_several_roles_at_once_are_in_one_write(scene):
    scene.say(change("a", priority=1, weight=2.0), change("b", priority=2), stored=False)
    ((_, written),) = scene.world.outbox.writes
    assert sorted(written) == ["role/a", "role/b", "weight/a"]
    assert reg.Role.FromString(written["role/a"]).policy == pb.RolePolicy(priority=1)


def test_a_change_of_nothing_is_done_at_once(scene):
    scene.say(stored=False)
    assert scene.done == [0]


def test_the_flags_of_this_master_hold_where_operators_say_nothing(scene):
    now = scene.world.clock.now()
    scene.world.core.set_weight("web", 3.0, now)
    scene.say(change("web", "priority", priority=1))
    assert scene.c.policy("web") == RolePolicy(weight=3.0, priority=1)
    assert list(scene.records()) == ["role/web"]
    # The default, where the flags say another, is something that was said.
    scene.say(change("web", weight=1.0))
    assert scene.c.policies == {}
    assert list(scene.records()) == ["weight/web"]
    scene.say(change("web"))
    assert scene.c.policies == {"web": RolePolicy(weight=3.0)}
    assert scene.records() == {}


# ---- What cannot be said ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (change("a b"), "role: 'a b': must not contain white space or control characters"),
        (change(""), "role: '': must not be empty"),
        (change("web", "quota"), "changes[web].fields: 'quota': is none of weight, priority, "),
        (change("web", weight=0.0), "changes[web].policy.weight: 0.0: must be a finite number"),
        (change("we.b", weight=-1.0), "changes[we.b].policy.weight: -1.0: must be a finite"),
        (
            change("web", limit={"cpus": -1}),
            "changes[web].policy.limits.cpus: -1.0: must be above zero",
        ),
        (
            change("web", limit={"cpus": 0.0004}),
            "changes[web].policy.limits.cpus: 0.0004: is below 0.001, the smallest amount",
        ),
        (
            change("web", guarantee={"gpus": 0.5}),
            "changes[web].policy.guarantees.gpus: 0.5: must be a whole number",
        ),
        (
            change("web", need_limit={"cpus": float("nan")}),
            "changes[web].policy.need_limits.cpus: nan: must be a finite number",
        ),
        (
            change("web", limit={"c:d": 1}),
            "changes[web].policy.limits.name: 'c:d': is no resource name",
        ),
        (
            change("web", guarantee={"cpus": 2}, limit={"cpus": 1}),
            "changes[web].policy.guarantees.cpus: 2.0: is above the limit, 1",
        ),
        (
            change("web", agents=["h 1"]),
            "changes[web].policy.agents: 'h 1': must be a host name or an agent id",
        ),
        (
            change("web", agents=["x" * 256]),
            "must be a host name or an agent id",
        ),
    ],
)
def test_one_change_that_cannot_be_and_none_is_made(scene, wrong, text):
    assert text in scene.refused(change("good", priority=1), wrong)
    assert scene.done == []


def test_a_role_twice(scene):
    text = scene.refused(change("web", priority=1), change("web", priority=2))
    assert text == "role: 'web': is in the call twice"


def test_more_than_the_registry_can_hold(scene):
    hosts = [f"{number:0250}" for number in range(2200)]
    scene.refused(change("web", agents=hosts), error=TooLarge)


# ---- What cannot hold together ---------------------------------------------------------


def test_more_than_the_cluster_has_unless_it_is_forced(scene):
    wanted = change("web", guarantee={"cpus": 5})
    assert scene.refused(wanted, error=InsufficientResources) == (
        "changes[web].policy.guarantees.cpus: 5: all guarantees come to 5 cpus, the cluster "
        "has 4 (can be forced)"
    )
    scene.say(wanted, force=True)
    assert scene.c.policies == {"web": RolePolicy(guarantee={"cpus": 5000})}


def test_what_became_impossible_by_itself_stands_in_nobodys_way(scene):
    scene.say(change("web", guarantee={"cpus": 4}))
    scene.agents[0].disconnect()
    scene.world.advance(80)
    scene.world.stored()
    assert scene.c.ledger.cluster_total() == {}
    scene.say(change("db", weight=2.0))
    scene.say(change("web", guarantee={"cpus": 3}))
    assert "come to 3.5 cpus" in scene.refused(
        change("db", guarantee={"cpus": 0.5}), error=InsufficientResources
    )


def test_a_child_may_have_no_more_than_its_parent_whichever_comes_last(scene):
    scene.say(change("a", limit={"cpus": 3}))
    assert scene.refused(change("a/b", limit={"cpus": 4}), error=Conflict) == (
        "changes[a/b].policy.limits.cpus: 4: is above the limit of a, 3"
    )
    scene.say(change("a/b", limit={"cpus": 2}))
    assert scene.refused(change("a", limit={"cpus": 1}), error=Conflict) == (
        "changes[a].policy.limits.cpus: 1: is below the limit of a/b, 2"
    )
    scene.say(change("a", limit={"cpus": 1}), change("a/b", limit={"cpus": 1}))


def test_force_takes_nothing_but_what_agents_may_bring(scene):
    scene.say(change("a", limit={"cpus": 3}))
    scene.refused(change("a/b", guarantee={"cpus": 4}), error=Conflict, force=True)


def test_a_guarantee_below_that_of_a_child(scene):
    scene.say(change("a/b", guarantee={"cpus": 2}))
    assert scene.refused(change("a", guarantee={"cpus": 1}), error=Conflict) == (
        "changes[a].policy.guarantees.cpus: 1: the guarantees below it come to 2 cpus"
    )


def test_an_agent_of_two_roles_by_its_host_and_by_its_id(scene):
    scene.say(change("a", agents=["h0"]))
    agent_id = scene.agents[0].id
    assert scene.refused(change("b", agents=[agent_id]), error=Conflict) == (
        f"changes[b].policy.agents: '{agent_id}': is reserved for a"
    )


def test_after_a_change_of_leader_the_agents_that_are_expected_count(scene):
    successor = scene.world.successor()
    assert successor.cluster.ledger.cluster_total() == {}
    successor.core.update_roles(
        [change("web", guarantee={"cpus": 4})], successor.clock.now(), lambda: None
    )
    with pytest.raises(InsufficientResources):
        successor.core.update_roles(
            [change("web", guarantee={"cpus": 5})], successor.clock.now(), lambda: None
        )


def test_a_host_that_nobody_knows_is_taken_and_said(scene):
    policy = RolePolicy(agents=frozenset({"h0", "h9", scene.agents[0].id}))
    scene.say(Change("web", policy_to_proto(policy)))
    assert scene.c.policies == {"web": policy}
    assert unknown_agents(scene.c, policy) == ["h9"]


# ---- Stored, and then in effect --------------------------------------------------------


def test_nothing_follows_before_it_is_stored_and_the_next_change_builds_on_it(scene):
    scene.say(change("web", "priority", priority=1), stored=False)
    scene.say(change("web", "limits", limit={"cpus": 1}), stored=False)
    assert (scene.c.policies, scene.done) == ({}, [])
    scene.world.stored(1)
    assert scene.c.policies == {"web": RolePolicy(priority=1)}
    assert scene.done == [0]
    scene.world.stored()
    assert scene.c.policies == {"web": RolePolicy(priority=1, limit={"cpus": 1000})}
    assert scene.done == [0, 1]


def test_two_changes_on_their_way_cannot_hold_together(scene):
    scene.say(change("a", guarantee={"cpus": 3}), stored=False)
    scene.world.outbox.writes.clear()
    scene.refused(change("b", guarantee={"cpus": 2}), error=InsufficientResources, stored=False)


@pytest.mark.parametrize("arrived", [0, 1])
def test_a_master_that_dies_in_the_middle_leaves_all_of_it_or_nothing(scene, arrived):
    scene.say(change("a", weight=2.0), change("b", priority=1))
    scene.say(change("a"), change("b", priority=2, weight=3.0), stored=False)
    successor = scene.world.successor(unconfirmed=arrived)
    expected = (
        {"b": RolePolicy(priority=2, weight=3.0)}
        if arrived
        else {"a": RolePolicy(weight=2.0), "b": RolePolicy(priority=1)}
    )
    assert successor.cluster.policies == successor.cluster.decided_policies == expected


def test_all_that_can_be_said_is_recovered(scene):
    policy = RolePolicy(
        weight=0.5,
        priority=-7,
        guarantee={"cpus": 1500},
        limit={"cpus": 1500, "mem": 0},
        need_limit={"cpus": 1},
        agents=frozenset({"h0", "h1"}),
    )
    scene.say(Change("a/b", policy_to_proto(policy)))
    assert scene.world.successor().cluster.policies == {"a/b": policy}


def test_stored_comes_before_what_the_flags_say():
    world = World(Options(durable=True))
    for role in ("web", "db"):
        world.core.set_weight(role, 3.0, world.clock.now())
    stored = pb.RolePolicy(priority=2)
    records = {
        "weight/web": reg.Weight(weight=5.0).SerializeToString(),
        "role/db": reg.Role(policy=stored).SerializeToString(),
    }
    world.core.recover(records, world.clock.now())
    assert world.cluster.policies == {
        "web": RolePolicy(weight=5.0),
        "db": RolePolicy(weight=3.0, priority=2),
    }


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("role/a", b"\xff", "cannot be decoded"),
        ("role/a b", reg.Role(), "white space"),
        ("role/a", reg.Role(policy=message(limit={"cpus": -1})), "policy.limits.cpus"),
        ("role/a", reg.Role(policy=message({"cpus": 2}, {"cpus": 1})), "is above the limit"),
        ("weight/a", reg.Weight(weight=float("inf")), "must be a finite number above zero"),
    ],
)
def test_a_damaged_record_costs_that_record_only(key, value, why):
    good = reg.Role(policy=pb.RolePolicy(priority=1))
    world = recovered({key: value, "role/good": good, "agent/a1": agent_record("a1")})
    assert world.cluster.policies == {"good": RolePolicy(priority=1)}
    ((reason, ids),) = world.outbox.drops
    assert (reason, ids["record"]) == ("registry-record-damaged", key)
    assert why in ids["why"]


# ---- Offers that are out ---------------------------------------------------------------


def rescinded(framework):
    return framework.kinds().count("RESCIND")


def test_a_lower_limit_rescinds_the_newest_offers_until_it_is_kept():
    scene = Scene(agents=3)
    a = scene.framework("a")
    offers = a.offers()
    assert len(offers) == 3
    b = scene.framework("b")
    scene.say(change("a", limit={"cpus": 9}))
    assert scene.c.frameworks[a.id].offers == {offer.id.value for offer in offers[:2]}
    assert rescinded(a) == 1
    assert rescinded(b) == 0
    # What it is told again, and what is no lower, takes nothing.
    scene.say(change("a", limit={"cpus": 9}), change("b", limit={"cpus": 1}))
    scene.say(change("a", limit={"cpus": 8, "mem": 10**6}))
    assert rescinded(a) == 0


def test_a_lower_limit_touches_nothing_that_runs(scene):
    framework = scene.framework("a/b")
    framework.start("t1", text="cpus:2;mem:32")
    assert len(framework.offers()) == 1
    scene.say(change("a", limit={"cpus": 1}))
    assert framework.kinds() == ["RESCIND"]
    assert list(scene.c.frameworks[framework.id].tasks) == ["t1"]


def test_a_limit_of_what_no_offer_holds_rescinds_nothing(scene):
    framework = scene.framework("a")
    framework.offers()
    scene.say(change("a", limit={"gpus": 0}))
    assert framework.kinds() == []


def test_a_reservation_rescinds_what_others_are_offered_there():
    scene = Scene(agents=2)
    others, below = scene.framework("b"), scene.framework("a/x")
    held = {o.agent_id.value: f for f in (others, below) for o in f.offers()}
    (mine,) = [agent for agent in scene.agents if held[agent.id] is others]
    scene.say(change("a", agents=[mine.id]))
    assert rescinded(others) == 1
    assert rescinded(below) == 0
    (kept,) = [agent for agent in scene.agents if held[agent.id] is below]
    scene.say(change("a", agents=[mine.id, kept.info.hostname]))
    assert rescinded(below) == 0


def test_a_weight_rescinds_only_where_it_turns_the_order_round():
    scene = Scene(agents=3)
    a, b = scene.framework("a"), scene.framework("b")
    beside = scene.framework("c/d")
    beside.call(type=6)  # nothing that matters here
    sizes = sorted(((len(f.offers()), f.info.name, f) for f in (a, b, beside)), reverse=True)
    assert [size for size, _, _ in sizes] == [1, 1, 1]
    scene.say(change("a", weight=2.0))
    # Equal before; "a" stands before the others now, whose offers it would have got.
    assert (rescinded(a), rescinded(b)) == (0, 1)
    scene.say(change("a", weight=1.9))
    assert (rescinded(a), rescinded(b)) == (0, 0)


def test_a_weight_rescinds_the_newest_until_the_order_is_right():
    scene = Scene(agents=4)
    a = scene.framework("a")
    offers = a.offers()
    scene.say(change("a", weight=4.0))
    b = scene.framework("b")
    scene.world.agent("h9")
    b.start("t1", text="cpus:4;mem:4096")
    a.take()
    # By 4 to 1 "a" stood before "b", which has one agent; by 1 to 1 it stands behind it.
    scene.say(change("a", weight=1.0))
    assert scene.c.frameworks[a.id].offers == {offers[0].id.value}
    assert rescinded(a) == 3


def test_a_weight_of_a_role_of_another_priority_rescinds_nothing():
    scene = Scene(agents=2)
    a, b = scene.framework("a"), scene.framework("b")
    assert (len(a.offers()), len(b.offers())) == (1, 1)
    scene.say(change("a", "priority", priority=-1))
    scene.say(change("a", "weight", weight=2.0))
    assert (rescinded(a), rescinded(b)) == (0, 0)


def test_a_weight_for_a_role_that_wants_nothing_rescinds_nothing(scene):
    framework = scene.framework("a")
    framework.offers()
    scene.say(change("b", weight=100.0))
    assert framework.kinds() == []
