"""Resources as what dockerd enforces: at the start of a container, and while it runs."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from agent.containers.docker.settings import DockerSettings
from mesos_py.resources import MILLI, Resources

# As Mesos does it for all its containers.
SHARES_PER_CPU: Final = 1024
SHARES_MIN: Final = 2
CPU_PERIOD_US: Final = 100_000
CPU_QUOTA_MIN_US: Final = 1_000
MEM_MIN_MB: Final = 32
_MB: Final = 1024 * 1024


class Limits(NamedTuple):
    """`cpu_quota_us` 0: no quota."""

    cpu_shares: int
    cpu_quota_us: int
    mem_bytes: int

    def arguments(self) -> dict[str, Any]:
        """Of HostConfig and of `update_container` alike.

        Memory and swap together are no more than memory alone: no swap.
        """
        arguments: dict[str, Any] = {
            "cpu_shares": self.cpu_shares,
            "mem_limit": self.mem_bytes,
            "memswap_limit": self.mem_bytes,
        }
        if self.cpu_quota_us:
            arguments["cpu_period"] = CPU_PERIOD_US
            arguments["cpu_quota"] = self.cpu_quota_us
        return arguments


def limits_of(resources: Resources, settings: DockerSettings) -> Limits:
    cpus_milli = resources.scalars.get("cpus", 0)
    mem_milli = resources.scalars.get("mem", 0)
    quota_us = 0
    if settings.cpu_quota and cpus_milli:
        quota_us = max(CPU_QUOTA_MIN_US, CPU_PERIOD_US * cpus_milli // MILLI)
    return Limits(
        cpu_shares=max(SHARES_MIN, SHARES_PER_CPU * cpus_milli // MILLI),
        cpu_quota_us=quota_us,
        mem_bytes=max(MEM_MIN_MB * _MB, _MB * mem_milli // MILLI),
    )
