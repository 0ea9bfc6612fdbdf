"""What a transaction of ZooKeeper is made of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Create:
    """Make a node, which must not exist; the one above it must."""

    path: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Put:
    """Replace what an existing node holds; with `version`, only if it has that one."""

    path: str
    data: bytes
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove an existing node."""

    path: str


Step = Create | Put | Delete
