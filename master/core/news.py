"""What those are told of who watch a cluster, and nobody else."""

from __future__ import annotations

from typing import Protocol

from master.core.records import Agent, Framework, Task
from mesos_py.v1 import types_pb2 as pb


class News(Protocol):
    """Never blocks, never fails, changes nothing.  Told in the middle of steps: what it is
    given is to be looked at afterwards."""

    def task_added(self, task: Task) -> None:
        """It was launched, or came with its agent."""
        ...

    def task_updated(self, task: Task, status: pb.TaskStatus) -> None:
        """The status is of another state than the one before."""
        ...

    def agent_changed(self, agent: Agent) -> None:
        """It is registered; something about it may be new."""
        ...

    def agent_removed(self, agent_id: str) -> None:
        """It is unreachable, or gone."""
        ...

    def framework_changed(self, framework: Framework) -> None:
        """Something about it may be new, or all of it."""
        ...

    def framework_removed(self, framework: Framework) -> None: ...


__all__ = ["News"]
