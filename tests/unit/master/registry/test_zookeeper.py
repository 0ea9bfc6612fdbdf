"""The registry in ZooKeeper, over a tree in memory that loses, delays and lags.

The real one is in tests/system/test_registry_zookeeper.py.
"""

import asyncio
import random
from collections.abc import Callable, Iterable

import pytest

from master.registry import buckets
from mesos_py.election.zookeeper.steps import Create, Delete, Put
from mesos_py.errors import (
    InternalError,
    InvalidValue,
    Refused,
    Superseded,
    TooLarge,
    Unavailable,
)
from mesos_py.v1.registry_pb2 import Head
from tests.kit.fake_tree import Fault, World
from tests.kit.on_fake_tree import PATH, OnFake
from tests.kit.storage_contract import StorageContract


def script(call: str, faults: Iterable[Fault]) -> Callable[[str], Fault]:
    """Faults of one kind of call, in order; then there are none."""
    left = list(faults)

    def fault(asked: str) -> Fault:
        return left.pop(0) if asked == call and left else Fault.NONE

    return fault


@pytest.fixture
def world():
    return World()


class TestFakeZooKeeper(StorageContract):
    @pytest.fixture
    def opening(self, world):
        return lambda: OnFake(world)


async def stored(world: World) -> dict[str, bytes]:
    return (await OnFake(world).claim()).records


# ---- What is where -----------------------------------------------------------------------


async def test_the_nodes_are_where_the_documentation_says(world):
    storage = OnFake(world)
    await storage.claim(4)
    await storage.write([{"agent/1": b"a", "maintenance": b"b"}])
    assert sorted(world.nodes) == [
        "/cluster",
        PATH,
        f"{PATH}/head",
        f"{PATH}/records",
        f"{PATH}/records/000000",
    ]
    head = Head.FromString(world.nodes[f"{PATH}/head"][0])
    assert (head.format, head.epoch, head.transaction, head.buckets) == (1, 5, 1, 1)


async def test_many_operations_are_few_transactions(world):
    storage = OnFake(world)
    await storage.claim()
    before = world.commits
    await storage.write([{f"agent/{n}": b"x" * 100} for n in range(1000)])
    assert world.commits == before + 1
    assert storage.fake.largest < 1_000_000


async def test_what_changes_nothing_writes_nothing_but_the_head(world):
    storage = OnFake(world)
    await storage.claim()
    await storage.write([{"agent/1": b"a"}])
    before = world.nodes
    await storage.write([{"agent/1": b"a"}, {"agent/2": None}, {}])
    different = [path for path in before if world.nodes[path] != before[path]]
    assert different == [f"{PATH}/head"]


async def test_an_operation_that_fits_no_transaction_is_refused_after_those_before_it(world):
    storage = OnFake(world)
    await storage.claim()
    with pytest.raises(TooLarge, match="record 'agent/2'"):
        await storage.write(
            [{"agent/1": b"a"}, {"agent/2": random.Random(1).randbytes(900_000)}, {"agent/3": b"c"}]
        )
    assert (await stored(world)).keys() <= {"agent/1"}


# ---- Answers that are lost ---------------------------------------------------------------

TRIES = [
    [Fault.LOST],
    [Fault.UNANSWERED],
    [Fault.LATE],
    [Fault.LOST, Fault.LATE, Fault.UNANSWERED],
    [Fault.LATE, Fault.LATE, Fault.LOST],
]


@pytest.mark.parametrize("faults", TRIES, ids=lambda f: "-".join(each.value for each in f))
async def test_a_write_whose_answers_are_lost_is_done_once(world, faults):
    storage = OnFake(world)
    await storage.claim()
    await storage.write([{"agent/1": b"1"}])
    storage.fake.fault = script("commit", [*faults])
    await storage.write([{"agent/1": b"2", "agent/2": b"2"}])
    await storage.write([{"agent/1": b"3"}])
    # What was taken for lost comes now, and is too late.
    world.arrive()
    await storage.write([{"agent/3": b"3"}])
    assert await stored(world) == {"agent/1": b"3", "agent/2": b"2", "agent/3": b"3"}


@pytest.mark.parametrize("faults", TRIES, ids=lambda f: "-".join(each.value for each in f))
async def test_a_claim_whose_answers_are_lost_is_made_once(world, faults):
    await OnFake(world).claim()
    storage = OnFake(world, script("commit", faults))
    claimed = await storage.claim()
    assert claimed.epoch == 2
    world.arrive()
    await storage.write([{"agent/1": b"1"}])
    assert (await OnFake(world).claim()).epoch == 3


@pytest.mark.parametrize("faults", TRIES, ids=lambda f: "-".join(each.value for each in f))
async def test_the_first_nodes_are_made_once(world, faults):
    storage = OnFake(world, script("commit", faults))
    assert (await storage.claim()).epoch == 1
    world.arrive()
    await storage.write([{"agent/1": b"1"}])
    assert await stored(world) == {"agent/1": b"1"}


@pytest.mark.parametrize("faults", TRIES, ids=lambda f: "-".join(each.value for each in f))
async def test_an_epoch_whose_answers_are_lost_is_raised_once(world, faults):
    storage = OnFake(world)
    await storage.claim()
    storage.fake.fault = script("commit", [*faults])
    assert await storage.raise_epoch(10) == 11
    world.arrive()
    assert (await OnFake(world).claim()).epoch == 12


@pytest.mark.parametrize("call", ["read", "children", "catch_up", "make"])
async def test_what_can_be_asked_again_is(world, call):
    first = OnFake(world, script(call, [Fault.LOST] * 3))
    await first.claim()
    await first.write([{"agent/1": b"1"}])
    second = OnFake(world, script(call, [Fault.UNANSWERED] * 3))
    assert (await second.claim()).records == {"agent/1": b"1"}


async def test_a_late_write_does_not_pass_a_newer_claim(world):
    """The cut-off leader's request was on its way when the next one claimed."""
    first, second = OnFake(world), OnFake(world)
    await first.claim()
    first.fake.fault = script("commit", [Fault.LATE])
    first.may_go_on.clear()
    writing = asyncio.ensure_future(first.write([{"agent/1": b"late"}]))
    await world.something_late.wait()
    claimed = await second.claim()
    world.arrive()
    await second.write([{"agent/2": b"second"}])
    first.may_go_on.set()
    with pytest.raises(Superseded):
        await writing
    assert claimed.records == {}
    assert await stored(world) == {"agent/2": b"second"}


async def test_a_write_that_was_lost_and_then_superseded(world):
    first, second = OnFake(world), OnFake(world)
    await first.claim()

    def claimed_meanwhile(call: str) -> Fault:
        if call != "commit":
            return Fault.NONE
        asyncio.ensure_future(second.claim()).add_done_callback(lambda done: done.result())
        return Fault.LATE

    first.fake.fault = claimed_meanwhile
    with pytest.raises(Superseded) as caught:
        await first.write([{"agent/1": b"late"}])
    assert (caught.value.epoch, caught.value.newer) == (1, 2)
    world.arrive()
    assert await stored(world) == {}


async def test_a_claim_that_is_overtaken_while_it_reads(world):
    first = OnFake(world)
    await first.claim()
    await first.write([{"agent/1": b"1"}])
    second, third = OnFake(world), OnFake(world)
    overtaken = False

    def claimed_meanwhile(call: str) -> Fault:
        nonlocal overtaken
        if call == "children" and not overtaken:
            overtaken = True
            head, version = world.nodes[f"{PATH}/head"]
            newer = Head.FromString(head)
            newer.epoch, newer.claim = 3, b"third"
            world.apply([Put(f"{PATH}/head", newer.SerializeToString(), version)])
        return Fault.NONE

    second.fake.fault = claimed_meanwhile
    with pytest.raises(Superseded) as caught:
        await second.claim()
    assert (caught.value.epoch, caught.value.newer) == (2, 3)
    assert (await third.claim()).epoch == 4


# ---- No answer at all --------------------------------------------------------------------


async def test_no_answer_within_the_limit_is_told_and_ends_the_leadership(world):
    storage = OnFake(world, limit_s=0.05)
    await storage.claim()
    storage.fake.fault = lambda call: Fault.LOST
    with pytest.raises(Unavailable, match=r"no answer of zookeeper within 0\.05 s"):
        await storage.write([{"agent/1": b"a"}])
    storage.fake.fault = lambda call: Fault.NONE
    # It cannot know what became of the write; who claims reads it.
    with pytest.raises(InternalError, match="was not claimed"):
        await storage.write([{"agent/2": b"a"}])
    assert (await storage.claim()).records == {}


async def test_a_claim_without_an_answer(world):
    storage = OnFake(world, lambda call: Fault.LOST, limit_s=0.05)
    with pytest.raises(Unavailable, match=f"registry {PATH}: no answer"):
        await storage.claim()


async def test_a_refused_access_is_told_as_such(world):
    def refuse(call: str) -> Fault:
        raise Refused("zookeeper refuses access")

    with pytest.raises(Refused):
        await OnFake(world, refuse).claim()


# ---- Nodes that somebody else has changed ------------------------------------------------


async def test_a_registry_that_was_removed_ends_the_leadership(world):
    storage = OnFake(world)
    await storage.claim()
    await storage.write([{"agent/1": b"a"}])
    world.states.append({})
    with pytest.raises(Unavailable, match="somebody has removed it"):
        await storage.write([{"agent/2": b"a"}])
    claimed = await OnFake(world).claim(7)
    assert (claimed.epoch, claimed.records) == (8, {})


async def test_a_bucket_that_was_removed_is_noticed(world):
    storage = OnFake(world)
    await storage.claim()
    await storage.write([{"agent/1": b"a"}])
    world.apply([Delete(f"{PATH}/records/000000")])
    with pytest.raises(InternalError, match="changed by somebody else"):
        await storage.write([{"agent/1": b"b"}])
    with pytest.raises(InvalidValue, match="1 nodes are noted, and 0 are there; restore a backup"):
        await OnFake(world).claim()


async def test_records_without_a_head_are_noticed(world):
    storage = OnFake(world)
    await storage.claim()
    await storage.write([{"agent/1": b"a"}])
    world.apply([Delete(f"{PATH}/head")])
    with pytest.raises(InvalidValue, match="0 nodes are noted, and 1 are there"):
        await OnFake(world).claim()


async def test_a_damaged_bucket_is_named_with_its_path(world):
    storage = OnFake(world)
    await storage.claim()
    await storage.write([{"agent/1": b"a"}])
    world.apply([Put(f"{PATH}/records/000000", b"rubbish")])
    with pytest.raises(InvalidValue, match=f"{PATH}/records/000000'?: is damaged"):
        await OnFake(world).claim()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xff\xff", "is damaged"),
        (b"", "is damaged: it has no format"),
        (Head(format=9, epoch=3).SerializeToString(), "has format 9, and this version knows up to"),
    ],
)
async def test_a_head_that_is_not_read_stays_as_it_is(world, data, reason):
    await OnFake(world).claim()
    world.apply([Put(f"{PATH}/head", data)])
    with pytest.raises(InvalidValue, match=f"{PATH}/head.*{reason}"):
        await OnFake(world).claim()
    assert world.nodes[f"{PATH}/head"][0] == data


async def test_a_head_that_stands_alone_is_filled(world):
    """Killed while the first nodes were made: at any point, the next claim goes on."""
    await OnFake(world).claim()
    full = world.states
    for state in full[: len(full) - 1]:
        assert (await OnFake(World([state])).claim()).epoch == 1


async def test_a_node_that_is_none_of_ours_is_noticed(world):
    storage = OnFake(world)
    await storage.claim()
    world.apply([Create(f"{PATH}/records/other", b"")])
    with pytest.raises(InvalidValue, match="0 nodes are noted, and 1 are there"):
        await OnFake(world).claim()


def test_a_transaction_is_far_below_what_servers_take():
    assert buckets.MAX_TRANSACTION < 0.8 * 1_048_575
