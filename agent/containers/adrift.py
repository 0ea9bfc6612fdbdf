"""Containers that have lost their warden over a restart of the agent.

Their processes are nobody's children that could tell how they end.  They are known by
the number and the start of the first one, by its session, and by MESOS_CONTAINER_ID in
the environment that they began with; that they have ended is noticed through pidfds.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from agent.containers.processes import marked_container, start_ticks


@dataclass(slots=True)
class _Group:
    container_id: str
    pid: int
    session: int | None
    # Descriptors of those that are known to live, by pid.
    pidfds: dict[int, int] = field(default_factory=dict)
    # What is left when the first process has ended gets time until KILL comes.
    spared: bool = False


class Found(NamedTuple):
    """A container that has processes: its first one, or else any that it has left."""

    pid: int
    session: int | None


def find(container_id: str, pid: int | None, ticks: int) -> Found | None:
    """`pid`, `ticks`: of the first process, as far as they are known."""
    session: int | None = None
    if pid is not None and ticks:
        there = start_ticks(pid)
        if there == ticks:
            return Found(pid, pid)
        # While others are in its session no process gets its number.
        session = None if there else pid
    members = _members(container_id, session)
    return Found(members[0], session) if members else None


def of_work_dir(work_dir: str) -> dict[str, Found]:
    """All containers of the agent of this work directory, by what their processes began
    with: for when nothing else tells which there are."""
    found: dict[str, Found] = {}
    mine = b"MESOS_DIRECTORY=" + os.fsencode(work_dir) + b"/agents/"
    for pid in _pids():
        with contextlib.suppress(OSError):
            environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            if any(each.startswith(mine) for each in environment):
                found.setdefault(marked_container(pid), Found(pid, os.getsid(pid)))
    return {name: each for name, each in found.items() if name}


class Adrift:
    """Used from one event loop.  `ended` is called when a container is empty."""

    def __init__(self, ended: Callable[[str], None]) -> None:
        self._ended = ended
        self._groups: dict[str, _Group] = {}

    def __len__(self) -> int:
        return len(self._groups)

    def __contains__(self, container_id: str) -> bool:
        return container_id in self._groups

    def ids(self) -> list[str]:
        return list(self._groups)

    def add(self, container_id: str, found: Found) -> None:
        group = self._groups[container_id] = _Group(container_id, *found)
        self._look(group)

    def signal(self, container_id: str, number: int) -> None:
        """Send TERM or KILL to all its processes; nothing if it is not here."""
        group = self._groups.get(container_id)
        if group is None:
            return
        group.spared = number != signal.SIGKILL
        self._find(group)
        for pidfd in group.pidfds.values():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(pidfd, number)

    def close(self) -> None:
        """Look no more; they go on."""
        loop = asyncio.get_running_loop()
        for group in self._groups.values():
            for pidfd in group.pidfds.values():
                loop.remove_reader(pidfd)
                os.close(pidfd)
        self._groups.clear()

    def _find(self, group: _Group) -> None:
        loop = asyncio.get_running_loop()
        for pid in _members(group.container_id, group.session):
            if pid in group.pidfds:
                continue
            with contextlib.suppress(ProcessLookupError):
                pidfd = os.pidfd_open(pid)
                if not _belongs(pid, group.container_id, group.session):
                    os.close(pidfd)  # its number is another's by now
                    continue
                group.pidfds[pid] = pidfd
                loop.add_reader(pidfd, self._gone, group, pid)

    def _gone(self, group: _Group, pid: int) -> None:
        pidfd = group.pidfds.pop(pid)
        asyncio.get_running_loop().remove_reader(pidfd)
        os.close(pidfd)
        if pid == group.pid or not group.pidfds:
            self._look(group)

    def _look(self, group: _Group) -> None:
        """Which of its processes there are; its end, if there are none."""
        self._find(group)
        if not group.pidfds:
            if self._groups.pop(group.container_id, None) is not None:
                self._ended(group.container_id)
        elif group.pid not in group.pidfds and not group.spared:
            self.signal(group.container_id, signal.SIGKILL)


def _members(container_id: str, session: int | None) -> list[int]:
    """Living processes of the container, by its session (None: unknown) and its mark."""
    found: list[int] = []
    for pid in _pids():
        if _belongs(pid, container_id, session):
            found.append(pid)
    return found


def _belongs(pid: int, container_id: str, session: int | None) -> bool:
    try:
        ours = session is not None and os.getsid(pid) == session
    except ProcessLookupError:
        return False
    return (ours or _is_marked(pid, container_id)) and bool(start_ticks(pid))


def _pids() -> list[int]:
    with os.scandir("/proc") as entries:
        return [int(entry.name) for entry in entries if entry.name.isdigit()]


def _is_marked(pid: int, container_id: str) -> bool:
    return marked_container(pid) == container_id
