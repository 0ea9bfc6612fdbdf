"""The statuses that a task has had, in little memory."""

from __future__ import annotations

from collections.abc import Iterator

from mesos_py.v1 import types_pb2 as pb

MAX_STATUSES = 16
# News of a task that runs on: such statuses stand beside the one that said when it began.
_OF_CHECKS = frozenset(
    {
        pb.TaskStatus.REASON_TASK_CHECK_STATUS_UPDATED,
        pb.TaskStatus.REASON_TASK_HEALTH_CHECK_STATUS_UPDATED,
    }
)


class Statuses:
    """Of one state after the other the newest status, the oldest first; what checks have
    said in a state counts as one of its own.

    Kept as bytes: a message takes nine times as much, and a part of one keeps the whole
    batch in memory that it came in.  The history of a busy cluster is made of these.
    Each access makes a message anew; changing it changes nothing here.
    """

    __slots__ = ("_last", "_raw")

    def __init__(self) -> None:
        self._raw: list[bytes] = []
        self._last = -1

    def keep(self, status: pb.TaskStatus) -> bool:
        """Without its data, which may be large and is the framework's own affair.  Says
        whether it is of another state (or of a check, or of none) than the one before."""
        if status.HasField("data"):
            shown = pb.TaskStatus()
            shown.CopyFrom(status)
            shown.ClearField("data")
            status = shown
        raw, kind = status.SerializeToString(), int(status.state)
        if status.reason in _OF_CHECKS:
            kind = ~kind
        if self._raw and self._last == kind:
            self._raw[-1] = raw
            return False
        self._last = kind
        self._raw.append(raw)
        # A task may be unreachable and come back again and again.
        if len(self._raw) > MAX_STATUSES:
            del self._raw[1]
        return True

    def __len__(self) -> int:
        return len(self._raw)

    def __getitem__(self, index: int) -> pb.TaskStatus:
        return pb.TaskStatus.FromString(self._raw[index])

    def __iter__(self) -> Iterator[pb.TaskStatus]:
        return map(pb.TaskStatus.FromString, self._raw)
