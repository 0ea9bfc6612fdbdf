"""Counting what is beneath a directory whose owner means no good."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.isolation.disk.walk import KEPT_OPEN, Stopped, used_beneath

KB = 1024


@contextlib.contextmanager
def opened(path: Path) -> Iterator[int]:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield fd
    finally:
        os.close(fd)


def used(path: Path) -> int:
    with opened(path) as fd:
        return used_beneath(fd).bytes


def du(path: Path) -> int:
    """What coreutils say."""
    text = subprocess.run(
        ["du", "--summarize", "--one-file-system", "--block-size=1", str(path)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return int(text.split()[0])


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def fill(path: Path, size_kb: int) -> Path:
    path.write_bytes(b"x" * KB * size_kb)
    return path


def chain(top: Path, depth: int) -> None:
    """A directory in a directory, `depth` deep: no path is long enough to name the last."""
    fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=fd)
        below = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Path]:
    made = tmp_path / "sandbox"
    made.mkdir()
    yield made
    # Not by shutil: it recurses, and some of these are deep.
    subprocess.run(["rm", "-rf", str(made)], check=True)


def test_an_empty_directory_takes_what_it_takes_itself(box):
    assert used(box) == box.stat().st_blocks * 512


def test_files_count_by_their_blocks_in_all_directories(box):
    fill(box / "a", 100)
    (box / "sub" / "sub").mkdir(parents=True)
    fill(box / "sub" / "sub" / "b", 50)
    assert used(box) == du(box) >= 150 * KB


def test_holes_in_files_take_nothing(box):
    with (box / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    assert used(box) == du(box) < 1 << 20


def test_a_file_with_several_names_counts_once(box):
    fill(box / "a", 100)
    (box / "sub").mkdir()
    os.link(box / "a", box / "b")
    os.link(box / "a", box / "sub" / "c")
    assert used(box) == du(box) < 200 * KB


def test_links_are_not_followed_wherever_they_lead(box, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    fill(outside / "big", 500)
    (box / "file").symlink_to(outside / "big")
    (box / "directory").symlink_to(outside)
    (box / "above").symlink_to("..")
    (box / "itself").symlink_to("itself")
    assert used(box) == du(box) < 100 * KB


def test_pipes_and_sockets_are_not_opened(box):
    os.mkfifo(box / "pipe")
    assert used(box) == du(box)


def test_names_may_be_anything_a_name_can_be(box):
    box.joinpath(os.fsdecode(b"\xff\n \xfe")).mkdir()
    fill(box / "-rf", 8)
    assert used(box) == du(box)


@pytest.mark.long
def test_ten_thousand_directories_deep_needs_few_descriptors(box, monkeypatch):
    chain(box, 10_000)
    most = 0
    real = os.scandir

    def counting(fd):
        nonlocal most
        most = max(most, open_files())
        return real(fd)

    before = open_files()
    monkeypatch.setattr("os.scandir", counting)
    with opened(box) as fd:
        found = used_beneath(fd)
    assert found.bytes == du(box)
    assert found.skipped == 0
    assert most - before < KEPT_OPEN + 10


def during_the_scan_of(monkeypatch, name: str, act) -> None:
    """Call `act` when a directory that holds `name` has just been listed."""
    real = os.scandir
    done: list[bool] = []

    class Listing:
        def __init__(self, entries):
            self.entries = entries

        def __enter__(self):
            return iter(self.found())

        def found(self):
            entries = list(self.entries)
            for entry in entries:
                entry.stat(follow_symlinks=False)
            if not done and name in [entry.name for entry in entries]:
                done.append(True)
                act()
            return entries

        def __exit__(self, *_):
            self.entries.close()

    monkeypatch.setattr("os.scandir", lambda fd: Listing(real(fd)))


def test_a_directory_that_vanishes_during_the_walk_is_no_error(box, monkeypatch):
    (box / "goes" / "sub").mkdir(parents=True)
    fill(box / "stays", 64)
    during_the_scan_of(monkeypatch, "goes", lambda: shutil.rmtree(box / "goes"))
    assert used(box) >= 64 * KB


def test_a_directory_that_becomes_a_link_during_the_walk_is_not_followed(
    box, tmp_path, monkeypatch
):
    outside = tmp_path / "outside"
    outside.mkdir()
    fill(outside / "big", 500)
    (box / "sub").mkdir()

    def swap() -> None:
        (box / "sub").rmdir()
        (box / "sub").symlink_to(outside)

    during_the_scan_of(monkeypatch, "sub", swap)
    assert used(box) < 100 * KB


def test_a_deep_directory_that_is_moved_out_during_the_walk_leads_nowhere_else(
    box, tmp_path, monkeypatch
):
    """The way back by ".." would end in a tree that is not the sandbox."""
    outside = tmp_path / "outside"
    outside.mkdir()
    fill(outside / "big", 500)
    chain(box, 3 * KEPT_OPEN)
    second = box / "d" / "d"
    deepest = box.joinpath(*["d"] * (3 * KEPT_OPEN))
    (deepest / "last").mkdir()
    fill(box / "counted", 64)
    during_the_scan_of(monkeypatch, "last", lambda: second.rename(outside / "moved"))
    with opened(box) as fd:
        found = used_beneath(fd)
    assert 64 * KB <= found.bytes < 500 * KB + 3 * KEPT_OPEN * 4 * KB


def test_nobody_wants_to_know_any_more(box):
    (box / "sub").mkdir()
    with opened(box) as fd, pytest.raises(Stopped):
        used_beneath(fd, lambda: True)


def test_a_directory_without_rights_is_said_to_be_skipped(box, monkeypatch):
    (box / "closed").mkdir()
    fill(box / "closed" / "hidden", 64)
    real = os.open

    def refusing(name, *arguments, **options):
        if name == "closed":
            raise PermissionError(13, "Permission denied", name)
        return real(name, *arguments, **options)

    monkeypatch.setattr("os.open", refusing)
    with opened(box) as fd:
        found = used_beneath(fd)
    assert found.skipped == 1
    assert found.bytes < 64 * KB


KINDS = st.sampled_from(["file", "sparse", "directory", "symlink", "hard link", "pipe"])
STEPS = st.lists(st.tuples(KINDS, st.integers(0, 9), st.integers(0, 40)), max_size=25)


@settings(
    max_examples=min(40, settings().max_examples),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(steps=STEPS)
def test_any_tree_is_counted_as_du_counts_it(box, steps):
    top = Path(tempfile.mkdtemp(dir=box))
    places, files = [top], [fill(top / "first", 1)]
    for number, (kind, where, size_kb) in enumerate(steps):
        path = places[where % len(places)] / f"n{number}"
        if kind == "file":
            files.append(fill(path, size_kb))
        elif kind == "sparse":
            with path.open("wb") as file:
                file.truncate(size_kb << 20)
        elif kind == "directory":
            path.mkdir()
            places.append(path)
        elif kind == "symlink":
            path.symlink_to([*places, *files][where % (len(places) + len(files))])
        elif kind == "hard link":
            os.link(files[where % len(files)], path)
        else:
            os.mkfifo(path)
    assert used(top) == du(top)
