"""Operations as they are listed for operators."""

from __future__ import annotations

from collections.abc import Iterable

from mesos_py.v1 import types_pb2 as pb


def with_statuses(operations: Iterable[pb.Operation]) -> list[pb.Operation]:
    """The same, each with its `statuses`, which is the latest one where anything has become of
    it, as in Mesos.  What is given stays as it is."""
    return [_listed(each) for each in operations]


def _listed(operation: pb.Operation) -> pb.Operation:
    listed = pb.Operation()
    listed.CopyFrom(operation)
    del listed.statuses[:]
    if listed.latest_status.state not in (pb.OPERATION_UNSUPPORTED, pb.OPERATION_PENDING):
        listed.statuses.append(listed.latest_status)
    return listed


__all__ = ["with_statuses"]
