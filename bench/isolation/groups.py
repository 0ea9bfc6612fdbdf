"""The control groups of a bench, beneath one of its own."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from agent.isolation.cgroups.files import MOUNTINFO
from agent.isolation.cgroups.mounts import mounts_of
from bench.processes import BenchFailed


@contextlib.contextmanager
def bench_root() -> Iterator[str]:
    """The name of a root (--cgroups-root), of which nothing is left in the end."""
    if os.geteuid() != 0:
        raise BenchFailed("control groups need root")
    name = f"mesos_py_bench_{os.getpid()}"
    try:
        yield name
    finally:
        for mount in mounts_of(MOUNTINFO.read_text()):
            for path, _, _ in os.walk(f"{mount.point}/{name}", topdown=False):
                with contextlib.suppress(OSError):
                    Path(path).rmdir()
