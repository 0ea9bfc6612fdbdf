r"""Reading a split: lines, each of which belongs to the piece of the file it begins in.

A line begins at byte 0 and after each ``\n``; ``\r`` is a byte like others.  So a piece goes
from the first line that begins at its start or later to the first that begins at its end or
later, and pieces that follow one another have each line once, however they were cut.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from frameworks.mapreduce.data import codecs, files, sources
from frameworks.mapreduce.data.files import Unreadable
from frameworks.mapreduce.data.sources import Source
from frameworks.mapreduce.job import Piece

# How much of a file is looked through for the end of a line at first; then twice as much.
_SCAN: Final = 1 << 14
# What a pipe is made to hold, if we may; the kernel sends at most so much at once.
_PIPE: Final = 1 << 20
# Not every file system can do it.
_NO_SENDFILE: Final = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)
# It is the file that cannot be read, not the pipe that cannot be written.
_BAD_FILE: Final = (errno.EIO, errno.ESTALE)
# A line is held in memory by those who ask for lines.
MAX_LINE: Final = 1 << 30


class Reader:
    """Reads the pieces of a split, one after the other, once: by `copy_to`, `blocks` or `lines`.

    A last line of a file that has no newline gets one.  Raises Unreadable, naming file and
    byte: what is not there or not readable any more, shorter than it was when the job was
    planned, damaged or cut off.  Not safe for use by several threads, but `position` and
    `records` may be looked at by others.

    count: whether `records` is wanted, which costs as much again as sending a plain file.
    chunk: how many bytes are read at once; None: what suits the kind of file.
    offsets: `copy_to` writes in front of each line the byte of the file at which it begins, and
    a tab; each piece begins where a line does.
    """

    def __init__(
        self,
        pieces: Sequence[Piece],
        conf: Mapping[str, str],
        *,
        count: bool = True,
        chunk: int | None = None,
        offsets: bool = False,
    ) -> None:
        self._offsets = offsets
        self._pieces = tuple(pieces)
        self._conf = conf
        self._count = count
        self._chunk = chunk
        self._position = 0
        self._records = 0
        self._stopped = False

    @property
    def position(self) -> int:
        """Bytes of the files that were read so far, out of about the size of the split."""
        return self._position

    @property
    def records(self) -> int:
        """Lines that were handed over so far; 0 if they are not counted."""
        return self._records

    @property
    def stopped(self) -> bool:
        """Whether `copy_to` ended because nobody reads any more."""
        return self._stopped

    def copy_to(self, fd: int, on_bytes: Callable[[int], None]) -> None:
        """Write all lines into a pipe, socket or file that blocks.

        `on_bytes` is called with the number of bytes after each write.  Ends quietly, with
        `stopped`, when the reader has closed its end: a program need not read all its input.
        The descriptor stays open.  Raises Unreadable, and OSError of the write.
        """
        with contextlib.suppress(OSError):  # no pipe, or more than this user may have
            fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, _PIPE)
        try:
            for piece in self._pieces:
                self._copy(piece, fd, on_bytes)
        except (BrokenPipeError, ConnectionResetError):
            self._stopped = True

    def blocks(self) -> Generator[bytes]:
        """Blocks of whole lines, each with its newline; as large as is well read at once, or
        as its one line.  None is empty."""
        for piece in self._pieces:
            yield from self._blocks(piece)

    def lines(self) -> Generator[bytes]:
        """Without their newlines."""
        for block in self.blocks():
            yield from block[:-1].split(b"\n")

    def _blocks(self, piece: Piece) -> Generator[bytes]:
        rest: list[bytes] = []
        held = 0
        for chunk in self._chunks(piece):
            cut = chunk.rfind(b"\n") + 1
            if not cut:
                rest.append(chunk)
                held += len(chunk)
                if held > MAX_LINE:
                    why = f"a line is longer than {MAX_LINE} bytes"
                    raise Unreadable(piece.url, f"{why}; is it text?")
                continue
            yield b"".join((*rest, chunk[:cut]))
            rest = [chunk[cut:]] if cut < len(chunk) else []
            held = len(chunk) - cut

    def _with_offsets(self, piece: Piece) -> Iterator[bytes]:
        at = piece.start
        for block in self._blocks(piece):
            parts = []
            for line in block[:-1].split(b"\n"):
                parts.append(b"%d\t%b\n" % (at, line))
                at += len(line) + 1
            yield b"".join(parts)

    def _copy(self, piece: Piece, fd: int, on_bytes: Callable[[int], None]) -> None:
        if self._offsets:
            self._write(self._with_offsets(piece), fd, on_bytes)
        elif piece.length >= 0 and codecs.by_extension(piece.url) is None:
            with sources.opened(piece.url, self._conf, self._chunk) as source:
                begin, end = _bounds(source, piece)
                if source.fd is not None and end - begin > source.chunk:
                    self._send(source.fd, source, begin, end, fd, on_bytes)
                else:
                    self._write(self._text(source, begin, end), fd, on_bytes)
        else:
            self._write(self._chunks(piece), fd, on_bytes)

    def _write(self, chunks: Iterator[bytes], fd: int, on_bytes: Callable[[int], None]) -> None:
        for chunk in chunks:
            left = memoryview(chunk)
            while left:
                written = os.write(fd, left)
                on_bytes(written)
                left = left[written:]

    def _send(
        self,
        plain: int,
        source: Source,
        begin: int,
        end: int,
        fd: int,
        on_bytes: Callable[[int], None],
    ) -> None:
        # The bytes do not go through us: the kernel gives the file's pages to the pipe.
        held = memoryview(bytearray(_PIPE if self._count else 0))
        at = begin
        while at < end:
            try:
                sent = os.sendfile(fd, plain, at, min(_PIPE, end - at))
            except OSError as error:
                if error.errno in _NO_SENDFILE:
                    self._write(self._text(source, at, end), fd, on_bytes)
                    return
                if error.errno in _BAD_FILE:
                    raise Unreadable(source.url, files.why(error), at) from error
                raise
            if not sent:
                raise Unreadable(source.url, "became shorter while it was read", at)
            if self._count:
                read = os.preadv(plain, [held[:sent]], at)
                self._records += int(np.count_nonzero(np.frombuffer(held[:read], np.uint8) == 10))
            at += sent
            self._position += sent
            on_bytes(sent)
        if source.at(end - 1, 1) != b"\n":
            self._write(iter((self._counted(b"\n"),)), fd, on_bytes)

    def _chunks(self, piece: Piece) -> Iterator[bytes]:
        """What belongs to the piece; its last line has its newline."""
        codec = codecs.by_extension(piece.url)
        with sources.opened(piece.url, self._conf, self._chunk) as source:
            if codec is None and piece.length >= 0:
                yield from self._text(source, *_bounds(source, piece))
                return
            raw = self._whole(source)
            last = b"\n"
            for chunk in raw if codec is None else codec.unpack(raw, piece.url):
                yield self._counted(chunk)
                last = chunk[-1:]
            if last != b"\n":
                yield self._counted(b"\n")

    def _whole(self, source: Source) -> Iterator[bytes]:
        for chunk in source.range(0, 1 << 62):
            yield chunk
            self._position += len(chunk)

    def _text(self, source: Source, begin: int, end: int) -> Iterator[bytes]:
        last = b"\n"
        at = begin
        for chunk in source.range(begin, end):
            yield self._counted(chunk)
            at += len(chunk)
            self._position += len(chunk)
            last = chunk[-1:]
        if at < end:
            raise Unreadable(source.url, "became shorter while it was read", at)
        if last != b"\n":
            yield self._counted(b"\n")

    def _counted(self, chunk: bytes) -> bytes:
        if self._count:
            self._records += chunk.count(b"\n")
        return chunk


def _bounds(source: Source, piece: Piece) -> tuple[int, int]:
    """Where the lines of the piece begin and end."""
    stop = piece.start + piece.length
    if 0 <= source.size < stop:
        why = f"has {source.size} bytes, and had {stop} or more when the job was planned"
        raise Unreadable(piece.url, why)
    # No line that begins behind the piece is its own: no need to look for one there.
    begin = _line_at(source, piece.start, stop - 1)
    if begin >= stop:
        return begin, begin
    return begin, _line_at(source, stop, 1 << 62)


def _line_at(source: Source, position: int, limit: int) -> int:
    """Where the first line begins at `position` or later: the end of the file, if none does;
    beyond `limit` if the newline before it is not among the bytes up to there."""
    if position == 0:
        return 0
    at = position - 1
    step = min(_SCAN, source.chunk)
    while at < limit:
        found = source.at(at, min(step, limit - at))
        if not found:
            return at
        if (newline := found.find(b"\n")) >= 0:
            return at + newline + 1
        at += len(found)
        step = min(step * 2, source.chunk)
    return limit + 1
