"""The way to what runs a job: in this process without a cluster, a tracker in this process, or
a tracker elsewhere that is asked by HTTP."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from frameworks.mapreduce.client.base import Client
from mesos_py.errors import InvalidValue

TRACKER_VARIABLE: Final = "MESOS_PY_MAPREDUCE_TRACKER"
MASTER_VARIABLE: Final = "MESOS_PY_MASTER"
LOCAL_VARIABLE: Final = "MESOS_PY_MAPREDUCE_LOCAL"
DEFAULT_MASTER: Final = "127.0.0.1:5050"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where to run: at most one of the first three.

    local: in so many processes here.  tracker: URL of one that is served.  master: of the
    cluster, for a tracker in this process, which keeps in `state` (a URL) what must survive it.
    """

    master: str | None = None
    local: int | None = None
    tracker: str | None = None
    state: str = ""
    role: str = "*"

    def __post_init__(self) -> None:
        """Raises InvalidValue."""
        chosen = {
            name: value
            for name in ("master", "local", "tracker")
            if (value := getattr(self, name)) is not None
        }
        if len(chosen) > 1:
            first, second = list(chosen)[:2]
            raise InvalidValue(second, chosen[second], f"cannot be given together with {first}")
        if self.local is not None and self.local < 1:
            raise InvalidValue("local", self.local, "must be 1 or more")
        if self.state and (self.local is not None or self.tracker is not None):
            raise InvalidValue("state", self.state, "is for a tracker in this process: give master")


def from_environment(target: Target) -> Target:
    """With what the environment says, if nothing was given."""
    if target.master is not None or target.local is not None or target.tracker is not None:
        return target
    local = os.environ.get(LOCAL_VARIABLE, "")
    if local:
        if not local.isdigit():
            raise InvalidValue(LOCAL_VARIABLE, local, "must be a whole number from 1")
        return Target(local=int(local))
    tracker = os.environ.get(TRACKER_VARIABLE, "")
    if tracker:
        return Target(tracker=tracker)
    master = os.environ.get(MASTER_VARIABLE, "") or DEFAULT_MASTER
    return Target(master=master, state=target.state, role=target.role)


def connect(target: Target, *, output: str = "", job_id: str = "") -> Client:
    """Close it when done with it.  Raises Unavailable, MasterUnreachable.

    output, job_id: of the job it is for; a tracker in this process that was given no `state`
    makes one beside the output, until the job has ended.
    """
    chosen = from_environment(target)
    if chosen.local is not None:
        from frameworks.mapreduce.client.local import LocalClient

        return LocalClient(chosen.local)
    if chosen.tracker is not None:
        from frameworks.mapreduce.client.served import ServedClient

        return ServedClient(chosen.tracker)
    from frameworks.mapreduce.client.own import OwnClient, check_master
    from frameworks.mapreduce.tracker.place import beside

    check_master(chosen.master or DEFAULT_MASTER)
    state = chosen.state or beside(output, job_id)
    return OwnClient(chosen, state, temporary=not chosen.state)
