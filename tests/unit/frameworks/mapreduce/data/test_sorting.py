"""Sorting within a given memory."""

import random
from pathlib import Path
from typing import Any

import pytest

from frameworks.mapreduce.data.keys import Keys
from frameworks.mapreduce.data.sorting import Sorter
from mesos_py.errors import InvalidValue


def result(sorter: Sorter, blocks) -> bytes:
    try:
        for block in blocks:
            sorter.add(block)
        return b"".join(sorter.result())
    finally:
        sorter.close()


def in_order(line: Any) -> tuple[bytes, bytes]:
    return Keys().key(line), line


def lines(count: int) -> list[bytes]:
    dice = random.Random(7)
    return [b"%d\t%d\n" % (dice.randrange(100), dice.randrange(100)) for _ in range(count)]


@pytest.mark.parametrize("memory", [1, 3000, 10**9])
def test_it_is_sorted_whatever_the_memory(tmp_path: Path, memory):
    given = lines(500)
    blocks = [b"".join(given[at : at + 50]) for at in range(0, 500, 50)]
    found = result(Sorter(Keys(), memory, tmp_path), blocks)
    assert found == b"".join(sorted(given, key=in_order))
    assert not list(tmp_path.iterdir())


def test_what_was_spilled_is_counted(tmp_path: Path):
    sorter = Sorter(Keys(), 1, tmp_path)
    result(sorter, [b"b\t1\na\n", b"c\n"])
    assert (sorter.spilled_records, sorter.spilled_bytes) == (3, 8)


def test_nothing_is_nothing(tmp_path: Path):
    assert result(Sorter(Keys(), 1, tmp_path), []) == b""
    assert result(Sorter(Keys(), 1, tmp_path), [b""]) == b""


def test_a_reader_may_stop_early(tmp_path: Path):
    sorter = Sorter(Keys(), 1, tmp_path)
    for block in lines(200):
        sorter.add(block)
    blocks = sorter.result()
    assert next(blocks)
    blocks.close()
    sorter.close()
    assert not list(tmp_path.iterdir())


def test_a_missing_run_is_said(tmp_path: Path):
    sorter = Sorter(Keys(), 1, tmp_path)
    sorter.add_run(tmp_path / "gone")
    with pytest.raises(OSError, match="gone"):
        list(sorter.result())
    sorter.close()


def test_a_block_must_end_with_a_newline(tmp_path: Path):
    with pytest.raises(InvalidValue, match="no newline"):
        Sorter(Keys(), 1, tmp_path).add(b"a")
