"""What the registry needs of ZooKeeper: a few calls, so that tests bring a tree of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mesos_py.election.zookeeper.steps import Step


class Tree(Protocol):
    """Nodes by path.  Calls of one owner take effect in the order in which they are made.

    Every call may raise Unavailable: there was no answer, and what was asked for is
    done, or is not, or still will be.  It may be called again at once, and waits for a
    connection then.  Refused: no permission.
    """

    async def make(self, path: str) -> None:
        """An empty node, and those above it, unless they are there."""
        ...

    async def read(self, path: str) -> tuple[bytes, int]:
        """What the node holds, and its version.  Raises NotFound."""
        ...

    async def children(self, path: str) -> list[str]:
        """Their names.  Raises NotFound."""
        ...

    async def commit(self, steps: Sequence[Step]) -> None:
        """All steps or none.  Raises Conflict if one of them does not fit what is there.

        A node's version grows by one with each Put.
        """
        ...

    async def catch_up(self) -> None:
        """What is read afterwards is at least as new as anything done before, by anybody."""
        ...

    async def close(self) -> None:
        """Idempotent."""
        ...
