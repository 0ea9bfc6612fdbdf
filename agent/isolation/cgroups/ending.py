"""The end of all that is in a group, and the removal of the group.

v2 has cgroup.kill (since 5.14).  Else the group is frozen, so that nobody forks while
each is sent KILL, and thawed, so that they may die; again until nobody is left.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Final

from agent.isolation.cgroups.files import CgroupError, Group
from mesos_py.errors import Unavailable

# How long one call waits for what was killed, or for the kernel to let a group go; then
# it fails, and is made again later.  It waits in steps that double.
WITHIN_S: Final = 2.0
FIRST_PAUSE_S: Final = 0.0005
LAST_PAUSE_S: Final = 0.05
FREEZE_WITHIN_S: Final = 0.5

Kill = Callable[[int, int], None]


class Ending:
    """For the hierarchy in which containers are ended."""

    def __init__(self, version: int, kill: Kill = os.kill, within_s: float = WITHIN_S) -> None:
        self._v1 = version == 1
        self._kill = kill
        self._within_s = within_s

    def pids(self, group: Group) -> list[int]:
        """All processes in it and beneath it."""
        return [pid for each in group.tree() for pid in each.pids()]

    def threads(self, group: Group) -> list[int]:
        """All threads in it and beneath it, also of processes that are giving back their
        memory: these are not listed as processes any more."""
        name = "tasks" if self._v1 else "cgroup.threads"
        texts = [each.read_or_none(name) or "" for each in group.tree()]
        return [int(thread) for text in texts for thread in text.split()]

    def end(self, group: Group) -> int:
        """Kill all that is in it; returns when nothing is, with how many there were.

        Raises Unavailable for what does not die in time.
        """
        first = pids = self.pids(group)
        waiting = Waiting(self._within_s)
        while pids:
            self._strike(group)
            pids = self.pids(group)
            if pids and not waiting.more():
                text = f"{len(pids)} processes of {group.path} do not end: {_some(pids)}"
                raise Unavailable(text, group=group.path, pids=pids)
        return len(first)

    def _strike(self, group: Group) -> None:
        if not self._v1:
            try:
                group.write("cgroup.kill", "1")
                return
            except CgroupError as error:
                if not error.gone:
                    raise
        with self.frozen(group):
            for pid in self.pids(group):
                with contextlib.suppress(ProcessLookupError):
                    self._kill(pid, signal.SIGKILL)

    @contextlib.contextmanager
    def frozen(self, group: Group) -> Iterator[None]:
        """Nobody in it runs meanwhile, as far as the kernel manages that in time."""
        self.freeze(group)
        try:
            yield
        finally:
            self.thaw(group)

    def freeze(self, group: Group) -> bool:
        """Stop all that is in it; False: not all stand still yet.  Fine without a freezer."""
        try:
            group.write(*(("freezer.state", "FROZEN") if self._v1 else ("cgroup.freeze", "1")))
        except CgroupError as error:
            if error.gone:
                return False
            raise
        waiting = Waiting(FREEZE_WITHIN_S)
        while not self._is_frozen(group):
            if not waiting.more():
                return False
        return True

    def thaw(self, group: Group) -> None:
        try:
            group.write(*(("freezer.state", "THAWED") if self._v1 else ("cgroup.freeze", "0")))
        except CgroupError as error:
            if not error.gone:
                raise

    def _is_frozen(self, group: Group) -> bool:
        if self._v1:
            return (group.read_or_none("freezer.state") or "FROZEN").strip() == "FROZEN"
        return "frozen 0" not in (group.read_or_none("cgroup.events") or "")


def remove(group: Group, within_s: float = WITHIN_S) -> None:
    """Remove it with all that is beneath it; fine if it is not there.

    Who was in it may still be on the way out: then it is in use for a moment.  Raises
    Unavailable if that lasts.
    """
    if group.remove():
        return
    waiting = Waiting(within_s)
    while not all(each.remove() for each in group.tree()):
        if not waiting.more():
            raise Unavailable(f"{group.path} is in use and cannot be removed", group=group.path)


class Waiting:
    """Sleeps in steps that double, until the time is up."""

    def __init__(self, within_s: float) -> None:
        self._until_s = time.monotonic() + within_s
        self._pause_s = FIRST_PAUSE_S

    def more(self) -> bool:
        """Sleep for a step; False at once if the time is up."""
        if time.monotonic() >= self._until_s:
            return False
        time.sleep(self._pause_s)
        self._pause_s = min(self._pause_s * 2, LAST_PAUSE_S)
        return True


def _some(pids: list[int]) -> str:
    shown = ", ".join(map(str, pids[:5]))
    return shown if len(pids) <= 5 else f"{shown}, ..."
