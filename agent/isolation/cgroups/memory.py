"""Memory: a hard limit, the peak, and what the kernel killed for want of it."""

from __future__ import annotations

import errno
from typing import Final

from agent.isolation.base import Limitation
from agent.isolation.cgroups.controller import Controller
from agent.isolation.cgroups.files import (
    CgroupError,
    Group,
    Notice,
    notice_by_eventfd,
    notice_by_poll,
)
from agent.isolation.cgroups.numbers import MIB, keyed, number
from mesos_py import logs
from mesos_py.resources import MILLI, Resources
from mesos_py.v1 import types_pb2 as pb

log = logs.get("agent.isolation.cgroups")

# As Mesos: no container has less, since not even a shell runs in it.
MIN_BYTES: Final = 32 * MIB
# v2 kills where v1 refuses: a limit is lowered only to what leaves that much room.
ROOM_BYTES: Final = 4 * MIB


def limit_bytes(resources: Resources) -> int:
    return max(resources.scalars.get("mem", 0) * MIB // MILLI, MIN_BYTES)


class Memory(Controller):
    name = "memory"

    def update(self, container_id: str, resources: Resources) -> None:
        group = self.group(container_id)
        wanted = limit_bytes(resources)
        # What is below that is taken back last when the machine is short of memory.
        try:
            group.write("memory.soft_limit_in_bytes" if self.v1 else "memory.low", wanted)
        except CgroupError as error:
            if error.number not in (errno.EOPNOTSUPP, errno.ENOENT):
                raise
        now = self.limit(group)
        if self.v1:
            lowered = self._set_v1(group, wanted, grows=now is not None and wanted > now)
        else:
            lowered = self._set_v2(group, wanted, now)
        if not lowered:
            # As Mesos: who has it keeps it.  The next change of its tasks tries again.
            log.warning(
                "memory in use keeps the limit up",
                container=container_id,
                limit=now,
                wanted=wanted,
            )

    def _set_v1(self, group: Group, wanted: int, *, grows: bool) -> bool:
        names = ["memory.limit_in_bytes"]
        if self.options.limit_swap:
            names.append("memory.memsw.limit_in_bytes")
        if grows:
            names.reverse()  # memory and swap together may never be less than memory
        try:
            for name in names:
                group.write(name, wanted)
        except CgroupError as error:
            if error.number == errno.EBUSY:
                return False
            raise
        return True

    def _set_v2(self, group: Group, wanted: int, now: int | None) -> bool:
        if self.options.limit_swap:
            group.write("memory.swap.max", 0)
        if now is None or wanted < now:
            used = number(group.read_or_none("memory.current")) or 0
            if used + ROOM_BYTES > wanted and used:
                return False
        group.write("memory.max", wanted)
        return True

    def limit(self, group: Group) -> int | None:
        """The hard limit in force."""
        return number(group.read_or_none("memory.limit_in_bytes" if self.v1 else "memory.max"))

    def peak(self, group: Group) -> int | None:
        return number(group.read_or_none("memory.max_usage_in_bytes" if self.v1 else "memory.peak"))

    def usage(self, container_id: str) -> dict[str, float]:
        group = self.group(container_id)
        stat = keyed(group.read_or_none("memory.stat"))
        current = group.read_or_none("memory.usage_in_bytes" if self.v1 else "memory.current")
        if current is None:
            return {}
        found = {
            "memory_bytes": number(current),
            "memory_rss_bytes": stat.get("total_rss" if self.v1 else "anon"),
            "memory_cache_bytes": stat.get("total_cache" if self.v1 else "file"),
            "memory_peak_bytes": self.peak(group),
            "memory_limit_bytes": self.limit(group),
            "memory_oom_kills": self.kills(container_id),
        }
        return {name: value for name, value in found.items() if value is not None}

    # ---- Out of memory -----------------------------------------------------------------

    def can_tell(self) -> bool:
        """Whether this kernel counts what it kills (v1: since 4.13)."""
        if self.v1:
            return "oom_kill" in keyed(self.place.agent.read_or_none("memory.oom_control"))
        return True

    def kills(self, container_id: str) -> int | None:
        """How many of its processes the kernel has killed; None: the group is gone."""
        group = self.group(container_id)
        if not self.v1:
            text = group.read_or_none("memory.events")
            return None if text is None else keyed(text).get("oom_kill", 0)
        # v1 counts for each group alone, and a task may have made some of its own.
        own = group.read_or_none("memory.oom_control")
        if own is None:
            return None
        beneath = [each.read_or_none("memory.oom_control") for each in group.tree()[:-1]]
        return sum(keyed(text).get("oom_kill", 0) for text in (own, *beneath))

    def notice(self, container_id: str) -> Notice:
        """Shows when there may be something to count.  v1 tells before it kills."""
        group = self.group(container_id)
        if self.v1:
            return notice_by_eventfd(group, "memory.oom_control")
        return notice_by_poll(group, "memory.events")

    def limitation(self, container_id: str, kills: int, *, fatal: bool) -> Limitation:
        """What to say of `kills` processes that the kernel has killed."""
        group = self.group(container_id)
        limit, peak = self.limit(group), self.peak(group)
        victims = "1 process" if kills == 1 else f"{kills} processes"
        amounts = f"limit {_mb(limit)}, peak {_mb(peak)}"
        if self._reached(group, limit, peak):
            text = f"Memory limit exceeded: {amounts}; the kernel killed {victims}"
        else:
            # It was within its limit: a group above it, or the whole machine, was not.
            text = f"Out of memory on the agent: the kernel killed {victims} ({amounts})"
        if not fatal:
            text += " of the task, which goes on"
        held = Resources({"mem": limit * MILLI // MIB} if limit is not None else {})
        reason = pb.TaskStatus.REASON_CONTAINER_LIMITATION_MEMORY
        return Limitation(reason, text, held, fatal=fatal)

    def _reached(self, group: Group, limit: int | None, peak: int | None) -> bool:
        if self.v1:
            return bool(number(group.read_or_none("memory.failcnt")))
        events = keyed(group.read_or_none("memory.events"))
        if "max" in events or "oom" in events:
            return bool(events.get("max") or events.get("oom"))
        return limit is None or peak is None or peak >= limit


def _mb(amount: int | None) -> str:
    return "unknown" if amount is None else f"{amount / MIB:.0f} MB"
