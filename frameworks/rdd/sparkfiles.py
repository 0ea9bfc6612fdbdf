"""Files that were added with SparkContext.addFile and addArchive, where they are used.

An archive is sent as any file, by a name that says what it is, and unpacked where it is first
asked for.
"""

from __future__ import annotations

import shutil
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import ClassVar, Final

# Before the names of archives.
PACKED: Final = ".archive-"


class SparkFiles:
    """In the driver and in tasks alike: the same names, each in its own directory."""

    # Set by the worker before its first task, and by the context in the driver.
    root: ClassVar[str | None] = None

    @classmethod
    def get(cls, filename: str) -> str:
        """The absolute path of a file that was added, or of the directory that has what is
        in an archive."""
        path = Path(cls.getRootDirectory()) / filename
        packed = path.with_name(PACKED + path.name)
        if not path.exists() and packed.exists():
            _unpack(packed, path)
        return str(path)

    @classmethod
    def getRootDirectory(cls) -> str:
        """Raises RuntimeError where there is no context."""
        if cls.root is None:
            raise RuntimeError("there is no SparkContext here, nor a task")
        return cls.root


def is_archive(path: Path) -> bool:
    return zipfile.is_zipfile(path) or tarfile.is_tarfile(path)


def _unpack(packed: Path, path: Path) -> None:
    """Several processes may do so at once: one of them puts it in place."""
    made = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=path.parent))
    try:
        if zipfile.is_zipfile(packed):
            with zipfile.ZipFile(packed) as archive:
                archive.extractall(made)
        else:
            with tarfile.open(packed) as tar:
                tar.extractall(made, filter="data")
        made.rename(path)
    except OSError:
        if not path.is_dir():
            raise
    finally:
        shutil.rmtree(made, ignore_errors=True)
