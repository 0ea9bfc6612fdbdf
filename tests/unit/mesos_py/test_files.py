"""Files that say something to other processes."""

import os

import pytest

from mesos_py.errors import Conflict, InvalidValue
from mesos_py.files import DirectoryLock, write_atomically


def test_the_file_has_the_text_and_nothing_else_is_left(tmp_path):
    path = tmp_path / "new" / "port"
    write_atomically(path, "5050\n")
    assert path.read_text() == "5050\n"
    assert [each.name for each in path.parent.iterdir()] == ["port"]


def test_what_was_there_is_replaced(tmp_path):
    path = tmp_path / "port"
    path.write_text("old and long")
    write_atomically(path, "new")
    assert path.read_text() == "new"


def test_a_write_that_fails_leaves_no_temporary_file(tmp_path):
    path = tmp_path / "port"
    path.mkdir()
    with pytest.raises(OSError, match="directory"):
        write_atomically(path, "5050")
    assert [each.name for each in tmp_path.iterdir()] == ["port"]


def test_a_directory_has_one_holder_at_a_time(tmp_path):
    directory = tmp_path / "work"
    lock = DirectoryLock(directory)
    with pytest.raises(Conflict, match=f"in use by process {os.getpid()}"):
        DirectoryLock(directory)
    lock.release()
    lock.release()
    DirectoryLock(directory).release()


def test_a_directory_that_cannot_be_used_is_said_so(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidValue, match="work-dir"):
        DirectoryLock(tmp_path / "file")


def test_a_link_in_the_place_of_the_lock_is_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / DirectoryLock.NAME).symlink_to(victim)
    with pytest.raises(InvalidValue, match="work-dir"):
        DirectoryLock(tmp_path / "work")
    assert victim.read_text() == "precious"
