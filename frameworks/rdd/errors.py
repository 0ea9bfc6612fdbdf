"""What goes wrong in jobs."""

from __future__ import annotations

from mesos_py.errors import MesosPyError


class JobFailed(MesosPyError):
    """A job has failed.  Its text begins with the user's own traceback, if there is one; the
    cause (`__cause__`) is the exception itself, if it could be brought here."""

    code = "job-failed"


class JobCancelled(MesosPyError):
    """By cancelJobGroup, cancelAllJobs, Ctrl-C, or since the context was stopped."""

    code = "job-cancelled"


class NotPicklable(MesosPyError):
    """A function, or what it uses, cannot be sent to workers; the text names the object."""

    code = "not-picklable"


class Unstable(MesosPyError):
    """A key has no hash that is the same in every process, or none at all."""

    code = "unstable-key"


class FetchFailed(MesosPyError):
    """What a map has left could not be had: `map_index`, or with -1 nothing of `executor_id`."""

    code = "fetch-failed"

    def __init__(self, shuffle_id: int, map_index: int, executor_id: str, reason: str) -> None:
        super().__init__(
            f"map {map_index} of shuffle {shuffle_id} on {executor_id}: {reason}",
            shuffle_id=shuffle_id,
            map_index=map_index,
            executor_id=executor_id,
            reason=reason,
        )
