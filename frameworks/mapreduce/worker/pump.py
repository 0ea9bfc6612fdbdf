"""Bytes through a program: its stdin, stdout and stderr at once, on one thread."""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Callable, Iterator
from typing import Final, Protocol

from frameworks.mapreduce.worker.failures import AttemptFailed, program_failed
from frameworks.mapreduce.worker.programs import Running
from frameworks.mapreduce.worker.reports import Reports

CHUNK: Final = 1 << 20
MAX_LINE: Final = 1 << 30
_TICK_S: Final = 0.25
# A program that has ended may have left others that still hold its stdout: they may go on
# writing, but are not waited for when they are silent so long.
_LEFT_BEHIND_S: Final = 5.0


class Watch(Protocol):
    """Told of everything that moves; ends the attempt by an exception (a time-out)."""

    def moved(self) -> None:
        """Bytes have gone in or out."""

    def tick(self) -> None:
        """Called a few times a second, and after each block."""


class Pump:
    """One run of a program.

    ::

        for block in Pump(running, reports, watch).run(blocks):
            ...

    also: other file descriptors, with what is to be called when one can be read; it returns
    False when it is at its end.
    """

    def __init__(
        self,
        running: Running,
        reports: Reports,
        watch: Watch,
        also: dict[int, Callable[[], bool]] | None = None,
    ) -> None:
        self._running = running
        self._stderr = reports.program()
        self._watch = watch
        self._also = also or {}
        self._selector = selectors.DefaultSelector()
        self._rest: list[bytes] = []
        self._held = 0
        self._unwritten = memoryview(b"")
        self._ended = False
        # When it ended, or was heard of after that.
        self._heard_at = 0.0

    def run(self, blocks: Iterator[bytes] | None = None) -> Iterator[bytes]:
        """Blocks of whole lines that the program writes; `blocks` is what it is to read (None:
        somebody else feeds it).  The program has ended afterwards, however this is left; its
        exit code is `code`.  A last line without a newline gets one."""
        running = self._running
        try:
            self._register(running.stdout, selectors.EVENT_READ, "out")
            self._register(running.stderr, selectors.EVENT_READ, "err")
            self._register(running.child.pidfd, selectors.EVENT_READ, "end")
            for fd in self._also:
                self._register(fd, selectors.EVENT_READ, "also")
            if blocks is not None:
                self._next_block(blocks)
            while self._open("out") or self._open("err") or not self._ended:
                for key, _ in self._selector.select(_TICK_S):
                    if key.data == "in":
                        self._write(blocks)
                    elif key.data == "out":
                        yield from self._read(key.fd)
                    else:
                        self._other(key)
                self._watch.tick()
                if self._is_left_behind():
                    break
            if self._rest:
                yield b"".join((*self._rest, b"\n"))
                self._rest = []
            self._stderr.end()
        finally:
            self._selector.close()
            running.close()

    @property
    def code(self) -> int:
        """As subprocess has it."""
        return self._running.child.ended(wait=True) or 0

    @property
    def complete(self) -> bool:
        """Whether it has come to its own end, as far as it can tell (functions can)."""
        return self._running.complete

    # ---- Each of its streams ---------------------------------------------------------------

    def _register(self, fd: int, events: int, data: str) -> None:
        if fd >= 0:
            self._selector.register(fd, events, data)

    def _open(self, data: str) -> bool:
        return any(key.data == data for key in self._selector.get_map().values())

    def _read(self, fd: int) -> Iterator[bytes]:
        try:
            chunk = os.read(fd, CHUNK)
        except BlockingIOError:
            return
        if not chunk:
            self._selector.unregister(fd)
            return
        self._heard_at = time.monotonic()
        self._watch.moved()
        cut = chunk.rfind(b"\n") + 1
        if cut == 0:
            self._hold(chunk)
            return
        if self._rest:
            self._rest.append(chunk[:cut])
            block = b"".join(self._rest)
        else:
            block = chunk if cut == len(chunk) else chunk[:cut]
        self._rest = []
        self._held = 0
        if cut < len(chunk):
            self._hold(chunk[cut:])
        yield block
        # What was done with it is our own time, not the program's.
        self._watch.moved()

    def _hold(self, part: bytes) -> None:
        """A line must be had whole before anything can be done with it."""
        self._rest.append(part)
        self._held += len(part)
        if self._held > MAX_LINE:
            raise AttemptFailed(
                "program", f"{self._running.what}: has written {MAX_LINE} bytes without a newline"
            )

    def _other(self, key: selectors.SelectorKey) -> None:
        fd = key.fd
        if key.data == "err":
            try:
                chunk = os.read(fd, CHUNK)
            except BlockingIOError:
                return
            if chunk:
                self._heard_at = time.monotonic()
                self._watch.moved()
                self._stderr.feed(chunk)
            else:
                self._selector.unregister(fd)
        elif key.data == "end":
            self._selector.unregister(fd)
            self._running.child.ended(wait=True)
            self._ended = True
            self._heard_at = time.monotonic()
            self._stop_feeding()
        elif not self._also[fd]():
            self._selector.unregister(fd)

    def _write(self, blocks: Iterator[bytes] | None) -> None:
        if self._running.stdin < 0:
            return
        try:
            count = os.write(self._running.stdin, self._unwritten)
        except BlockingIOError:
            return
        except BrokenPipeError:
            # It reads no more.  Whether that is a fault its exit code will say.
            self._stop_feeding()
            return
        self._watch.moved()
        self._unwritten = self._unwritten[count:]
        if not self._unwritten and blocks is not None:
            self._next_block(blocks)

    def _next_block(self, blocks: Iterator[bytes]) -> None:
        stdin = self._running.stdin
        for block in blocks:
            self._watch.moved()
            if block:
                self._unwritten = memoryview(block)
                if stdin not in self._selector.get_map():
                    self._register(stdin, selectors.EVENT_WRITE, "in")
                return
        self._watch.moved()
        self._stop_feeding()

    def _stop_feeding(self) -> None:
        stdin = self._running.stdin
        if stdin >= 0:
            if stdin in self._selector.get_map():
                self._selector.unregister(stdin)
            self._running.close_stdin()
        self._unwritten = memoryview(b"")

    def _is_left_behind(self) -> bool:
        if not self._ended:
            return False
        return time.monotonic() - self._heard_at > _LEFT_BEHIND_S and self._is_silent()

    def _is_silent(self) -> bool:
        return not any(key.data in ("out", "err") for key, _ in self._selector.select(0))


def checked(pump: Pump, what: str, reports: Reports, own_files: set[str], strict: bool) -> None:
    """Raises AttemptFailed if the program has failed (with code 0, too, if a function was not
    through).  strict: so it has with any code but 0."""
    code = pump.code
    if code == 0 and not pump.complete:
        raise AttemptFailed(
            "program",
            f"{what} ended with exit code 0 in the middle of its work, and what it had not "
            "written yet is lost: does it call os._exit?",
            reports.tail,
        )
    if code == 0 or (code > 0 and not strict):
        return
    raise program_failed(what, code, reports.tail, own_files)


__all__ = ["AttemptFailed", "Pump", "Watch", "checked"]
