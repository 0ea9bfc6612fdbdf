"""Sandboxes: made and opened without ever following a link that a task may have planted."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.containers import sandbox

PARTS = ("agents", "A", "runs", "c1")


@pytest.fixture
def root(tmp_path: Path) -> Iterator[int]:
    with sandbox.opened(str(tmp_path)) as fd:
        yield fd


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    """A file outside of all sandboxes that nobody may read or change through one."""
    path = tmp_path / "canary"
    path.write_text("secret")
    return path


def make(root: int, *parts: str) -> int:
    return sandbox.create(root, parts or PARTS, os.getuid(), os.getgid())


def test_a_sandbox_is_private_to_its_user_and_latest_names_it(root, tmp_path):
    with sandbox.closing(make(root)) as fd:
        assert stat.S_IMODE(os.fstat(fd).st_mode) == 0o750
    assert (tmp_path / "agents/A/runs/latest").readlink() == Path("c1")
    os.close(make(root, "agents", "A", "runs", "c2"))
    assert (tmp_path / "agents/A/runs/latest").readlink() == Path("c2")
    assert sorted(p.name for p in (tmp_path / "agents/A/runs").iterdir()) == ["c1", "c2", "latest"]


def test_making_it_twice_is_making_it_once(root):
    os.close(make(root))
    os.close(make(root))


def test_output_is_appended_to(root, tmp_path):
    with sandbox.closing(make(root)) as fd:
        for text in (b"a", b"b"):
            with sandbox.closing(
                sandbox.open_output(fd, "stdout", os.getuid(), os.getgid())
            ) as out:
                os.write(out, text)
    assert (tmp_path / "agents/A/runs/c1/stdout").read_text() == "ab"


@pytest.mark.parametrize("part", ["", ".", "..", "a/b", "/etc", "a\0b"])
def test_a_name_that_leads_elsewhere_is_refused(root, part):
    with pytest.raises(ValueError, match="no name"):
        make(root, "agents", part)
    with sandbox.closing(make(root)) as fd, pytest.raises(ValueError, match="no name"):
        sandbox.open_file(fd, [part])


def test_a_link_in_place_of_stdout_is_not_written_through(root, tmp_path, canary):
    with sandbox.closing(make(root)) as fd:
        (tmp_path / "agents/A/runs/c1/stdout").symlink_to(canary)
        with pytest.raises(OSError, match="symbolic links"):
            sandbox.open_output(fd, "stdout", os.getuid(), os.getgid())
    assert canary.read_text() == "secret"


def test_a_hard_link_to_somebody_elses_file_is_not_given_away_as_stdout(root, tmp_path, canary):
    before = canary.stat()
    with sandbox.closing(make(root)) as fd:
        (tmp_path.joinpath(*PARTS) / "stdout").hardlink_to(canary)
        with pytest.raises(PermissionError, match="is a link to somebody else's file"):
            sandbox.open_output(fd, "stdout", os.getuid() + 1, os.getgid())
        # One that is a link to another of the same user does no harm.
        os.close(sandbox.open_output(fd, "stdout", before.st_uid, before.st_gid))
    assert (canary.stat().st_uid, canary.stat().st_gid) == (before.st_uid, before.st_gid)


def test_a_pipe_in_place_of_stdout_neither_hangs_nor_is_used(root, tmp_path):
    with sandbox.closing(make(root)) as fd:
        os.mkfifo(tmp_path / "agents/A/runs/c1/stdout")
        with pytest.raises(OSError):  # noqa: PT011  # no reader, or no regular file
            sandbox.open_output(fd, "stdout", os.getuid(), os.getgid())


def test_a_link_in_place_of_a_directory_above_is_not_followed(root, tmp_path):
    (tmp_path / "agents").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "agents/A").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
        make(root)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_links_are_refused_wherever_they_stand_on_the_path(root, tmp_path, canary):
    place = tmp_path / "agents/A/runs/c1"
    with sandbox.closing(make(root)) as fd:
        (place / "real").mkdir()
        (place / "real/file").write_text("x")
        (place / "file-link").symlink_to(canary)
        (place / "up").symlink_to(tmp_path)
        (place / "dir-link").symlink_to("real")
        (place / "dangling").symlink_to("nowhere")
        os.close(sandbox.open_file(fd, ["real", "file"]))
        for parts in (["file-link"], ["up", "canary"], ["dir-link", "file"], ["dangling"]):
            with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
                sandbox.open_file(fd, parts)


def test_only_regular_files_are_read(root, tmp_path):
    place = tmp_path / "agents/A/runs/c1"
    with sandbox.closing(make(root)) as fd:
        (place / "dir").mkdir()
        os.mkfifo(place / "pipe")
        for name in ("dir", "pipe"):
            with pytest.raises(OSError, match="no regular file"):
                sandbox.open_file(fd, [name])


@pytest.mark.needs("root")
def test_a_hard_link_to_somebody_elses_file_is_not_read(root, tmp_path, canary):
    with sandbox.closing(sandbox.create(root, PARTS, 65534, 65534)) as fd:
        os.link(canary, tmp_path / "agents/A/runs/c1/linked")
        with pytest.raises(OSError, match="somebody else's"):
            sandbox.open_file(fd, ["linked"])


@pytest.mark.needs("root")
def test_a_sandbox_and_its_files_belong_to_the_tasks_user(root, tmp_path):
    with sandbox.closing(sandbox.create(root, PARTS, 65534, 65534)) as fd:
        os.close(sandbox.open_output(fd, "stderr", 65534, 65534))
    for name in ("agents/A/runs/c1", "agents/A/runs/c1/stderr"):
        assert (tmp_path / name).stat().st_uid == 65534
    assert (tmp_path / "agents/A/runs").stat().st_uid == 0


@pytest.mark.needs("root")
def test_directories_in_a_sandbox_are_made_for_its_owner_and_follow_no_link(root, tmp_path):
    with sandbox.closing(make(root)) as fd:
        for _ in range(2):
            os.close(sandbox.make_directory(fd, ["a", "b"], 65534, 65534))
        place = tmp_path / "agents/A/runs/c1"
        assert [(place / name).stat().st_uid for name in ("a", "a/b")] == [65534, 65534]
        (place / "link").symlink_to("/tmp")
        for parts in (["link"], ["link", "x"], ["..", "x"]):
            with pytest.raises((OSError, ValueError)):
                sandbox.make_directory(fd, parts, 65534, 65534)


def test_the_race_of_swapping_a_file_for_a_link_never_shows_the_canary(root, tmp_path, canary):
    place = tmp_path / "agents/A/runs/c1"
    with sandbox.closing(make(root)) as fd:
        (place / "plain").write_text("mine")
        (place / "link").symlink_to(canary)
        for turn in range(300):
            other = place / ("link" if turn % 2 else "plain")
            temporary = place / "next"
            if other.is_symlink():
                temporary.symlink_to(canary)
            else:
                temporary.write_text("mine")
            temporary.rename(place / "target")
            try:
                opened = sandbox.open_file(fd, ["target"])
            except OSError:
                continue
            with sandbox.closing(opened):
                assert os.read(opened, 100) == b"mine"
