"""Logs that are rotated under those who write and read them."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.sandboxes import rotation
from agent.sandboxes.logfile import START, Cuts, LogFile, cuts_on_disk
from agent.sandboxes.rotation import Limits, Rotator, rotate
from mesos_py.metrics import Metrics

LIMITS = Limits(max_bytes=10_000, max_parts=2)


class Log:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        self.cuts = Cuts()
        self.fd = os.open(path / "stdout", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self.written = 0

    def close(self) -> None:
        os.close(self.fd)
        os.close(self.directory)

    def write(self, lines: int) -> None:
        """Each line is ten bytes, and says where it begins."""
        for _ in range(lines):
            os.write(self.fd, b"%09d\n" % self.written)
            self.written += 10

    def rotate(self, limits: Limits = LIMITS) -> None:
        rotate(self.directory, "stdout", self.cuts, limits)

    def reader(self, *, known: bool = True) -> LogFile:
        cuts = (lambda *_: self.cuts) if known else (lambda name, fd: cuts_on_disk(fd, name))
        return LogFile(self.directory, ["stdout"], cuts)

    def all(self, at: int = 0, *, known: bool = True) -> tuple[int, bytes]:
        """From where, and what."""
        file = self.reader(known=known)
        try:
            first, data = file.read(at, 100_000)
            parts = [data]
            at = first + len(data)
            while data:
                at, data = file.read(at, 100_000)
                parts.append(data)
                at += len(data)
            return first, b"".join(parts)
        finally:
            file.close()

    def size(self, name: str) -> int:
        return (self.path / name).stat().st_size


@pytest.fixture(params=["collapsed", "truncated"])
def log(tmp_path: Path, request, monkeypatch) -> Iterator[Log]:
    """With and without the help of the file system (where it has none, twice without)."""
    if request.param == "truncated":
        monkeypatch.setattr(rotation, "_collapse", lambda fd, length: False)
    made = Log(tmp_path)
    yield made
    made.close()


def text(start: int, end: int) -> bytes:
    return b"".join(b"%09d\n" % at for at in range(start, end, 10))


def test_what_was_written_moves_into_a_part_and_readers_see_no_seam(log):
    log.write(1500)
    log.rotate()
    assert log.size("stdout") < 5_000
    assert log.size("stdout.1") + log.size("stdout") == 15_000
    log.write(100)
    assert log.all() == (0, text(0, 16_000))
    assert log.all(14_990) == (14_990, text(14_990, 16_000))
    assert log.all(15_500)[1] == text(15_500, 16_000)
    assert log.all(16_000) == (16_000, b"")
    assert sorted(each.name for each in log.path.iterdir()) == ["stdout", "stdout.1"]


def test_only_so_many_parts_are_kept_and_a_reader_goes_on_with_what_is_there(log):
    for _ in range(5):
        log.write(1500)
        log.rotate()
    assert sorted(each.name for each in log.path.iterdir()) == ["stdout", "stdout.1", "stdout.2"]
    first, data = log.all()
    assert first > 0
    assert data == text(0, log.written)[first:]
    file = log.reader()
    assert file.bounds()[0] == first
    assert file.bounds()[2] == log.written
    file.close()


def test_a_follower_neither_misses_nor_repeats_a_line(log):
    file = log.reader()
    seen = b""
    for step in range(40):
        log.write(100)
        if log.size("stdout") > LIMITS.max_bytes:
            log.rotate()
        if step % 3 == 0 or step == 39:
            at = len(seen)
            while True:
                at, data = file.read(at, 777)
                if not data:
                    break
                assert at == len(seen)
                seen += data
                at += len(data)
    file.close()
    assert seen == text(0, log.written)


def test_a_task_that_writes_all_the_time_loses_nothing_where_the_front_is_cut_off(
    tmp_path, lacking
):
    log = Log(tmp_path)
    log.write(1000)
    if not rotation._collapse(log.fd, 4096):
        log.close()
        lacking("a file system with FALLOC_FL_COLLAPSE_RANGE")
    os.ftruncate(log.fd, 0)
    log.written = 0
    stop = threading.Event()
    # Wide enough that nothing has to go before it is read.
    limits = Limits(max_bytes=300_000, max_parts=20)

    file = log.reader()
    seen = bytearray()

    def write() -> None:
        while not stop.is_set() and log.written < 3_000_000:
            # A part holds twice the size at which a log is rotated: while nobody rotates,
            # which may take any time, no more than that comes together.
            if log.written - len(seen) < limits.max_bytes // 3:
                log.write(50)
            else:
                os.sched_yield()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        while writer.is_alive() or len(seen) < log.written:
            if log.size("stdout") > limits.max_bytes:
                log.rotate(limits)
            at, data = file.read(len(seen), 1 << 20)
            assert at == len(seen)
            seen += data
    finally:
        stop.set()
        writer.join()
        file.close()
        log.close()
    assert log.cuts.cut > 0
    assert bytes(seen) == text(0, log.written)


def test_another_run_of_the_agent_finds_the_parts_and_counts_on(log, lacking):
    for _ in range(3):
        log.write(1500)
        log.rotate()
    log.write(10)
    try:
        os.getxattr(log.path / "stdout.1", START)
    except OSError:
        lacking("a file system with extended attributes")
    first, data = log.all(known=False)
    assert 0 < first == log.all()[0]
    assert data == text(0, log.written)[first:]


def test_files_of_the_task_that_are_called_like_parts_are_none(log):
    (log.path / "stdout.1").write_text("not a log")
    log.write(3)
    assert log.all(known=False) == (0, text(0, 30))
    os.setxattr(log.path / "stdout.1", START, b"-5")
    assert log.all(known=False) == (0, text(0, 30))


def test_a_log_that_grew_much_too_fast_keeps_its_newest(log):
    log.write(10_000)
    log.rotate()
    assert log.size("stdout.1") <= 2 * LIMITS.max_bytes + 4096
    first, data = log.all()
    assert data == text(0, 100_000)[first:]
    assert log.all(0)[0] == first


def test_what_a_task_itself_cuts_off_is_no_rotation(log):
    log.write(10)
    os.ftruncate(log.fd, 0)
    os.write(log.fd, b"new\n")
    assert log.all() == (0, b"new\n")


@pytest.mark.parametrize("planted", ["link", "hard link", "directory", "pipe"])
def test_a_planted_log_is_left_alone(tmp_path, planted):
    canary = tmp_path / "canary"
    canary.write_bytes(b"c" * 20_000)
    sandbox = tmp_path / "sandbox"
    sandbox.mkdir()
    out = sandbox / "stdout"
    if planted == "link":
        out.symlink_to(canary)
    elif planted == "hard link":
        out.hardlink_to(canary)
    elif planted == "directory":
        out.mkdir()
    else:
        os.mkfifo(out)
    (sandbox / "stderr").write_bytes(b"e" * 20_000)
    made = Rotator(str(tmp_path), LIMITS, dict, Metrics())
    for _ in range(2):
        made.sweep({"c": ("sandbox",)})
    assert canary.read_bytes() == b"c" * 20_000
    assert not (sandbox / "stdout.1").exists()
    # The other one is rotated all the same.
    assert (sandbox / "stderr.1").exists()


def test_planted_parts_are_replaced_not_followed(log, tmp_path):
    canary = tmp_path.parent / "canary"
    canary.write_text("unharmed")
    for name in ("stdout.1", "stdout.2", ".rotating-stdout"):
        (log.path / name).symlink_to(canary)
    log.write(1500)
    log.rotate()
    assert canary.read_text() == "unharmed"
    assert not (log.path / "stdout.1").is_symlink()
    assert log.all() == (0, text(0, 15_000))
    canary.unlink()


def test_a_part_that_cannot_be_made_costs_no_line(log):
    (log.path / "stdout.1").mkdir()
    (log.path / "stdout.2").mkdir()
    (log.path / "stdout.2/full").touch()
    log.write(1500)
    with pytest.raises(OSError):  # noqa: PT011 - which one depends on what stands there
        log.rotate()
    assert log.size("stdout") == 15_000
    assert not (log.path / ".rotating-stdout").exists()
    assert log.all() == (0, text(0, 15_000))


def test_a_sweep_looks_at_all_and_touches_only_what_is_too_large(tmp_path):
    for name, size in (("small", 10_000), ("large", 10_001)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "stdout").write_bytes(b"x" * size)
    metrics = Metrics()
    made = Rotator(str(tmp_path), LIMITS, dict, metrics)
    made.sweep({name: (name,) for name in ("small", "large", "gone")})
    assert not (tmp_path / "small/stdout.1").exists()
    assert (tmp_path / "large/stdout.1").exists()
    assert metrics.snapshot()["log_rotations_total"] == 1
