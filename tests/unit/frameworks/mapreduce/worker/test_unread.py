"""What is still in a pipe that is the stdin of a program.  The test reads in its place."""

import os
import subprocess
from collections.abc import Iterator

import pytest

from frameworks.mapreduce.worker.programs import pipe
from frameworks.mapreduce.worker.unread import Unread


@pytest.fixture
def ends() -> Iterator[tuple[int, int]]:
    read, write = pipe()
    yield read, write
    for fd in (read, write):
        os.close(fd)


@pytest.fixture
def program(ends) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"], stdin=ends[0]) as process:
        yield process
        process.kill()


def test_what_was_written_and_not_read_yet_is_counted_and_reading_is_told(ends, program):
    told: list[int] = []
    unread = Unread(ends[1], lambda: told.append(1))
    assert unread.bytes_at(program.pid) == 0
    os.write(ends[1], b"x" * 250)
    assert unread.bytes_at(program.pid) == 250
    assert not told
    os.read(ends[0], 100)
    assert unread.bytes_at(program.pid) == 150
    assert len(told) == 1
    assert unread.bytes_at(program.pid) == 150
    assert len(told) == 1


def test_of_another_pipe_or_a_process_that_has_ended_nothing_is_said(ends, program):
    os.write(ends[1], b"x" * 250)
    other, write = pipe()
    try:
        assert Unread(other, lambda: None).bytes_at(program.pid) == 0
    finally:
        os.close(other)
        os.close(write)
    unread = Unread(ends[0], lambda: None)
    assert unread.bytes_at(program.pid) == 250
    program.kill()
    program.wait()
    assert unread.bytes_at(program.pid) == 0


def test_no_end_is_kept_who_writes_learns_that_nobody_reads():
    read, write = pipe()
    with subprocess.Popen(["sleep", "600"], stdin=read) as reader:
        os.close(read)
        unread = Unread(write, lambda: None)
        os.write(write, b"x")
        assert unread.bytes_at(reader.pid) == 1
        reader.kill()
    with pytest.raises(BrokenPipeError):
        os.write(write, b"x")
    os.close(write)
