"""The agent's own cgroup, which dockerd makes with its first container and leaves behind."""

from __future__ import annotations

import contextlib
from pathlib import Path

_MOUNTS = Path("/proc/self/mountinfo")


def hierarchies(mounts: str) -> list[Path]:
    """Where cgroups are mounted, of either version, by the text of a mountinfo file."""
    found = []
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        if after.startswith(("cgroup ", "cgroup2 ")):
            found.append(Path(before.split()[4]))
    return found


def remove_parent(parent: str | None) -> None:
    """Remove the empty group `parent`, and the one above it if it is empty too."""
    if parent is None or parent.endswith(".slice"):
        return  # of systemd's, which removes it by itself
    own = Path(parent.lstrip("/"))
    for hierarchy in hierarchies(_MOUNTS.read_text()):
        # Not there, in use, or not ours to remove.
        with contextlib.suppress(OSError):
            (hierarchy / own).rmdir()
            (hierarchy / own.parent).rmdir()
