"""Volumes in sandboxes: linked, given to who uses them, and let go."""

import os

import pytest

from agent.containers import sandbox
from agent.core.volume_uses import VolumeKey, VolumeUse
from agent.volumes.links import VolumeLinks
from agent.volumes.store import VolumeStore
from mesos_py.errors import InvalidValue, Unavailable

PARTS = ("runs", "c1")
USE = VolumeUse(VolumeKey("ads", "v1"), "deep/data")


@pytest.fixture
def links(tmp_path):
    VolumeStore(str(tmp_path)).create([USE.key])
    with sandbox.opened(str(tmp_path)) as root:
        os.close(sandbox.create(root, PARTS, os.getuid(), os.getgid()))
    return VolumeLinks(str(tmp_path))


@pytest.fixture
def here(tmp_path):
    return tmp_path.joinpath(*PARTS)


@pytest.fixture
def volume(tmp_path):
    return tmp_path / "volumes/roles/ads/v1"


def test_what_is_written_through_the_link_is_in_the_volume(links, here, volume):
    links.show_beneath([USE], PARTS)
    links.show_beneath([USE], PARTS)
    (here / "deep/data/file").write_text("x")
    assert (volume / "file").read_text() == "x"
    links.hide_beneath([USE], PARTS)
    assert not (here / "deep/data").is_symlink()
    assert (volume / "file").read_text() == "x"


def test_the_volume_belongs_to_whom_the_sandbox_does_and_what_is_in_it_stays(
    links, here, volume, lacking
):
    if os.getuid() != 0:
        lacking("root, who gives directories away")
    (volume / "file").write_text("x")
    os.chown(here, 12345, 54321)
    links.show_beneath([USE], PARTS)
    assert (volume.stat().st_uid, volume.stat().st_gid) == (12345, 54321)
    assert (here / "deep").stat().st_uid == 12345
    assert (volume / "file").stat().st_uid == 0


def test_what_a_task_has_put_there_is_neither_followed_nor_removed(links, here, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (here / "deep").symlink_to(elsewhere)
    with pytest.raises(InvalidValue, match="leads over a link or a file"):
        links.show_beneath([USE], PARTS)
    (elsewhere / "data").symlink_to(links._store.path_of(USE.key))
    links.hide_beneath([USE], PARTS)
    assert (elsewhere / "data").is_symlink()


def test_a_link_that_leads_elsewhere_by_now_stays(links, here, tmp_path):
    links.show_beneath([USE], PARTS)
    (here / "deep/data").unlink()
    (here / "deep/data").symlink_to(tmp_path)
    links.hide_beneath([USE], PARTS)
    assert (here / "deep/data").is_symlink()
    with pytest.raises(InvalidValue, match="something else is there already"):
        links.show_beneath([USE], PARTS)


def test_a_volume_or_a_sandbox_that_is_not_there_is_said(links, volume):
    with pytest.raises(Unavailable, match=r"the sandbox runs/c2 cannot be opened: No such"):
        links.show_beneath([USE], ("runs", "c2"))
    volume.rmdir()
    with pytest.raises(Unavailable, match=r"'v1' of the role 'ads' cannot be used: No such"):
        links.show_beneath([USE], PARTS)


def test_the_directory_of_the_agent_may_be_named_otherwise_after_a_restart(tmp_path):
    real, named = tmp_path / "real", tmp_path / "named"
    real.mkdir()
    named.symlink_to(real)
    VolumeStore(str(real)).create([USE.key])
    with sandbox.opened(str(real)) as root:
        os.close(sandbox.create(root, PARTS, os.getuid(), os.getgid()))
    VolumeLinks(str(named)).show_beneath([USE], PARTS)
    links = VolumeLinks(str(real))
    links.show_beneath([USE], PARTS)
    links.hide_beneath([USE], PARTS)
    assert not (real.joinpath(*PARTS) / "deep/data").is_symlink()
