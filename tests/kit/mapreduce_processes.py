"""The processes of MapReduce on a cluster of tests: found by what they are, to be killed."""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path
from typing import Final, Literal

import psutil

from tests.kit.cluster import Cluster, Daemon
from tests.kit.waiting import gone, until

Role = Literal["worker", "zygote", "attempt"]

_WORKER: Final = "frameworks.mapreduce.worker"
_ZYGOTE: Final = "frameworks.mapreduce.worker.zygote"


def found(cluster: Cluster, role: Role, agent: Daemon | None = None) -> list[int]:
    """Process ids, of one agent or of all.  An attempt is a fork of its zygote."""
    beneath = cluster.directory if agent is None else agent.work_dir
    return [pid for pid in cluster.strays() if _role(pid, beneath) == role]


def killed(cluster: Cluster, role: Role, agent: Daemon | None = None) -> int:
    """kill -9 of one, once there is one; it is gone when this returns."""
    until(lambda: found(cluster, role, agent))
    pid = found(cluster, role, agent)[0]
    os.kill(pid, signal.SIGKILL)
    until(lambda: gone(pid))
    return pid


def fill_disk(cluster: Cluster, agent: Daemon, left_bytes: int) -> None:
    """From now on no attempt on the agent writes a file of more than so many bytes, which is as
    good as a full disk.  The agent has a worker."""
    for pid in (*found(cluster, "zygote", agent), *found(cluster, "attempt", agent)):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (left_bytes, left_bytes))


def _role(pid: int, beneath: Path) -> str:
    try:
        process = psutil.Process(pid)
        argv = process.cmdline()
        parent = process.parent()
        if not Path(process.cwd()).is_relative_to(beneath):
            return ""
        if _ZYGOTE in argv:
            forked = parent is not None and _ZYGOTE in parent.cmdline()
            return "attempt" if forked else "zygote"
    except psutil.Error:
        return ""
    return "worker" if _WORKER in argv else ""
