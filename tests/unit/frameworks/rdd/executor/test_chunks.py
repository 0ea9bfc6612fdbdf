from __future__ import annotations

import io

import pytest

from frameworks.rdd.executor import chunks


def unpacked(data: bytes, length: int | None = None) -> list:
    return list(chunks.unpacked(io.BytesIO(data).read, len(data) if length is None else length))


def test_chunks_can_be_put_one_after_the_other():
    first, second = chunks.packed([1, 2]), chunks.packed([("a", None)])
    assert unpacked(first + second) == [([1, 2], len(first)), ([("a", None)], len(second))]


def test_no_bytes_are_no_chunks():
    assert unpacked(b"") == []


def test_what_is_cut_off_is_damaged_wherever_that_is():
    data = chunks.packed([1, 2]) + chunks.packed([3])
    for end in range(1, len(data)):
        with pytest.raises(chunks.Damaged):
            unpacked(data[:end], len(data))


def test_any_byte_that_changes_is_damage():
    data = chunks.packed(["abc", 1])
    for place in range(len(data)):
        with pytest.raises(chunks.Damaged):
            unpacked(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])


def test_a_chunk_beyond_the_end_of_its_partition_is_damage():
    data = chunks.packed(["abc", 1])
    with pytest.raises(chunks.Damaged, match="beyond"):
        unpacked(data + b"more", len(data) - 1)


@pytest.mark.parametrize(
    ("each_bytes", "chunk_bytes", "lengths"),
    [(1 << 30, 1 << 20, [1, 1, 1]), (256 << 10, 1 << 20, [2, 1]), (0, 100, [3]), (1, 2, [2, 1])],
)
def test_records_are_cut_by_what_they_take(each_bytes, chunk_bytes, lengths):
    assert [len(part) for part in chunks.cut("abc", each_bytes, chunk_bytes)] == lengths
