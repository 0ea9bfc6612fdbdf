"""A registry for one image, run by the tests inside dockerd's network.

`python registry.py serve ROOT.tar`: hands out the file system as an image of any name.
`python registry.py stall`: takes connections and says nothing.  Both print their port.
"""

from __future__ import annotations

import hashlib
import http.server
import json
import socket
import sys
import threading
from pathlib import Path
from typing import Any

V2 = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG = "application/vnd.docker.container.image.v1+json"
LAYER = "application/vnd.docker.image.rootfs.diff.tar"


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _described(kind: str, data: bytes) -> dict[str, Any]:
    return {"mediaType": kind, "size": len(data), "digest": _digest(data)}


def image(layer: bytes) -> tuple[bytes, dict[str, bytes]]:
    """The manifest, and all blobs by digest."""
    root = {"type": "layers", "diff_ids": [_digest(layer)]}
    config = json.dumps({"architecture": "amd64", "os": "linux", "rootfs": root}).encode()
    manifest = {
        "schemaVersion": 2,
        "mediaType": V2,
        "config": _described(CONFIG, config),
        "layers": [_described(LAYER, layer)],
    }
    return json.dumps(manifest).encode(), {_digest(each): each for each in (config, layer)}


def serve(layer: bytes) -> None:
    manifest, blobs = image(layer)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            what = self.path.rstrip("/").split("/")
            body: bytes | None = b"{}"
            kind = "application/json"
            if "manifests" in what:
                body, kind = manifest, V2
            elif "blobs" in what:
                body, kind = blobs.get(what[-1]), "application/octet-stream"
            self.send_response(200 if body is not None else 404)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body or b"")))
            self.send_header("Docker-Content-Digest", _digest(body or b""))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body or b"")

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)  # noqa: T201
    server.serve_forever()


def stall() -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)  # noqa: T201
    threading.Event().wait()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(Path(sys.argv[2]).read_bytes())
    else:
        stall()
