"""What dockerd is asked to make, as plain values: the SDK's own are made at the edge."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mesos_py.errors import InvalidValue


class MountPoint(NamedTuple):
    """`source` is a path of the host, or of a volume of docker's the name."""

    source: str
    target: str
    read_only: bool = False

    @property
    def is_volume(self) -> bool:
        return not self.source.startswith("/")


class Ulimit(NamedTuple):
    name: str
    soft: int
    hard: int


@dataclass
class CreateRequest:
    """Arguments of the SDK's `create_container`: `config`, and of its HostConfig: `host`."""

    name: str
    image: str
    config: dict[str, Any] = field(default_factory=dict)
    host: dict[str, Any] = field(default_factory=dict)
    mounts: list[MountPoint] = field(default_factory=list)
    ulimits: list[Ulimit] = field(default_factory=list)

    def mount(self, where: str, point: MountPoint) -> None:
        """Raises InvalidValue for a place that is taken."""
        if any(each.target == point.target for each in self.mounts):
            raise InvalidValue(where, point.target, "is mounted already")
        self.mounts.append(point)
