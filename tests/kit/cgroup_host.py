"""The real hierarchies of this machine, for tests: only beneath one group of our own."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from agent.isolation.cgroups.files import MOUNTINFO
from agent.isolation.cgroups.mounts import mounts_of

# Of this test run alone.
ROOT: Final = f"mesos_py_test_{os.getpid()}"
FLAGS: Final = {"cgroups_root": ROOT}


def lacks() -> str | None:
    """What this machine has not that these tests need."""
    if os.geteuid() != 0:
        return "root"
    mounts = mounts_of(MOUNTINFO.read_text())
    v1 = {name for mount in mounts for name in mount.controllers}
    for mount in mounts:
        if mount.version == 2:
            v1 |= set(Path(mount.point, "cgroup.controllers").read_text().split())
    missing = {"cpu", "memory", "pids"} - v1
    return f"cgroup controllers {', '.join(sorted(missing))}" if missing else None


def groups_named(part: str) -> list[str]:
    """All groups of this test run with a component that is `part`."""
    return sorted(path for path in _walk() if part in path.split("/"))


def _walk() -> Iterator[str]:
    """Groups come and go meanwhile: os.walk does not mind, unlike Path.glob."""
    for mount in mounts_of(MOUNTINFO.read_text()):
        for path, _, _ in os.walk(f"{mount.point}/{ROOT}", topdown=False):
            yield path


def remove_all() -> list[str]:
    """Remove all groups of this test run; which there were."""
    found = list(_walk())
    for path in found:
        with contextlib.suppress(OSError):
            Path(path).rmdir()
    return found


def all_groups() -> list[str]:
    """All groups of this test run."""
    return groups_named(ROOT)


def uses_v1() -> bool:
    return any("memory" in mount.controllers for mount in mounts_of(MOUNTINFO.read_text()))
