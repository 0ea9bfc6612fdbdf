"""Splits by lines (NLineInputFormat): for input of which each line is much work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from frameworks.mapreduce import conf as properties
from frameworks.mapreduce.data import sources
from frameworks.mapreduce.data.inputs import FIELD, InputFile
from frameworks.mapreduce.job import Piece, Split
from mesos_py.errors import InvalidValue

NLINE: Final = "nline"


def divide(found: Sequence[InputFile], conf: Mapping[str, str], most: int) -> Iterator[Split]:
    """Each file in pieces of so many lines, in order; the last may have fewer.  All is read.

    Raises InvalidValue for a packed file and for more than `most` splits, Unreadable.
    """
    lines = properties.LINES_PER_MAP.of(conf)
    made = 0
    for file in found:
        if not file.parted:
            raise InvalidValue(FIELD, file.url, "is packed: NLineInputFormat cannot part it")
        begin = 0
        for end in _ends(file.url, conf, lines):
            made += 1
            if made > most:
                name = properties.LINES_PER_MAP.name
                raise InvalidValue(name, str(lines), f"makes more than {most} splits")
            yield Split((Piece(file.url, begin, end - begin),), end - begin)
            begin = end


def _ends(url: str, conf: Mapping[str, str], lines: int) -> Iterator[int]:
    """Where each piece ends."""
    last = at = seen = 0
    with sources.opened(url, conf) as source:
        for chunk in source.range(0, 1 << 62):
            found = np.flatnonzero(np.frombuffer(chunk, np.uint8) == ord("\n"))
            for index in range(lines - 1 - seen % lines, len(found), lines):
                last = at + int(found[index]) + 1
                yield last
            seen += len(found)
            at += len(chunk)
    if at > last:
        yield at
