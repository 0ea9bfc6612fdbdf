"""What the core wants done, in order."""

from __future__ import annotations

from dataclasses import dataclass

from frameworks.rdd.messages import BlockId, FromDriver


@dataclass(frozen=True, slots=True)
class Send:
    executor_id: str
    message: FromDriver


@dataclass(frozen=True, slots=True)
class Want:
    """Of the backend: so many tasks could run now."""

    slots: int


@dataclass(frozen=True, slots=True)
class Drop:
    """An executor that is not needed."""

    executor_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Fetch:
    """A result from the block service at `address`; `Core.fetched` is told of the end."""

    task_id: int
    address: str
    block: BlockId


@dataclass(frozen=True, slots=True)
class Deliver:
    """One partition's result to the caller of the job, pickled.  Once for each index of the
    job's splits."""

    job: int
    index: int
    result: bytes


@dataclass(frozen=True, slots=True)
class Added:
    """What a task has added to accumulators, to whom waits for the job.  Once per partition
    of a stage."""

    job: int
    accumulators: bytes


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a job did not succeed.  text: complete, the user's traceback first if there is one.
    exception: pickled, the user's own; b"" if there is none, or it cannot be had."""

    text: str
    exception: bytes = b""
    cancelled: bool = False


@dataclass(frozen=True, slots=True)
class Ended:
    """Nothing more comes of this job.  failure: None if it has succeeded."""

    job: int
    failure: Failure | None


Effect = Send | Want | Drop | Fetch | Deliver | Added | Ended

__all__ = ["Added", "Deliver", "Drop", "Effect", "Ended", "Failure", "Fetch", "Send", "Want"]
