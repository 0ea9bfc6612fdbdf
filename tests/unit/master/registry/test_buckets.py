"""Which record is in which bucket, what a transaction writes, what is too much for one."""

import random

import pytest
import zstandard

from master.registry import buckets
from master.registry.buckets import MAX_TRANSACTION, SPLIT_BYTES, Buckets, decoded
from mesos_py.errors import InvalidValue, TooLarge
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


def test_the_first_bucket_holds_everything(nodes):
    nodes.write(
        {"weight/x": b"b", "agent/1": b"a", "maintenance": b"c"}, {"agent/2": b"d", "": b""}
    )
    assert sorted(nodes.data) == ["000000"]
    assert nodes.read() == {
        "": b"",
        "agent/1": b"a",
        "agent/2": b"d",
        "maintenance": b"c",
        "weight/x": b"b",
    }


def test_what_changes_nothing_writes_nothing(nodes):
    nodes.write({"agent/1": None})
    assert nodes.plans[-1].size == 0
    nodes.write({"agent/1": b"a"})
    nodes.write({"agent/1": b"a", "agent/2": None}, {"weight/x": None})
    assert nodes.plans[-1].size == 0
    assert len(nodes.data) == 1


def test_a_bucket_that_has_grown_is_split(nodes):
    records = {f"agent/{n}": noise(SPLIT_BYTES // 8, n) for n in range(200)}
    for key, data in records.items():
        nodes.write({key: data})
    assert nodes.read() == records
    assert all(len(data) <= SPLIT_BYTES for data in nodes.data.values())
    # Halves at worst.
    assert len(nodes.data) < 2.5 * sum(map(len, nodes.data.values())) / SPLIT_BYTES


def test_a_change_writes_only_the_bucket_that_it_is_in(nodes):
    nodes.write({f"agent/{n}": noise(1000, n) for n in range(100)})
    assert len(nodes.data) > 10
    nodes.write({"agent/50": b"b"})
    assert (len(nodes.plans[-1].replaced), len(nodes.plans[-1].created)) == (1, 0)


def test_neighbours_that_come_together_are_written_once(nodes):
    nodes.write({f"agent/{n:03}": noise(1000, n) for n in range(0, 100, 2)})
    before = len(nodes.data)
    nodes.write(*({f"agent/{50:03}.{n}": noise(1000, n)} for n in range(50)))
    plan = nodes.plans[-1]
    assert (len(plan.replaced), len(nodes.data) - before) == (1, len(plan.created))


def test_a_bucket_is_removed_with_its_last_record_but_for_the_first(nodes):
    records = {f"agent/{n}": noise(900, n) for n in range(100)}
    nodes.write(records)
    assert len(nodes.data) > 10
    nodes.write(dict.fromkeys(list(records)[1:]))
    nodes.write({"agent/0": None})
    assert nodes.read() == {}
    assert list(nodes.data) == ["000000"]
    nodes.write({"agent/5": b"again", "a": b"a"})
    assert nodes.read() == {"a": b"a", "agent/5": b"again"}


def test_what_comes_where_a_bucket_was_removed_goes_to_the_one_before(nodes):
    records = {f"agent/{n:02}": noise(900, n) for n in range(30)}
    nodes.write(records)
    (second,) = (
        n for n, b in nodes.buckets._buckets.items() if b.begin == nodes.buckets._begins[1]
    )
    inside = list(nodes.buckets._buckets[second].records)
    nodes.write(dict.fromkeys(inside))
    assert second not in nodes.data
    nodes.write({inside[0]: b"again"})
    assert list(nodes.plans[-1].replaced) == ["000000"]
    left = {key: value for key, value in records.items() if key not in inside}
    assert nodes.read() == left | {inside[0]: b"again"}


def test_no_name_is_used_by_two_at_once(nodes):
    """The newest bucket goes in the transaction that makes another one."""
    nodes.write({f"agent/{n:02}": noise(900, n) for n in range(30)})
    newest = max(nodes.data)
    inside = nodes.buckets._buckets[newest].records
    nodes.write(dict.fromkeys(inside) | {f"agent/00.{n}": noise(900, n) for n in range(20)})
    assert nodes.plans[-1].removed == {newest}
    assert newest not in nodes.plans[-1].created
    nodes.read()


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


def test_six_thousand_agents(nodes):
    """In batches, as they come when a cluster is set up; then one by one."""
    records = list(agent_records(6_000).items())
    for at in range(0, len(records), 2_000):
        nodes.write(*({key: value} for key, value in records[at : at + 2_000]))
    sizes = list(nodes.data.values())
    assert max(map(len, sizes)) <= SPLIT_BYTES
    assert len(sizes) < 30
    # Each record was written hardly more than once.
    assert sum(plan.size for plan in nodes.plans) < 2 * sum(map(len, sizes))
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


def packed(begin: str, *keys: str) -> bytes:
    return buckets._encoded(begin, dict.fromkeys(keys, b"x"))


@pytest.mark.parametrize(
    "data",
    [b"", b"rubbish", packed("b", "b1")[:-1], packed("b", "b1")[:-3] + b"\0\0\0"],
    ids=["empty", "rubbish", "cut off", "other checksum"],
)
def test_a_node_that_is_damaged_is_named(data):
    with pytest.raises(InvalidValue, match="registry: '000001': is damaged"):
        decoded([("000000", packed("", "a")), ("000001", data)])


def test_a_node_that_holds_something_else_is_named():
    with pytest.raises(InvalidValue, match="registry: '000000': is damaged"):
        decoded([("000000", zstandard.compress(b"\xff\xff\xff"))])


def test_a_node_with_another_name_is_damage():
    with pytest.raises(InvalidValue, match="registry: 'other': is damaged"):
        decoded([("other", packed("", "a"))])


@pytest.mark.parametrize(
    ("first", "second", "what"),
    [
        (packed("", "a", "x"), packed("b", "b1"), "'000000': is damaged: 'x' is not its record"),
        (packed("", "a"), packed("b", "a1"), "'000001': is damaged: 'a1' is not its record"),
        (packed("a", "a1"), packed("b", "b1"), "'000000': is damaged: it begins at 'a'"),
        (packed("", "a"), packed("", "b"), "is damaged: it begins at ''"),
    ],
)
def test_buckets_that_do_not_join_are_damage(first, second, what):
    with pytest.raises(InvalidValue, match=what):
        decoded([("000000", first), ("000001", second)])


def test_no_buckets_are_no_records():
    assert decoded([]).records() == {}
