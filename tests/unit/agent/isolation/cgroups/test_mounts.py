"""What the kernel says of mounts and groups, from hosts and containers of several kinds."""

from __future__ import annotations

import pytest

from agent.isolation.cgroups.mounts import Mount, best, mounts_of, own_groups

HYBRID = """\
22 27 0:21 / /proc rw,relatime - proc proc rw
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
36 31 0:33 / /sys/fs/cgroup/systemd rw - cgroup systemd rw,xattr,release_agent=/a,b,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw,nsdelegate
"""
V2 = "30 25 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,memory_recursiveprot\n"
DOCKER_V1 = """\
600 500 0:32 /docker/abc /sys/fs/cgroup/memory ro,nosuid master:11 - cgroup memory rw,memory
601 500 0:32 /docker/abc /opt/my\\040groups/memory rw - cgroup memory rw,memory
"""


def test_controllers_that_are_mounted_together_are_found_each():
    cpu, memory, systemd, unified = mounts_of(HYBRID)
    assert cpu == Mount(1, "/sys/fs/cgroup/cpu,cpuacct", "/", True, frozenset({"cpu", "cpuacct"}))
    assert memory.controllers == {"memory"}
    assert "name=systemd" not in systemd.controllers
    assert (unified.version, unified.controllers) == (2, frozenset())


def test_the_group_of_a_process_is_found_by_controller():
    found = own_groups("4:memory:/a b/c:d\n1:cpu,cpuacct:/\n0::/x (deleted)\nodd\n:::\n")
    assert found == {"memory": "/a b/c:d", "cpu": "/", "cpuacct": "/", "": "/x"}


def test_a_mount_that_can_be_written_is_preferred_and_blanks_are_read_right():
    chosen = best(mounts_of(DOCKER_V1), {"memory": "/docker/abc"})
    assert chosen["memory"].point == "/opt/my groups/memory"


def test_a_mount_at_the_usual_place_is_preferred():
    other = HYBRID.replace("/sys/fs/cgroup/", "/host/")
    for text in (HYBRID + other, other + HYBRID):
        assert best(mounts_of(text), {})["memory"].point == "/sys/fs/cgroup/memory"


def test_a_mount_over_another_one_is_the_one_that_counts():
    text = V2 + V2.replace(" / /sys", " /below /sys")
    assert best(mounts_of(text), {"": "/elsewhere"})[""].root == "/below"


@pytest.mark.parametrize(
    ("root", "own", "found"),
    [
        ("/", "/", ""),
        ("/", "/system.slice/a.service", "system.slice/a.service"),
        ("/docker/abc", "/docker/abc", ""),
        ("/docker/abc", "/docker/abc/x/y", "x/y"),
        ("/docker/abc", "/docker/abcd", None),
        ("/docker/abc", "/", None),
        ("/", "/../outside", None),
        ("/", None, None),
    ],
)
def test_ones_own_group_is_found_beneath_a_mount(root, own, found):
    assert Mount(2, "/sys/fs/cgroup", root, True).group_of(own) == found
