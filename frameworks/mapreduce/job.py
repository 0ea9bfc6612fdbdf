"""A job: what is to be done, as its user said it.  Plain records, kept as JSON."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """What runs over records: a command (streaming) or a function; one of them is set.

    command: parted into words as a shell would, but started without one, in the task's
        directory, which comes first in PATH.
    function: cloudpickle of a Python function; its form is said in `api.py`.
    """

    command: str = ""
    function: bytes = b""


class Shipped(msgspec.Struct, frozen=True):
    """A file that each attempt finds in its directory under `name`.

    url: where workers read it (fsspec).  archive: `name` is a directory with what is in it
        (zip, tar and its compressed kinds).  executable: it may be run.
    """

    url: str
    name: str
    archive: bool = False
    executable: bool = False


class JobSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What was submitted; does not change.

    inputs: URLs or paths (fsspec), of files, directories or globs.
    output: URL or path of the directory to be made.
    reducer: None with reduces 0 (what maps write is the output); else what each of the
        `reduces` parts of the keys goes through.
    partitioner: "hash", or "key-field" (mapreduce.partition.keypartitioner.options).
    input_format: "text", or "nline": each map has so many lines
        (mapreduce.input.lineinputformat.linespermap), which its mapper reads with the byte at
        which each begins in its file and a tab in front (but see stream.map.input.ignoreKey).
    lazy_output: a part of nothing is not there at all.
    conf: properties by Hadoop's present names (`conf.py` has their types and defaults).
    staging: URL of a directory for this job's own, that workers read and write.  What it
        has: `files/` (what is shipped) and `job.json` (this record).
    """

    job_id: str
    name: str
    user: str
    inputs: tuple[str, ...]
    output: str
    mapper: Program
    combiner: Program | None = None
    reducer: Program | None = None
    reduces: int = 1
    partitioner: str = "hash"
    input_format: str = "text"
    output_format: str = "text"
    lazy_output: bool = False
    shipped: tuple[Shipped, ...] = ()
    env: Mapping[str, str] = {}
    conf: Mapping[str, str] = {}
    staging: str = ""
    submitted_s: float = 0.0


class Piece(msgspec.Struct, frozen=True):
    """Bytes `start` to `start + length` of a file: the lines that begin there.

    A line belongs to the piece in which it begins.  length -1: all of a file that cannot
    be parted (compressed), whatever its size.
    """

    url: str
    start: int
    length: int


class Split(msgspec.Struct, frozen=True):
    """What one map task reads: mostly one piece; several small files where they are combined.

    hosts: names of hosts or agents that have it at hand, best first; () if nobody does.
    size: bytes to be read, as far as known, for progress and order.
    """

    pieces: tuple[Piece, ...]
    size: int
    hosts: tuple[str, ...] = ()
