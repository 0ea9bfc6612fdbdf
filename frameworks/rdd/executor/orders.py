"""What the parent and a worker say to each other, as packets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from frameworks.rdd.messages import BlockId, MapOutput, Outcome, RunTask
from frameworks.rdd.records import pickled_by_fields

# ---- To a worker ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Define:
    """A stage, before its first task here."""

    key: str
    blob: bytes
    outputs: Mapping[int, tuple[MapOutput, ...]]


@dataclass(frozen=True, slots=True)
class Run:
    task: RunTask


@dataclass(frozen=True, slots=True)
class Drop:
    """Stages that come no more, broadcasts that were destroyed, data sets kept no longer."""

    stages: tuple[str, ...] = ()
    broadcasts: tuple[int, ...] = ()
    rdds: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Paths:
    """To be put on sys.path; files: the directory of what addFile has brought."""

    files: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """To what the worker has asked; files come along."""

    value: Any
    error: Exception | None = None


# ---- From a worker -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ready:
    pid: int


@dataclass(frozen=True, slots=True)
class WantBlock:
    """Answer: whether there is one; its file comes along.  Looked for on other executors, too."""

    block: BlockId


@dataclass(frozen=True, slots=True)
class WantBroadcast:
    """Answer: its size, with its file.  Error: Unavailable."""

    id: int


@dataclass(frozen=True, slots=True)
class Reserve:
    """Before a block that is being made takes more than `size_bytes` in all.  Answer: True if
    it may; the answer to `size_bytes` 0 (it is not to be kept in memory) means nothing."""

    block: BlockId
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Keep:
    """A block that was made.  path: where it is on disk; "" if its file in memory comes
    along.  May be let go of for room only if `spill` (to disk) or else for good."""

    block: BlockId
    size_bytes: int
    path: str
    spill: bool
    copies: int = 1


@dataclass(frozen=True, slots=True)
class Done:
    """A task has ended; a big result comes along as a file."""

    task_id: int
    outcome: Outcome


ToWorker = Define | Run | Drop | Paths | Answer
FromWorker = Ready | WantBlock | WantBroadcast | Reserve | Keep | Done

pickled_by_fields(Define, Run, Drop, Paths, Answer)
pickled_by_fields(Ready, WantBlock, WantBroadcast, Reserve, Keep, Done)
