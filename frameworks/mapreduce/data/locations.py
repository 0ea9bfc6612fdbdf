"""Where files lie, so that maps run there: locators, by the property `mesos.locations`.

========================  =====================================================================
``""`` or ``auto``        what a URL tells by itself: files that an agent serves are on its host
``webhdfs://host:port``   the namenode is asked for the blocks of `hdfs:` and `webhdfs:` files
``swebhdfs://host:port``  the same by HTTPS
``NAME:...``              a plug-in of the entry point group `mesos_py.mapreduce_locators`
anything else             the URL or path of a location manifest (`manifests.py`)
========================  =====================================================================
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from frameworks.mapreduce import conf as properties
from frameworks.mapreduce.data.inputs import InputFile
from mesos_py import plugins
from mesos_py.errors import InvalidValue

GROUP: Final = "mesos_py.mapreduce_locators"

_BUILTINS: Final = {
    "auto": "frameworks.mapreduce.data.locations:Published",
    "webhdfs": "frameworks.mapreduce.data.webhdfs:WebHdfs",
    "swebhdfs": "frameworks.mapreduce.data.webhdfs:WebHdfs",
    "manifest": "frameworks.mapreduce.data.manifests:Manifest",
}


class Block(NamedTuple):
    """Bytes `start` to `start + length` of a file are at hand on these hosts, best first.

    hosts: names as agents have them (`--hostname`)."""

    start: int
    length: int
    hosts: tuple[str, ...]


class Locator(ABC):
    """Made with the whole property and the job's conf; asked once per job, in a thread in
    which it may block.

    What it says is only about where a map would better run, never about what is read:
    blocks may overlap, lack, or be none at all.
    """

    def __init__(self, text: str, conf: Mapping[str, str]) -> None:
        """Raises InvalidValue for a text that is no good."""
        self.text = text
        self.conf = conf

    @abstractmethod
    def hosts(self, files: Sequence[InputFile]) -> list[list[Block]]:
        """Of each file, in the order of `files`.  What cannot be found out is [], with a
        warning in the log: a job runs without it."""


class Published(Locator):
    """Files in sandboxes that agents serve by HTTP (docs/sandboxes.md) are on the agent's host."""

    def hosts(self, files: Sequence[InputFile]) -> list[list[Block]]:
        return [self._of(file) for file in files]

    @staticmethod
    def _of(file: InputFile) -> list[Block]:
        if not file.url.startswith(("http://", "https://")):
            return []
        parts = urlsplit(file.url)
        if not parts.path.startswith("/files/") or not parts.hostname:
            return []
        return [Block(0, max(0, file.size), (parts.hostname,))]


def locator(conf: Mapping[str, str]) -> Locator:
    """Raises InvalidValue naming the property."""
    field = properties.LOCATIONS.name
    text = properties.LOCATIONS.of(conf).strip() or "auto"
    name = text.partition(":")[0]
    if name not in plugins.names(GROUP, _BUILTINS):
        name, text = "manifest", f"manifest:{text}"
    made = plugins.resolve(GROUP, _BUILTINS, name, field)(text, conf)
    if not isinstance(made, Locator):
        raise InvalidValue(field, text, f"{name} makes a {type(made).__name__}, not a Locator")
    return made
