"""Location manifests: a JSON file that says which hosts have which files at hand.

::

    {"version": 1,
     "files": {
       "logs/2026-11-28.txt": ["node1", "node2"],
       "hdfs://nn:8020/data/big": [{"start": 0, "length": 134217728, "hosts": ["node1"]},
                                   {"start": 134217728, "length": 134217728, "hosts": ["node3"]}],
       "/mnt/bricks/7/": ["node7"]}}

A name is a URL, a path, or relative to the directory of the manifest; with a slash at its end
it stands for everything below that has no line of its own.  A list of hosts has all of the
file.  For plain and shared file systems whose machines have parts of them as local disks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from frameworks.mapreduce import conf as properties
from frameworks.mapreduce.data import files
from frameworks.mapreduce.data.inputs import InputFile
from frameworks.mapreduce.data.locations import Block, Locator
from mesos_py.errors import InvalidValue


class _Block(msgspec.Struct, forbid_unknown_fields=True):
    start: int
    length: int
    hosts: tuple[str, ...]


class _Manifest(msgspec.Struct, forbid_unknown_fields=True):
    files: dict[str, list[str | _Block]]
    version: int = 1


class Manifest(Locator):
    """`manifest:URL`.  Read when it is made; raises InvalidValue naming what is wrong in it."""

    def __init__(self, text: str, conf: Mapping[str, str]) -> None:
        super().__init__(text, conf)
        url = text.removeprefix("manifest:")
        fs, path = files.resolve(url, conf, properties.LOCATIONS.name)
        self._base = files.absolute(url, conf).rpartition("/")[0]
        self._blocks = dict(self._entries(url, _read(url, fs, path)))

    def _entries(self, url: str, manifest: _Manifest) -> Iterator[tuple[str, list[Block]]]:
        if manifest.version != 1:
            why = f"has version {manifest.version}; known is 1"
            raise InvalidValue(properties.LOCATIONS.name, url, why)
        for name, given in manifest.files.items():
            whole = tuple(one for one in given if isinstance(one, str))
            blocks = [one for one in given if isinstance(one, _Block)]
            if whole and blocks:
                why = f"{name} has both hosts and blocks"
                raise InvalidValue(properties.LOCATIONS.name, url, why)
            found = [Block(one.start, one.length, one.hosts) for one in blocks]
            yield self._absolute(name), [Block(0, 1 << 62, whole)] if whole else found

    def _absolute(self, name: str) -> str:
        if not name.startswith("/") and "://" not in name:
            return f"{self._base}/{name}"
        slash = "/" if name.endswith("/") else ""
        return files.absolute(name, self.conf, properties.LOCATIONS.name).rstrip("/") + slash

    def hosts(self, files: Sequence[InputFile]) -> list[list[Block]]:
        return [self._of(file.url) for file in files]

    def _of(self, url: str) -> list[Block]:
        found = self._blocks.get(url)
        while found is None and "/" in url:
            url = url.rstrip("/").rpartition("/")[0]
            found = self._blocks.get(url + "/")
        return found or []


def _read(url: str, fs: files.FileSystem, path: str) -> _Manifest:
    field = properties.LOCATIONS.name
    try:
        data: bytes = fs.cat_file(path)
    except Exception as error:
        # Each kind of file system raises what it likes.
        raise InvalidValue(field, url, f"cannot be read: {files.why(error)}") from error
    try:
        return msgspec.json.decode(data, type=_Manifest)
    except msgspec.MsgspecError as error:
        raise InvalidValue(field, url, f"is no location manifest: {error}") from None
