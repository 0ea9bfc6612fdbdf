"""Who has something to write does so at the end of the round, all together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from mesos_py import logs

log = logs.get("master.front")


class Written(Protocol):
    """A connection."""

    def flush(self) -> None:
        """Hand what was put to the socket."""
        ...

    def abort(self) -> None:
        """Something went wrong with it: end it."""
        ...


class Flushed(Protocol):
    def flush(self) -> None:
        """Write what there is, as far as the stream is ready."""
        ...

    def cut(self) -> None:
        """Something went wrong with it: end it."""
        ...


class Flusher:
    """At the end of each round of the loop everybody writes who has something to write."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._talks: list[Flushed] = []
        self._connections: list[Written] = []
        self._scheduled = False

    def add(self, talk: Flushed) -> None:
        self._talks.append(talk)
        self._schedule()

    def add_connection(self, connection: Written) -> None:
        self._connections.append(connection)
        self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        talks, self._talks = self._talks, []
        for talk in talks:
            _try(talk.flush, talk.cut)
        connections, self._connections = self._connections, []
        for connection in connections:
            _try(connection.flush, connection.abort)
        self._scheduled = False
        if self._talks or self._connections:
            self._schedule()


def _try(step: Callable[[], None], end: Callable[[], None]) -> None:
    """One peer's trouble is his alone: were it to stop the round, nobody would be written
    to ever again."""
    try:
        step()
    except Exception:
        log.exception("cannot write to a peer")
        try:
            end()
        except Exception:
            log.exception("cannot end a peer")
