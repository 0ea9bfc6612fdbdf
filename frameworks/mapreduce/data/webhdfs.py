"""Where HDFS has the blocks of files, by the REST API of its namenode (WebHDFS)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import quote, urlsplit

import aiohttp
import msgspec

from frameworks.mapreduce import conf as properties
from frameworks.mapreduce.data.inputs import InputFile
from frameworks.mapreduce.data.locations import Block, Locator
from mesos_py import logs
from mesos_py.errors import InvalidValue

log = logs.get("mapreduce.locations")

# Namenodes answer thousands of these in a second; a job does not wait longer than this.
BUDGET_S: Final = 10.0
_PARALLEL: Final = 32

# The first is newer (Hadoop 3.2, 2.9.2) and documented, the second what there was before.
_OPERATIONS: Final = ("GETFILEBLOCKLOCATIONS", "GET_BLOCK_LOCATIONS")


class _Location(msgspec.Struct):
    offset: int
    length: int
    hosts: tuple[str, ...]


class _Locations(msgspec.Struct):
    located: list[_Location] = msgspec.field(name="BlockLocation", default_factory=list)


class _DataNode(msgspec.Struct):
    host: str = msgspec.field(name="hostName")


class _BlockId(msgspec.Struct):
    size: int = msgspec.field(name="numBytes")


class _Located(msgspec.Struct, rename="camel"):
    start_offset: int
    block: _BlockId
    locations: list[_DataNode]


class _LocatedBlocks(msgspec.Struct, rename="camel"):
    located_blocks: list[_Located]


class _Answer(msgspec.Struct):
    """Of either operation."""

    new: _Locations | None = msgspec.field(name="BlockLocations", default=None)
    old: _LocatedBlocks | None = msgspec.field(name="LocatedBlocks", default=None)

    def blocks(self) -> list[Block]:
        found = [] if self.new is None else self.new.located
        older = [] if self.old is None else self.old.located_blocks
        return [Block(one.offset, one.length, one.hosts) for one in found] + [
            Block(one.start_offset, one.block.size, tuple(node.host for node in one.locations))
            for one in older
        ]


class _Refused(Exception):
    """The text says why, in the namenode's words."""


class WebHdfs(Locator):
    """`webhdfs://[USER@]HOST:PORT`: the namenode's HTTP address (dfs.namenode.http-address).

    Asked about inputs of the schemes hdfs, webhdfs and swebhdfs.  When it fails, or takes
    longer than ten seconds in all, what is not known yet stays unknown.
    """

    def __init__(self, text: str, conf: Mapping[str, str], *, budget_s: float = BUDGET_S) -> None:
        super().__init__(text, conf)
        parts = urlsplit(text)
        try:
            port = parts.port
        except ValueError:
            port = None
        if not parts.hostname or not port or parts.path.strip("/"):
            raise InvalidValue(properties.LOCATIONS.name, text, "must be webhdfs://HOST:PORT")
        web = "https" if parts.scheme == "swebhdfs" else "http"
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        self._base = f"{web}://{host}:{port}/webhdfs/v1"
        self._user = f"&user.name={quote(parts.username)}" if parts.username else ""
        self._budget_s = budget_s
        self._operation = _OPERATIONS[0]

    def hosts(self, files: Sequence[InputFile]) -> list[list[Block]]:
        return asyncio.run(self._all(files))

    async def _all(self, files: Sequence[InputFile]) -> list[list[Block]]:
        found: list[list[Block]] = [[] for _ in files]
        # An empty file has no blocks.
        waiting = [(i, path) for i, file in enumerate(files) if file.size and (path := _path(file))]
        if not waiting:
            return found
        refused: list[str] = []
        try:
            async with asyncio.timeout(self._budget_s), aiohttp.ClientSession() as session:
                # One first: it tells whether there is any sense in asking, and which way.
                i, path = waiting[0]
                found[i] = await self._first(session, path)
                queue = iter(waiting[1:])
                async with asyncio.TaskGroup() as group:
                    for _ in range(min(_PARALLEL, len(waiting))):
                        group.create_task(self._some(session, queue, found, refused))
        except* (_Refused, aiohttp.ClientError, TimeoutError, msgspec.MsgspecError) as errors:
            refused.append(_cause(errors))
        if refused:
            log.warning(
                "block locations are not known",
                namenode=self._base,
                known=sum(map(bool, found)),
                asked=len(waiting),
                error=refused[-1],
            )
        return found

    async def _some(
        self,
        session: aiohttp.ClientSession,
        queue: Iterator[tuple[int, str]],
        found: list[list[Block]],
        refused: list[str],
    ) -> None:
        for i, path in queue:
            try:
                found[i] = await self._ask(session, path)
            except _Refused as error:
                refused.append(f"{path}: {error}")

    async def _first(self, session: aiohttp.ClientSession, path: str) -> list[Block]:
        try:
            return await self._ask(session, path)
        except _Refused:
            # An older namenode does not know the name of the operation.
            self._operation = _OPERATIONS[1]
            return await self._ask(session, path)

    async def _ask(self, session: aiohttp.ClientSession, path: str) -> list[Block]:
        url = f"{self._base}{quote(path)}?op={self._operation}{self._user}"
        async with session.get(url) as answer:
            data = await answer.read()
            if answer.status != 200:
                raise _Refused(_reason(answer.status, data))
            return msgspec.json.decode(data, type=_Answer).blocks()


def _path(file: InputFile) -> str:
    """ "" for what is not in HDFS."""
    # Not by urlsplit: names in HDFS may have ? and # in them.
    scheme, _, rest = file.url.partition("://")
    known = scheme in ("hdfs", "webhdfs", "swebhdfs")
    return "/" + rest.partition("/")[2] if known else ""


def _reason(status: int, data: bytes) -> str:
    try:
        told = msgspec.json.decode(data)["RemoteException"]
        return f"{status} {told['exception']}: {told['message']}"
    except (msgspec.MsgspecError, LookupError, TypeError):
        return f"the server answered {status}"


def _cause(errors: BaseException) -> str:
    while isinstance(errors, BaseExceptionGroup):
        errors = errors.exceptions[0]
    return f"{type(errors).__name__}: {errors}" if str(errors) else type(errors).__name__
