"""Removes the sandboxes of ended containers, by age: the fuller the disk, the sooner.

What there is is found by looking, so nothing is lost with a restart.  A container that
the agent has not done with is never touched, and that is asked once more just before
each removal: ids of containers do not come back.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from agent.containers import sandbox
from agent.sandboxes.erasing import Trash, mounted_beneath
from agent.sandboxes.removals import Removal, Removals
from mesos_py import logs
from mesos_py.metrics import Metrics

log = logs.get("agent.sandboxes")

# A directory that tasks put there what others may still read after their end.
PUBLISHED: Final = "published"
TRASH: Final = "trash"
# The ends of containers are noted in their sandboxes that often.
NOTE_EVERY_S: Final = 5.0
# Tasks can give their files any time: what lies that far ahead is none.
_CLOCK_SLACK_S: Final = 3600.0
# Between two looks at everything only what has ended meanwhile is new.
RESCAN_S: Final = 3600.0
_MAX_PROBLEMS_LOGGED: Final = 5


@dataclass(frozen=True)
class Limits:
    """What an operator may choose; the defaults are those of Mesos."""

    gc_delay_s: float = 604_800.0
    headroom: float = 0.1
    interval_s: float = 60.0
    rescan_s: float = RESCAN_S


class Found(NamedTuple):
    """A sandbox that is there: names beneath the work directory, since when it is idle,
    and whether something is published in it."""

    parts: tuple[str, ...]
    idle_since_wall_s: float
    published: bool

    @property
    def container_id(self) -> str:
        return self.parts[-1]


def age_limit_s(limits: Limits, usage: float) -> float:
    """How old ended sandboxes may get while `usage` (0 to 1) of the disk is in use."""
    return limits.gc_delay_s * max(0.0, 1.0 - limits.headroom - usage)


def disk_usage(path: str) -> float:
    """From 0 to 1, as Mesos counts: what only root may use counts as free."""
    found = os.statvfs(path)
    return (found.f_blocks - found.f_bfree) / found.f_blocks if found.f_blocks else 0.0


class Collector:
    """Of one work directory.  `sweep` is for a worker thread, the rest for the loop.

    `is_live` may be called from any thread, and is true from before a container's
    sandbox is made until the agent has done with it.
    """

    def __init__(
        self,
        work_dir: str,
        limits: Limits,
        is_live: Callable[[str], bool],
        removals: Removals,
        metrics: Metrics,
        usage: Callable[[str], float] = disk_usage,
    ) -> None:
        self._work_dir = work_dir
        self._limits = limits
        self._is_live = is_live
        self._removals = removals
        self._usage = usage
        self._ended: list[tuple[str, ...]] = []
        # Sandboxes by since when they are idle, as far as that was looked at.
        self._idle: dict[tuple[str, ...], float] = {}
        self._scanned_wall_s: float | None = None
        self._removed = metrics.counter("sandboxes_removed_total", "Sandboxes removed")
        self._failed = metrics.counter("sandbox_removals_failed_total", "Sandboxes that stay")
        metrics.watch(
            "work_dir_usage", "Used share of the work directory's disk", lambda: usage(work_dir)
        )
        metrics.watch(
            "sandbox_age_limit_seconds",
            "How old ended sandboxes may get, as full as the disk is",
            lambda: age_limit_s(limits, usage(work_dir)),
        )

    def ended(self, parts: tuple[str, ...]) -> None:
        """The container with this sandbox has ended: its age begins."""
        self._ended.append(parts)

    async def run(self) -> None:
        """Until it is cancelled."""
        next_s = time.monotonic()
        while True:
            await asyncio.to_thread(self._note_ends)
            if time.monotonic() >= next_s:
                try:
                    await asyncio.to_thread(self.sweep, time.time())
                except Exception as error:
                    # One bad sweep must not be the last one.
                    log.exception("sweep of the sandboxes failed", error=error)
                next_s = time.monotonic() + self._limits.interval_s
            await asyncio.sleep(min(NOTE_EVERY_S, self._limits.interval_s))

    def sweep(self, now_wall_s: float) -> int:
        """Remove what is too old; how many.  Raises OSError for the work directory only."""
        usage = self._usage(self._work_dir)
        oldest_s = now_wall_s - age_limit_s(self._limits, usage)
        with sandbox.opened(self._work_dir) as root:
            trash = Trash(root, TRASH)
            try:
                due = self._due(root, now_wall_s, oldest_s)
                removed = self._remove(root, trash, [x for x in due if not x.published], now_wall_s)
                self._report(trash.empty())
                # What is published goes for its age, or when nothing else helps.
                pressed = self._usage(self._work_dir) > 1.0 - self._limits.headroom
                given_s = now_wall_s - self._limits.gc_delay_s
                last = [
                    each
                    for each in due
                    if each.published and (pressed or each.idle_since_wall_s <= given_s)
                ]
                removed += self._remove(root, trash, last, now_wall_s)
                self._report(trash.empty())
            finally:
                trash.close()
        if removed:
            log.info("sandboxes removed", count=removed, disk_usage=round(usage, 3))
        return removed

    def _due(self, root: int, now_wall_s: float, oldest_s: float) -> list[Found]:
        """What may go, the oldest first."""
        scanned_s = self._scanned_wall_s
        if scanned_s is None or not 0 <= now_wall_s - scanned_s < self._limits.rescan_s:
            self._idle = {each.parts: each.idle_since_wall_s for each in _scan(root, now_wall_s)}
            self._scanned_wall_s = now_wall_s
        due: list[Found] = []
        for parts, since_s in list(self._idle.items()):
            if since_s > oldest_s or self._is_live(parts[-1]):
                continue
            try:
                found = _found(root, parts, now_wall_s)
            except OSError:
                del self._idle[parts]  # somebody else has removed it
                continue
            # Somebody may have written into it since.
            self._idle[parts] = found.idle_since_wall_s
            if found.idle_since_wall_s <= oldest_s:
                due.append(found)
        return sorted(due, key=lambda each: each.idle_since_wall_s)

    def _remove(self, root: int, trash: Trash, due: list[Found], now_wall_s: float) -> int:
        if not due:
            return 0
        mounts = mounted_beneath(Path(self._work_dir))
        base = os.path.realpath(self._work_dir)
        removed = 0
        for each in due:
            if self._is_live(each.container_id):
                continue
            place = "/".join((base, *each.parts))
            if any(mount == place or mount.startswith(place + "/") for mount in mounts):
                self._keep(each, "something is mounted in it")
                continue
            removal = Removal(each.container_id, each.parts[3], each.parts[5], now_wall_s)
            # Before it is gone: somebody may ask for it in that moment.
            self._removals.expect(removal)
            try:
                _take(root, trash, each)
            except OSError as error:
                self._removals.unexpect(removal)
                self._keep(each, error.strerror or str(error))
                continue
            removed += 1
            self._idle.pop(each.parts, None)
            self._removed.inc()
            self._remember(removal)
        return removed

    def _keep(self, each: Found, why: str) -> None:
        self._failed.inc()
        log.warning("sandbox cannot be removed", container=each.container_id, why=why)

    def _remember(self, removal: Removal) -> None:
        try:
            self._removals.add(removal)
        except OSError as error:
            where = removal.container_id
            log.warning("removal cannot be written down", error=error, container=where)

    def _report(self, problems: list[OSError]) -> None:
        for error in problems[:_MAX_PROBLEMS_LOGGED]:
            log.warning("file of a sandbox cannot be removed", error=error, in_all=len(problems))

    def _note_ends(self) -> None:
        """Put the time of its end into each sandbox: it is there after a restart, too."""
        ended, self._ended = self._ended, []
        if not ended:
            return
        with contextlib.suppress(OSError), sandbox.opened(self._work_dir) as root:
            for parts in ended:
                with (
                    contextlib.suppress(OSError),  # it was never made, or is gone already
                    sandbox.closing(sandbox.open_directory(root, parts)) as fd,
                ):
                    os.utime(fd)
                    self._idle[parts] = time.time()


def _scan(root: int, now_wall_s: float) -> Iterator[Found]:
    """All sandboxes: agents/ID/frameworks/ID/executors/ID/runs/ID, of any agent's id."""
    for agent in _directories(root, ("agents",)):
        for framework in _directories(root, (*agent, "frameworks")):
            for executor in _directories(root, (*framework, "executors")):
                for run in _directories(root, (*executor, "runs")):
                    with contextlib.suppress(OSError):
                        yield _found(root, run, now_wall_s)


def _directories(root: int, parts: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The directories beneath; links are none."""
    try:
        with (
            sandbox.closing(sandbox.open_directory(root, parts)) as fd,
            os.scandir(fd) as entries,
        ):
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return [(*parts, name) for name in sorted(names)]


def _found(root: int, parts: tuple[str, ...], now_wall_s: float) -> Found:
    with sandbox.closing(sandbox.open_directory(root, parts)) as fd:
        times = [os.fstat(fd).st_mtime]
        published = False
        for name in (sandbox.STDOUT, sandbox.STDERR, PUBLISHED):
            with contextlib.suppress(FileNotFoundError):
                status = os.stat(name, dir_fd=fd, follow_symlinks=False)
                if name == PUBLISHED:
                    published = stat.S_ISDIR(status.st_mode)
                else:
                    times.append(status.st_mtime)
        if times[0] > now_wall_s + _CLOCK_SLACK_S:
            os.utime(fd)
            times[0] = now_wall_s
    usable = [each for each in times if each <= now_wall_s + _CLOCK_SLACK_S]
    return Found(parts, max(usable, default=now_wall_s), published)


def _take(root: int, trash: Trash, each: Found) -> None:
    """Move the sandbox away, and what leads to it as far as it leads to nothing else."""
    *above, name = each.parts
    with sandbox.closing(sandbox.open_directory(root, above)) as runs:
        trash.take(runs, name)
        with contextlib.suppress(OSError):
            if os.readlink(sandbox.LATEST, dir_fd=runs) == name:
                os.unlink(sandbox.LATEST, dir_fd=runs)
    # runs, the executor, executors, the framework: not empty, and that is the end of it.
    for length in range(len(above), 2, -1):
        parent = sandbox.open_directory(root, each.parts[: length - 1])
        with sandbox.closing(parent):
            try:
                os.rmdir(each.parts[length - 1], dir_fd=parent)
            except OSError:
                return
