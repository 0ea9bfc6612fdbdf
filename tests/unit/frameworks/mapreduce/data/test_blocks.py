"""Blocks of lines."""

import pytest

from frameworks.mapreduce.data.blocks import lines_in


@pytest.mark.parametrize("block", [b"", b"a", b"\n", b"a\nb\n\n", b"a" * 1000 + b"\n"])
def test_lines_are_counted(block):
    assert lines_in(block) == block.count(b"\n")
