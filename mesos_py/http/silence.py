"""A client whose machine is gone says nothing any more, not even that.

TCP finds out by itself when it has something to send (after a quarter of an hour, by Linux'
defaults), or when it asks whether the other side is there (after two hours).
"""

from __future__ import annotations

import socket
from typing import Final

# The kernel takes no more for each.
_MAX_PAUSE_S: Final = 32_767


def bound(listening: socket.socket, silence_s: float) -> None:
    """Have a connection broken when its other side has for so long acknowledged nothing of
    what was sent, taken nothing of what waits, or, when nothing does, not answered that it is
    there (which is found out a quarter later at most).

    Each that is accepted has what the socket has that listens (Linux), from its first moment.
    """
    pause_s = min(max(1, int(silence_s / 4)), _MAX_PAUSE_S)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, pause_s)
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, pause_s)
    milliseconds = max(1, int(silence_s * 1000))
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)


__all__ = ["bound"]
