"""Which record is in which bucket, what a transaction writes, what is too much for one."""

import random

import pytest

from master.registry import buckets
from master.registry.buckets import MAX_TRANSACTION, SPLIT_BYTES, Buckets, decoded
from mesos_py.errors import InternalError, InvalidValue, TooLarge
from tests.kit.agents_records import agent_records


class Nodes:
    """Buckets and the nodes that their plans have made."""

    def __init__(self) -> None:
        self.buckets = Buckets()
        self.data: dict[str, bytes] = {}
        self.plans: list[buckets.Plan] = []

    def write(self, *operations) -> None:
        done = 0
        while done < len(operations):
            count, plan = self.buckets.next_plan(operations[done:])
            assert count > 0
            assert plan.size <= MAX_TRANSACTION
            # Each node is made, replaced and removed as it is there or not.
            assert not plan.created.keys() & self.data.keys()
            assert plan.replaced.keys() | plan.removed <= self.data.keys()
            after = self.buckets.after(plan)
            self.buckets.adopt(plan)
            self.data.update(plan.created)
            self.data.update(plan.replaced)
            for name in plan.removed:
                del self.data[name]
            self.plans.append(plan)
            done += count
            assert len(self.data) == len(self.buckets) == after

    def read(self) -> dict[str, bytes]:
        again = decoded(self.data.items())
        assert again.sizes == self.buckets.sizes
        assert again.records() == self.buckets.records()
        return again.records()


def noise(count: int, seed: int = 0) -> bytes:
    """Bytes that do not compress, the same in each run."""
    return random.Random(seed).randbytes(count)


@pytest.fixture
def nodes():
    return Nodes()


def test_each_kind_begins_with_one_bucket(nodes):
    nodes.write({"agent/1": b"a", "weight/x": b"b", "maintenance": b"c"}, {"agent/2": b"d"})
    assert sorted(nodes.data) == ["agent", "maintenance", "weight"]
    assert nodes.read() == {
        "agent/1": b"a",
        "agent/2": b"d",
        "weight/x": b"b",
        "maintenance": b"c",
    }


def test_a_change_writes_only_the_bucket_that_it_is_in(nodes):
    nodes.write({"agent/1": b"a", "weight/x": b"b"})
    nodes.write({"weight/x": b"c"})
    assert list(nodes.plans[-1].replaced) == ["weight"]
    assert not nodes.plans[-1].created


def test_what_changes_nothing_writes_nothing(nodes):
    nodes.write({"agent/1": b"a"})
    nodes.write({"agent/1": b"a", "agent/2": None}, {"weight/x": None})
    assert nodes.plans[-1].empty
    assert list(nodes.data) == ["agent"]


def test_a_bucket_that_has_grown_is_split(nodes):
    records = {f"agent/{n}": noise(SPLIT_BYTES // 8, n) for n in range(200)}
    for key, data in records.items():
        nodes.write({key: data})
    assert "agent" not in nodes.data
    assert nodes.read() == records
    assert all(len(data) <= SPLIT_BYTES for data in nodes.data.values())
    # Halves are as full as the dice have it, and never all but empty.
    assert len(nodes.data) < 4 * sum(map(len, nodes.data.values())) / SPLIT_BYTES


def test_all_at_once_makes_the_same_buckets_as_one_by_one(nodes):
    records = {f"agent/{n}": noise(1000, n) for n in range(100)}
    nodes.write(records)
    one_by_one = Nodes()
    for key, data in records.items():
        one_by_one.write({key: data})
    assert nodes.data == one_by_one.data


def test_a_bucket_stays_when_its_records_are_removed(nodes):
    records = {f"agent/{n}": noise(900, n) for n in range(100)}
    nodes.write(records)
    names = set(nodes.data)
    nodes.write(dict.fromkeys(records))
    assert nodes.read() == {}
    assert set(nodes.data) == names
    nodes.write({"agent/5": b"again"})
    assert nodes.read() == {"agent/5": b"again"}
    assert set(nodes.data) == names


def test_the_bucket_of_a_key_is_the_same_in_every_process():
    """Python's own hash is salted: it must not be what decides."""
    assert buckets._bits("agent/1") == "01101110000100011100101010000110"


def test_a_record_that_is_too_large_for_a_bucket_has_one_alone(nodes):
    nodes.write({"agent/1": b"a", "agent/2": noise(MAX_TRANSACTION - 2000), "agent/3": b"c"})
    assert nodes.read()["agent/2"] == noise(MAX_TRANSACTION - 2000)
    nodes.write({"agent/1": b"b"})
    assert nodes.plans[-1].size < SPLIT_BYTES


def test_one_operation_that_does_not_fit_is_refused_by_its_largest_record(nodes):
    nodes.write({"agent/1": b"a"})
    with pytest.raises(TooLarge, match="record 'agent/big' of 900000 bytes, with 1 more") as caught:
        nodes.write({"agent/1": None, "agent/big": noise(900_000)})
    assert caught.value.fields["record"] == "agent/big"
    assert nodes.read() == {"agent/1": b"a"}


def test_what_compresses_well_fits(nodes):
    nodes.write({"maintenance": b"machine" * 1_000_000})
    assert nodes.read() == {"maintenance": b"machine" * 1_000_000}


def test_operations_that_do_not_fit_together_become_several_transactions_in_order(nodes):
    operations = [{f"agent/{n}": noise(200_000, n)} for n in range(10)]
    nodes.write(*operations, {"agent/0": b"last"})
    assert 3 <= len(nodes.plans) <= 6
    assert nodes.read()["agent/0"] == b"last"
    assert len(nodes.read()) == 10


def test_operations_that_fit_only_by_compression_still_go(nodes):
    """The first guess is by their raw size; the records that are there count too."""
    nodes.write(*({f"agent/{n}": bytes(200_000)} for n in range(10)))
    assert nodes.read() == {f"agent/{n}": bytes(200_000) for n in range(10)}


def test_a_guess_that_was_too_low_is_halved(nodes, monkeypatch):
    monkeypatch.setattr(Buckets, "_fitting", lambda self, operations: len(operations))
    nodes.write(*({f"agent/{n}": noise(200_000, n)} for n in range(10)))
    assert len(nodes.plans) > 2
    assert len(nodes.read()) == 10


def test_a_key_without_a_kind_is_a_bug_of_ours(nodes):
    for key in ("", "/x", "A/x", "a.b/x", "x" * 33):
        with pytest.raises(InternalError, match="begins with its kind"):
            nodes.write({key: b""})


def test_six_thousand_agents(nodes):
    """In batches, as they come when a cluster is set up; then one by one."""
    records = list(agent_records(6_000).items())
    for at in range(0, len(records), 2_000):
        nodes.write(*({key: value} for key, value in records[at : at + 2_000]))
    sizes = list(nodes.data.values())
    assert max(map(len, sizes)) <= SPLIT_BYTES
    assert len(sizes) < 60
    assert sum(map(len, sizes)) < 400_000
    nodes.write({records[7][0]: None})
    assert nodes.plans[-1].size < 2 * SPLIT_BYTES
    # As many as an operation may well touch, wherever they are.
    nodes.write({key: b"gone" for key, _ in records[1000:1060]})
    expected = dict(records) | {key: b"gone" for key, _ in records[1000:1060]}
    del expected[records[7][0]]
    # Outside of the assertion: to tell the difference would take minutes.
    same = nodes.read() == expected
    assert same


# ---- Damage ------------------------------------------------------------------------------


def packed(**records: bytes) -> bytes:
    return buckets._encoded({key.replace("_", "/", 1): value for key, value in records.items()})


@pytest.mark.parametrize(
    "data",
    [b"", b"rubbish", packed(agent_1=b"a")[:-1], packed(agent_1=b"a")[:-3] + b"\0\0\0"],
    ids=["empty", "rubbish", "cut off", "other checksum"],
)
def test_a_node_that_is_damaged_is_named(data):
    with pytest.raises(InvalidValue, match="registry: 'agent': is damaged"):
        decoded([("weight", packed(weight_x=b"a")), ("agent", data)])


def test_a_node_that_holds_something_else_is_named():
    import zstandard

    with pytest.raises(InvalidValue, match="registry: 'agent': is damaged"):
        decoded([("agent", zstandard.compress(b"\xff\xff\xff"))])


def test_a_record_in_another_bucket_is_damage():
    bit = buckets._bits("agent/1")[0]
    assert len(decoded([(f"agent.{bit}", packed(agent_1=b"a"))])) == 1
    other = "10"[int(bit)]
    for name in (f"agent.{other}", "weight"):
        with pytest.raises(InvalidValue, match="'agent/1' is not its record"):
            decoded([(name, packed(agent_1=b"a"))])
