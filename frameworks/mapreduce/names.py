"""Names of jobs, tasks and attempts, in Hadoop's forms.

::

    job_20261128141500_0001
    task_20261128141500_0001_m_000007
    attempt_20261128141500_0001_m_000007_0

An attempt's name is the id of its task in the cluster, too.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from mesos_py.errors import InvalidValue

Kind = Literal["map", "reduce"]

_JOB: Final = re.compile(r"job_(\d{1,20})_(\d{4,10})")
_ATTEMPT: Final = re.compile(r"attempt_(\d{1,20})_(\d{4,10})_([mr])_(\d{6,10})_(\d{1,6})")


class AttemptName(NamedTuple):
    """The parts of an attempt's name."""

    job_id: str
    kind: Kind
    task: int
    attempt: int

    @property
    def task_id(self) -> str:
        return task_id(self.job_id, self.kind, self.task)

    def __str__(self) -> str:
        return f"attempt_{self.job_id[4:]}_{self.kind[0]}_{self.task:06}_{self.attempt}"


def job_id(started: str, number: int) -> str:
    """`started`: digits that no other tracker has, as the time of its start."""
    return checked_job_id("job", f"job_{started}_{number:04}")


def task_id(job: str, kind: Kind, task: int) -> str:
    return f"task_{job[4:]}_{kind[0]}_{task:06}"


def checked_job_id(field: str, text: str) -> str:
    """Raises InvalidValue."""
    if not _JOB.fullmatch(text):
        raise InvalidValue(field, text, "is not the id of a job, as job_20261128141500_0001")
    return text


def parse_attempt(text: str) -> AttemptName | None:
    """None if it is not the name of an attempt."""
    found = _ATTEMPT.fullmatch(text)
    if found is None:
        return None
    started, number, kind, task, attempt = found.groups()
    return AttemptName(
        f"job_{started}_{number}", "map" if kind == "m" else "reduce", int(task), int(attempt)
    )
