"""The `disk` isolator: what a container stores in its sandbox, and the quota on it.

The quota is the `disk` that its tasks were given; without one there is none.  It is
looked after from time to time, so a container can be above it for a while.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from agent.containers import sandbox
from agent.isolation.base import (
    NOTHING,
    AgentFacts,
    Container,
    Isolator,
    Limitation,
    Preparation,
    Recovered,
    Usage,
)
from agent.isolation.disk.pace import next_look_s
from agent.isolation.disk.rounds import Rounds
from agent.isolation.disk.walk import Stopped, Used, used_beneath
from mesos_py import logs
from mesos_py.resources import MILLI, Resources
from mesos_py.v1 import types_pb2 as pb

log = logs.get("agent.isolation.disk")

MB: Final = 1024 * 1024
THREADS: Final = 2
# What was fetched or written at the very start is not long unseen.
FIRST_LOOK_S: Final = 1.0


@dataclass(slots=True, eq=False)
class _Stored:
    """One container."""

    # The sandbox, as names beneath the work directory.
    sandbox: tuple[str, ...]
    limit: int | None
    exceeded: Callable[[Limitation], None] | None = None
    used: int | None = None
    looked_s: float = 0.0
    complained: bool = False
    gone: bool = False


class DiskIsolator(Isolator):
    """Counts what is beneath sandboxes.  Flags: container_disk_watch_interval and
    enforce_container_disk_quota, without which a quota is only reported."""

    def __init__(self, facts: AgentFacts) -> None:
        super().__init__(facts)
        self._interval_s: float = facts.flags.get("container_disk_watch_interval_s", 15.0)
        self._enforce: bool = facts.flags.get("enforce_container_disk_quota", False)
        self._stored: dict[str, _Stored] = {}
        self._rounds = Rounds(self._look, "disk-usage", THREADS)

    def recover(self, containers: Sequence[Recovered]) -> None:
        for each in containers:
            path = (
                *("agents", self.facts.agent_id),
                *("frameworks", each.framework_id),
                *("executors", each.executor_id),
                *("runs", each.container_id),
            )
            self._stored[each.container_id] = _Stored(path, limit_of(each.resources))

    def prepare(self, container: Container) -> Preparation:
        path = container.sandbox.removeprefix(self.facts.work_dir).strip("/")
        self._stored[container.container_id] = _Stored(
            tuple(path.split("/")), limit_of(container.resources)
        )
        return NOTHING

    def update(self, container_id: str, resources: Resources) -> None:
        stored = self._stored.get(container_id)
        if stored is not None:
            stored.limit = limit_of(resources)
            if stored.exceeded is not None:
                self._rounds.add(container_id, min(FIRST_LOOK_S, self._interval_s))

    def usage(self, container_id: str) -> Usage:
        stored = self._stored.get(container_id)
        if stored is None:
            return {}
        numbers = {"disk_bytes": stored.used, "disk_limit_bytes": stored.limit}
        return {name: number for name, number in numbers.items() if number is not None}

    def watch(self, container_id: str, exceeded: Callable[[Limitation], None]) -> None:
        stored = self._stored.get(container_id)
        if stored is not None:
            stored.exceeded = exceeded
            self._rounds.add(container_id, min(FIRST_LOOK_S, self._interval_s))

    def cleanup(self, container_id: str) -> None:
        stored = self._stored.pop(container_id, None)
        if stored is not None:
            stored.gone = True
        self._rounds.remove(container_id)

    # ---- In the threads of the rounds --------------------------------------------

    def _look(self, container_id: str) -> float | None:
        """Returns when to look again."""
        stored = self._stored.get(container_id)
        if stored is None:
            return None
        began_s = time.monotonic()
        try:
            found = self._measure(stored)
        except Stopped:
            return None
        except OSError as error:
            log.warning("sandbox cannot be measured", container=container_id, error=error)
            return self._interval_s
        now_s = time.monotonic()
        growth = 0.0
        if stored.used is not None and now_s > stored.looked_s:
            growth = (found.bytes - stored.used) / (now_s - stored.looked_s)
        stored.used, stored.looked_s = found.bytes, now_s
        if found.skipped and not stored.complained:
            stored.complained = True
            log.warning(
                "sandbox has directories that cannot be measured",
                container=container_id,
                directories=found.skipped,
            )
        limit = stored.limit
        if self._enforce and limit is not None and found.bytes > limit and not stored.gone:
            self._tell(stored, found.bytes, limit)
            return None
        return next_look_s(self._interval_s, now_s - began_s, found.bytes, limit, growth)

    def _measure(self, stored: _Stored) -> Used:
        with (
            sandbox.opened(self.facts.work_dir) as root,
            sandbox.closing(sandbox.open_directory(root, stored.sandbox)) as top,
        ):
            return used_beneath(top, lambda: stored.gone)

    def _tell(self, stored: _Stored, used: int, limit: int) -> None:
        exceeded, stored.exceeded = stored.exceeded, None
        if exceeded is not None:
            exceeded(
                Limitation(
                    pb.TaskStatus.REASON_CONTAINER_LIMITATION_DISK,
                    f"Disk usage ({_mb(used)}) exceeds quota ({_mb(limit)})",
                    Resources.of(disk=limit / MB),
                )
            )


def limit_of(resources: Resources) -> int | None:
    """The quota in bytes; None without one."""
    milli = resources.scalars.get("disk")
    return None if milli is None else milli * MB // MILLI


def _mb(size: int) -> str:
    # Rounded up, so that what is above a limit also looks so.
    tenths = -(-size * 10 // MB)
    return f"{tenths // 10}.{tenths % 10} MB"
