"""How the agent and its warden talk: JSON lists, each with its length before it.

To the warden::

    ["start", {...}]              see StartRequest in spawn.py
    ["signal", id, number]        for all processes of the container or probe
    ["probe", {...}, [container, s]]  run it beside the container's own, for at most so long
    ["within", {...}, [container, stdio]]  start it as a container within that one; stdio: null,
                                  or the files of its input, output and error output
    ["forget", id]                its end is written down: not to be told again
    ["on_agent_loss", what, s]    instead of what it was started with (see main of warden.py)
    ["end"]                       kill everything, and end; otherwise, when the agent's end
                                  of the socket closes, see OnAgentLoss

From the warden, to an agent that has connected again::

    ["have", id, pid]             for each container that runs
    ...                           all ends and failures that are not forgotten, as below
    ["ready", version]            that was all from before

From the warden::

    ["started", id, pid]
    ["failed", id, text]          why nothing was started
    ["ended", id, status]         the wait status; nothing of the container runs any more
    ["probing", id, pid]          also of a container within another, as what follows
    ["probed", id, [status, output, why]]  null and why it was not started; or why killed
    ["unprobed", id, text]        why it was not even tried

The warden imports this module: it must stay small (no mesos_py, no grpc).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from typing import Any, Final

_LENGTH: Final = struct.Struct(">I")
# Far above any batch; a length beyond it means that the stream is not ours.
MAX_FRAME: Final = 256 * 1024 * 1024
# Of this protocol: an agent may meet the warden that its earlier version has started.
VERSION: Final = 2
# Since when it has containers within others.
WITHIN: Final = 2
# In the work directory: where an agent that is started again finds its warden, and what
# a warden has left to tell that had nothing more to wait for.
SOCKET_NAME: Final = "warden.sock"
ENDS_NAME: Final = "warden.ends"


def pack(messages: Iterable[list[Any]]) -> bytes:
    """One frame with `messages` in order."""
    body = json.dumps(list(messages), separators=(",", ":")).encode()
    return _LENGTH.pack(len(body)) + body


class Unpacker:
    """Puts frames together from whatever pieces arrive."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[list[Any]]:
        """The messages that are complete now.  Raises ValueError for what is no frame."""
        self._buffer += data
        messages: list[list[Any]] = []
        at = 0
        while len(self._buffer) - at >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer, at)
            if length > MAX_FRAME:
                raise ValueError(f"a frame of {length} bytes")
            end = at + _LENGTH.size + length
            if len(self._buffer) < end:
                break
            messages.extend(json.loads(bytes(self._buffer[at + _LENGTH.size : end])))
            at = end
        del self._buffer[:at]
        return messages
