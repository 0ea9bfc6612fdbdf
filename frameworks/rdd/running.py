"""A job as its caller sees it: results as they come, and how it ends."""

from __future__ import annotations

import pickle
import queue
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from frameworks.rdd import accumulators
from frameworks.rdd.closures import load_exception
from frameworks.rdd.core.effects import Failure
from frameworks.rdd.errors import JobCancelled, JobFailed
from frameworks.rdd.runner import Job, Result
from mesos_py.errors import MesosPyError


@dataclass(frozen=True, slots=True)
class Partition:
    """index: in the job's splits."""

    index: int
    result: bytes


@dataclass(frozen=True, slots=True)
class Sums:
    """What a task has added to accumulators, pickled."""

    accumulators: bytes


@dataclass(frozen=True, slots=True)
class End:
    failure: Failure | None


Event = Partition | Sums | End


class Run(Iterator[Result]):
    """Results of one job, in the caller's thread, where the user's own code in them runs too:
    what unpickles, and what adds to accumulators.

    `close` before the end cancels the job, and so does whatever interrupts the waiting.
    cancel: tells the engine why; abandon: the same from anywhere, also from within a garbage
    collection.  events: where the engine puts what happens, an End last; that is all that it
    has of this, so that a Run of which nobody knows any more can be noticed.
    """

    def __init__(
        self,
        number: int,
        job: Job,
        cancel: Callable[[int, str], None],
        abandon: Callable[[int], None],
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        """ended: called when the caller is about to hear that it is over."""
        self.number = number
        self._ended = ended
        self._splits: Final = tuple(job.splits)
        self._cancel = cancel
        self._abandon = abandon
        self.events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._over = False

    def __next__(self) -> Result:
        while not self._over:
            try:
                event = self.events.get()
                if isinstance(event, Partition):
                    return Result(self._splits[event.index], _value(event, self._splits))
                if isinstance(event, Sums):
                    accumulators.merge(_sums(event))
                    continue
            except BaseException as error:
                self._end("interrupted" if isinstance(error, KeyboardInterrupt) else str(error))
                raise
            self._over = True
            self._ended()
            if event.failure is not None:
                raise _error(event.failure) from load_exception(event.failure.exception)
        raise StopIteration

    def close(self) -> None:
        """Nothing if it has ended."""
        self._end("nobody waits for the rest of its results")

    def __del__(self) -> None:
        if not self._over:
            self._over = True
            self._abandon(self.number)

    def _end(self, reason: str) -> None:
        if not self._over:
            self._over = True
            self._cancel(self.number, reason)
            self._ended()


def _value(partition: Partition, splits: tuple[int, ...]) -> Any:
    try:
        return pickle.loads(partition.result)
    except Exception as error:
        raise JobFailed(
            f"the result of partition {splits[partition.index]} cannot be unpickled in the "
            f"driver: {type(error).__name__}: {error}"
        ) from error


def _sums(sums: Sums) -> dict[int, Any]:
    try:
        added: dict[int, Any] = pickle.loads(sums.accumulators)
    except Exception as error:
        raise JobFailed(
            "what a task has added to accumulators cannot be unpickled in the driver: "
            f"{type(error).__name__}: {error}"
        ) from error
    return added


def _error(failure: Failure) -> MesosPyError:
    return JobCancelled(failure.text) if failure.cancelled else JobFailed(failure.text)


__all__ = ["End", "Event", "Partition", "Run", "Sums"]
