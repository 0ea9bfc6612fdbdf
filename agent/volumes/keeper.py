"""All that is done with volumes while the agent runs, for who carries out its decisions."""

from __future__ import annotations

from typing import NamedTuple

from agent.volumes.eraser import Eraser
from agent.volumes.links import VolumeLinks


class VolumeKeeper(NamedTuple):
    """Of one agent."""

    links: VolumeLinks
    eraser: Eraser
