"""What the long-lived streams of schedulers and agents say to the core, and it to them.

The same as `master/api/streams.py`, without a task per stream: the core is called while
the bytes are read, and what it has put into a link's queue is written at the end of the
round.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

from master.api.lean import http2
from master.api.lean.flusher import Flusher
from master.api.lean.http2 import PREFIX_BYTES
from master.api.lean.stream import Stream
from master.api.links import Link
from master.api.shell import Shell
from master.api.streams import MAX_BATCH_BYTES, MAX_BATCH_ITEMS, Streams
from master.api.streams import Stream as Kind
from mesos_py import logs, rpc
from mesos_py.errors import MesosPyError, NotLeader, Unavailable

log = logs.get("master.streams")


def trailer_of(error: BaseException) -> bytes:
    """How a call ends with `error`."""
    code, details, metadata = rpc.to_status(error)
    number: int = code.value[0]
    return http2.trailer(number, details, metadata)


class Talk:
    """One stream, from its opening to its end.  All on the event loop's thread.

    While it is not certain who leads, what the peer says waits in `_backlog`, and the
    peer is held back by the stream's window.
    """

    __slots__ = ("_at", "_backlog", "_dirty", "_flusher", "_half", "_over", "_stream")

    def __init__(self, stream: Stream, flusher: Flusher) -> None:
        self._stream = stream
        self._flusher = flusher
        # What it talks to, from `begin` on.
        self._at: tuple[Kind, Link] | None = None
        self._backlog: list[bytes] | None = None
        # `_half`: the peer has ended its side, behind what waits.
        self._dirty = self._over = self._half = False

    # ---- The beginning ---------------------------------------------------------

    def begin(self, kind: Kind) -> None:
        """This master leads."""
        link = kind.links.open(self._stream.connection.peer, self.cut)
        link.queue.on_some = self._some
        self._at = kind, link

    async def begin_soon(self, soon: Callable[[], Awaitable[Streams]], agent: bool) -> None:
        """It may be about to lead: wait for it, or send the peer away."""
        self._backlog = []
        try:
            streams = await soon()
        except NotLeader as error:
            self._finish(trailer_of(error))
            return
        if not self._over:
            kind = streams.agents if agent else streams.schedulers
            self.begin(kind)
            await self._catch_up(kind)

    # ---- In ----------------------------------------------------------------------

    def received(self, message: bytes) -> bool:
        if self._backlog is not None:
            self._backlog.append(message)
            return False
        if self._at is None:
            return True  # it has been sent away
        kind, link = self._at
        if not kind.shell.certainty.certain():
            self._backlog = [message]
            _keep(asyncio.create_task(self._catch_up(kind)))
            return False
        self._take(kind, link, message)
        return True

    async def _catch_up(self, kind: Kind) -> None:
        """Take what has come meanwhile, once that is certain to be right."""
        certainty, turns = kind.shell.certainty, kind.shell.turns
        while self._backlog and self._at is not None and not self._over:
            if not certainty.certain() and not await certainty.wait():
                self._some()
                return
            message = self._backlog.pop(0)
            await turns.take(partial(self._take, *self._at, message))
            self._stream.grant(len(message) + PREFIX_BYTES)
        self._backlog = None
        if self._half:
            self._end_by_peer()

    def _take(self, kind: Kind, link: Link, message: bytes) -> bool:
        """Hand the calls of one batch to the core."""
        if self._over:
            return True
        shell = kind.shell
        try:
            calls = kind.parse(message)
        except Exception:
            log.warning("stream broken", link=link.number, peer=link.peer, kind=kind.name)
            self._end_by_peer()
            return True
        if not shell.certainty.certain():
            link.queue.close("this master is not sure that it leads")
        elif not kind.hand_in(link.number, calls):
            link.queue.close("a call could not be carried out; see the master's log")
        shell.rearm_soon()
        return True

    def half_closed(self) -> None:
        if self._backlog is not None:
            # Its last words come first: they may be TEARDOWN.
            self._half = True
        else:
            self._end_by_peer()

    def _end_by_peer(self) -> None:
        if self._at is not None:
            self._at[1].queue.close("the peer ended the stream", drain=False)
        else:
            self._finish(http2.trailer(0))

    def gone(self) -> None:
        self._end()

    # ---- Out ---------------------------------------------------------------------

    def _some(self) -> None:
        if not self._dirty:
            self._dirty = True
            self._flusher.add(self)

    def writable(self) -> None:
        self._some()

    def flush(self) -> None:
        self._dirty = False
        if self._over or self._at is None:
            return
        kind, link = self._at
        queue, stream, shell = link.queue, self._stream, kind.shell
        if shell.certainty.over.is_set():
            self._finish(trailer_of(kind.links.ended or NotLeader(None)))
            return
        if not shell.certainty.certain():
            _keep(asyncio.create_task(self._flush_later(shell)))
            return
        while len(queue):
            if not stream.ready:
                stream.connection.wait(stream)
                return
            stream.send(b"".join(queue.take(MAX_BATCH_ITEMS, MAX_BATCH_BYTES)) + kind.tail)
        if queue.closed is not None:
            self._finish(self._status(kind.links.ended, queue.overflow))

    async def _flush_later(self, shell: Shell) -> None:
        await shell.certainty.wait()
        self._some()

    def _status(self, ended: MesosPyError | None, overflow: str | None) -> bytes:
        if overflow is not None:
            return trailer_of(Unavailable(overflow))
        return http2.trailer(0) if ended is None else trailer_of(ended)

    # ---- The end -----------------------------------------------------------------

    def cut(self) -> None:
        """The peer reads too slowly, or something is wrong with it."""
        self._stream.reset()
        self._end()

    def _finish(self, trailer: bytes) -> None:
        self._stream.finish(trailer)
        self._end()

    def _end(self) -> None:
        if self._over:
            return
        self._over = True
        if self._at is None:
            return
        kind, link = self._at
        shell = kind.shell
        kind.links.forget(link)
        # After the leadership the core decides nothing more.
        if not shell.certainty.over.is_set():
            kind.left(link.number)
            shell.rearm_soon()


# The loop keeps no task that nobody holds.
_tasks: set[asyncio.Task[None]] = set()


def _keep(task: asyncio.Task[None]) -> None:
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)
