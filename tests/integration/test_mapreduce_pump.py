"""Bytes through programs: one thread, three pipes."""

from __future__ import annotations

import itertools
import os
import time
from pathlib import Path

import pytest

from frameworks.mapreduce.functions import packed
from frameworks.mapreduce.job import Program
from frameworks.mapreduce.worker import pump
from frameworks.mapreduce.worker.failures import AttemptFailed
from frameworks.mapreduce.worker.functions import Form
from frameworks.mapreduce.worker.programs import Launcher, Running
from frameworks.mapreduce.worker.pump import Pump, checked
from frameworks.mapreduce.worker.reports import Reports, Tally


class Watch:
    def __init__(self):
        self.moves = 0

    def moved(self):
        self.moves += 1

    def tick(self):
        pass


class Turns:
    """A clock that goes on by a turn of the pump's when it is asked: one that only the pump
    goes by, and not a machine that stands still for a while."""

    def __init__(self):
        self.now_s = 0.0

    def monotonic(self):
        self.now_s += pump._TICK_S
        return self.now_s


class Programs:
    def __init__(self, directory):
        self.launcher = Launcher(directory, {"PATH": os.environ["PATH"]})
        self.log: list[bytes] = []
        self.reports = Reports(Tally(), self.log.append)
        self.watch = Watch()
        self.started: list[Running] = []

    def start(self, what: str | bytes) -> Pump:
        program = Program(command=what) if isinstance(what, str) else Program(function=what)
        self.started.append(self.launcher.start(program, "mapper", Form(False)))
        return Pump(self.started[-1], self.reports, self.watch)

    def run(self, what, blocks):
        made = self.start(what)
        return b"".join(made.run(iter(blocks))), made.code

    def assert_all_ended(self):
        for running in self.started:
            assert running.child.ended() is not None
            assert (running.stdin, running.stdout, running.stderr) == (-1, -1, -1)


@pytest.fixture
def programs(tmp_path):
    made = Programs(tmp_path)
    yield made
    made.assert_all_ended()


def test_what_goes_in_comes_out_in_blocks_of_whole_lines(programs):
    lines = [b"%d %s\n" % (number, b"x" * (number % 200)) for number in range(60_000)]
    made = programs.start("cat")
    blocks = list(made.run(iter([b"".join(lines[:1000]), b"", b"".join(lines[1000:])])))
    assert b"".join(blocks) == b"".join(lines)
    assert len(blocks) > 5
    assert all(block.endswith(b"\n") for block in blocks)
    assert made.code == 0
    assert programs.watch.moves > len(blocks)


def test_nothing_in_nothing_out(programs):
    assert programs.run("cat", []) == (b"", 0)


def test_a_line_longer_than_a_chunk_stays_one(programs):
    line = b"y" * (3 * pump.CHUNK) + b"\n"
    made = programs.start("cat")
    written = made.run(iter([line, b"z\n"]))
    assert next(written).startswith(line)
    written.close()


def test_a_line_without_end_is_the_program_s_fault(programs, monkeypatch):
    monkeypatch.setattr(pump, "MAX_LINE", 5_000_000)
    with pytest.raises(AttemptFailed, match="without a newline") as caught:
        programs.run("tr '\\n' ' '", itertools.repeat(b"yes\n" * 10_000))
    assert caught.value.blame == "program"


def test_a_program_that_reads_no_more_gets_no_more(programs):
    taken = itertools.count()
    blocks = (b"%d\n" % number * 1000 for number in taken)
    assert programs.run("head -n 1", blocks) == (b"0\n", 0)
    assert next(taken) < 10_000


def test_a_program_that_closes_its_stdin_may_go_on_writing(programs):
    out, code = programs.run("sh -c 'exec <&-; sleep 0.2; echo late'", itertools.repeat(b"x\n"))
    assert (out, code) == (b"late\n", 0)


def test_a_program_that_closes_its_stdout_is_waited_for(programs):
    assert programs.run("sh -c 'exec >&- 2>&-; sleep 0.3; exit 5'", [b"x\n"]) == (b"", 5)


def test_who_goes_on_writing_for_a_program_that_has_ended_is_heard(programs, monkeypatch):
    monkeypatch.setattr(pump, "_LEFT_BEHIND_S", 2.0)
    monkeypatch.setattr(pump, "time", Turns())
    late = "(for i in 1 2 3 4 5; do sleep 0.6; echo $i; done; sleep 1000) &"
    out, code = programs.run(f"sh -c '{late}'", [])
    assert (out, code) == (b"1\n2\n3\n4\n5\n", 0)


def test_a_reader_that_goes_away_ends_the_program(programs):
    made = programs.start("sh -c 'cat; sleep 1000'")
    written = made.run(itertools.repeat(b"x\n" * 100_000))
    next(written)
    began = time.monotonic()
    written.close()
    assert time.monotonic() - began < 100
    assert made.code == -9


def test_an_error_of_what_feeds_it_ends_the_program(programs):
    def broken():
        yield b"x\n"
        raise KeyError("fed")

    with pytest.raises(KeyError, match="fed"):
        programs.run("sh -c 'cat; sleep 1000'", broken())


def test_a_function_runs_as_a_program_does(programs):
    def mapper(line):
        yield line.upper(), None

    mapper.__module__ = "__main__"
    assert programs.run(packed(mapper), [b"a\nb\n"]) == (b"A\nB\n", 0)


def test_others_are_read_beside_it(programs):
    read, write = os.pipe()
    os.write(write, b"told")
    os.close(write)
    heard = []

    def take():
        heard.append(os.read(read, 100))
        return bool(heard[-1])

    running = programs.launcher.start(Program(command="sleep 0.5"), "mapper", Form(False))
    programs.started.append(running)
    list(Pump(running, programs.reports, programs.watch, {read: take}).run(iter([])))
    os.close(read)
    assert heard == [b"told", b""]


def test_the_exit_code_counts_unless_it_is_not_to(programs):
    made = programs.start("sh -c 'echo why >&2; exit 3'")
    assert list(made.run(iter([]))) == []
    with pytest.raises(AttemptFailed, match="exit code 3: why"):
        checked(made, "mapper", programs.reports, set(), strict=True)
    checked(made, "mapper", programs.reports, set(), strict=False)
    killed = programs.start("sh -c 'kill -9 $$'")
    assert list(killed.run(iter([]))) == []
    with pytest.raises(AttemptFailed, match="SIGKILL"):
        checked(killed, "mapper", programs.reports, set(), strict=False)


@pytest.mark.parametrize("command", ["", " ", "'", "no-such-program", "./no-such-script"])
def test_what_cannot_be_started_leaves_nothing_open(programs, command, tmp_path):
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(AttemptFailed):
        programs.launcher.start(Program(command=command), "mapper", Form(False))
    assert len(list(Path("/proc/self/fd").iterdir())) == before
