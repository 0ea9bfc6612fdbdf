"""What whoever starts a tracker may choose."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import frameworks
from mesos_py import Resources
from mesos_py.errors import InvalidValue

# No cores: a worker waits most of the time, and with a tenth of one the tasks of a job would
# leave most of a core of each agent unused.
DEFAULT_NEEDS: Final = Resources.of(mem=128)


def _environment() -> dict[str, str]:
    """Where workers find this package, if their machines have it where this one has."""
    return {"PYTHONPATH": str(Path(frameworks.__file__).parent.parent)}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackerOptions:
    """
    master: `host:port`, `h1:p1,h2:p2` or `zk://h1,h2/path`.
    state: URL or path of a directory that this tracker, and those that take over from it,
        have for themselves.  Workers read job files in it.
    name, role, user: of the framework; user: who tasks run as ("": who runs this).
    order: of jobs among each other.
    standby: one of several trackers with the same state, of which one is active.
    worker_python: the interpreter on agents, which has this package.
    worker_env: of workers, and of the programs in them.
    worker_needs, max_workers, idle_s: as in `core.options`.
    rack_attribute: the attribute of agents that names their rack.
    failover_s: so long the cluster keeps the framework when no tracker is there.
    cleanup_s: so long agents are tried to be rid of an ended job's files.
    connect_s: give up when no master is found in this time; None: never.
    """

    master: str
    state: str
    name: str = "mapreduce"
    role: str = "*"
    user: str = ""
    order: Literal["fair", "fifo", "priority"] = "fair"
    standby: bool = False
    worker_python: str = sys.executable
    worker_env: Mapping[str, str] = field(default_factory=_environment)
    worker_needs: Resources = DEFAULT_NEEDS
    max_workers: int | None = None
    idle_s: float = 60.0
    rack_attribute: str = "rack"
    failover_s: float = 24 * 3600.0
    cleanup_s: float = 60.0
    connect_s: float | None = None

    def __post_init__(self) -> None:
        """Raises InvalidValue."""
        for name in ("master", "state", "name", "worker_python"):
            if not getattr(self, name):
                raise InvalidValue(name, "", "must not be empty")
        for name in ("idle_s", "failover_s", "cleanup_s"):
            if not 0 <= getattr(self, name) < 2**33:
                raise InvalidValue(name, getattr(self, name), "must be zero or more seconds")
        if os.sep in self.worker_python and not self.worker_python.startswith(os.sep):
            reason = "must be a path from the root, or a name to be found in PATH"
            raise InvalidValue("worker_python", self.worker_python, reason)


__all__ = ["TrackerOptions"]
