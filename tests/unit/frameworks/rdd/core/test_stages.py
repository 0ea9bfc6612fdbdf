"""From nodes to stages."""

from __future__ import annotations

import pickle

from frameworks.rdd.core.kept import Kept
from frameworks.rdd.core.stages import NO_PAYLOADS, Plan, unmade
from frameworks.rdd.messages import LeftOut
from frameworks.rdd.nodes import Node, Slices
from tests.kit.rdd_world import World


class Files(Node):
    __slots__ = ()

    def hosts(self, split: int) -> list[str]:
        return [f"host {split}"]


def shuffles(plan: Plan, kept: Kept | None = None) -> list[int]:
    return [each.shuffle_id for each in plan.needed(kept)]


def test_a_stage_has_the_nodes_up_to_the_last_shuffles_parents_first():
    world = World()
    behind = world.shuffled(world.mapped(world.source(2)), 3)
    last = world.mapped(world.union(behind, behind))
    plan = Plan(last)
    assert [node.id for node in plan.nodes] == [2, 3, 4]
    assert list(plan.shuffles) == shuffles(plan) == [1]


def test_a_lineage_of_ten_thousand_is_walked_without_recursion():
    world = World()
    node = world.source(2)
    for number in range(10_000):
        node = world.mapped(node) if number % 2 else world.shuffled(node, 2)
    made = list(unmade(Plan(node), Kept(), lambda _: False))
    assert len(made) == 5000
    narrow = world.source(2)
    for _ in range(10_000):
        narrow = world.mapped(narrow)
    plan = Plan(narrow)
    assert len(plan.nodes) == 10_001
    assert list(plan.inputs(1).payloads) == [20_001 - 10_000]


def test_shuffles_that_are_made_or_hidden_are_not_made_again():
    world = World()
    first = world.shuffled(world.source(2), 2)
    second = world.shuffled(first, 2)
    assert [s.shuffle_id for s, _ in unmade(Plan(second), Kept(), lambda _: False)] == [2, 1]
    assert [s.shuffle_id for s, _ in unmade(Plan(second), Kept(), {1}.__contains__)] == [2]
    assert not list(unmade(Plan(second), Kept(), {2}.__contains__))


def test_what_is_kept_whole_hides_what_it_is_made_of():
    world = World()
    kept_node = world.mapped(world.shuffled(world.source(2), 2))
    world.persist(kept_node)
    plan = Plan(world.mapped(kept_node))
    kept = Kept()
    kept.persist(plan.persisted_now())
    kept.update("e", {("rdd", kept_node.id, 0): (1, True)})
    assert shuffles(plan, kept) == [1]
    kept.update("e", {("rdd", kept_node.id, 1): (1, True)})
    assert shuffles(plan, kept) == []
    assert shuffles(plan, None) == [1]


def test_a_checkpoint_is_a_source():
    world = World()
    saved = world.shuffled(world.source(2), 2)
    saved.checkpoint = "dir"
    plan = Plan(world.mapped(saved))
    assert [node.id for node in plan.nodes] == [saved.id, saved.id + 1]
    assert shuffles(plan) == []
    assert plan.inputs(0).reads == []


def test_inputs_follow_the_partitions_that_a_task_computes():
    world = World()
    one, two = world.source(2), world.source(3)
    plan = Plan(world.mapped(world.union(one, two)))
    assert plan.inputs(1).payloads == {one.id: {1: one.payload(1)}}
    assert plan.inputs(4).payloads == {two.id: {2: two.payload(2)}}
    merged = Plan(world.coalesced(two)).inputs(0)
    assert sorted(merged.payloads[two.id]) == [0, 1, 2]
    assert pickle.loads(merged.packed()) == merged.payloads
    assert Plan(world.shuffled(one, 2)).inputs(0).packed() == NO_PAYLOADS


def test_a_large_payload_is_hidden_by_what_is_kept_of_it_unless_needed_otherwise():
    world = World()
    source = world.source(1)
    large = pickle.dumps([bytes(5000)])
    assert isinstance(source, Slices)
    source.slices = (large,)
    kept = world.mapped(source)
    world.persist(kept)
    hidden = Plan(world.mapped(kept)).inputs(0)
    assert pickle.loads(hidden.packed()) == {source.id: {0: large}}
    assert pickle.loads(hidden.packed(whole=False)) == {source.id: {0: LeftOut(len(large))}}
    for both in (world.union(kept, source), world.union(source, kept)):
        inputs = Plan(world.coalesced(both)).inputs(0)
        assert pickle.loads(inputs.packed(whole=False)) == {source.id: {0: large}}
        assert inputs.kept == [(kept.id, 0)]
    source.slices = (b"small",)
    small = Plan(world.mapped(kept)).inputs(0)
    assert pickle.loads(small.packed(whole=False)) == {source.id: {0: b"small"}}


def test_a_source_that_is_used_twice_is_one_input():
    world = World()
    source = world.source(2)
    twice = world.union(source, source)
    plan = Plan(world.coalesced(twice))
    assert sorted(plan.inputs(0).payloads[source.id]) == [0, 1]


def test_hosts_behind_something_kept_do_not_count():
    world = World()
    files = world._node(Files(len(world.nodes), 2))
    plain = Plan(world.mapped(files))
    assert plain.inputs(1).hosts == ["host 1"]
    kept_node = world.mapped(files)
    world.persist(kept_node)
    inputs = Plan(world.mapped(kept_node)).inputs(1)
    assert inputs.kept == [(kept_node.id, 1)]
    assert inputs.hosts == []
