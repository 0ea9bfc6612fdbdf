"""Keys of lines, and the order that lines have.

The key of a line is its first n fields; a line that has fewer is all key.  Lines are ordered by
key, and lines with the same key by all of their bytes, which count from 0 to 255 whatever the
locale.  With KeyFieldBasedComparator the parts of the key that it names come before that.

For sorting, lines are given a form (`sortable`) in which this order is simply that of their
bytes; what sorts, merges, spills and ships lines knows no other.  `plain` takes it back:

- In the key, byte 0 becomes 1 1, and byte 1 becomes 1 2 (most blocks have neither); the first
  byte of the separator behind it becomes 0.  So a key is smaller than whatever it begins.
- With parts, the code of each comes in front, and after each a byte 1 (see `codes.py`).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from frameworks.mapreduce import conf as properties
from frameworks.mapreduce.data import codes, keyparts
from frameworks.mapreduce.data.blocks import Lines, Positions, nth, positions, whole
from frameworks.mapreduce.data.keyparts import KeyPart
from mesos_py.errors import InvalidValue

_COMPARATOR: Final = "KeyFieldBasedComparator"
_IS_RARE: Final = re.compile(rb"[\x00\x01]")
_RARE: Final = {b"\x00": b"\x01\x01", b"\x01": b"\x01\x02"}
_ESCAPED: Final = re.compile(rb"\x01[\x01\x02]")
_COMMON: Final = {b"\x01\x01": b"\x00", b"\x01\x02": b"\x01"}


@dataclass(frozen=True, slots=True)
class Keys:
    """separator: between the fields of a line, of which the first `fields` are its key.
    parts: by what of the key lines are ordered first; part_separator is between its fields."""

    separator: bytes = b"\t"
    fields: int = 1
    parts: tuple[KeyPart, ...] = ()
    part_separator: bytes = b"\t"

    @classmethod
    def of(cls, conf: Mapping[str, str]) -> Keys:
        """Raises InvalidValue that names the property."""
        parts: tuple[KeyPart, ...] = ()
        if comparator := properties.COMPARATOR.of(conf):
            if comparator.rpartition(".")[2] != _COMPARATOR:
                name = properties.COMPARATOR.name
                raise InvalidValue(name, comparator, f"the only one here is {_COMPARATOR}")
            parts = keyparts.parse(properties.ORDER_FIELDS.name, properties.ORDER_FIELDS.of(conf))
        return cls(
            separator=separator(properties.MAP_SEPARATOR, conf),
            fields=properties.MAP_KEY_FIELDS.of(conf),
            parts=parts,
            part_separator=separator(properties.KEY_SEPARATOR, conf),
        )

    def key(self, line: bytes) -> bytes:
        """Of a line, with or without its newline."""
        line = line.removesuffix(b"\n")
        at = -len(self.separator)
        for _ in range(self.fields):
            at = line.find(self.separator, at + len(self.separator))
            if at < 0:
                return line
        return line[:at]

    def ends(self, lines: Lines) -> Positions:
        """Where the key of each line ends."""
        found = positions(lines.data, self.separator)
        return nth(found, len(self.separator), lines.starts, lines.ends, self.fields)

    def sortable(self, block: bytes) -> bytes:
        """The lines of a block in the form that is ordered by bytes; as many, in this order."""
        lines = Lines.of(block)
        return bytes(self.form(lines, self.ends(lines)).data)

    def form(self, lines: Lines, ends: Positions) -> Lines:
        """The same for lines of which the ends of their keys are known."""
        size = len(lines.data)
        rare = any(lines.padded.find(one, 0, size) >= 0 for one in _RARE)
        if self.parts or rare:
            return Lines.of(b"".join(self._sortable(lines, ends, rare)))
        form = bytearray(lines.padded)
        np.frombuffer(form, np.uint8)[ends[ends < lines.ends]] = 0
        return Lines(form, lines.starts, lines.ends)

    def _sortable(self, lines: Lines, ends: Positions, rare: bool) -> Iterator[bytes]:
        data = bytes(lines.padded)
        bounds = (lines.starts.tolist(), ends.tolist(), lines.ends.tolist())
        for front, start, end, limit in zip(self._fronts(data, lines, ends), *bounds, strict=True):
            key = data[start:end]
            if rare:
                key = _IS_RARE.sub(lambda found: _RARE[found[0]], key)
            mark = b"\0" if end < limit else b""
            yield b"%b%b%b%b\n" % (front, key, mark, data[end + 1 : limit])

    def _fronts(self, data: bytes, lines: Lines, ends: Positions) -> Iterable[bytes]:
        """What comes before the key of each line: the codes of its parts."""
        if not self.parts:
            return itertools.repeat(b"", len(lines))
        found = positions(lines.data, self.part_separator)
        coded = [self._codes(part, data, lines, ends, found) for part in self.parts]
        return coded[0] if len(coded) == 1 else map(b"".join, zip(*coded, strict=True))

    def _codes(
        self, part: KeyPart, data: bytes, lines: Lines, ends: Positions, found: Positions
    ) -> list[bytes]:
        spans = part.spans(found, len(self.part_separator), lines.starts, ends)
        texts = [
            data[start:end] for start, end in zip(spans[0].tolist(), spans[1].tolist(), strict=True)
        ]
        # Parts are often the same, and coding one takes longer than all else.
        known = {text: codes.code(text, part) for text in set(texts)}
        return [known[text] for text in texts]

    def plain(self, form: bytes) -> bytes:
        """The lines that have this form."""
        if self.parts:
            form = re.sub(rb"^(?:[^\x01]*\x01){%d}" % len(self.parts), b"", form, flags=re.M)
        first = self.separator[:1]
        if b"\x01" in form:
            return b"".join([_plain(line, first) for line in whole(form).split(b"\n")[:-1]])
        if b"\0" not in form:
            return form
        lines = Lines.of(form)
        marks = nth(positions(form, b"\0"), 1, lines.starts, lines.ends, 1)
        block = np.frombuffer(bytearray(form), np.uint8)
        block[marks[marks < lines.ends]] = first[0]
        return block.tobytes()


def _plain(form: bytes, first: bytes) -> bytes:
    key, mark, rest = form.partition(b"\0")
    if b"\x01" in key:
        key = _ESCAPED.sub(lambda found: _COMMON[found[0]], key)
    return b"%b%b%b\n" % (key, first if mark else b"", rest)


def separator(which: properties.Property[str], conf: Mapping[str, str]) -> bytes:
    """The bytes of a property that is a separator.  Raises InvalidValue."""
    text = which.of(conf)
    if not text or "\n" in text:
        raise InvalidValue(which.name, text, "must have a character, and no newline")
    return text.encode("utf-8", "surrogateescape")
