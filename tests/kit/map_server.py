"""A file server as agents have, for reduces to fetch from, with every way to serve badly.

with MapServer() as server:
    server.files["/m0"] = b"..."
    server.faults["/m0"] = ["drop", 404]       # one for each request, then it serves well
"""

from __future__ import annotations

import re
import socket
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class MapServer:
    """Faults: a number is answered as a status; "drop": no answer; "half": half of the bytes
    and the end; "corrupt": a byte is another; "short": fewer bytes, and that said; "whole": the
    range is not minded; "other": another range; "stall": half of the bytes and nothing more
    until the server ends."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.faults: dict[str, list[int | str]] = {}
        self.requests: Counter[str] = Counter()
        self.ranges: list[str] = []
        self.connections = 0
        # Reached by each stall.
        self.stalled = threading.Event()
        self._over = threading.Event()

    def __enter__(self) -> MapServer:
        owner = self

        class Handler(_Handler):
            server_of = owner

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._server.shutdown()
        self._thread.join()
        self._server.end()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}{path}"

    def next_fault(self, path: str) -> int | str:
        waiting = self.faults.get(path)
        return waiting.pop(0) if waiting else ""

    def stall(self) -> None:
        self.stalled.set()
        self._over.wait()


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handler: type[_Handler]) -> None:
        super().__init__(address, handler)
        self._open: set[socket.socket] = set()

    def process_request(self, request, client_address) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def end(self) -> None:
        for request in list(self._open):
            request.shutdown(socket.SHUT_RDWR)
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server_of: MapServer

    def setup(self) -> None:
        super().setup()
        self.server_of.connections += 1

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        owner = self.server_of
        owner.requests[self.path] += 1
        given = self.headers["Range"]
        owner.ranges.append(given)
        fault = owner.next_fault(self.path)
        data = owner.files.get(self.path)
        first, last = map(int, re.findall(r"\d+", given))
        if data is None:
            data, fault = b"", fault or 404
        elif first >= len(data):
            fault = fault or 416
        if fault == "drop":
            self.close_connection = True
            return
        if isinstance(fault, int):
            self._answer(fault, b"no")
            return
        body = data[first : last + 1]
        if fault == "whole":
            self._answer(200, data)
            return
        if fault == "other":
            self._answer(206, body, f"bytes {first + 1}-{last + 1}/{len(data)}")
            return
        if fault == "corrupt":
            body = bytes((body[0] ^ 1,)) + body[1:]
        if fault == "short":
            body = body[: len(body) // 2]
        sent = body[: len(body) // 2] if fault in ("half", "stall") else body
        where = f"bytes {first}-{first + len(body) - 1}/{len(data)}"
        self._answer(206, sent, where, len(body))
        if fault == "stall":
            owner.stall()
        if fault in ("half", "stall"):
            self.close_connection = True

    def _answer(self, status: int, body: bytes, where: str = "", length: int = -1) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length < 0 else length))
        if where:
            self.send_header("Content-Range", where)
        self.end_headers()
        self.wfile.write(body)
