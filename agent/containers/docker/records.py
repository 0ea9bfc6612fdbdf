"""What the launcher remembers of each container."""

from __future__ import annotations

import asyncio
import enum
from dataclasses import dataclass, field

from agent.containers.docker.copying import Copying
from agent.containers.docker.limits import Limits
from agent.core.effects import Signal
from mesos_py.resources import Resources


class NotStarted(Exception):
    """The launch has failed; the text is for the task's status."""


class Phase(enum.Enum):
    PREPARING = enum.auto()
    RUNNING = enum.auto()


@dataclass(slots=True, eq=False)
class Container:
    container_id: str
    agent_id: str
    # What its tasks have in all, now.
    resources: Resources
    phase: Phase = Phase.PREPARING
    # Known once it was made.
    docker_id: str = ""
    # Nothing of it runs any more.
    gone: bool = False
    # The last signal that was asked for; and that one was, or the container is gone.
    signal: Signal | None = None
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    # Something has happened: look at it again.
    look: asyncio.Event = field(default_factory=asyncio.Event)
    # The limits that it has, None if that is not certain; whether they are being changed.
    applied: Limits | None = None
    applying: bool = False
    # dockerd has not done, or not answered, what it was asked.
    stuck: bool = False
    oom_kills: int = 0
    copying: Copying | None = None
