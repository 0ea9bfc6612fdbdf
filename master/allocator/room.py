"""How much of what is free on an agent may go to one framework."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from master.allocator.roles import Contender, Roster
from mesos_py.allocation import AgentRow, AllocatorOptions, ClusterView
from mesos_py.resources import EMPTY, Resources


@dataclass(frozen=True, slots=True)
class Part:
    """`resources` may be granted, for tasks of at most `max_task_s` (None: any).  Where
    they are EMPTY, `code` says why: one of SKIP_CODES."""

    resources: Resources
    code: str = ""
    max_task_s: float | None = None


NOTHING = Part(EMPTY)


class Room:
    """The rules of operators: what is free is not free for everybody.

    `begin` opens a cycle and takes what it needs from the view; `charge` tells of each
    grant made in it, which the view does not show yet.
    """

    def __init__(
        self, options: AllocatorOptions, roster: Roster, agents: Mapping[str, AgentRow]
    ) -> None:
        self._options = options
        self._roster = roster
        self._agents = agents

    def begin(self, view: ClusterView, now_s: float) -> None:
        """A cycle begins."""

    def part(self, contender: Contender, agent: AgentRow, free: Resources) -> Part:
        """What of `free` the contender may have there."""
        return Part(free)

    def charge(self, contender: Contender, agent: AgentRow, part: Part) -> None:
        """It was granted."""
