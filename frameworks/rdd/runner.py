"""What carries out jobs for a SparkContext."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from frameworks.rdd.core.views import View
from frameworks.rdd.nodes import Node

# A job's property: its tags, with commas between.
TAGS: Final = "spark.job.tags"


@dataclass(frozen=True, slots=True)
class Job:
    """function(split, iterator) is run over `splits` of the node; its results are wanted.

    group, description and interruptible are what the user has set (setJobGroup).  action is
    the name of what was called, place where (file:line).
    """

    node: Node
    function: Callable[[int, Iterator[Any]], Any]
    splits: Sequence[int]
    action: str = ""
    place: str = ""
    group: str = ""
    description: str = ""
    properties: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result:
    """One partition's result."""

    split: int
    value: Any


class Results(Protocol):
    """Of one job, as they come, in the order in which tasks end."""

    def __iter__(self) -> Iterator[Result]: ...

    def close(self) -> None:
        """Before the end it cancels the job.  From the thread that iterates."""
        ...


class Runner(Protocol):
    """Called from any thread of the driver."""

    def run(self, job: Job) -> Results:
        """Starts it.  Iterating over what it returns raises JobFailed (errors.py), with the
        user's own exception as its cause where there is one, or JobCancelled; NotPicklable is
        raised before anything is run.
        """
        ...

    def cancel(self, group: str | None, reason: str) -> None:
        """Cancel the jobs of a group, or all."""
        ...

    def cancel_tag(self, tag: str, reason: str) -> None:
        """Cancel the jobs that have it among the `TAGS` of their properties."""
        ...

    def unpersist(self, rdd_id: int, *, blocking: bool) -> None: ...

    def broadcast(self, value: Any) -> int:
        """Makes it available to tasks; its id, with which Broadcast finds it there."""
        ...

    def destroy(self, broadcast_id: int) -> None:
        """Tasks can use it no more.  Nothing if that is so already."""
        ...

    def release(self, broadcast_id: int) -> None:
        """The program has let go of it: as `destroy`, some time.  From anywhere, also from
        within a garbage collection."""
        ...

    def add_file(self, path: str, *, python: bool) -> None:
        """A local one, which stays as it is at its path; another may have its name.  Raises
        InvalidValue if there is no such file."""
        ...

    @property
    def slots(self) -> int:
        """How many tasks can run at once now; 0 while there are no executors yet."""
        ...

    def view(self) -> View:
        """How jobs and stages stand."""
        ...

    @property
    def page_url(self) -> str | None:
        """Of a page that shows it, if there is one."""
        ...

    def stop(self) -> None:
        """Ends what runs and waits for it.  May be called twice."""
        ...
