"""What programs read and how it is counted: lines of bytes, a block at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from frameworks.mapreduce.data.blocks import lines_in
from frameworks.mapreduce.data.keys import Keys


def counted(blocks: Iterator[bytes], count: Callable[[int, int], None]) -> Iterator[bytes]:
    """The same; `count` is given lines and bytes of each block."""
    for block in blocks:
        count(lines_in(block), len(block))
        yield block


def rejoined(blocks: Iterator[bytes], keys: Keys, separator: bytes) -> Iterator[bytes]:
    """With `separator` between key and value, as the reducer is to read them.  A line that is
    all key stays as it is."""
    if separator == keys.separator:
        yield from blocks
        return
    width = len(keys.separator)
    for block in blocks:
        lines = []
        for line in block.split(b"\n")[:-1]:
            key = keys.key(line)
            if len(key) == len(line):
                lines.append(line + b"\n")
            else:
                lines.append(b"%b%b%b\n" % (key, separator, line[len(key) + width :]))
        yield b"".join(lines)


__all__ = ["counted", "rejoined"]
