"""A way between two daemons that a test can cut or block."""

from __future__ import annotations

import selectors
import socket
import threading
from typing import Final, Self

_CHUNK: Final = 1 << 16


class Proxy:
    """Forwards TCP from a port of its own to `target` ("host:port").

    `cut` breaks what is open and refuses what comes; `block` swallows everything in
    both directions and says nothing, like a network that drops packets; `restore` lets
    new connections through again (what was blocked is broken off).
    """

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._lock = threading.Lock()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._blocked = False
        self._cut = False
        # How many connections were made while it was blocked.
        self.swallowed = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._selector = selectors.DefaultSelector()
        self._woken, self._waker = socket.socketpair()
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        self._selector.register(self._woken, selectors.EVENT_READ, None)
        self._ended = False
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        self._waker.send(b"x")
        self._thread.join()
        self._break_off()
        self._selector.close()
        for each in (self._listener, self._woken, self._waker):
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
                    if key.fileobj is self._listener:
                        self._accept()
                    elif key.data is not None:
                        self._forward(key.data[0], key.data[1])

    def _accept(self) -> None:
        near, _ = self._listener.accept()
        if self._cut:
            near.close()
            return
        if self._blocked:
            self.swallowed += 1
            self._pairs.append((near, near))
            return
        try:
            far = socket.create_connection(self._target)
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
