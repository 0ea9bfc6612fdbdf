"""Errors that name what was tried; devices."""

from __future__ import annotations

import errno
import os
import pickle
import subprocess
from pathlib import Path

import pytest

from agent.isolation.cgroups.files import CgroupError, Group, device_beneath, is_dying


def test_an_error_names_file_value_and_reason(tmp_path):
    group = Group(str(tmp_path))
    with pytest.raises(CgroupError) as caught:
        group.write("cpu.shares", 12)
    file = f"{tmp_path}/cpu.shares"
    assert caught.value.message == f"cannot write {file}: '12': No such file or directory"
    assert caught.value.fields == {"file": file, "value": "12", "errno": errno.ENOENT}
    assert caught.value.gone
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.message, again.number) == (caught.value.message, errno.ENOENT)


def test_a_write_never_makes_a_file(tmp_path):
    with pytest.raises(CgroupError):
        Group(str(tmp_path)).write("cpu.shares", 12)
    assert list(tmp_path.iterdir()) == []


def test_a_group_that_cannot_be_made_or_read_is_said_so(tmp_path):
    above = Group(str(tmp_path)).child("a")
    with pytest.raises(CgroupError, match=r"cannot make .*/a/b: No such file"):
        above.child("b").make()
    with pytest.raises(CgroupError, match=r"cannot read .*/a/cpu.stat: No such file"):
        above.read("cpu.stat")
    Path(above.path).write_text("")
    with pytest.raises(CgroupError, match=r"cannot remove .*/a: Not a directory"):
        above.remove()
    with pytest.raises(CgroupError, match=r"cannot list .*/a: Not a directory"):
        above.children()


def test_the_deepest_groups_come_first(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    names = [each.path.removeprefix(f"{tmp_path}") for each in Group(str(tmp_path)).tree()]
    assert names == ["/a/b", "/a", ""]


def test_a_process_on_its_way_out_is_told_from_one_that_runs():
    process = subprocess.Popen(["sleep", "1000"])
    try:
        assert not is_dying(process.pid)
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert is_dying(process.pid)
    finally:
        process.wait()
    assert is_dying(process.pid)


def test_what_is_on_no_disk_has_no_device():
    with pytest.raises(CgroupError, match="find the disk of /proc"):
        device_beneath("/proc")
    with pytest.raises(CgroupError, match="No such file"):
        device_beneath("/nowhere/at/all")
