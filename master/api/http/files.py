"""`/files/*` and the calls of files: of a master there is its own log, if that is a file."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Final

from aiohttp import web

from mesos_py.errors import InvalidValue, NotFound, Unavailable
from mesos_py.http.file_queries import number_of, part_of, path_of, shape_of
from mesos_py.http.log_file import OwnLog
from mesos_py.http.pages import callback_of, json_answer
from mesos_py.http.server import Routes
from mesos_py.v1.agent_operator_pb2 import Call, Response

OWN_LOG: Final = "/master/log"


class MasterFiles:
    """Answers any method, as Mesos does, whoever leads.  Raises MesosPyError."""

    def __init__(self, log: OwnLog | None = None) -> None:
        self._log = log if log is not None else OwnLog(OWN_LOG)

    def add_to(self, routes: Routes) -> None:
        """Have them answered."""
        routes.add("/files/browse", self.browse)
        routes.add("/files/read", self.read)
        routes.add("/files/download", self.download)
        routes.add("/files/debug", self.debug)

    # ---- Over HTTP -----------------------------------------------------------------

    async def browse(self, request: web.Request) -> web.StreamResponse:
        """A file has no entries."""
        callback_of(request.query)
        self._require(path_of(request))
        return json_answer(request, [])

    async def read(self, request: web.Request) -> web.StreamResponse:
        """Without an offset, or with -1, the size of the file in its place and no data."""
        callback_of(request.query)
        path = path_of(request)
        offset, length = number_of(request, "offset"), number_of(request, "length")
        size, data = self._read(path, offset, length)
        return json_answer(request, shape_of(size, offset, data))

    async def download(self, request: web.Request) -> web.StreamResponse:
        self._require(path_of(request))
        headers = {
            "Content-Disposition": 'attachment; filename="log"',
            "Content-Type": "application/octet-stream",
            "X-Content-Type-Options": "nosniff",
        }
        return web.FileResponse(self._log.link, headers=headers)

    async def debug(self, request: web.Request) -> web.StreamResponse:
        real = self._log.real_path()
        return json_answer(request, {} if real is None else {self._log.path: real})

    # ---- By calls of the operator API ----------------------------------------------

    def list_files(self, call: Call) -> Response:
        self._require(call.list_files.path)
        return Response(type=Response.LIST_FILES, list_files=Response.ListFiles())

    def read_file(self, call: Call) -> Response:
        asked = call.read_file
        length = asked.length if asked.HasField("length") else None
        size, data = self._read(asked.path, asked.offset, length)
        found = Response.ReadFile(size=size, data=data)
        return Response(type=Response.READ_FILE, read_file=found)

    def _require(self, path: str) -> None:
        if not path:
            raise InvalidValue("path", path, "is missing")
        if not self._log.is_meant_by(path):
            raise NotFound("path", path, "is no file of this master; it logs to stderr")

    def _read(self, path: str, offset: int | None, length: int | None) -> tuple[int, bytes]:
        with self._opened(path) as fd:
            size = os.fstat(fd).st_size
            return size, part_of(fd, size, offset, length)

    @contextlib.contextmanager
    def _opened(self, path: str) -> Iterator[int]:
        self._require(path)
        try:
            fd = self._log.open()
        except OSError as error:
            raise Unavailable(f"path: {path!r}: cannot be read: {error.strerror}") from None
        try:
            yield fd
        finally:
            os.close(fd)


__all__ = ["OWN_LOG", "MasterFiles"]
