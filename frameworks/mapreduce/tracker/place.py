"""A directory on any file system (fsspec) in which trackers keep what must survive them."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Final

from frameworks.mapreduce.data import files
from mesos_py.errors import AlreadyExists, NotFound

_BESIDE: Final = ".mesos-py-"


def beside(output: str, job_id: str) -> str:
    """Where the state of a job's own tracker is: on the output's file system, which agents
    reach, and not listed as input."""
    parent, _, _ = files.absolute(output, {}, "output").rstrip("/").rpartition("/")
    return f"{parent}/{_BESIDE}{job_id}"


def is_beside(state: str) -> bool:
    """Whether a state is one of those that `beside` names, and so of one job only."""
    return state.rstrip("/").rpartition("/")[2].startswith(f"{_BESIDE}job_")


class Place:
    """`url` and what is beneath it; names are relative, with slashes.

    What is written is durable when the call returns, as far as the file system can be told
    to: on local ones, also when the machine stops then.
    """

    def __init__(self, url: str) -> None:
        """Raises InvalidValue for a URL of which no file system is known."""
        self.url = files.absolute(url, {}, "state").rstrip("/")
        self._fs, root = files.resolve(self.url, {}, "state")
        self._root = root.rstrip("/")
        self._local = files.is_local(self._fs)

    def url_of(self, name: str) -> str:
        return f"{self.url}/{name}"

    def below(self, name: str) -> Place:
        return Place(self.url_of(name))

    # ---- Writing ---------------------------------------------------------------------------

    def create(self, name: str, data: bytes) -> None:
        """Write a file that is not there yet; directories are made.

        Of several who create the same name at the same time one succeeds, the others get
        AlreadyExists.  Never half there on local file systems and object stores; elsewhere a
        process that dies in between may leave a part.
        """
        if self._local:
            self._create_local(name, data)
            return
        path = self._path(name)
        self._fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        try:
            self._fs.pipe_file(path, data, mode="create")
        except FileExistsError:
            raise _taken(self.url_of(name)) from None
        # Not every file system can refuse to create what is there: who was overwritten, or has
        # overwritten another in the same moment, sees it here.
        if self._fs.cat_file(path) != data:
            raise _taken(self.url_of(name))

    def replace(self, name: str, data: bytes) -> None:
        """Write a file, whether it is there or not; readers see the old one or the new one."""
        path = self._path(name)
        if self._local:
            target = Path(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary = _written(target, data)
            temporary.replace(target)
            files.sync_directory(target.parent)
            return
        self._fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        self._fs.pipe_file(path, data)

    def _create_local(self, name: str, data: bytes) -> None:
        target = Path(self._path(name))
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = _written(target, data)
        try:
            # Unlike a rename, a link never replaces what is there.
            os.link(temporary, target)
        except FileExistsError:
            raise _taken(self.url_of(name)) from None
        finally:
            temporary.unlink()
        files.sync_directory(target.parent)

    # ---- Reading ---------------------------------------------------------------------------

    def read(self, name: str) -> bytes:
        """Raises NotFound."""
        try:
            found: bytes = self._fs.cat_file(self._path(name))
        except (FileNotFoundError, NotADirectoryError):
            raise NotFound("file", self.url_of(name), "is not there") from None
        return found

    def names(self, directory: str = "") -> list[str]:
        """What is in a directory, in order; nothing if it is not there."""
        path = self._path(directory) if directory else self._root
        try:
            found = files.listing(self._fs, path)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [one.name for one in found if not one.name.startswith(".")]

    # ---- Removing --------------------------------------------------------------------------

    def remove(self, name: str) -> None:
        """A file; nothing if it is not there."""
        with suppress(FileNotFoundError, NotADirectoryError):
            self._fs.rm_file(self._path(name))

    def remove_tree(self, name: str) -> None:
        """A directory with all that is in it; nothing if it is not there."""
        with suppress(FileNotFoundError, NotADirectoryError):
            self._fs.rm(self._path(name), recursive=True)

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"


def _written(target: Path, data: bytes) -> Path:
    """A new file beside `target` that has the data for good."""
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    with temporary.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return temporary


def _taken(url: str) -> AlreadyExists:
    return AlreadyExists(f"{url} is there already", url=url)


__all__ = ["Place", "beside", "is_beside"]
