"""What all ways to a tracker have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

from frameworks.mapreduce.core.views import JobView, TaskView
from frameworks.mapreduce.job import JobSpec

ENDED: Final = ("succeeded", "failed", "killed")


class Client(ABC):
    """Jobs are submitted to it, and looked at.  May be used from several threads.

    Calls raise Unavailable when the tracker does not answer; they can be made again.
    """

    # The command by which its jobs go on if this process dies; "" if they do not depend on it,
    # or cannot go on.
    resumed_by = ""

    @abstractmethod
    def staging(self, job_id: str) -> str:
        """The URL of the directory for a job that is to be submitted: its `staging`, where its
        files are to be put before.  Raises Unavailable."""

    @abstractmethod
    def submit(self, spec: JobSpec) -> None:
        """Begin the job.  Once it returns, the job has been accepted; said again with the same
        spec it does nothing.

        Raises InvalidValue, NotFound (an input), and AlreadyExists (the output).
        """

    @abstractmethod
    def view(self, job_id: str) -> JobView:
        """Raises NotFound."""

    @abstractmethod
    def views(self) -> list[JobView]:
        """Jobs that it knows, in the order of their submission."""

    @abstractmethod
    def tasks(self, job_id: str) -> Sequence[TaskView]:
        """All of them, maps first.  Raises NotFound."""

    @abstractmethod
    def kill(self, job_id: str, why: str) -> None:
        """Ask for its end; nothing if it has ended.  Raises NotFound."""

    @abstractmethod
    def close(self) -> None:
        """End what was begun here for it; a tracker elsewhere goes on.  May be called again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def has_ended(view: JobView) -> bool:
    return view.state in ENDED
