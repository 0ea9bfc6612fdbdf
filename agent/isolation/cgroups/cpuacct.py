"""Processor time used: a controller of its own in v1 only."""

from __future__ import annotations

import os
from typing import Final

from agent.isolation.cgroups.controller import Controller
from agent.isolation.cgroups.numbers import keyed, number

_TICKS: Final = os.sysconf("SC_CLK_TCK")


class CpuAccounting(Controller):
    name = "cpuacct"

    def usage(self, container_id: str) -> dict[str, float]:
        group = self.group(container_id)
        user = number(group.read_or_none("cpuacct.usage_user"))
        system = number(group.read_or_none("cpuacct.usage_sys"))
        if user is not None and system is not None:
            return {"cpu_user_seconds": user / 1e9, "cpu_system_seconds": system / 1e9}
        # Kernels before 4.8, in ticks.
        stat = keyed(group.read_or_none("cpuacct.stat"))
        if "user" not in stat or "system" not in stat:
            return {}
        return {
            "cpu_user_seconds": stat["user"] / _TICKS,
            "cpu_system_seconds": stat["system"] / _TICKS,
        }
