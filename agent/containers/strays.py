"""Containers that have lost their warden while the agent, or its successor, lives.

Those of a warden that this process has started become its own children, for it is a
subreaper: their true wait status is had here too.  Those of one that an earlier run of
the agent had started become init's, and are `adrift`.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from typing import Final

from agent.containers import adrift
from agent.containers.processes import (
    UNSURE_RETRY_S,
    Processes,
    children,
    container_of,
    leads_session,
    start_ticks,
)
from agent.containers.settling import UNSEEN
from agent.core.records import Exit

# An exec takes a millisecond or so.
_EXEC_S: Final = 0.1


class Strays:
    """Used from one event loop, the main thread's.

    `ended` is called for each container that is empty, and `told` after that.
    """

    def __init__(self, ended: Callable[[str, Exit], None], told: Callable[[], None]) -> None:
        self._ended = ended
        self._told = told
        self._orphans = Processes(shared=True)
        self._adrift = adrift.Adrift(self._adrift_ended)
        self._look_again: asyncio.TimerHandle | None = None
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._orphans) + len(self._adrift)

    def __contains__(self, container_id: str) -> bool:
        return container_id in self._orphans or container_id in self._adrift

    def add_child(self, container_id: str, pid: int) -> None:
        """`pid` was a child of a warden of ours; `reap` afterwards."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, self.reap)
        self._orphans.add(container_id, pid)

    def add_adrift(self, container_id: str, found: adrift.Found) -> None:
        self._adrift.add(container_id, found)

    def end_child(self, container_id: str, pid: int) -> None:
        """Kill what a warden of ours had started, and reap it.  `pid`: 0 if unknown."""
        found = just_started(container_id)
        if found is None and pid in children() and leads_session(pid) and not container_of(pid):
            # It has taken the mark out of its environment, and is ours all the same.
            found = pid
        if found or pid:
            self.add_child(container_id, found or pid)
        if found:
            self.signal(container_id, signal.SIGKILL)

    def end_adrift(self, container_id: str, _pid: int) -> None:
        """The same where the warden was not ours."""
        if found := adrift.find(container_id, None, 0):
            self.add_adrift(container_id, found)
            self.signal(container_id, signal.SIGKILL)

    def signal(self, container_id: str, number: int) -> None:
        self._orphans.signal(container_id, number)
        self._adrift.signal(container_id, number)

    def kill_all(self) -> None:
        """All that is here, also what was within containers."""
        for container_id in [*(each for each, _ in self._orphans.running()), *self._adrift.ids()]:
            self.signal(container_id, signal.SIGKILL)

    def reap(self) -> None:
        for container_id, status in self._orphans.reap():
            self._ended(container_id, Exit(status, UNSEEN if status is None else ""))
        if self._orphans.unsure and self._look_again is None:
            loop = asyncio.get_running_loop()
            self._look_again = loop.call_later(UNSURE_RETRY_S, self._reap_again)
        self._changed.set()
        self._told()

    async def all_gone(self) -> None:
        while len(self):
            self._changed.clear()
            await self._changed.wait()

    def leave(self) -> None:
        """Look no more; they go on."""
        self._adrift.close()

    def _reap_again(self) -> None:
        self._look_again = None
        self.reap()

    def _adrift_ended(self, container_id: str) -> None:
        self._ended(container_id, Exit(None, UNSEEN))
        self._changed.set()
        self._told()


def just_started(container_id: str) -> int | None:
    """The first process of a container that the lost warden was about to start, if there
    is one.  One that is in the middle of an exec is waited for: a moment."""
    until_s = time.monotonic() + _EXEC_S
    while True:
        leaders = {pid: container_of(pid) for pid in children() if leads_session(pid)}
        pid = next((pid for pid, marked in leaders.items() if marked == container_id), None)
        unsure = any(marked is None and start_ticks(pid) for pid, marked in leaders.items())
        if pid is not None or not unsure or time.monotonic() > until_s:
            break
        time.sleep(UNSURE_RETRY_S)
    if pid is None and (found := adrift.find(container_id, None, 0)) is not None:
        pid = found.pid
    return pid
