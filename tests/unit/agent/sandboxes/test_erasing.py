"""Removing what tasks leave behind, however odd."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.containers import sandbox
from agent.sandboxes.erasing import Trash, mounted_beneath


@pytest.fixture
def root(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield fd
    os.close(fd)


def erase(root: int, name: str) -> list[OSError]:
    trash = Trash(root, "trash")
    try:
        trash.take(root, name)
        return trash.empty()
    finally:
        trash.close()


def test_everything_odd_goes(root, tmp_path):
    sandbox = tmp_path / "sandbox"
    (sandbox / "dir/dir").mkdir(parents=True)
    (sandbox / "dir/file").write_text("x")
    (sandbox / "dangling").symlink_to("nowhere")
    (sandbox / "loop").symlink_to("loop")
    os.mkfifo(sandbox / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(sandbox / "socket"))
    (sandbox / "dir/dir").chmod(0)
    (sandbox / "dir").chmod(0o500)
    (Path(os.fsdecode(os.fsencode(sandbox) + b"/\xff"))).write_text("x")
    (sandbox / ("n" * 255)).write_text("x")
    assert erase(root, "sandbox") == []
    assert [each.name for each in tmp_path.iterdir()] == ["trash"]
    assert not list((tmp_path / "trash").iterdir())


def test_a_path_is_no_name_to_take(root, tmp_path):
    victim = tmp_path / "elsewhere/victim"
    victim.mkdir(parents=True)
    (tmp_path / "link").symlink_to("elsewhere")
    for name in ("link/victim", "..", ""):
        with pytest.raises(ValueError, match="no name beneath"):
            erase(root, name)
    assert victim.is_dir()


@pytest.mark.long
def test_a_tree_deeper_than_paths_and_descriptors_go(root, tmp_path):
    (tmp_path / "sandbox").mkdir()
    at = os.open(tmp_path / "sandbox", os.O_RDONLY)
    for _ in range(2000):
        os.mkdir("d" * 20, dir_fd=at)
        below = os.open("d" * 20, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=at))
    os.close(at)
    assert erase(root, "sandbox") == []
    assert not list((tmp_path / "trash").iterdir())


def test_names_that_are_in_the_trash_already_are_no_obstacle(root, tmp_path):
    for name in ("0-a", "1-a"):
        (tmp_path / "trash" / name).mkdir(parents=True)
    (tmp_path / "a").mkdir()
    assert erase(root, "a") == []
    assert not list((tmp_path / "trash").iterdir())


def test_two_that_share_a_trash_neither_take_the_same_name_nor_empty_each_others(root, tmp_path):
    for above in ("a", "b"):
        (tmp_path / above / "same" / "dir").mkdir(parents=True)
    first, second = Trash(root, "trash"), Trash(root, "trash")
    try:
        # Both have looked for a free name before either takes one.
        assert first._free_name("same") != second._free_name("same")
        with sandbox.closing(sandbox.open_directory(root, ["a"])) as fd:
            first.take(fd, "same")
        with sandbox.closing(sandbox.open_directory(root, ["b"])) as fd:
            second.take(fd, "same")
        assert first.empty_taken() == []
        (left,) = (tmp_path / "trash").iterdir()
        assert (left / "dir").is_dir()
        assert second.empty() == second.empty_taken() == []
    finally:
        first.close()
        second.close()
    assert not any((tmp_path / "trash").iterdir())


def test_what_was_deep_in_what_was_taken_goes_with_it(root, tmp_path):
    deepest = tmp_path / "sandbox" / "/".join("d" * 70)
    deepest.mkdir(parents=True)
    (deepest / "file").write_text("x")
    trash = Trash(root, "trash")
    try:
        trash.take(root, "sandbox")
        assert trash.empty_taken() == []
    finally:
        trash.close()
    assert not any((tmp_path / "trash").iterdir())


def test_what_is_linked_to_stays(root, tmp_path):
    canary = tmp_path / "canary"
    canary.mkdir()
    (canary / "file").write_text("unharmed")
    (tmp_path / "a").symlink_to(canary)
    assert erase(root, "a") == []
    assert (canary / "file").read_text() == "unharmed"


@pytest.mark.needs("root", "chattr")
def test_immutable_files_of_root_go(root, tmp_path, lacking):
    import subprocess

    sandbox = tmp_path / "sandbox"
    (sandbox / "dir").mkdir(parents=True)
    (sandbox / "dir/file").write_text("x")
    for each in (sandbox / "dir/file", sandbox / "dir", sandbox):
        if subprocess.run(["chattr", "+i", each], capture_output=True).returncode:
            lacking("a file system with attributes")
    assert erase(root, "sandbox") == []
    assert not list((tmp_path / "trash").iterdir())


def test_mounts_are_known(tmp_path):
    assert "/proc" in mounted_beneath(Path("/"))
    assert mounted_beneath(tmp_path) == set()
