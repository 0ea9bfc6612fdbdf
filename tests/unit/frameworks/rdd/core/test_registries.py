"""What is kept where, what maps have left, who waits for what, who has which blocks."""

from __future__ import annotations

import struct

from frameworks.rdd.core.kept import Amount, Kept
from frameworks.rdd.core.outputs import Outputs
from frameworks.rdd.core.pending import Pending
from frameworks.rdd.core.state import Executor
from frameworks.rdd.core.where import Where
from frameworks.rdd.messages import MapOutput

# ---- Kept ----------------------------------------------------------------------------------


def test_kept_knows_who_has_what_until_they_lose_it():
    kept = Kept()
    kept.persist([7])
    kept.update("a", {("rdd", 7, 0): (10, True), ("rdd", 7, 1): (5, False)})
    kept.update("b", {("rdd", 7, 1): (5, True)})
    assert kept.complete(7, 2)
    assert dict(kept.places(7, 1)) == {"a": (5, False), "b": (5, True)}
    assert kept.amounts() == {7: Amount(2, 15, 5)}
    kept.lost("a")
    assert not kept.any_on("a")
    assert not kept.complete(7, 2)
    kept.update("b", {("rdd", 7, 1): None, ("rdd", 7, 3): None, ("broadcast", 1, 1): (1, True)})
    assert kept.amounts() == {7: Amount()}
    assert not kept.any_on("b")


def test_what_is_not_to_be_kept_is_told():
    kept = Kept()
    kept.persist([7])
    kept.update("a", {("rdd", 7, 0): (1, True)})
    assert kept.unpersist(7) == ["a"]
    assert kept.unpersist(7) == []
    assert kept.update("b", {("rdd", 7, 1): (1, True)}) == {7}
    assert kept.update("b", {("rdd", 7, 1): None}) == set()
    assert not kept.any_on("a")
    assert dict(kept.places(7, 0)) == {}


# ---- Outputs -------------------------------------------------------------------------------


def output(map_index: int, executor: str = "a", host: str = "h", sizes: tuple = (1, 1)):
    offsets = [sum(sizes[:each]) for each in range(len(sizes) + 1)]
    packed = struct.pack(f"<{len(offsets)}Q", *offsets)
    return MapOutput(1, map_index, executor, host, f"{executor}/{map_index}", "", packed)


def made(*outputs: MapOutput) -> Outputs:
    registry = Outputs()
    registry.open(1, 3)
    for each in outputs:
        registry.put(each, f"agent of {each.host}")
    return registry


def test_outputs_are_complete_when_all_are_there():
    outputs = made(output(0), output(2))
    assert outputs.missing(1) == [1]
    assert not outputs.complete(1)
    outputs.put(output(1, "b"), "x")
    assert outputs.complete(1)
    assert [each.map_index for each in outputs.there(1)] == [0, 1, 2]
    assert not outputs.complete(2)
    empty = Outputs()
    empty.open(1, 0)
    assert empty.complete(1)


def test_a_complaint_about_what_was_replaced_is_no_news():
    outputs = made(output(0), output(1))
    seen = outputs.at
    assert outputs.lost(1, 0, "a", seen)
    assert not outputs.lost(1, 0, "a", seen)
    outputs.put(output(0), "x")
    assert not outputs.lost(1, 0, "a", seen)
    assert not outputs.lost(1, 1, "other", seen)
    assert not outputs.lost(1, 9, "a", seen)
    assert not outputs.lost(5, 0, "a", seen)
    assert outputs.lost(1, 0, "a", outputs.at)


def test_outputs_go_with_executor_host_or_agent():
    outputs = made(output(0, "a", "h1"), output(1, "b", "h1"), output(2, "c", "h2"))
    assert outputs.host("a") == "h1"
    assert outputs.lost_of_executor("a") == {1}
    assert outputs.lost_of_executor("a") == set()
    assert outputs.host("a") == ""
    assert outputs.missing(1) == [0]
    assert outputs.lost_of_host("h1", outputs.at) == {1}
    assert outputs.lost_of_agent("agent of h2") == {1}
    assert outputs.missing(1) == [0, 1, 2]
    assert outputs.losses == 3


def test_only_what_was_there_is_lost():
    outputs = made(output(0))
    seen = outputs.at
    outputs.put(output(1), "x")
    assert outputs.lost_of_executor("a", seen) == {1}
    assert outputs.missing(1) == [0, 2]


def test_hosts_with_a_good_part_of_what_is_read():
    outputs = made(
        output(0, "a", "h1", (90, 0)), output(1, "b", "h2", (10, 5)), output(2, "c", "h3", (0, 5))
    )
    assert outputs.hosts(1, 0, 0.2) == ["h1"]
    assert outputs.hosts(1, 1, 0.2) == ["h2", "h3"]


def test_a_forgotten_shuffle_leaves_nothing():
    outputs = made(output(0), output(1))
    assert outputs.forget(1)
    assert not outputs.forget(1)
    assert outputs.host("a") == ""
    assert outputs.there(1) == ()
    assert outputs.maps(1) == 0


# ---- Pending -------------------------------------------------------------------------------


def never(_: int) -> bool:
    return False


def test_a_task_is_taken_once_and_the_nearest_first():
    pending = Pending()
    pending.add(1)
    pending.add(2, ["e2"], ["h2"])
    pending.add(3, ["e1"], ["h1"])
    pending.add(4, [], ["h1"])
    assert pending.take("e1", "h1", "any", never) == (3, "executor")
    assert pending.take("e1", "h1", "any", never) == (4, "host")
    assert pending.take("e1", "h1", "any", never) == (1, "executor")
    assert pending.take("e1", "h1", "host", never) is None
    assert pending.take("e1", "h1", "any", never) == (2, "any")
    assert not pending
    assert pending.take("e2", "h2", "any", never) is None


def test_who_avoids_a_place_waits_and_keeps_its_turn():
    pending = Pending()
    for index in range(3):
        pending.add(index)
    assert pending.take("e", "h", "any", lambda index: index < 2) == (2, "executor")
    assert pending.take("e", "h", "any", never) == (0, "executor")
    pending.remove(1)
    pending.add(1)
    pending.add(1)
    assert pending.take("e", "h", "any", never) == (1, "executor")
    assert len(pending) == 0


def test_wishes_are_of_those_that_wait():
    pending = Pending()
    pending.add(1, ["e1"], ["h1"])
    assert pending.wishes({"e1"}, {"h2"}) == (True, False)
    assert pending.wishes({"e2"}, {"h1"}) == (False, True)
    pending.remove(1)
    assert pending.wishes({"e1"}, {"h1"}) == (False, False)


# ---- Where ---------------------------------------------------------------------------------


def test_chunks_are_named_by_turns_and_forgotten():
    kept = Kept()
    executors = {
        name: Executor(name, "h", "", f"{name}:1", 1, 0.0) for name in ("a", "b", "c", "d", "e")
    }
    where = Where(kept, executors)
    chunk = ("broadcast", 1, 1)
    assert where.answer("a", [chunk]) == {chunk: ()}
    where.has("b", [chunk])
    assert where.answer("a", [chunk]) == {chunk: ()}
    where.add("broadcast", 1)
    for name in executors:
        where.has(name, [chunk])
    first = where.answer("a", [chunk])[chunk]
    assert first == ("b:1", "c:1", "d:1", "e:1")
    where.lost("b")
    assert "b:1" not in where.answer("a", [chunk])[chunk]
    where.remove("broadcast", 1)
    where.has("a", [chunk])
    assert where.answer("b", [chunk]) == {chunk: ()}
    kept.persist([3])
    kept.update("a", {("rdd", 3, 0): (1, True)})
    assert where.answer("b", [("rdd", 3, 0)]) == {("rdd", 3, 0): ("a:1",)}
    assert where.answer("a", [("rdd", 3, 0)]) == {("rdd", 3, 0): ()}
