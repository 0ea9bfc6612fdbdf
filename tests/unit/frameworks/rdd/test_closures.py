"""Stages as bytes, and what is said when something cannot be sent."""

from __future__ import annotations

import functools
import logging
import pickle
import sys
import threading
from typing import Any

import pytest

from frameworks.rdd import closures
from frameworks.rdd.core.stages import Plan
from frameworks.rdd.errors import NotPicklable
from frameworks.rdd.executor import frames
from frameworks.rdd.nodes import Mapped, Node, Slices
from frameworks.rdd.runner import Runner
from tests.kit.rdd.plain import PlainRunner
from tests.kit.rdd_world import World

LOCK = threading.Lock()


class Holder:
    def __init__(self, held: object) -> None:
        self.held = held

    def method(self, _: int, elements: object) -> object:
        return elements


def mapped(function: Any, place: str = "") -> Node:
    parent = Slices(0, 1, slices=[pickle.dumps([1])])
    return Mapped(1, 1, (parent,), name="map", place=place, function=function)


def refused(function: Any) -> NotPicklable:
    with pytest.raises(NotPicklable) as caught:
        closures.pack(Plan(mapped(function, "script.py:3")), function=list, what="collect")
    return caught.value


def test_a_stage_comes_out_as_it_went_in():
    world = World()
    source = world.source(2)
    both = world.union(world.mapped(source), world.mapped(source))
    last = world.mapped(both)
    work = pickle.loads(closures.pack(Plan(last), function=lambda split, it: (split, sum(it))))
    assert work.function(3, [1, 2]) == (3, 3)
    assert work.shuffle is None
    (union,) = work.node.parents
    one, two = union.parents
    assert one.parents[0] is two.parents[0]
    assert one.parents[0].slices == ()
    assert source.payload(1)


def test_a_chain_of_thousands_can_be_sent_and_computed(monkeypatch):
    limits: list[int] = []
    # pytest does not bear another one meanwhile.
    monkeypatch.setattr(sys, "setrecursionlimit", limits.append)
    world = World()
    node = world.source(1)
    for _ in range(3000):
        node = world.mapped(node)
    work = pickle.loads(closures.pack(Plan(node), function=list))
    assert limits[0] > 10 * 3000
    count = 0
    each = work.node
    while each.parents:
        (each,) = each.parents
        count += 1
    assert count == 3000


def test_parents_behind_a_shuffle_or_a_checkpoint_do_not_go_along():
    world = World()
    shuffled = world.shuffled(world.source(2), 2)
    work = pickle.loads(closures.pack(Plan(shuffled), function=list))
    assert work.node.shuffle.parent is None
    assert shuffled.shuffle is not None
    assert shuffled.shuffle.parent is not None
    saved = world.mapped(shuffled)
    saved.checkpoint = "dir"
    assert pickle.loads(closures.pack(Plan(saved), function=list)).node.parents == ()
    dependency = shuffled.shuffle
    assert dependency.parent is not None
    before = closures.pack(Plan(dependency.parent), shuffle=dependency)
    assert pickle.loads(before).shuffle.partitioner == dependency.partitioner


def test_the_object_is_named_with_the_way_that_leads_to_it():
    held = Holder({"key": [1, LOCK]})
    error = refused(lambda _, elements: (held, elements))
    assert "an object of type _thread.lock" in str(error)
    assert "(script.py:3)" in str(error)
    assert error.fields["path"] == (
        "map (RDD 1)",
        "attribute 'function' of a Mapped",
        "variable 'held' captured by function "
        "'test_the_object_is_named_with_the_way_that_leads_to_it.<locals>.<lambda>'",
        "attribute 'held' of a Holder",
        "item 'key'",
        "item 1",
    )
    assert isinstance(error.__cause__, TypeError)


@pytest.mark.parametrize(
    ("function", "step"),
    [
        (functools.partial(lambda lock, _, it: it, LOCK), "argument 0 of a partial"),
        (Holder(LOCK).method, "the object of method 'method'"),
        (eval("lambda _, it, lock=lock: it", {"lock": LOCK}), "default 0 of function '<lambda>'"),
        (eval("lambda _, it: (lock, it)", {"lock": LOCK}), "global 'lock' used by function"),
    ],
    ids=["partial", "method", "default", "global"],
)
def test_ways_that_lead_there(function, step):
    path = refused(function).fields["path"]
    assert isinstance(path, tuple)
    assert any(each.startswith(step) for each in path)


def test_what_only_the_driver_has_is_explained(monkeypatch):
    from frameworks.rdd import SparkContext

    runner: Runner = PlainRunner()
    with SparkContext("local", "test", runner=runner) as sc:
        rdd = sc.parallelize([1])
        assert "only the driver has transformations and actions" in str(
            refused(lambda _, it: rdd.count())
        )
        assert "only the driver has it" in str(refused(lambda _, it: sc.parallelize(it)))
        with pytest.raises(NotPicklable, match="only the driver has transformations"):
            closures.pack_value([rdd])


def test_a_repr_that_fails_does_not_hide_the_fault():
    class Bad:
        def __repr__(self) -> str:
            raise RuntimeError

        def __reduce__(self) -> str:
            raise ValueError("no way")

    bad = Bad()
    assert "whose repr fails" in str(refused(lambda _, it: bad))


def test_a_large_closure_is_told(caplog):
    large = bytes(2 << 20)
    with caplog.at_level(logging.WARNING):
        closures.pack(Plan(mapped(lambda _, it: (large, it))), function=list, what="collect")
    assert "use a broadcast" in caplog.text


def test_a_broadcast_is_a_file_to_be_mapped():
    assert frames.read_one(memoryview(closures.pack_value({"a": 1}))) == {"a": 1}


def test_pythons_of_another_minor_version_do_not_fit():
    ours = sys.version_info
    assert closures.python_mismatch((ours[0], ours[1], 99)) == ""
    said = closures.python_mismatch((3, 1, 0))
    assert "the executor 3.1.0" in said
    assert f"Python {ours[0]}.{ours[1]}" in said


def test_an_exception_that_cannot_be_brought_here_is_none():
    assert closures.load_exception(b"") is None
    assert closures.load_exception(b"broken") is None
    assert closures.load_exception(pickle.dumps(7)) is None
    assert isinstance(closures.load_exception(pickle.dumps(KeyError("x"))), KeyError)
