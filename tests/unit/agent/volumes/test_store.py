"""Directories of volumes: made, put aside, put back, erased; and what is never touched."""

import errno
import itertools
import os
import threading

import pytest

from agent.core.volume_uses import VolumeKey
from agent.volumes import store as volume_store
from agent.volumes.eraser import Eraser
from agent.volumes.store import VolumeStore
from mesos_py.errors import Conflict, InvalidValue, Unavailable
from mesos_py.metrics import Metrics

KEY = VolumeKey("ads", "v1")
BELOW = VolumeKey("ads/x", "v1")


@pytest.fixture
def store(tmp_path):
    return VolumeStore(str(tmp_path))


@pytest.fixture
def place(tmp_path):
    return tmp_path / "volumes/roles/ads/v1"


def test_a_volume_is_a_directory_of_its_own_for_each_role(store, tmp_path, place):
    store.create([KEY, BELOW])
    assert place.is_dir()
    assert (tmp_path / "volumes/roles/ads x/v1").is_dir()
    assert store.path_of(BELOW) == str(tmp_path / "volumes/roles/ads x/v1")
    assert store.recover({KEY, BELOW}, 1) == []


def test_where_there_was_never_a_volume_nothing_is_made(store, tmp_path):
    assert store.recover(set(), 0) == []
    assert store.erase([0]) == []
    assert list(tmp_path.iterdir()) == []
    assert not store.used
    store.create([KEY])
    assert store.used


def test_what_an_agent_left_empty_when_it_died_is_taken_anew(store, place):
    place.mkdir(parents=True)
    place.chmod(0o777)
    store.create([KEY])
    assert place.stat().st_mode & 0o777 == 0o750


def test_what_is_there_of_somebody_is_neither_taken_nor_lost(store, tmp_path, place):
    place.mkdir(parents=True)
    (place / "kept").write_text("x")
    with pytest.raises(Conflict, match=r"volumes/roles/ads/v1 is there.*remove it"):
        store.create([BELOW, KEY])
    assert (place / "kept").read_text() == "x"
    # All or nothing.
    assert not (tmp_path / "volumes/roles/ads x/v1").exists()
    assert store.recover(set(), 0) == [str(place)]
    assert (place / "kept").read_text() == "x"


def test_a_place_that_cannot_be_made_is_said(store, tmp_path):
    (tmp_path / "volumes").write_text("")
    with pytest.raises(Unavailable, match=r"'v1' of the role 'ads' cannot be made: Not a dir"):
        store.create([KEY])


def test_links_are_not_followed_to_where_a_volume_would_be(store, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "volumes/roles").mkdir(parents=True)
    (tmp_path / "volumes/roles/ads").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Unavailable, match="cannot be made"):
        store.create([KEY])
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_the_directory_of_all_may_be_on_another_disk(store, tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "volumes").symlink_to(tmp_path / "disk")
    store.create([KEY])
    assert (tmp_path / "disk/roles/ads/v1").is_dir()
    assert store.recover({KEY}, 1) == []
    store.destroy([KEY], 2)
    assert store.erase([2]) == []
    assert not (tmp_path / "disk/roles/ads/v1").exists()


def test_what_is_destroyed_is_erased_with_all_that_is_in_it(store, tmp_path, place):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    store.create([KEY])
    (place / "sub").mkdir()
    (place / "sub/link").symlink_to(outside)
    (place / "file").write_text("x")
    store.destroy([KEY], 7)
    assert not place.exists()
    store.create([KEY])
    (place / "new").write_text("y")
    assert store.erase([7]) == []
    assert (outside / "kept").read_text() == "x"
    assert (place / "new").read_text() == "y"
    for name in (".destroyed", ".trash"):
        assert list((tmp_path / "volumes" / name).iterdir()) == []


def test_what_is_not_written_down_as_destroyed_is_not_erased(store, tmp_path, place):
    store.create([KEY, BELOW])
    (place / "kept").write_text("x")
    store.destroy([BELOW], 3)
    store.destroy([KEY], 4)
    assert store.erase([3]) == []
    assert store.recover({KEY}, 3) == []
    assert (place / "kept").read_text() == "x"


def test_many_volumes_wait_for_the_platter_once(store, monkeypatch):
    """Some ten milliseconds for each held up an agent for half a minute."""
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    keys = [VolumeKey("ads", f"v{number}") for number in range(100)]
    store.create(keys)
    assert len(synced) < 5
    store.destroy(keys, 1)
    assert len(synced) < 12


def test_of_what_is_not_brought_to_the_platter_nothing_is_left(store, place, monkeypatch):
    count = itertools.count()

    def first_alone(fd):
        if next(count) > 0:
            raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", first_alone)
        with pytest.raises(Unavailable, match=r"cannot be made: Input/output error"):
            store.create([KEY, BELOW])
    assert not place.exists()
    store.create([KEY])
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", first_alone)
        with pytest.raises(Unavailable, match=r"cannot be put aside: Input/output error"):
            store.destroy([KEY], 1)
    assert place.exists()


def test_one_that_is_gone_already_can_be_destroyed(store, place):
    store.create([KEY])
    place.rmdir()
    store.destroy([KEY], 2)
    assert store.recover(set(), 2) == []


def test_of_two_the_first_comes_back_when_the_second_cannot_be_put_aside(store, place, monkeypatch):
    store.create([KEY, BELOW])
    (place / "kept").write_text("x")
    rename, count = os.rename, iter(range(10))

    def second_fails(*args, **more):
        if next(count) == 1:
            raise OSError(28, "No space left on device")
        rename(*args, **more)

    monkeypatch.setattr(os, "rename", second_fails)
    with pytest.raises(Unavailable, match="No space left"):
        store.destroy([KEY, BELOW], 2)
    assert (place / "kept").read_text() == "x"
    assert store.recover({KEY, BELOW}, 1) == []


def test_one_that_could_not_be_put_back_is_not_erased_by_later_operations(
    store, place, monkeypatch
):
    """The disk failed twice, and what is in the checkpoint is not the volume's end."""
    store.create([KEY, BELOW])
    (place / "kept").write_text("x")
    rename, count = os.rename, itertools.count()

    def first_alone(*args, **more):
        if next(count) > 0:
            raise OSError(5, "Input/output error")
        rename(*args, **more)

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", first_alone)
        with pytest.raises(Unavailable, match="Input/output"):
            store.destroy([KEY, BELOW], 2)
    assert not place.exists()
    store.destroy([BELOW], 3)
    assert store.erase([3]) == []
    assert store.recover({KEY}, 3) == []
    assert (place / "kept").read_text() == "x"


@pytest.mark.parametrize("instead", ["nothing", "file", "link"])
def test_a_volume_without_its_directory_keeps_the_agent_from_starting(store, place, instead):
    """Its tasks would go on with nothing, and nobody would know what was lost, and why."""
    store.create([KEY, BELOW])
    place.rmdir()
    if instead == "file":
        place.write_text("")
    elif instead == "link":
        place.symlink_to("/")
    with pytest.raises(InvalidValue, match=r"1 missing.*mount or restore") as error:
        store.recover({KEY, BELOW}, 1)
    assert str(place) in error.value.message
    assert "make an empty directory there" in error.value.message


def test_an_operator_may_go_on_without_what_was_in_it(store, place):
    store.create([KEY])
    place.rmdir()
    place.mkdir()
    assert store.recover({KEY}, 1) == []


def test_all_of_them_are_missing_when_their_disk_is_not_mounted(store, tmp_path):
    keys = {VolumeKey("ads", f"v{number}") for number in range(8)}
    with pytest.raises(InvalidValue, match=r"8 missing.* and 3 more") as error:
        store.recover(keys, 1)
    assert str(tmp_path / "volumes/roles/ads/v0") in error.value.message


def test_empty_directories_of_nobody_go_and_others_are_told(store, tmp_path, place):
    store.create([KEY])
    for name in ("v2", "v3"):
        (place.parent / name).mkdir()
    (place.parent / "v3/file").write_text("x")
    assert store.recover({KEY}, 1) == [str(place.parent / "v3")]
    assert sorted(each.name for each in place.parent.iterdir()) == ["v1", "v3"]


def test_what_cannot_be_erased_is_counted_and_tried_again(store, tmp_path, place, monkeypatch):
    store.create([KEY])
    (place / "file").write_text("x")
    store.destroy([KEY], 1)
    metrics = Metrics(prefix="x")
    eraser = Eraser(store, metrics)
    with monkeypatch.context() as patched:
        patched.setattr(os, "unlink", lambda *_, **__: (_ for _ in ()).throw(OSError(16, "busy")))
        eraser.erase(1)
        eraser.join()
    assert b"volume not erased" in metrics.render()
    assert list((tmp_path / "volumes/.trash").iterdir())
    eraser.erase(1)
    eraser.join()
    assert not list((tmp_path / "volumes/.trash").iterdir())


def test_erasing_goes_on_with_what_was_asked_for_meanwhile(monkeypatch):
    """Of one thread; nobody waits for it."""
    asked, go_on, begun = [], threading.Event(), threading.Event()

    class Slow:
        def erase(self, generations):
            asked.append(generations)
            begun.set()
            go_on.wait()
            return []

    eraser = Eraser(Slow(), Metrics())  # type: ignore[arg-type]
    eraser.erase(1)
    begun.wait()
    eraser.erase(2)
    eraser.erase(3)
    go_on.set()
    eraser.join()
    assert asked == [{1}, {2, 3}]


@pytest.mark.parametrize("below", ["", "/mnt/deep"])
def test_what_is_mounted_in_a_volume_keeps_it(store, tmp_path, place, monkeypatch, below):
    """Also of the same file system: it is not the volume's."""
    store.create([KEY, BELOW])
    monkeypatch.setattr(volume_store, "mounted_beneath", lambda _path: {f"{place}{below}"})
    with pytest.raises(Conflict, match=rf"volumes/roles/ads/v1{below} is a mount; unmount it"):
        store.destroy([BELOW, KEY], 1)
    assert place.is_dir()
    store.destroy([BELOW], 1)
    assert not (tmp_path / "volumes/roles/ads x/v1").exists()


def test_what_was_mounted_since_is_not_erased(store, tmp_path, place, monkeypatch):
    store.create([KEY])
    (place / "kept").write_text("x")
    store.destroy([KEY], 1)
    mount = str(tmp_path / "volumes/.trash/0-1/ads/v1/mnt")
    monkeypatch.setattr(volume_store, "mounted_beneath", lambda _path: {mount})
    (problem,) = store.erase([1])
    assert problem.filename == mount
    assert [each.read_text() for each in tmp_path.rglob("kept")] == ["x"]
    monkeypatch.undo()
    assert store.erase([]) == []
    assert not list(tmp_path.rglob("kept"))


def test_a_long_name_that_is_not_ascii_is_thrown_away_at_the_start(store):
    key = VolumeKey("ads", "é" * 127)
    store.create([key])
    store.destroy([key], 1)
    assert store.recover(set(), 1) == []


def test_what_fails_after_it_was_put_aside_is_put_back(store, place, monkeypatch):
    store.create([KEY])
    (place / "kept").write_text("x")
    renamed: list[object] = []
    rename, fsync = os.rename, os.fsync

    def watched(*args, **places):
        rename(*args, **places)
        renamed.append(args)

    def failing(fd):
        if len(renamed) == 1:
            renamed.append(None)
            raise OSError(errno.EIO, "Input/output error")
        fsync(fd)

    monkeypatch.setattr(os, "rename", watched)
    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(Unavailable, match="cannot be put aside: Input/output error"):
        store.destroy([KEY], 1)
    assert (place / "kept").read_text() == "x"


@pytest.mark.parametrize("mode", [0o000, 0o555])
def test_whatever_its_bits_are_it_is_there_and_can_be_destroyed(store, place, mode):
    store.create([KEY])
    place.chmod(mode)
    assert store.recover({KEY}, 0) == []
    store.destroy([KEY], 1)
    assert not place.exists()


def test_what_root_does_not_let_be_moved_is_moved_nevertheless(store, place, monkeypatch):
    store.create([KEY])
    softened: list[str] = []
    rename = os.rename

    def guarded(*args, **places):
        if not softened:
            raise PermissionError(errno.EPERM, "Operation not permitted")
        rename(*args, **places)

    monkeypatch.setattr(os, "rename", guarded)
    monkeypatch.setattr(volume_store, "soften", lambda _parent, name: softened.append(name))
    store.destroy([KEY], 1)
    assert softened == ["v1"]
    assert not place.exists()


def test_a_disk_that_is_read_only_is_not_said_to_be_in_the_way(store, place, monkeypatch):
    place.parent.mkdir(parents=True)

    def read_only(*_args, **_places):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "rmdir", read_only)
    with pytest.raises(Unavailable, match="cannot be made: Read-only file system"):
        store.create([KEY])


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077])
def test_whatever_the_umask_of_the_agent_users_get_to_their_volumes(store, tmp_path, place, umask):
    before = os.umask(umask)
    try:
        store.create([KEY])
    finally:
        os.umask(before)
    above = [place.parent, place.parent.parent, tmp_path / "volumes"]
    assert [each.stat().st_mode & 0o777 for each in above] == [0o755] * 3
    assert place.stat().st_mode & 0o777 == 0o750
