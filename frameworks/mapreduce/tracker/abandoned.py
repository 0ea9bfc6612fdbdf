"""Whether the job that has made an output directory was never begun, and never will be.

A tracker makes the directory, and then writes down that it has taken the job on.  When it dies
between the two nobody goes on with the job unless its client says it again, and a client that
was the same process does not.  Its output then has nothing in it but the name of its owner.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from frameworks.mapreduce.tracker.committing import Owner
from frameworks.mapreduce.tracker.journal import Journal, knows
from frameworks.mapreduce.tracker.place import is_beside
from frameworks.mapreduce.tracker.store import Store
from mesos_py import logs
from mesos_py.errors import MesosPyError, NotFound

log = logs.get("mapreduce.output")

_WRITER: Final = "adopter-"


def is_abandoned(owner: Owner, own_state: str, is_ours: Callable[[str], bool], writer: str) -> bool:
    """own_state: URL of the state of the tracker that asks, and `is_ours` whether it has the job,
    or is about to take it on: nobody else can.  writer: a word that nobody else uses.

    In a state that is beside the output, and so of one job only, whoever may still be about to
    begin it is kept from that.  In any other state somebody may be.  Raises what file systems
    raise.
    """
    if not owner.state:
        return False
    if owner.state == own_state:
        return not is_ours(owner.job_id) and not _has_ended(Store(own_state), owner.job_id)
    if not is_beside(owner.state):
        return False
    return _kept_from_it(Store(owner.state), owner.job_id, writer)


def _kept_from_it(store: Store, job_id: str, writer: str) -> bool:
    if _has_ended(store, job_id) or knows(store.place, job_id):
        return False
    if not store.place.names():
        # It was removed with the end of its tracker.
        return True
    try:
        journal, entries = Journal.take_over(store.place, f"{_WRITER}{writer}")
        journal.begin(entries)
    except MesosPyError as error:
        log.warning("not known whether a job was begun", job=job_id, error=error.message)
        return False
    return not any(entry.owner == job_id for entry in entries)


def _has_ended(store: Store, job_id: str) -> bool:
    try:
        store.summary(job_id)
    except NotFound:
        return False
    return True


__all__ = ["is_abandoned"]
