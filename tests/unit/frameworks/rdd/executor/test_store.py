from __future__ import annotations

import os

import pytest

from frameworks.rdd.executor import packets
from frameworks.rdd.executor.store import Block, Store


@pytest.fixture
def store():
    made = Store(100)
    yield made
    made.close()


def block(rdd: int, split: int, size: int, **how) -> Block:
    return Block(("rdd", rdd, split), size, packets.memory_file("test"), **how)


def names(blocks) -> list:
    return [each.id for each in blocks]


def test_what_was_used_last_stays_longest(store):
    for split in range(3):
        store.put(block(1, split, 30))
    store.get(("rdd", 1, 0))
    assert names(store.victims(("rdd", 2, 0), 10)) == []
    assert names(store.victims(("rdd", 2, 0), 40)) == [("rdd", 1, 1)]
    assert names(store.victims(("rdd", 2, 0), 41)) == [("rdd", 1, 1), ("rdd", 1, 2)]
    assert store.victims(("rdd", 2, 0), 101) is None


def test_a_data_set_does_not_push_out_itself(store):
    store.put(block(1, 0, 60))
    assert store.victims(("rdd", 1, 1), 50) is None
    store.put(block(2, 0, 30))
    assert names(store.victims(("rdd", 1, 1), 30)) == [("rdd", 2, 0)]


def test_results_that_wait_to_be_fetched_are_not_pushed_out(store):
    store.put(Block(("result", 7, 0), 90, packets.memory_file("test"), pinned=True))
    assert store.victims(("rdd", 1, 0), 50) is None


def test_what_is_being_made_counts(store):
    store.reserve(1, ("rdd", 1, 0), 60)
    assert store.used_bytes == 60
    assert store.victims(("rdd", 2, 0), 50) is None
    store.reserve(1, ("rdd", 1, 0), 0)
    assert store.victims(("rdd", 2, 0), 50) == []


def test_a_worker_that_has_died_has_nothing_reserved(store):
    store.reserve(1, ("rdd", 1, 0), 60)
    store.reserve(2, ("rdd", 1, 1), 10)
    store.release(1)
    assert store.used_bytes == 10


def test_the_most_that_it_has_held_is_known(store):
    store.reserve(1, ("rdd", 1, 0), 80)
    store.reserve(1, ("rdd", 1, 0), 0)
    store.put(block(1, 0, 20))
    assert (store.memory_bytes, store.peak_bytes) == (20, 80)


def test_of_two_of_one_name_the_first_stays(store):
    first, second = block(1, 0, 20), block(1, 0, 30)
    assert store.put(first)
    assert not store.put(second)
    assert store.memory_bytes == 20
    os.close(second.fd)


def test_a_block_on_disk_takes_no_memory_and_is_no_victim(store, tmp_path):
    made = block(1, 0, 60)
    store.put(made)
    path = tmp_path / "block"
    path.write_bytes(b"x" * 60)
    store.to_disk(made, os.open(path, os.O_RDONLY), str(path))
    assert (store.memory_bytes, store.disk_bytes) == (0, 60)
    assert store.victims(("rdd", 2, 0), 100) == []
    store.remove(made.id)
    assert (store.disk_bytes, path.exists()) == (0, False)


def test_what_is_on_its_way_to_disk_is_not_chosen_again(store):
    made = block(1, 0, 60, spill=True)
    store.put(made)
    made.moving = True
    assert store.victims(("rdd", 2, 0), 60) is None


def test_what_is_not_there_cannot_be_removed(store):
    assert store.remove(("rdd", 1, 0)) is None
    assert ("rdd", 1, 0) not in store
