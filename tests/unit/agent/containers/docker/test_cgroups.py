"""Where cgroups are mounted."""

from pathlib import Path

from agent.containers.docker.cgroups import hierarchies

MOUNTS = """\
25 1 0:22 / /sys rw,nosuid shared:7 - sysfs sysfs rw
30 25 0:26 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct
31 25 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
40 1 8:1 / /home rw - ext4 /dev/cgroup rw
"""


def test_hierarchies_of_both_versions_are_found():
    found = hierarchies(MOUNTS)
    assert found == [Path("/sys/fs/cgroup/cpu,cpuacct"), Path("/sys/fs/cgroup/unified")]
