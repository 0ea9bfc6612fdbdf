"""A job's output directory: made for it alone, filled part by part, and marked complete.

All of this is told by a journal and may be told again, after a crash at any point: each step
finds out what it has done already.  Nothing here decides which attempt's part it is.

::

    OUTPUT/_temporary/_job                whose output this is: the job, and its tracker's state
    OUTPUT/_temporary/_after-1            whose it is instead, since that job was never begun;
                                          after 1 there may be 2, and so on
    OUTPUT/_temporary/ATTEMPT/part-00000  what attempts write
    OUTPUT/part-00000                     what was committed
    OUTPUT/_SUCCESS                       last: all is there
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from frameworks.mapreduce.data import files
from frameworks.mapreduce.job import JobSpec
from frameworks.mapreduce.names import parse_attempt
from frameworks.mapreduce.tracker.place import Place
from mesos_py import logs
from mesos_py.errors import AlreadyExists, NotFound

log = logs.get("mapreduce.output")

TEMPORARY: Final = "_temporary"
SUCCESS: Final = "_SUCCESS"
_OWNER: Final = f"{TEMPORARY}/_job"
_AFTER: Final = "_after-"


@dataclass(frozen=True, slots=True)
class Owner:
    """A job that has made the directory.  state: URL of its tracker's state, "" if not known."""

    job_id: str
    state: str = ""


def _after(number: int) -> str:
    return f"{TEMPORARY}/{_AFTER}{number}"


def _never(owner: Owner) -> bool:
    return False


class Output:
    """Blocking, from any thread; what a file system raises comes through."""

    def __init__(self, spec: JobSpec) -> None:
        """Raises InvalidValue for a URL of which no file system is known."""
        self.url = spec.output
        self._job_id = spec.job_id
        self._conf: Mapping[str, str] = spec.conf
        self._fs, path = files.resolve(spec.output, spec.conf, "output")
        self._path = path.rstrip("/")
        self._place = Place(files.absolute(spec.output, spec.conf, "output"))

    def prepare(
        self,
        again: bool = False,
        state: str = "",
        is_abandoned: Callable[[Owner], bool] = _never,
    ) -> None:
        """Make the directory, for this job.

        again: this job may have made it before (its tracker died then).  state: URL of its
        tracker's.  is_abandoned: whether another job, that has written nothing, was never begun
        and will never be; its directory is used then.  Raises AlreadyExists for one that is
        there, also if it is empty, and for one that another job is making.
        """
        there = files.entry(self._fs, self._path) is not None
        owners = self._owners() if there else []
        owner = owners[-1] if owners else None
        name = _OWNER
        if owner is not None and owner.job_id == self._job_id:
            return
        if owner is not None and self._is_bare() and is_abandoned(owner):
            log.warning(
                "output of a job used that was never begun", output=self.url, job=owner.job_id
            )
            name = _after(len(owners))
        elif there and (owner is not None or not (again and self._is_bare())):
            raise self._taken()
        if not there:
            self._make()
        # Where directories are nothing by themselves, this is what only one can make.
        try:
            self._place.create(name, f"{self._job_id}\n{state}".encode())
        except AlreadyExists:
            raise self._taken() from None

    def undo(self) -> None:
        """The job was not taken on: remove what `prepare` has made."""
        if self._is_ours():
            self._remove_temporary()
            self._remove_if_empty()

    def commit(self, part_url: str) -> None:
        """Move a part to its name in the directory; it is there for good when this returns.

        Raises NotFound if it is in neither place.
        """
        _, source = files.resolve(part_url, self._conf, "part")
        name = source.rstrip("/").rpartition("/")[2]
        files.move(self._fs, source, f"{self._path}/{name}")

    def succeed(self) -> None:
        """All parts are in place.  Nothing is marked where another job is writing by now."""
        self._remove_temporary()
        if self._owner():
            return
        self._fs.makedirs(self._path, exist_ok=True)
        # It is empty, so it is never half there, and leaves nothing beside it.
        self._fs.pipe_file(f"{self._path}/{SUCCESS}", b"")
        if files.is_local(self._fs):
            files.sync_directory(Path(self._path))

    def fail(self) -> None:
        """Parts that were committed stay; a directory without any is removed, so that the job
        can be run again."""
        self._remove_temporary()
        self._remove_if_empty()

    def tidy(self) -> None:
        """Remove what attempts have left that were still writing when the job ended.  Another
        job may be writing to the same directory by now, if this one's output was removed."""
        self._remove_temporary()

    # ---- Steps -----------------------------------------------------------------------------

    def _make(self) -> None:
        directory = self._path.rpartition("/")[0]
        if directory:
            self._fs.makedirs(directory, exist_ok=True)
        try:
            self._fs.mkdir(self._path, create_parents=False)
        except FileExistsError:
            raise self._taken() from None

    def _owners(self) -> list[Owner]:
        """All but the last were never begun."""
        found: list[Owner] = []
        while True:
            name = _after(len(found)) if found else _OWNER
            try:
                job_id, _, state = self._place.read(name).decode(errors="replace").partition("\n")
            except NotFound:
                return found
            found.append(Owner(job_id, state))

    def _owner(self) -> Owner | None:
        return next(reversed(self._owners()), None)

    def _is_ours(self) -> bool:
        owner = self._owner()
        return owner is not None and owner.job_id == self._job_id

    def _is_bare(self) -> bool:
        """Whether there is nothing in it but names of owners."""
        names = [one.name for one in files.listing(self._fs, self._path)]
        own = _OWNER.rpartition("/")[2]
        return not names or (
            names == [TEMPORARY]
            and all(one == own or one.startswith(_AFTER) for one in self._place.names(TEMPORARY))
        )

    def _is_empty(self) -> bool:
        with suppress(OSError):
            return not files.listing(self._fs, self._path)
        return False

    def _remove_temporary(self) -> None:
        """Of this job, and of no other."""
        if self._is_ours():
            self._place.remove_tree(TEMPORARY)
            return
        # Names after one that is gone are of no use: their removal was cut off.
        cut_off = not self._owners()
        for name in self._place.names(TEMPORARY):
            if self._is_mine(name) or (cut_off and name.startswith(_AFTER)):
                self._place.remove_tree(f"{TEMPORARY}/{name}")
        directory = f"{self._path}/{TEMPORARY}"
        if files.entry(self._fs, directory) is not None:
            with suppress(OSError):
                # It stays where it is not empty: another job's.
                self._fs.rmdir(directory)

    def _is_mine(self, attempt: str) -> bool:
        name = parse_attempt(attempt)
        return name is not None and name.job_id == self._job_id

    def _remove_if_empty(self) -> None:
        with suppress(FileNotFoundError):
            if not files.listing(self._fs, self._path):
                self._fs.rmdir(self._path)

    def _taken(self) -> AlreadyExists:
        owner = self._owner()
        job_id = "" if owner is None else owner.job_id
        by = ""
        if owner is not None:
            of = f" (state of its tracker: {owner.state})" if owner.state else ""
            by = f": {job_id} is writing it{of}"
        elif self._is_empty():
            by = ", and is empty: it would have to be removed first"
        return AlreadyExists(
            f"output {self.url} exists already{by}", output=self.url, job_id=job_id
        )


__all__ = ["SUCCESS", "TEMPORARY", "Output", "Owner"]
