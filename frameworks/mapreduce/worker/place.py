"""Where a worker keeps things: one directory per worker (on agents, its sandbox).

::

    jobs/<job>/job.json, files/       what is the job's, had once and for all attempts
    work/<attempt>/                   an attempt's own: work.json, cwd/, tmp/, spill/
    published/<job>/<attempt>.out     outputs of maps; the agent serves them
    logs/<job>/<attempt>.log          what programs write to stderr
"""

from __future__ import annotations

import errno
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from frameworks.mapreduce import names
from mesos_py.errors import InvalidValue


@dataclass(frozen=True, slots=True)
class Place:
    """files_url: where `root` is served, without a slash at the end; "" if it is not."""

    root: Path
    files_url: str = ""

    def job(self, job_id: str) -> Path:
        return self.root / "jobs" / names.checked_job_id("job", job_id)

    def job_lock(self, job_id: str) -> Path:
        return self.job(job_id).with_suffix(".lock")

    def published(self, job_id: str) -> Path:
        return self.root / "published" / names.checked_job_id("job", job_id)

    def attempt(self, attempt: str) -> AttemptPlace:
        """Raises InvalidValue if that is no attempt's name."""
        name = names.parse_attempt(attempt)
        if name is None:
            raise InvalidValue("attempt", attempt, "is not the name of an attempt")
        return AttemptPlace(self, name)

    def url(self, path: Path) -> str:
        """Where others find it: by the agent, if this place is served; else the path."""
        if not self.files_url:
            return str(path)
        return f"{self.files_url}/{path.relative_to(self.root)}"

    def forget(self, job_id: str) -> None:
        """Remove all of the job but its logs.  Again is no harm; raises OSError."""
        for path in (self.job(job_id), self.published(job_id)):
            removed(path)
        self.job_lock(job_id).unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class AttemptPlace:
    place: Place
    name: names.AttemptName

    @property
    def root(self) -> Path:
        return self.place.root / "work" / str(self.name)

    @property
    def work(self) -> Path:
        return self.root / "work.json"

    @property
    def cwd(self) -> Path:
        return self.root / "cwd"

    @property
    def tmp(self) -> Path:
        return self.root / "tmp"

    @property
    def spill(self) -> Path:
        return self.root / "spill"

    @property
    def out(self) -> Path:
        return self.place.published(self.name.job_id) / f"{self.name}.out"

    @property
    def log(self) -> Path:
        return self.place.root / "logs" / self.name.job_id / f"{self.name}.log"

    def make(self, work: bytes) -> None:
        """All directories, empty, and what is to be done.  Raises OSError."""
        removed(self.root)
        for path in (self.cwd, self.tmp, self.spill, self.log.parent):
            path.mkdir(parents=True, exist_ok=True)
        self.work.write_bytes(work)

    def clear(self, *, keep_output: bool) -> None:
        """What nobody needs when the attempt has ended; its log stays.  Raises OSError."""
        removed(self.root)
        if not keep_output:
            self.out.unlink(missing_ok=True)
        # Of an attempt that was killed while it wrote it.
        for unfinished in self.out.parent.glob(f".{self.out.name}.*"):
            unfinished.unlink(missing_ok=True)


def removed(path: Path) -> None:
    """With all that is in it, also what a program has made unreadable for its owner."""
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM):
            raise
        for directory, _, _ in os.walk(path):
            Path(directory).chmod(0o700)
        shutil.rmtree(path)


__all__ = ["AttemptPlace", "Place", "removed"]
