from __future__ import annotations

import os
from pathlib import Path

import pytest

from frameworks.rdd.executor import packets
from frameworks.rdd.files import Content


def file_of(data: bytes) -> int:
    fd = packets.memory_file("test")
    packets.write_all(fd, data, 0)
    return fd


def test_a_block_that_goes_before_its_first_piece_was_asked_for_is_given_all_the_same():
    """Its number may be another block's by then, and that one be given for it."""
    fd = file_of(b"..right..")
    content = Content(fd, 5, 2)
    os.close(fd)
    other = file_of(b"..wrong..")
    assert other == fd
    assert b"".join(content) == b"right"
    content.close()
    os.close(other)


@pytest.mark.parametrize("close", [Content.close, Content.__del__])
def test_nothing_stays_open_of_what_nobody_has_read(close):
    fd = file_of(b"x")
    before = len(list(Path("/proc/self/fd").iterdir()))
    content = Content(fd, 1)
    close(content)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    content.close()
    assert list(content) == []
    os.close(fd)
