"""Between the worker and an attempt: records as JSON, one a line, over a socket."""

from __future__ import annotations

import socket
import threading
from typing import Generic, TypeVar

import msgspec

from frameworks.mapreduce.messages import FetchFailed, Maps, Running, WantMaps
from frameworks.mapreduce.work import Failure, MapDone, ReduceDone


class Said(msgspec.Struct, frozen=True, tag=True):
    """How far the attempt is; about once a second."""

    running: Running


class Ended(msgspec.Struct, frozen=True, tag=True):
    """The last that an attempt says; one of them is set."""

    map: MapDone | None = None
    reduce: ReduceDone | None = None
    failure: Failure | None = None

    @property
    def outcome(self) -> MapDone | ReduceDone | Failure:
        found = self.map or self.reduce or self.failure
        return found if found is not None else Failure(blame="place", message="has said nothing")


FromAttempt = Said | WantMaps | FetchFailed | Ended
ToAttempt = Maps

T = TypeVar("T")
_CHUNK = 1 << 16


class Channel(Generic[T]):
    """One end.  What comes is of type T."""

    def __init__(self, link: socket.socket, kind: object) -> None:
        self._link = link
        self._decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(kind)
        self._parts: list[bytes] = []
        self._sending = threading.Lock()

    def fileno(self) -> int:
        return self._link.fileno()

    def send(self, record: msgspec.Struct) -> None:
        """From any thread.  Raises OSError if the other end is gone, or does not read."""
        with self._sending:
            self._link.sendall(msgspec.json.encode(record) + b"\n")

    def receive(self) -> list[T] | None:
        """What has come, at least something of it (waits for that if the socket blocks); None
        when the other end is gone.  Raises msgspec.MsgspecError for what is no record."""
        try:
            data = self._link.recv(_CHUNK)
        except BlockingIOError:
            return []
        except ConnectionError:
            return None
        if not data:
            return None
        *lines, rest = data.split(b"\n")
        if lines:
            lines[0] = b"".join((*self._parts, lines[0]))
            self._parts = [rest]
        else:
            self._parts.append(rest)
        return [self._decoder.decode(line) for line in lines]

    def close(self) -> None:
        self._link.close()


def for_worker(link: socket.socket) -> Channel[FromAttempt]:
    return Channel(link, FromAttempt)


def for_attempt(link: socket.socket) -> Channel[ToAttempt]:
    return Channel(link, ToAttempt)


__all__ = [
    "Channel",
    "Ended",
    "FromAttempt",
    "Said",
    "ToAttempt",
    "for_attempt",
    "for_worker",
]
