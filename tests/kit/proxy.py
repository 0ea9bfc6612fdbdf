"""A way between two daemons that a test can cut or block."""

from __future__ import annotations

import selectors
import socket
import threading
from typing import Final, Self

from tests.kit import faces

_CHUNK: Final = 1 << 16


class Proxy:
    """Forwards TCP from a port of its own to `target` ("host:port"); and from another one to
    where that serves HTTP, if frameworks come that way (faces.py).

    `cut` breaks what is open and refuses what comes; `block` swallows everything in
    both directions and says nothing, like a network that drops packets; `restore` lets
    new connections through again (what was blocked is broken off).
    """

    def __init__(self, target: str) -> None:
        self._lock = threading.Lock()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._blocked = False
        self._cut = False
        # How many connections were made while it was blocked.
        self.swallowed = 0
        # Where what comes to a listener is sent on to.
        self._targets: dict[socket.socket, str] = {}
        self._selector = selectors.DefaultSelector()
        self._woken, self._waker = socket.socketpair()
        self.address = self._listen_for(target)
        http = faces.http_of(target)
        if http is not None:
            faces.serves(self.address, self._listen_for(http))
        self._selector.register(self._woken, selectors.EVENT_READ, None)
        self._ended = False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _listen_for(self, target: str) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        self._targets[listener] = target
        self._selector.register(listener, selectors.EVENT_READ, None)
        return f"127.0.0.1:{listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        self._waker.send(b"x")
        self._thread.join()
        self._break_off()
        self._selector.close()
        for each in (*self._targets, self._woken, self._waker):
            each.close()

    def cut(self) -> None:
        with self._lock:
            self._cut = True
            self._break_off()

    def block(self) -> None:
        with self._lock:
            self._blocked = True

    def restore(self) -> None:
        with self._lock:
            if self._blocked:
                self._break_off()
            self._blocked = self._cut = False

    def _break_off(self) -> None:
        pairs, self._pairs = self._pairs, []
        for pair in pairs:
            self._close(pair)

    def _close(self, pair: tuple[socket.socket, socket.socket]) -> None:
        for end in pair:
            try:
                self._selector.unregister(end)
            except (KeyError, ValueError):
                pass  # it is not listened to any more
            end.close()

    def _run(self) -> None:
        while not self._ended:
            for key, _ in self._selector.select(0.5):
                with self._lock:
                    if isinstance(key.fileobj, socket.socket) and key.fileobj in self._targets:
                        self._accept(key.fileobj)
                    elif key.data is not None:
                        self._forward(key.data[0], key.data[1])

    def _accept(self, listener: socket.socket) -> None:
        near, _ = listener.accept()
        if self._cut:
            near.close()
            return
        if self._blocked:
            self.swallowed += 1
            self._pairs.append((near, near))
            return
        try:
            host, _, port = self._targets[listener].rpartition(":")
            far = socket.create_connection((host, int(port)))
        except OSError:
            near.close()
            return
        self._pairs.append((near, far))
        self._selector.register(near, selectors.EVENT_READ, (near, far))
        self._selector.register(far, selectors.EVENT_READ, (far, near))

    def _forward(self, source: socket.socket, sink: socket.socket) -> None:
        if source.fileno() < 0:
            return  # broken off since the selector saw it
        try:
            data = source.recv(_CHUNK)
            if self._blocked:
                if not data:
                    self._selector.unregister(source)  # the other end is not told
                return
            if data:
                sink.sendall(data)
                return
        except OSError:
            pass
        for pair in [pair for pair in self._pairs if source in pair]:
            self._pairs.remove(pair)
            self._close(pair)
