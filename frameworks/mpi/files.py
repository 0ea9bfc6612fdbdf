"""Files that go with a job: served by HTTP to the agents that fetch them for its tasks.

Who knows the path of one may read it, so each has a path that nobody can guess.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import threading
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

from mesos_py import CommandInfo, InvalidValue, uri

# A client that stands still is given up.
_STALLED_S: Final = 60.0
_LOOK_S: Final = 0.1


def checked(paths: Sequence[str]) -> list[Path]:
    """The files, which are there and called differently.  Raises InvalidValue."""
    names = set()
    found = []
    for text in paths:
        path = Path(text)
        if not path.is_file():
            raise InvalidValue("--file", text, "is no file here")
        if not os.access(path, os.R_OK):
            raise InvalidValue("--file", text, "cannot be read")
        if path.name in names:
            raise InvalidValue("--file", text, f"is the second one called {path.name}")
        names.add(path.name)
        found.append(path.absolute())
    return found


class Files:
    """Serves files from `start` to `close`; anyone may call these from an event loop."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = {f"/{secrets.token_urlsafe(16)}/{n}": path for n, path in enumerate(paths)}
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    def start(self, address: str) -> list[CommandInfo.URI]:
        """What fetches them, for hosts that reach this one at the address.  Nothing is
        started where there are none."""
        if not self._paths:
            return []
        if self._server is None:
            self._server = _Server(self._paths)
            self._thread = threading.Thread(
                target=self._server.serve_forever, args=(_LOOK_S,), daemon=True
            )
            self._thread.start()
        port = self._server.server_address[1]
        return [
            uri(
                f"http://{address}:{port}{place}",
                executable=os.access(path, os.X_OK),
                extract=False,
                output_file=path.name,
            )
            for place, path in self._paths.items()
        ]

    def close(self) -> None:
        """Serve no more.  Idempotent."""
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()
            self._server = None


class _Server(ThreadingHTTPServer):
    # All agents of a large job may come at once.
    request_queue_size = 1024
    daemon_threads = True

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self.paths = paths
        super().__init__(("", 0), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that has gone; its agent says so if it matters."""


class _Handler(BaseHTTPRequestHandler):
    timeout = _STALLED_S

    def do_GET(self) -> None:
        assert isinstance(self.server, _Server)
        path = self.server.paths.get(self.path)
        if path is None:
            self.send_error(404)
            return
        try:
            with path.open("rb") as file:
                self.send_response(200)
                self.send_header("Content-Type", "application/octet-stream")
                self.send_header("Content-Length", str(os.fstat(file.fileno()).st_size))
                self.end_headers()
                with contextlib.suppress(ConnectionError, TimeoutError):
                    shutil.copyfileobj(file, self.wfile)
        except OSError as error:
            self.send_error(500, error.strerror)

    def log_message(self, format: str, *args: object) -> None:
        """Not on the terminal of a job."""
