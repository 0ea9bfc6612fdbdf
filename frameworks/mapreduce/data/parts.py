"""Writing a part file: it is there when it is complete, or not at all."""

from __future__ import annotations

import contextlib
import os
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from frameworks.mapreduce import conf as properties
from frameworks.mapreduce.data import codecs, files
from frameworks.mapreduce.data.codecs import Codec
from mesos_py.errors import InternalError

_BUFFER: Final = 1 << 20


def output_codec(conf: Mapping[str, str]) -> Codec | None:
    """What the output is packed with; None: nothing.  Raises InvalidValue."""
    if not properties.COMPRESS_OUTPUT.of(conf):
        return None
    name = properties.OUTPUT_CODEC
    return codecs.named(name.name, name.of(conf))


def part_name(number: int, codec: Codec | None) -> str:
    """As Hadoop has it: part-00000.gz."""
    return f"part-{number:05}{codec.extension if codec else ''}"


class PartWriter:
    """Writes one file; nothing is under its name before `commit`.

    Directories are made.  A file that has the name already is replaced by `commit`: each
    attempt writes under a name of its own, so that it can only be its own, of before.
    Raises OSError (no space, no permission) or what the file system raises; after that, and
    if `commit` was not reached, `abort` is to be called (leaving `with` does).
    """

    def __init__(self, url: str, codec: Codec | None, *, conf: Mapping[str, str]) -> None:
        fs, path = files.resolve(url, conf, "output")
        self._out: _Out = _Local(path) if files.is_local(fs) else _Remote(fs, path)
        self._packer = codec.compressor() if codec is not None else None
        self._size = 0
        self._done = False

    def write(self, block: bytes) -> None:
        """Any bytes, as they are."""
        self._put(self._packer.compress(block) if self._packer else block)

    def commit(self) -> int:
        """It is under its name and complete, also after the machine has stopped.  Returns its
        size in bytes, as it lies there."""
        if self._done:
            raise InternalError("a part was ended twice")
        if self._packer is not None:
            self._put(self._packer.flush())
        self._out.finish()
        self._done = True
        return self._size

    def abort(self) -> None:
        """Nothing of it stays; raises nothing.  Does nothing after `commit` or once more."""
        if self._done:
            return
        self._done = True
        # There is an error already that matters more.
        with contextlib.suppress(Exception):
            self._out.drop()

    def __enter__(self) -> PartWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.abort()

    def _put(self, data: bytes) -> None:
        if data:
            self._out.write(data)
            self._size += len(data)


class _Out(ABC):
    @abstractmethod
    def write(self, data: bytes) -> None: ...

    @abstractmethod
    def finish(self) -> None: ...

    @abstractmethod
    def drop(self) -> None: ...


def _interim(path: str) -> str:
    """A name beside `path` that no listing of input takes for a file of its own."""
    directory, _, name = path.rpartition("/")
    return f"{directory}/_{name}.{uuid.uuid4().hex[:12]}"


class _Local(_Out):
    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._interim = Path(_interim(path))
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._interim.open("xb", buffering=_BUFFER)

    def write(self, data: bytes) -> None:
        self._file.write(data)

    def finish(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._interim.replace(self._path)
        files.sync_directory(self._path.parent)

    def drop(self) -> None:
        # Before it is closed: closing writes what is buffered, for which there may be no space.
        self._interim.unlink(missing_ok=True)
        self._file.close()


class _Remote(_Out):
    """An object store has a file when its upload ends, and is told when that is; elsewhere
    it gets another name first."""

    def __init__(self, fs: Any, path: str) -> None:
        self._fs = fs
        self._path = path
        self._whole = files.writes_whole(fs)
        self._interim = path if self._whole else _interim(path)
        if not self._whole and "/" in path.strip("/"):
            fs.makedirs(path.rpartition("/")[0], exist_ok=True)
        options = {"autocommit": False} if self._whole else {}
        self._file: Any = fs.open(self._interim, "wb", **options)

    def write(self, data: bytes) -> None:
        self._file.write(data)

    def finish(self) -> None:
        self._file.close()
        if self._whole:
            self._file.commit()
        else:
            files.move(self._fs, self._interim, self._path)

    def drop(self) -> None:
        if self._whole:
            self._file.discard()
            # Otherwise its last act, when it is collected, would be to complete the upload.
            with contextlib.suppress(AttributeError):
                self._file.closed = True
            return
        try:
            self._file.close()
        finally:
            self._fs.rm_file(self._interim)
