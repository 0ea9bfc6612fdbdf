"""Where the core's output goes.  The shell implements it over gRPC, tests with lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from mesos_py.v1 import agent_pb2, scheduler_pb2


class Outbox(Protocol):
    """Takes messages in order; never blocks, never fails, never calls back."""

    def to_framework(self, link: int, event: scheduler_pb2.Event) -> None: ...

    def to_agent(self, link: int, event: agent_pb2.Event) -> None: ...

    def close(self, link: int, reason: str) -> None:
        """End the stream once what was put before has been sent."""
        ...

    def store(self, number: int, changes: Mapping[str, bytes | None]) -> None:
        """Write to the registry (None removes a record), after all earlier writes.

        Answered by `Master.stored(number)` when it is certain; never, if the leadership
        has been lost.  Changes may be none: then it is about the order only.
        """
        ...

    def newer_epoch(self, epoch: int) -> None:
        """Somebody has orders of a leadership that is newer than this master's.

        So this one does not lead any more, or the registry has forgotten how far it had
        counted: the shell finds out which, and ends this leadership or raises its epoch.
        """
        ...

    def dropped(self, reason: str, **ids: object) -> None:
        """Something was ignored or refused: to be logged.  Counted by the core."""
        ...
