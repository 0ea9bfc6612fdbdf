"""What all controllers have in common."""

from __future__ import annotations

from typing import ClassVar

from agent.isolation.base import Container
from agent.isolation.cgroups.files import Group
from agent.isolation.cgroups.layout import Place
from agent.isolation.cgroups.options import Options
from mesos_py.resources import Resources


class Controller:
    """One controller, for all containers of the agent.  Called from several threads, for
    each container from one at a time."""

    name: ClassVar[str]

    def __init__(self, place: Place, options: Options) -> None:
        """The agent's own group is there already."""
        self.place = place
        self.options = options
        self.v1 = place.version == 1

    def group(self, container_id: str) -> Group:
        return self.place.agent.child(container_id)

    def prepare(self, container: Container) -> Group:
        """Set everything before a process enters; which group that is."""
        group = self.group(container.container_id)
        group.make()
        self.update(container.container_id, container.resources)
        return group

    def update(self, container_id: str, resources: Resources) -> None:
        """It has `resources` in all from now on.  Raises CgroupError."""

    def recover(self, container_id: str, resources: Resources) -> None:
        """It runs since before this agent started."""

    def usage(self, container_id: str) -> dict[str, float]:
        """What can be had of its figures."""
        return {}

    def forget(self, container_id: str) -> None:
        """Its groups are gone."""
