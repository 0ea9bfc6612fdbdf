"""Processor time: shares always, and a hard limit if the operator wants it."""

from __future__ import annotations

import os
from typing import Final

from agent.isolation.cgroups.controller import Controller
from agent.isolation.cgroups.files import Group
from agent.isolation.cgroups.layout import Place
from agent.isolation.cgroups.numbers import keyed, number
from agent.isolation.cgroups.options import Options
from mesos_py.resources import MILLI, Resources

# As Mesos: what one core is worth, and the least there is.
SHARES_PER_CORE: Final = 1024
MIN_SHARES: Final = 2
MAX_SHARES: Final = 262_144
WEIGHT_PER_CORE: Final = 100
MIN_WEIGHT: Final = 1
# Mesos lets the kernel refuse what is above; a hundred cores are as good as more.
MAX_WEIGHT: Final = 10_000
PERIOD_US: Final = 100_000
MIN_QUOTA_US: Final = 1_000


class Cpu(Controller):
    name = "cpu"

    def __init__(self, place: Place, options: Options) -> None:
        """All tasks together weigh as much as what the agent gives away, among agents; and
        all agents as much as the machine, among what else runs there."""
        super().__init__(place, options)
        machine = MILLI * (os.cpu_count() or 1)
        for group in place.chain[:-1]:
            self._weigh(group, machine)
        self._weigh(place.agent, max(options.cpus_milli, MILLI))

    def update(self, container_id: str, resources: Resources) -> None:
        group = self.group(container_id)
        milli = resources.scalars.get("cpus", 0)
        quota_us = max(PERIOD_US * milli // MILLI, MIN_QUOTA_US)
        self._weigh(group, milli)
        if self.v1:
            if self.options.quota:
                group.write("cpu.cfs_period_us", PERIOD_US)
                group.write("cpu.cfs_quota_us", quota_us)
        elif self.options.quota:
            group.write("cpu.max", f"{quota_us} {PERIOD_US}")

    def _weigh(self, group: Group, milli: int) -> None:
        if self.v1:
            group.write("cpu.shares", shares(milli))
        else:
            group.write("cpu.weight", weight(milli))

    def usage(self, container_id: str) -> dict[str, float]:
        group = self.group(container_id)
        stat = keyed(group.read_or_none("cpu.stat"))
        found: dict[str, float] = {}
        if "user_usec" in stat and "system_usec" in stat:  # v2; v1 has them elsewhere
            found["cpu_user_seconds"] = stat["user_usec"] / 1e6
            found["cpu_system_seconds"] = stat["system_usec"] / 1e6
        if not self.options.quota:
            return found
        for field, name in (
            ("nr_periods", "cpu_periods"),
            ("nr_throttled", "cpu_throttled_periods"),
        ):
            if field in stat:
                found[name] = stat[field]
        if "throttled_usec" in stat:
            found["cpu_throttled_seconds"] = stat["throttled_usec"] / 1e6
        elif "throttled_time" in stat:
            found["cpu_throttled_seconds"] = stat["throttled_time"] / 1e9
        text = group.read_or_none("cpu.cfs_quota_us" if self.v1 else "cpu.max")
        quota_us = number(text.split()[0]) if text and text.strip() else None
        if quota_us is not None:
            found["cpu_limit_cores"] = quota_us / PERIOD_US
        return found


def shares(milli: int) -> int:
    return min(max(SHARES_PER_CORE * milli // MILLI, MIN_SHARES), MAX_SHARES)


def weight(milli: int) -> int:
    return min(max(WEIGHT_PER_CORE * milli // MILLI, MIN_WEIGHT), MAX_WEIGHT)
