"""MapReduce on the cluster, for programs that already exist.

::

    mesos-py mapreduce run -input /data/*.txt -output /data/counts -mapper words.py -reducer sum.py

From Python: `run` and `submit` (`api.py`); in functions that run as part of a job: `count` and
`set_status` (`functions.py`).

Who does what: `cli` takes a job from a person, `tracker` (the framework's scheduler) runs it,
`core` decides, `worker` (the executor) runs attempts of tasks on agents, `data` is what
records go through.  `job`, `work` and `messages` are the records that these exchange.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from frameworks.mapreduce.api import Job, JobFailed, run, submit
    from frameworks.mapreduce.functions import count, set_status

__all__ = ["Job", "JobFailed", "count", "run", "set_status", "submit"]

_HOMES: Final = {
    "Job": "api",
    "JobFailed": "api",
    "count": "functions",
    "run": "api",
    "set_status": "functions",
    "submit": "api",
}


def __getattr__(name: str) -> Any:
    """What programs use of us, loaded when it is used: workers need none of it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
