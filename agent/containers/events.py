"""What those who run containers tell of them."""

from __future__ import annotations

from typing import Protocol

from agent.core.health import Outcome
from agent.core.records import Exit
from agent.isolation.base import Limitation


class ContainerEvents(Protocol):
    """Who is told of containers.  Called on the event loop."""

    def container_addressed(self, container_id: str, addresses: tuple[str, ...]) -> None:
        """It has a network of its own.  Before `container_started`, or after a restart."""
        ...

    def container_started(self, container_id: str, pid: int, start_ticks: int) -> None: ...

    def container_failed(self, container_id: str, message: str) -> None: ...

    def container_ended(self, container_id: str, exit: Exit) -> None: ...

    def container_limited(self, container_id: str, limitation: Limitation) -> None: ...

    def containers_told(self) -> None:
        """That was all for now: act on it."""
        ...


class ProbedContainerEvents(ContainerEvents, Protocol):
    """Where containers are probed by commands, too."""

    def probe_ended(self, container_id: str, kind: str, number: int, outcome: Outcome) -> None: ...
