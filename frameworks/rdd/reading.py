"""Data sets of files: how files are cut into partitions, and how tasks read those."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import IO, Any, Final

from frameworks.rdd.nodes import Environment, Node
from frameworks.rdd.paths import File, is_local, is_packed, opened, wrapped
from mesos_py.errors import InvalidValue

_CHUNK: Final = 1 << 20

# The most that is one partition of a text file: the block sizes that Hadoop takes for these.
_BLOCK: Final = 32 << 20
_REMOTE_BLOCK: Final = 128 << 20
# The last part of a file may be so much larger than the others.
_SLOP: Final = 1.1


@dataclass(frozen=True, slots=True)
class Piece:
    """Of a file, from byte `begin` to before `end`."""

    url: str
    begin: int
    end: int


@dataclass(slots=True, eq=False)
class Pieces(Node):
    """`pieces[i]` is what partition i reads, with `read`."""

    pieces: Sequence[Sequence[Piece]] = field(kw_only=True)
    read: Callable[[Piece], Iterator[Any]] = field(kw_only=True)

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        # They go with the tasks, each with its own.
        state = {each.name: getattr(self, each.name) for each in fields(self)}
        return None, {**state, "pieces": ()}

    def payload(self, split: int) -> Sequence[Piece]:
        return self.pieces[split]

    def compute(self, split: int, env: Environment) -> Iterator[Any]:
        for piece in env.payload(self):
            yield from self.read(piece)


# ---- How files are cut -----------------------------------------------------------------------


def split_evenly(files: Sequence[File], wanted: int, record: int = 1) -> list[list[Piece]]:
    """About `wanted` partitions, more if they would be larger than a block; one piece in
    each, of whole records of `record` bytes.  Packed files are not cut."""
    goal = sum(file.size for file in files) // max(wanted, 1)
    found = []
    for file in files:
        block = _BLOCK if is_local(file.url) else _REMOTE_BLOCK
        size = max(record, min(goal, block) // record * record)
        begin = 0
        if not is_packed(file.url):
            while (file.size - begin) / size > _SLOP:
                found.append([Piece(file.url, begin, begin + size)])
                begin += size
        if begin < file.size or not file.size:
            found.append([Piece(file.url, begin, file.size)])
    return found


def whole(files: Sequence[File], wanted: int) -> list[list[Piece]]:
    """At most `wanted` partitions of whole files, about equally large."""
    most = -(-sum(file.size for file in files) // max(wanted, 1))
    found: list[list[Piece]] = []
    size = most + 1
    for file in files:
        if size + file.size > most:
            found.append([])
            size = 0
        found[-1].append(Piece(file.url, 0, file.size))
        size += file.size
    return found


def each_alone(files: Sequence[File]) -> list[list[Piece]]:
    return [[Piece(file.url, 0, file.size)] for file in files]


# ---- What runs in tasks ----------------------------------------------------------------------


def _open(url: str) -> IO[bytes]:
    fs, path = opened(url)
    file: IO[bytes] = fs.open(path, "rb")
    return file


def text(piece: Piece) -> Iterator[str]:
    """Its lines, decoded; what is no UTF-8 becomes U+FFFD."""
    for line in lines(piece):
        yield line.decode("utf-8", "replace")


def lines(piece: Piece) -> Iterator[bytes]:
    """The lines that begin in this piece, without what ends them: LF, CR LF or CR."""
    with _open(piece.url) as file:
        if is_packed(piece.url):
            with wrapped(file, piece.url, "rb") as unpacked:
                for line in _broken(unpacked):
                    yield line.rstrip(b"\r\n")
            return
        # One byte before it, so that an end of line there is seen.
        at = max(piece.begin - 1, 0)
        file.seek(at)
        first = piece.begin > 0
        for line in _broken(file):
            if at >= piece.end:
                return
            if not first:
                yield line.rstrip(b"\r\n")
            first = False
            at += len(line)


def _broken(file: IO[bytes]) -> Iterator[bytes]:
    """Lines with what ends them."""
    rest: list[bytes] = []
    while chunk := file.read(_CHUNK):
        # Whether a CR ends a line, or an LF does that comes next, is seen with the next chunk.
        if b"\n" not in chunk and b"\r" not in chunk and not (rest and rest[-1].endswith(b"\r")):
            rest.append(chunk)
            continue
        *full, last = b"".join([*rest, chunk]).splitlines(keepends=True)
        if last.endswith(b"\n"):
            full.append(last)
            rest = []
        else:
            rest = [last]
        yield from full
    yield from b"".join(rest).splitlines(keepends=True)


def whole_text(piece: Piece) -> Iterator[tuple[str, str]]:
    for url, content in content_of(piece):
        yield url, content.decode("utf-8", "replace")


def whole_bytes(piece: Piece) -> Iterator[tuple[str, bytes]]:
    """As text files are: unpacked."""
    with _open(piece.url) as file, wrapped(file, piece.url, "rb") as unpacked:
        yield piece.url, unpacked.read()


def content_of(piece: Piece) -> Iterator[tuple[str, bytes]]:
    """(url, all that is in it), as it is."""
    with _open(piece.url) as file:
        yield piece.url, file.read()


def records(size: int, piece: Piece) -> Iterator[bytes]:
    """Raises InvalidValue if the last one is not whole."""
    with _open(piece.url) as file:
        file.seek(piece.begin)
        left = piece.end - piece.begin
        while left > 0:
            data = file.read(min(left, max(_CHUNK // size, 1) * size))
            if not data:
                raise InvalidValue("path", piece.url, "is shorter than it was")
            for begin in range(0, len(data), size):
                record = data[begin : begin + size]
                if len(record) < size:
                    raise InvalidValue(
                        "recordLength", size, f"{piece.url} is no whole number of records long"
                    )
                yield record
            left -= len(data)


def unpickled(piece: Piece) -> Iterator[Any]:
    """The elements of lists that were pickled one after the other."""
    with _open(piece.url) as file:
        while True:
            try:
                batch = pickle.load(file)
            except EOFError:
                return
            yield from batch
