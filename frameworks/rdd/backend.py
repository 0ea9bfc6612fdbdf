"""What brings executors to a driver's engine: `local[N]`, a cluster, or a test's own.

Everything that a backend hears it tells a `Listener`; everything that it is told to do it
does without keeping the caller waiting.  It decides nothing about tasks, and knows nothing
of jobs.

What a broadcast is in blocks: the bytes of its value, cut into ("broadcast", id, 1) and on,
of `CHUNK_BYTES` each except the last; ("broadcast", id, 0) says how many there are (`Head`).
A file of addFile is ("file", number, 0) and on, with as many as AddFiles names.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final, Protocol

from frameworks.rdd.messages import BlockId, FromDriver, FromExecutor, Hello

CHUNK_BYTES: Final = 4 << 20


@dataclass(frozen=True, slots=True)
class Head:
    """Of a broadcast, as its block 0, pickled: `size_bytes` in blocks 1 to `chunks`."""

    size_bytes: int
    chunks: int


def cut(content: bytes | memoryview) -> Iterator[bytes]:
    """The blocks of a broadcast, its head first."""
    view = memoryview(content).cast("B")
    chunks = -(-len(view) // CHUNK_BYTES)
    yield pickle.dumps(Head(len(view), chunks))
    for begin in range(0, len(view), CHUNK_BYTES):
        yield bytes(view[begin : begin + CHUNK_BYTES])


class Listener(Protocol):
    """The engine, as backends see it.  Any method from any thread, at any time from the
    beginning of `start` until `stop` has returned; none blocks, none raises."""

    def executor_joined(self, hello: Hello) -> None:
        """It may be sent messages from now on.  An id is never used again by another."""
        ...

    def heard(self, executor_id: str, message: FromExecutor) -> None:
        """In the order in which it was sent; Hello is told by `executor_joined`."""
        ...

    def executor_lost(
        self, executor_id: str, reason: str, *, outputs_lost: bool, blame: bool
    ) -> None:
        """It is gone, or can be reached no longer; once for each that has joined, also for
        one that was dropped, unless `stop` came first.

        outputs_lost: the files of its shuffles are gone too.  blame: what ran in it may be
        the reason (it was killed for its memory, or crashed), and counts as having failed;
        not if its agent was lost, or its place was taken back.
        """
        ...

    def executor_leaving(self, executor_id: str, reason: str) -> None:
        """It will end soon, whatever it does: it gets no new tasks."""
        ...

    def agent_lost(self, agent_id: str, reason: str) -> None:
        """With all files of the executors that were there, also of those long gone."""
        ...

    def refused(self, text: str) -> None:
        """There will never be executors again: all jobs fail with this, later ones too."""
        ...

    def waiting(self, text: str) -> None:
        """Why no executor comes at the moment, for people; "" when that is over.  Told when it
        changes: people hear of it when it has lasted."""
        ...


class BlockServer(Protocol):
    """The driver's own block service, and how the driver gets blocks of others."""

    @property
    def address(self) -> str:
        """For executors; once the backend has started."""
        ...

    def put(self, block: BlockId, content: bytes) -> None:
        """Serve it from now on.  From any thread."""
        ...

    def put_file(self, block: BlockId, path: str, start: int, size_bytes: int) -> None:
        """As `put`, what a file has there.  It stays as it is, and at its path, until the block
        was removed or the backend has stopped."""
        ...

    def remove(self, blocks: Iterable[BlockId]) -> None:
        """Serve them no longer; those that are not there are no error.  From any thread."""
        ...

    def fetch(self, address: str, block: BlockId) -> Future[bytes]:
        """A block of another's, whole.  The future has Unavailable if it cannot be had; it
        ends, whatever happens to the other, and when the backend stops."""
        ...


class Backend(Protocol):
    """One per context.  Methods may be called from any thread, and none but `start` and
    `stop` blocks."""

    @property
    def blocks(self) -> BlockServer: ...

    @property
    def elastic(self) -> bool:
        """Whether it heeds `want`, and executors may be dropped because they are idle."""
        ...

    def start(self, listener: Listener) -> None:
        """Returns when executors can connect.  Raises a MesosPyError if that cannot be; then
        nothing is left of it.  Called once."""
        ...

    def send(self, executor_id: str, message: FromDriver) -> None:
        """In order with others to the same one; nothing if it is not there (any more)."""
        ...

    def want(self, slots: int) -> None:
        """How many tasks could run at once just now: a hint, told when it changes.  0: none;
        executors that are there stay until they are dropped."""
        ...

    def drop(self, executor_id: str, reason: str) -> None:
        """End it; `executor_lost` is told as it has ended.  Nothing if it is not there."""
        ...

    def stop(self) -> None:
        """End all executors, wait for them, and let go of everything.  May be called twice,
        also when `start` has failed or never came."""
        ...


def all_blocks(kind: str, number: int, chunks: int) -> Sequence[BlockId]:
    """(kind, number, 0) to (kind, number, chunks - 1)."""
    return [(kind, number, chunk) for chunk in range(chunks)]


__all__ = ["CHUNK_BYTES", "Backend", "BlockServer", "Head", "Listener", "all_blocks", "cut"]
