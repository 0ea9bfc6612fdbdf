"""What the launcher remembers of a container while there is anything of it."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from agent.containers.spawn import StartRequest
from agent.core.effects import Signal


class Phase(enum.Enum):
    PREPARING = enum.auto()
    STARTING = enum.auto()
    RUNNING = enum.auto()
    # The warden has nothing left of it; isolators may.
    ENDING = enum.auto()


@dataclass(slots=True, eq=False)
class Held:
    container_id: str
    sandbox: tuple[str, ...]
    phase: Phase = Phase.PREPARING
    pid: int = 0
    start_ticks: int = 0
    # What the warden was asked, until it has answered.
    request: StartRequest | None = None
    # The last signal that was asked for.
    signal: Signal | None = None
