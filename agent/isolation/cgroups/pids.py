"""Processes and threads: counted, and limited against fork bombs."""

from __future__ import annotations

from agent.isolation.base import Container
from agent.isolation.cgroups.controller import Controller
from agent.isolation.cgroups.files import Group
from agent.isolation.cgroups.numbers import number


class Pids(Controller):
    name = "pids"

    def prepare(self, container: Container) -> Group:
        group = self.group(container.container_id)
        group.make()
        if self.options.pids_limit:
            group.write("pids.max", self.options.pids_limit)
        return group

    def usage(self, container_id: str) -> dict[str, float]:
        group = self.group(container_id)
        found = {
            "pids": number(group.read_or_none("pids.current")),
            "pids_limit": number(group.read_or_none("pids.max")),
        }
        return {name: value for name, value in found.items() if value is not None}
