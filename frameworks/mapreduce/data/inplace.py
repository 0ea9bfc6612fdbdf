"""A segment of a map's output from its own place, when this process can read it there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from frameworks.mapreduce.data.segments import read_raw
from frameworks.mapreduce.messages import MapOutput
from frameworks.runtime.fetching import Blame, FetchError


def is_local(output: MapOutput) -> bool:
    """Whether this process may read the file in its place.  One of that name may be another:
    what is read is to be checked."""
    try:
        with Path(output.path or "/").open("rb") as file:
            end = output.segment.offset + output.segment.length
            return os.fstat(file.fileno()).st_size >= end
    except OSError:
        return False


def read_local(output: MapOutput, skip: int = 0) -> Iterator[bytes]:
    """The bytes of the segment, but for the first `skip`, from its place.  Raises FetchError."""
    try:
        yield from read_raw(Path(output.path), output.segment, skip)
    except OSError as error:
        raise FetchError(output.path, str(error), Blame.OUTPUT) from None
