"""Links to volumes: made in sandboxes without following what a task may have planted."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.containers import sandbox, volume_links
from agent.core.sandbox_paths import Link
from mesos_py.errors import InvalidValue

ME = (os.getuid(), os.getgid())


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A sandbox."""
    path = tmp_path / "sandbox"
    path.mkdir()
    return path


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory that is none of the task's business."""
    path = tmp_path / "outside"
    path.mkdir()
    return path


@pytest.fixture
def opened(place: Path) -> Iterator[int]:
    with sandbox.opened(str(place)) as fd:
        yield fd


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("data", ("data",)),
        ("data/", ("data",)),
        ("./a//b/.", ("a", "b")),
        ("..data/x..", ("..data", "x..")),
        ("/".join(["d"] * volume_links.MAX_DEPTH), ("d",) * volume_links.MAX_DEPTH),
    ],
)
def test_a_path_is_its_names(path, names):
    assert volume_links.names_beneath("path", path) == names


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("", "beneath"),
        (".", "beneath"),
        ("/", "not an absolute"),
        ("/data", "not an absolute"),
        ("..", r"'\.\.'"),
        ("a/../../b", r"'\.\.'"),
        ("a\0b", "NUL"),
        ("/".join(["d"] * (volume_links.MAX_DEPTH + 1)), "64 directories"),
    ],
)
def test_what_may_lead_elsewhere_is_refused_by_field_and_value(opened, path, why):
    with pytest.raises(InvalidValue, match=why) as caught:
        volume_links.names_beneath("volumes[2].path", path)
    assert (caught.value.field, caught.value.value) == ("volumes[2].path", path)
    with pytest.raises(InvalidValue, match=f"container_path.*{why}"):
        volume_links.link_volume(opened, path, "/v", *ME)
    with pytest.raises(InvalidValue, match=f"sandbox_path.path.*{why}"):
        volume_links.make_source(opened, path, *ME)


@pytest.mark.parametrize("path", ["stdout", "./stderr", "tasks", "tasks/t", "containers/c"])
def test_no_link_takes_the_place_of_what_the_agent_puts_there(opened, place, path):
    with pytest.raises(InvalidValue, match="of its own"):
        volume_links.link_volume(opened, path, "/v", *ME)
    assert not list(place.iterdir())


def test_a_link_is_made_with_the_directories_above_it(opened, place):
    volume_links.link_volume(opened, "a/b/data", "/volumes/1", *ME)
    assert (place / "a/b/data").readlink() == Path("/volumes/1")
    assert stat.S_IMODE((place / "a/b").stat().st_mode) == 0o755


def test_a_link_that_is_there_is_as_good(opened, place):
    for _ in range(2):
        volume_links.link_volume(opened, "data", "/volumes/1", *ME)
    assert (place / "data").readlink() == Path("/volumes/1")


@pytest.mark.parametrize("kind", ["file", "directory", "link", "dangling"])
def test_what_is_there_already_is_left_as_it_is(opened, place, outside, kind):
    there = place / "data"
    if kind == "file":
        there.write_text("mine")
    elif kind == "directory":
        there.mkdir()
    else:
        there.symlink_to(outside if kind == "link" else outside / "nothing")
    before = there.lstat()
    with pytest.raises(InvalidValue, match="container_path: 'data': something else is there"):
        volume_links.link_volume(opened, "data", "/volumes/1", *ME)
    assert there.lstat() == before
    assert not list(outside.iterdir())


@pytest.mark.parametrize("path", ["data/x", "data/x/y"])
@pytest.mark.parametrize("kind", ["file", "link", "dangling"])
def test_nothing_is_made_over_a_link_that_a_task_has_planted(opened, place, outside, path, kind):
    if kind == "file":
        (place / "data").write_text("mine")
    else:
        (place / "data").symlink_to(outside if kind == "link" else outside / "nothing")
    with pytest.raises(InvalidValue, match=f"{path}.*leads over a link or a file"):
        volume_links.link_volume(opened, path, "/volumes/1", *ME)
    with pytest.raises(InvalidValue, match=f"{path}.*leads over a link or a file"):
        volume_links.make_source(opened, path, *ME)
    assert not list(outside.iterdir())


def test_the_source_is_made_where_it_is_missing(opened, place):
    for _ in range(2):
        volume_links.make_source(opened, "shared/logs", *ME)
    assert stat.S_IMODE((place / "shared/logs").stat().st_mode) == 0o755


@pytest.mark.parametrize("kind", ["file", "link", "dangling"])
def test_a_source_that_is_there_is_not_looked_into(opened, place, outside, kind):
    there = place / "data"
    if kind == "file":
        there.write_text("mine")
    else:
        there.symlink_to(outside if kind == "link" else outside / "nothing")
    before = there.lstat()
    volume_links.make_source(opened, "data", *ME)
    assert there.lstat() == before
    assert not list(outside.iterdir())


def test_a_name_that_no_file_can_have_is_refused_in_words(opened):
    with pytest.raises(InvalidValue, match="cannot be made: File name too long"):
        volume_links.link_volume(opened, "x" * 300, "/v", *ME)


def volume(container_path: str, path: str, *, of_parent: bool = False) -> Link:
    return Link("volumes[3]", "volumes[3].path", container_path, path, of_parent)


def test_volumes_lead_into_the_own_sandbox_or_the_parents(opened, place, tmp_path, outside):
    own = volume_links.Place(opened, str(place), *ME)
    with sandbox.opened(str(outside)) as fd:
        parent = volume_links.Place(fd, str(outside), *ME)
        links = [volume("mine", "a/b"), volume("x/ours", "./shared/", of_parent=True)]
        for _ in range(2):  # a start that has come as far as this may be repeated
            volume_links.show(links, own, parent)
    assert (place / "mine").readlink() == place / "a/b"
    assert (place / "x/ours").readlink() == outside / "shared"
    (place / "x/ours/file").write_text("seen")
    assert (outside / "shared/file").read_text() == "seen"


def test_a_volume_that_is_what_it_leads_to_is_refused(opened, place):
    own = volume_links.Place(opened, str(place), *ME)
    with pytest.raises(InvalidValue, match=r"volumes\[3\]\.container_path: 'data': something"):
        volume_links.show([volume("data", "data")], own)


def test_a_volume_whose_path_a_task_has_made_a_link_is_refused(opened, place, outside):
    (place / "a").symlink_to(outside)
    own = volume_links.Place(opened, str(place), *ME)
    with pytest.raises(InvalidValue, match=r"volumes\[3\]\.path: 'a/b': leads over a link"):
        volume_links.show([volume("data", "a/b")], own)
    assert not list(outside.iterdir())


@pytest.fixture
def root(lacking):
    if os.geteuid() != 0:
        lacking("root, who gives directories away")


needs_root = pytest.mark.usefixtures("root")


@needs_root
def test_what_is_made_belongs_to_the_task_and_what_was_there_to_whom_it_did(opened, place):
    (place / "old").mkdir()
    os.chown(place / "old", 4711, 4712)
    volume_links.link_volume(opened, "old/new/data", "/v", 1234, 1235)
    volume_links.make_source(opened, "old/source", 1234, 1235)
    owners = {
        name: ((place / name).lstat().st_uid, (place / name).lstat().st_gid)
        for name in ("old", "old/new", "old/source", "old/new/data")
    }
    assert owners["old"] == (4711, 4712)
    assert owners["old/new"] == owners["old/source"] == (1234, 1235)
    # To give away a name in a task's directory is to give away what the task puts there.
    assert owners["old/new/data"] == (os.geteuid(), os.getegid())


@needs_root
def test_a_directory_whose_group_is_inherited_is_given_away_all_the_same(opened, place):
    place.chmod(0o2770)
    volume_links.make_source(opened, "data", 1234, 1235)
    found = (place / "data").stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (1234, 1235, 0o755)


@needs_root
@pytest.mark.parametrize(("owner", "mode"), [(4711, 0o700), (0, 0o777), (0, 0o755)])
def test_a_directory_that_was_put_in_the_place_of_a_new_one_is_not_given_away(
    opened, place, outside, monkeypatch, owner, mode
):
    os.chown(outside, owner, owner)
    outside.chmod(mode)
    make = os.mkdir

    def swapped(name, mode, *, dir_fd):
        make(name, mode, dir_fd=dir_fd)
        (place / name).rmdir()
        outside.rename(place / name)

    monkeypatch.setattr(os, "mkdir", swapped)
    volume_links.make_source(opened, "data", 1234, 1235)
    found = (place / "data").stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (owner, owner, mode)
