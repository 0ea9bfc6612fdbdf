"""What the driver and its executors say to each other over their link, pickled.

Both ends are of one version and have proved with a secret that they belong together.  The
link is ordered and reliable while it lasts; when it breaks, the executor is lost, with all
that it was doing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from frameworks.rdd.records import pickled_by_fields

# A block: ("rdd", rdd_id, split), ("broadcast", id, chunk), ("file", number, chunk) or
# ("result", task_id, 0).
BlockId = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class MapOutput:
    """What one map task has left for a shuffle: one file, the partitions in order.

    offsets: where each partition begins, and the end of the last, as an array of
      little-endian 64-bit numbers.
    path: where the file is on its host; url: where the agent's file server has it, ""
      without a cluster.
    host and executor_id say who is to blame if it is gone.
    """

    shuffle_id: int
    map_index: int
    executor_id: str
    host: str
    path: str
    url: str
    offsets: bytes


# ---- From the driver -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DefineStage:
    """Comes before the first task of a stage's attempt.

    key: names this attempt of the stage.  blob: cloudpickle of a `StageWork`.
    outputs: for each shuffle that it reads, what all its maps have left.
    """

    key: str
    blob: bytes
    outputs: Mapping[int, tuple[MapOutput, ...]]


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Instead of a payload of `size` bytes: what is made of it is kept where the task runs.
    If that is gone, the task ends with FetchLost of shuffle `PAYLOAD`, and comes again with
    all that it needs."""

    size: int


PAYLOAD: Final = -1


@dataclass(frozen=True, slots=True)
class RunTask:
    """task_id: given once.  attempt: of this partition, from 0.
    payloads: pickled dict of node id -> dict of split -> payload, or LeftOut, for the nodes
    that have one.
    """

    task_id: int
    stage_key: str
    stage_id: int
    split: int
    attempt: int
    payloads: bytes
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CancelTask:
    """Its end is told (Killed), unless it ends otherwise first."""

    task_id: int
    reason: str


@dataclass(frozen=True, slots=True)
class Forget:
    """Stages that have ended, data sets that are persisted no longer, shuffles that nobody
    can need any more, broadcasts that were destroyed, tasks whose big results were fetched
    or are not wanted (there need not be one)."""

    stages: tuple[str, ...] = ()
    rdds: tuple[int, ...] = ()
    shuffles: tuple[int, ...] = ()
    broadcasts: tuple[int, ...] = ()
    results: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class AddFiles:
    """Of addFile and addPyFile: name -> block of its content; before any task that may need
    them.  paths: names to put on sys.path."""

    files: Mapping[str, tuple[BlockId, ...]]
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Locations:
    """The answer to WhereIs: for each block the addresses of other executors' block services
    that have it.  The driver, who has all broadcasts and files, is not named."""

    number: int
    addresses: Mapping[BlockId, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Leave:
    """End what runs, remove what is kept, and exit.  for_good: nobody will read the outputs of
    its shuffles either."""

    reason: str
    for_good: bool = False


# ---- From an executor ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Hello:
    """The first message.  slots: how many tasks at once.  block_address: of its block
    service.  python: sys.version_info[:3]."""

    executor_id: str
    host: str
    slots: int
    block_address: str
    python: tuple[int, int, int]
    agent_id: str = ""


@dataclass(frozen=True, slots=True)
class Metrics:
    """Of one task.  run_s is wall time in the worker; cpu_s includes its children's."""

    run_s: float = 0.0
    cpu_s: float = 0.0
    read_bytes: int = 0
    written_bytes: int = 0
    spilled_bytes: int = 0
    records: int = 0


@dataclass(frozen=True, slots=True)
class Succeeded:
    """result: pickled, if it is small; otherwise `result_block`, of `result_bytes`, to be
    fetched.
    output: of a map task.  accumulators: pickled dict of id -> what this task has added;
    b"" if nothing.
    """

    result: bytes | None = None
    result_block: BlockId | None = None
    result_bytes: int = 0
    output: MapOutput | None = None
    accumulators: bytes = b""
    metrics: Metrics = field(default_factory=Metrics)


@dataclass(frozen=True, slots=True)
class Raised:
    """The user's code, or ours, raised.  traceback: text, the user's frames first and ours
    left out.  exception: pickled, b"" if that could not be.  fatal: trying again is useless
    (a module is missing, code cannot be unpickled, Python versions differ)."""

    kind: str
    message: str
    traceback: str
    exception: bytes = b""
    fatal: bool = False
    metrics: Metrics = field(default_factory=Metrics)


@dataclass(frozen=True, slots=True)
class FetchLost:
    """What a map has left could not be had.  Not the task's fault, nor its executor's.
    map_index -1: all of that executor's."""

    shuffle_id: int
    map_index: int
    executor_id: str
    message: str


@dataclass(frozen=True, slots=True)
class Killed:
    """It was cancelled, for this reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class Died:
    """The worker process ended in the midst of it: by a signal, for its memory, by
    os._exit.  What is known, in words."""

    message: str


Outcome = Succeeded | Raised | FetchLost | Killed | Died


@dataclass(frozen=True, slots=True)
class TaskEnded:
    task_id: int
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Kept:
    """Blocks of data sets that this executor has now, with their sizes in bytes and whether
    they are in memory, or no longer has (None).  Sent as it happens; before the end of the
    task that made them."""

    blocks: Mapping[BlockId, tuple[int, bool] | None]


@dataclass(frozen=True, slots=True)
class WhereIs:
    """Asked by an executor that needs blocks of others.  `has`: broadcast chunks that it has
    got meanwhile and serves."""

    number: int
    wanted: tuple[BlockId, ...]
    has: tuple[BlockId, ...] = ()


@dataclass(frozen=True, slots=True)
class Beat:
    """Every few seconds: bytes kept in memory and on disk, and the tasks that run with the
    elements that each has read so far."""

    memory_bytes: int
    disk_bytes: int
    running: Mapping[int, int]
    peak_bytes: int = 0
    beats: int = 0


FromDriver = DefineStage | RunTask | CancelTask | Forget | AddFiles | Locations | Leave
FromExecutor = Hello | TaskEnded | Kept | WhereIs | Beat


# ---- What a stage is ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StageWork:
    """What a task of a stage does, in the blob of DefineStage.

    With `shuffle`: write the pairs of the node's partition for it.  Otherwise the result is
    function(split, iterator of the node's partition).
    """

    node: Any
    shuffle: Any = None
    function: Any = None


pickled_by_fields(
    MapOutput,
    DefineStage,
    RunTask,
    CancelTask,
    Forget,
    AddFiles,
    Locations,
    Leave,
    Hello,
    Metrics,
    Succeeded,
    Raised,
    FetchLost,
    Killed,
    Died,
    TaskEnded,
    Kept,
    WhereIs,
    Beat,
)
