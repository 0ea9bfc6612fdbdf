"""`/files/browse`, `/files/read`, `/files/download` and `/files/debug`, as Mesos has them."""

from __future__ import annotations

import contextlib
import posixpath
import stat
from typing import Any, Final

from aiohttp import web

from agent.api.http.sandboxes import file_headers, send
from agent.api.virtual_files import VirtualFiles
from agent.core.state import AgentState
from mesos_py.errors import InvalidValue, Unavailable
from mesos_py.http.file_queries import number_of, path_of, shape_of
from mesos_py.http.pages import callback_of, json_answer
from mesos_py.http.server import Routes
from mesos_py.v1 import types_pb2 as pb

_NS: Final = 10**9


class FilesEndpoints:
    """Answers any method, as Mesos does; from `open` on."""

    def __init__(self) -> None:
        self._open: tuple[VirtualFiles, AgentState] | None = None

    def open(self, files: VirtualFiles, state: AgentState) -> None:
        """The agent knows what it has."""
        self._open = (files, state)

    def add_to(self, routes: Routes) -> None:
        """Have them answered."""
        routes.add("/files/browse", self.browse)
        routes.add("/files/read", self.read)
        routes.add("/files/download", self.download)
        routes.add("/files/debug", self.debug)

    async def browse(self, request: web.Request) -> web.StreamResponse:
        callback_of(request.query)
        found = await self._opened()[0].entries(path_of(request))
        return json_answer(request, [_shape(each) for each in found])

    async def read(self, request: web.Request) -> web.StreamResponse:
        """Without an offset, or with -1, the size of the file in its place and no data."""
        callback_of(request.query)
        path = path_of(request)
        offset, length = number_of(request, "offset"), number_of(request, "length")
        size, data = await self._opened()[0].read(path, offset, length)
        return json_answer(request, shape_of(size, offset, data))

    async def download(self, request: web.Request) -> web.StreamResponse:
        path = path_of(request)
        found = await self._opened()[0].opened(path)
        with contextlib.closing(found):
            if found.is_directory:
                raise InvalidValue("path", path, "is a directory, which cannot be downloaded")
            headers = file_headers(posixpath.basename(path), found.status, download=True)
            headers["Content-Type"] = "application/octet-stream"
            return await send(request, found, 0, headers)

    async def debug(self, request: web.Request) -> web.StreamResponse:
        files, state = self._opened()
        return json_answer(request, files.table(state))

    def _opened(self) -> tuple[VirtualFiles, AgentState]:
        if self._open is None:
            raise Unavailable("Agent has not finished recovery")
        return self._open


def _shape(given: pb.FileInfo) -> dict[str, Any]:
    return {
        "gid": given.gid,
        "mode": stat.filemode(given.mode),
        "mtime": float(given.mtime.nanoseconds // _NS),
        "nlink": given.nlink,
        "path": given.path,
        "size": given.size,
        "uid": given.uid,
    }
