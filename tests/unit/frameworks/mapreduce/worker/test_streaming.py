from __future__ import annotations

from frameworks.mapreduce.data.keys import Keys
from frameworks.mapreduce.worker.streaming import counted, rejoined


def test_blocks_go_through_as_they_are_counted():
    seen = []
    blocks = [b"a\nb\n", b"c\n"]
    assert list(counted(iter(blocks), lambda *counts: seen.append(counts))) == blocks
    assert seen == [(2, 4), (1, 2)]


def test_key_and_value_are_parted_as_the_reducer_reads_them():
    keys = Keys.of(
        {"stream.map.output.field.separator": "::", "stream.num.map.output.key.fields": "2"}
    )
    blocks = [b"a::1::x::y\nalone\n", b"a::2\na::3::\n"]
    assert list(rejoined(iter(blocks), keys, b"\t")) == [
        b"a::1\tx::y\nalone\n",
        b"a::2\na::3\t\n",
    ]


def test_with_the_same_separator_nothing_is_touched():
    blocks = [b"a\t1\n", b"b\n"]
    assert list(rejoined(iter(blocks), Keys.of({}), b"\t")) == blocks
