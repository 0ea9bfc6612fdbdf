"""What a served tracker and its clients say to each other over HTTP, as JSON.

::

    GET  /v1/tracker                     TrackerInfo
    POST /v1/jobs                        a JobSpec; 201 and Accepted.  May be said again.
    GET  /v1/jobs[?ended=N]              Jobs: all that have not ended, and the N newest others
    GET  /v1/jobs/JOB[?version=V&wait_s=S]
                                         Watched; with a version: once it is another one, or
                                         when S seconds are over (at most 60)
    GET  /v1/jobs/JOB/tasks[?kind=map|reduce&state=S&since=N&limit=N]
                                         Tasks
    POST /v1/jobs/JOB/kill               Kill; 202
    GET  /metrics                        for Prometheus

A client puts what its job ships into `TrackerInfo.state`/jobs/JOB/files/ before it submits.
What is refused is an Error, with the status of `STATUS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from frameworks.mapreduce.core.views import JobView, TaskView
from mesos_py import errors


class TrackerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """active: it runs the jobs; else it stands by for one that does, and answers nothing but
    this.  state: the URL beneath which `jobs/` is."""

    framework_id: str
    state: str
    active: bool
    epoch: int
    hostname: str
    version: str


class Accepted(msgspec.Struct, frozen=True):
    job_id: str


class Jobs(msgspec.Struct, frozen=True):
    jobs: tuple[JobView, ...]


class Watched(msgspec.Struct, frozen=True):
    """version: a word that is another one once `view` is another one."""

    version: str
    view: JobView


class Tasks(msgspec.Struct, frozen=True):
    """more: there are others after these."""

    tasks: tuple[TaskView, ...]
    more: bool = False


class Kill(msgspec.Struct, frozen=True):
    why: str = "killed by a user"


class Error(msgspec.Struct, frozen=True):
    """code: of the error in `mesos_py.errors`; fields: its parts, as text."""

    code: str
    message: str
    fields: Mapping[str, str] = {}


STATUS: Final[Mapping[str, int]] = {
    errors.InvalidValue.code: 400,
    errors.NotFound.code: 404,
    errors.AlreadyExists.code: 409,
    errors.Conflict.code: 409,
    errors.TooLarge.code: 413,
    errors.Unavailable.code: 503,
}


def error_of(error: errors.MesosPyError) -> Error:
    fields = {name: errors.shortened(value) for name, value in error.fields.items()}
    return Error(error.code, error.message, fields)


def raised(error: Error) -> errors.MesosPyError:
    """The error that the tracker has raised, for whoever asked."""
    fields = error.fields
    if error.code == errors.InvalidValue.code and {"field", "value", "reason"} <= fields.keys():
        return errors.InvalidValue(fields["field"], fields["value"], fields["reason"])
    if error.code == errors.NotFound.code and {"kind", "name"} <= fields.keys():
        reason = error.message.rpartition(": ")[2]
        return errors.NotFound(fields["kind"], fields["name"], reason)
    for kind in (errors.AlreadyExists, errors.Conflict, errors.TooLarge, errors.Unavailable):
        if error.code == kind.code:
            return kind(error.message, **fields)
    return errors.MesosPyError(error.message, **fields)


__all__ = [
    "STATUS",
    "Accepted",
    "Error",
    "Jobs",
    "Kill",
    "Tasks",
    "TrackerInfo",
    "Watched",
    "error_of",
    "raised",
]
