"""The processes of containers: who belongs to which, and when all of one are gone.

Each container's first process leads a session and group of its own.  What it leaves
behind when it ends comes to us, since we are their subreaper: the children that the
kernel lists for us, other than first processes, are exactly the heads of what is
left.  So a container is empty when none of them is its own, without looking through
all processes of the machine.

Where one executor has several tasks each leads a group in the executor's session: by that
the warden knows them, whatever their environment, when the executor is killed.

The warden imports this module: it must stay small (no mesos_py, no grpc).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

# By this variable a process is known that has left its container's session or group.
MARKER: Final = b"MESOS_CONTAINER_ID="
_PR_SET_CHILD_SUBREAPER: Final = 36
_ENDED: Final = b"Z"
# How likely the kernel is to choose this process when memory is short; -1000 is never.
OOM_SCORE: Final = "/proc/self/oom_score_adj"
# When to look again at what could not be told, and when that is given up: for a process
# between two programs, or about to end; and for one that seems to have no environment.
UNSURE_RETRY_S: Final = 0.002
_UNSURE_S: Final = 2.0
_NO_ENVIRONMENT_S: Final = 0.1


def become_subreaper() -> None:
    """From now on orphans among our descendants become our children.  Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl(PR_SET_CHILD_SUBREAPER): {os.strerror(number)}")


def lose_protection(score_file: str) -> None:
    """Be as likely to be killed for memory as anybody: what an agent is spared is not for
    its tasks, which inherit ours.  Raises OSError."""
    with open(score_file) as score:  # noqa: PTH123
        spared = int(score.read()) < 0
    if spared:
        with open(score_file, "w") as score:  # noqa: PTH123
            score.write("0")


class Gone(NamedTuple):
    """A container whose processes are gone; `status` None: somebody else reaped it."""

    container_id: str
    status: int | None


class _Group:
    """The processes of one container."""

    __slots__ = ("container_id", "has_ended", "orphans", "pid", "spared", "status")

    def __init__(self, container_id: str, pid: int) -> None:
        self.container_id = container_id
        self.pid = pid
        self.has_ended = False
        self.status: int | None = None
        # What came to us from it, and is not reaped.
        self.orphans: set[int] = set()
        # It was sent TERM: what is left has time until KILL comes.
        self.spared = False


class Processes:
    """All containers' processes.  `reap` after each SIGCHLD; single-threaded."""

    def __init__(
        self,
        *,
        shared: bool = False,
        marker: bytes = MARKER,
        others: Callable[[int], bool] | None = None,
    ) -> None:
        """`shared`: this process has other children too, which are left alone.
        `marker`: the variable that names the container, "=" included.
        `others`: with `shared`, whether a child may be one that somebody else waits for.
        What else has ended is reaped, as what a container has left behind while it runs;
        `reap` also when that may have become less.  None: all may be."""
        self._shared = shared
        self._others = others
        self._marker = marker
        self._groups: dict[str, _Group] = {}
        # First processes and known orphans that are not reaped.
        self._owner: dict[int, _Group] = {}
        # Groups whose first process has ended.
        self._leaving: dict[str, _Group] = {}
        # Children of which it cannot be told yet whose they are: when to give that up.
        self._unsure: dict[int, float] = {}
        # Children of which it will not be told any more.
        self._strangers: set[int] = set()

    def __len__(self) -> int:
        return len(self._groups)

    def __contains__(self, container_id: str) -> bool:
        return container_id in self._groups

    @property
    def unsure(self) -> bool:
        """Whether `reap` is to be called again after UNSURE_RETRY_S, without a signal."""
        return bool(self._unsure)

    def running(self) -> list[tuple[str, int]]:
        """The containers that are not empty, with the pids of their first processes."""
        return [(group.container_id, group.pid) for group in self._groups.values()]

    def add(self, container_id: str, pid: int) -> None:
        """`pid` is a child of ours that leads its session, or its group in our session: a
        container's first process."""
        group = _Group(container_id, pid)
        self._groups[container_id] = group
        self._owner[pid] = group

    def led(self, container_id: str) -> bool:
        """Whether its first process has not ended: till the next `reap` nobody else can have
        its number."""
        group = self._groups.get(container_id)
        return group is not None and not group.has_ended

    def signal(self, container_id: str, number: int, *, spare: bool = True) -> None:
        """Send a signal to all processes of a container; nothing if it is unknown.

        `spare`: if that is not KILL, what its first process leaves behind has time until
        KILL comes.
        """
        group = self._groups.get(container_id)
        if group is None:
            return
        group.spared = spare and number != signal.SIGKILL
        if not group.has_ended:
            # Not reaped by us: no other group can have the number.
            _kill_group(group.pid, number)
        else:
            self._signal_orphans(group, number)

    def reap(self) -> list[Gone]:
        """Collect what has ended; return the containers that are empty now."""
        self._collect()
        # What is found may have ended already, and then no signal will tell of it.
        while self._leaving and self._adopt():
            self._collect()
        if not self._leaving:
            self._unsure.clear()
        ended: list[Gone] = []
        for group in list(self._leaving.values()):
            if group.orphans:
                if not group.spared:
                    self._signal_orphans(group, signal.SIGKILL)
            elif not self._unsure:
                del self._leaving[group.container_id]
                if self._groups.get(group.container_id) is group:
                    del self._groups[group.container_id]
                ended.append(Gone(group.container_id, group.status))
        return ended

    def kill_all(self) -> None:
        """Kill every descendant and wait until all are gone."""
        for group in self._groups.values():
            if not group.has_ended:
                _kill_group(group.pid, signal.SIGKILL)
        while True:
            # Whatever comes to us while others die is next.
            for pid in children():
                _kill(pid, signal.SIGKILL)
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                return

    def _collect(self) -> None:
        for pid, status in self._wait():
            group = self._owner.pop(pid, None)
            if group is None:
                continue
            if pid == group.pid:
                group.has_ended, group.status = True, status
                self._leaving[group.container_id] = group
            else:
                group.orphans.discard(pid)

    def _wait(self) -> Iterator[tuple[int, int | None]]:
        if self._shared:
            for pid in list(self._owner):
                try:
                    found, status = os.waitpid(pid, os.WNOHANG)
                except ChildProcessError:
                    yield pid, None
                else:
                    if found:
                        yield pid, status
            yield from self._wait_for_orphans()
            return
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            yield pid, status

    def _wait_for_orphans(self) -> Iterator[tuple[int, int]]:
        if self._others is None:
            return
        while (pid := _first_ended()) is not None:
            if self._others(pid):
                break
            yield from _reaped(pid)
        else:
            return
        # As long as that one is there it hides those behind it.
        for pid in children():
            if not self._others(pid):
                yield from _reaped(pid)

    def _adopt(self) -> bool:
        """Find out whose the children are that are no first processes; whether any is new."""
        unknown = {pid for pid in children() if pid not in self._owner}
        self._strangers &= unknown
        before, self._unsure = self._unsure, {}
        found = False
        now_s = time.monotonic()
        by_pid = {group.pid: group for group in self._groups.values()} if unknown else {}
        for pid in unknown - self._strangers:
            try:
                group = by_pid.get(os.getsid(pid)) or by_pid.get(os.getpgid(pid))
            except ProcessLookupError:
                continue
            if group is None and (marked := container_of(pid, self._marker)) is not None:
                group = self._groups.get(marked)
            elif group is None:
                if now_s > before.get(pid, now_s):
                    self._strangers.add(pid)
                else:
                    until_s = now_s + _patience_s(pid)
                    self._unsure[pid] = min(until_s, before.get(pid, until_s))
            if group is not None:
                self._owner[pid] = group
                group.orphans.add(pid)
                found = True
                if group.spared:
                    _ask(pid, group.pid)
        return found

    def _signal_orphans(self, group: _Group, number: int) -> None:
        # Orphans are our children and not reaped: their numbers, and with them
        # that of a group in which one of them is, cannot belong to others.
        for pid in group.orphans:
            with contextlib.suppress(ProcessLookupError):
                if os.getpgid(pid) == group.pid:
                    _kill_group(group.pid, number)
                    break
        for pid in group.orphans:
            _kill(pid, number)


def _ask(pid: int, pgid: int) -> None:
    """Send TERM to a process that the one for the group has not reached."""
    with contextlib.suppress(ProcessLookupError):
        if os.getpgid(pid) != pgid:
            _kill(pid, signal.SIGTERM)


def _kill(pid: int, number: int) -> None:
    # Not permitted: it has other rights than we do, and stays in our account.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _kill_group(pgid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pgid, number)


def children() -> list[int]:
    """Our children, those that have ended and are not reaped included."""
    found: list[int] = []
    with os.scandir("/proc/self/task") as threads:
        for thread in threads:
            try:
                found.extend(map(int, _read(f"{thread.path}/children").split()))
            except FileNotFoundError:
                if thread.name == str(os.getpid()):
                    return _children_by_search()  # a kernel without CONFIG_PROC_CHILDREN
    return found


def _first_ended() -> int | None:
    """One of our children that has ended; it is not reaped."""
    try:
        found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return found.si_pid if found is not None else None


def _reaped(pid: int) -> Iterator[tuple[int, int]]:
    """The child and its status, if it has ended and nobody was faster."""
    with contextlib.suppress(ChildProcessError):
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            yield pid, status


def leads_session(pid: int) -> bool:
    """False if it is gone."""
    try:
        return os.getsid(pid) == pid
    except ProcessLookupError:
        return False


def _children_by_search() -> list[int]:
    me = os.getpid()
    with os.scandir("/proc") as entries:
        return [int(each.name) for each in entries if _parent(each.name) == me]


def _parent(pid: str) -> int | None:
    fields = _stat(pid) if pid.isdigit() else []
    return int(fields[1]) if len(fields) > 1 else None


def marked_container(pid: int | str) -> str:
    """The container in whose environment a process was started, "" if none."""
    return container_of(pid) or ""


def container_of(pid: int | str, marker: bytes = MARKER) -> str | None:
    """`marked_container`; None: it cannot be told, or not at this moment.

    A process has no environment once it has begun to end, whether it is a zombie already
    or is about to leave its children to us, and while it is in the middle of an exec,
    when the old program is gone and the new one is not in its place yet.
    """
    try:
        environment = _read(f"/proc/{pid}/environ")
    except (ProcessLookupError, FileNotFoundError):
        return None
    except OSError:
        return ""  # of another user: not for us to see
    if not environment:
        return None
    for variable in environment.split(b"\0"):
        if variable.startswith(marker):
            return variable.removeprefix(marker).decode("utf-8", "replace")
    return ""


def _patience_s(pid: int | str) -> float:
    """For how long to look again for the environment of a process that shows none."""
    fields = _stat(pid)
    if len(fields) <= 48 or fields[0] == _ENDED:
        return 0  # what it had left has come to us when it ended: one more look finds it
    # Where it begins and ends (proc_pid_stat(5)): given none, or not copied yet.
    return _NO_ENVIRONMENT_S if fields[47] == fields[48] != b"0" else _UNSURE_S


def start_ticks(pid: int | str) -> int:
    """When a process began, in ticks since the machine did; 0: it is not there any more."""
    fields = _stat(pid)
    return int(fields[19]) if len(fields) > 19 and fields[0] not in (_ENDED, b"X") else 0


def _stat(pid: int | str) -> list[bytes]:
    """The fields of its stat from the third on; none if it is gone."""
    try:
        # The name in parentheses may hold anything, parentheses too.
        return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError:
        return []


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        pieces = []
        while piece := os.read(fd, 65536):
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        os.close(fd)
